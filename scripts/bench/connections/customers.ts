/** Those who pay while a gateway is attacked: one buys an answer each second, and one calls with a token each second. */
import { readdirSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Hex } from '../../../gateway/config/networks.ts'
import { readRequirement, type Requirement, signPayment } from '../../pay/payment.ts'
import type { SandboxDescription } from '../../pay/run.ts'
import type { ProbedGateway } from '../probed-gateway.ts'

const BOUGHT = '/v1/regime/current'
const PLAN = '/v1/potus/subscribe/live/24h'
const OF_PLAN = '/v1/potus/feeds'
const EVERY_MS = 1_000
const WARM_MS = 5_000
const TIMEOUT_MS = 60_000

export interface Reply {
  readonly status: number
  readonly text: string
  readonly ms: number
}

/** What they have got since the last look. */
export interface Service {
  readonly bought: readonly Reply[]
  readonly withToken: readonly Reply[]
}

export class Customers {
  readonly #base: string
  readonly #key: Hex
  readonly #requirement: Requirement
  readonly #token: string

  private constructor(base: string, key: Hex, requirement: Requirement, token: string) {
    this.#base = base
    this.#key = key
    this.#requirement = requirement
    this.#token = token
  }

  /** Reads the price, and buys a token. */
  static async open({ base, dataDir }: ProbedGateway): Promise<Customers> {
    const file = readdirSync(dataDir, { recursive: true, encoding: 'utf8' }).find((name) =>
      name.endsWith('sandbox.json'),
    )
    const { buyer } = JSON.parse(readFileSync(join(dataDir, file ?? ''), 'utf8')) as SandboxDescription
    const payment = await sign(await requirementOf('POST', base + PLAN), buyer.private_key)
    const plan = await call('POST', base + PLAN, payment)
    if (plan.status !== 200) throw new Error(`the plan was not delivered: ${plan.status} ${plan.text.slice(0, 300)}`)
    const { token } = JSON.parse(plan.text) as { token: string }
    const customers = new Customers(base, buyer.private_key, await requirementOf('GET', base + BOUGHT), token)
    // The first purchases are slow.
    const began = performance.now()
    await customers.call(() => performance.now() - began > WARM_MS)
    return customers
  }

  /** Calls until `isOver`. */
  async call(isOver: () => boolean): Promise<Service> {
    const [bought, withToken]: [Promise<Reply>[], Promise<Reply>[]] = [[], []]
    while (!isOver()) {
      const payment = await sign(this.#requirement, this.#key)
      bought.push(call('GET', this.#base + BOUGHT, payment))
      await sleep(EVERY_MS / 2)
      withToken.push(call('GET', this.#base + OF_PLAN, { 'X-SERVICE-TOKEN': this.#token }))
      await sleep(EVERY_MS / 2)
    }
    return { bought: await Promise.all(bought), withToken: await Promise.all(withToken) }
  }
}

async function requirementOf(method: string, url: string): Promise<Requirement> {
  const response = await fetch(url, { method })
  return readRequirement(response.headers.get('payment-required'), await response.text(), false)
}

async function sign(requirement: Requirement, key: Hex): Promise<Record<string, string>> {
  const { header, value } = await signPayment(requirement, key, Math.floor(Date.now() / 1000))
  return { [header]: value }
}

/** Calls on a new connection. The status is 0 if there was no answer. */
function call(method: string, url: string, headers: Readonly<Record<string, string>>): Promise<Reply> {
  const began = performance.now()
  return new Promise((done) => {
    const outgoing = request(url, { method, headers, agent: false, timeout: TIMEOUT_MS }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (piece: string) => (text += piece))
      response.on('end', () => done({ status: response.statusCode ?? 0, text, ms: performance.now() - began }))
      response.on('error', ({ message }) => done({ status: 0, text: message, ms: performance.now() - began }))
    })
    outgoing.on('timeout', () => outgoing.destroy(new Error('no answer')))
    outgoing.on('error', ({ message }) => done({ status: 0, text: message, ms: performance.now() - began }))
    outgoing.end()
  })
}
