/** Customers of a gateway under attack: one buys an answer each second, one calls with a token each second. */
import { privateKeyToAccount } from 'viem/accounts'
import { request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Hex } from '../../../../gateway/config/networks.ts'
import { type Requirement, signPayment } from '../../../../gateway/client/payment.ts'
import { requirementOf } from '../calls/payments.ts'
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

/** Answers since the last look. */
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
  static async open({ base, buyer }: ProbedGateway): Promise<Customers> {
    const payment = await sign(await requirementOf(base + PLAN, 'POST'), buyer.private_key)
    const plan = await call('POST', base + PLAN, payment)
    if (plan.status !== 200) throw new Error(`the plan was not delivered: ${plan.status} ${plan.text.slice(0, 300)}`)
    const { token } = JSON.parse(plan.text) as { token: string }
    const customers = new Customers(base, buyer.private_key, await requirementOf(base + BOUGHT), token)
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

async function sign(requirement: Requirement, key: Hex): Promise<Record<string, string>> {
  const { header, value } = await signPayment(requirement, privateKeyToAccount(key), Math.floor(Date.now() / 1000))
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
