/**
 * `npm run lab -- loop`: how long an unpaid 402 takes while the gateway works. One gateway gets 50 unpaid calls a second:
 * first with nothing else to do, then while it audits a ledger of 200,000 rows and checks 50,000 bars, again and again, one
 * at a time and six of each at once, all of them paid for. Beside it, a plain node:http server that does nothing else sends
 * the same 402 at the same rate: what it waits for is the operating system. A process that does nothing else measures both.
 * Rounds take turns. Trust the ratios: milliseconds depend on what else the machine does.
 */
import { privateKeyToAccount } from 'viem/accounts'
import { Agent, request } from 'node:http'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { readRequirement, signPayment } from '../../../gateway/client/payment.ts'
import { number, readOptions, sayTable } from '../experiment.ts'
import { type Form, ledgerForm } from './ledger-form.ts'
import { percentile } from './percentile.ts'
import { openProbedGateway } from './probed-gateway.ts'
import type { Waits } from './prober.ts'

const { rounds, seconds } = readOptions({
  rounds: number('N', 'rounds of each load', 3, 1),
  seconds: number('S', 'seconds of each load in a round', 10, 0.1),
}).values
const ROWS = 200_000
const BARS = 50_000
/** Small enough that this process is never busy for long, which would count as time of the gateway. */
const PIECE = 65_536
const agent = new Agent({ keepAlive: true, maxSockets: 256 })

interface Answer {
  readonly status: number
  readonly headers: NodeJS.Dict<string | string[]>
  readonly text: string
}

/** Sends a request, its body in small pieces. */
function send(method: string, url: string, headers: Readonly<Record<string, string>> = {}, body?: Buffer) {
  return new Promise<Answer>((resolve, reject) => {
    const length = body ? { 'content-length': String(body.length) } : {}
    const outgoing = request(url, { method, agent, headers: { ...headers, ...length } }, (response) => {
      const pieces: Buffer[] = []
      response.on('data', (piece: Buffer) => pieces.push(piece))
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text: Buffer.concat(pieces).toString(),
        }),
      )
      response.on('error', reject)
    })
    outgoing.on('error', reject)
    if (body) Readable.from(piecesOf(body)).pipe(outgoing)
    else outgoing.end()
  })
}

function* piecesOf(body: Buffer): Generator<Buffer> {
  for (let at = 0; at < body.length; at += PIECE) yield body.subarray(at, at + PIECE)
}

/** Bars of one minute each, as a random walk that is the same in every run. */
function barsBody(): Buffer {
  let [close, state] = [100, 1]
  const random = (): number => (state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff) / 0x7fffffff
  const bars = Array.from({ length: BARS }, (_, at) => {
    const [o, c] = [close, close * (1 + (random() - 0.5) * 0.002)]
    close = c
    const [h, l] = [Math.max(o, c) * (1 + random() * 0.001), Math.min(o, c) * (1 - random() * 0.001)]
    const [day, minute] = [Math.floor(at / 1440), at % 1440]
    return { t: 1_600_041_600 + day * 86_400 + minute * 60, o, h, l, c, v: Math.round(1e5 * random()) + 1 }
  })
  return Buffer.from(JSON.stringify({ bars }))
}

/** Buys an answer. Returns the seconds it took, from the payment on; null if it took longer than allowed or had no room. */
async function buy(path: string, { type, body }: Form): Promise<number | null> {
  const url = gateway.base + path
  const quote = await send('POST', url)
  const requirement = readRequirement(String(quote.headers['payment-required']), quote.text, false)
  const payment = await signPayment(
    requirement,
    privateKeyToAccount(gateway.buyer.private_key),
    Math.floor(Date.now() / 1000),
  )
  const began = performance.now()
  const headers = { 'content-type': type, [payment.header]: payment.value }
  const { status, headers: answered, text } = await send('POST', url, headers, body)
  if (status === 503) await sleep(Number(answered['retry-after'] ?? 1) * 1000)
  if (status === 504 || status === 503) return null
  if (status !== 200) throw new Error(`${path} answered ${status}: ${text.slice(0, 300)}`)
  return (performance.now() - began) / 1000
}

/** Runs `work` again and again until the time is over. Returns the seconds of each run. */
async function repeat(isOver: () => boolean, work: () => Promise<number | null>): Promise<(number | null)[]> {
  const seconds: (number | null)[] = []
  while (!isOver()) seconds.push(await work())
  return seconds
}

function row(name: string, milliseconds: readonly number[], runs: string, idle?: readonly number[]): readonly string[] {
  const figures = [0.5, 0.99, 1].map((share) => percentile(milliseconds, share).toFixed(1))
  const ratio = idle ? (percentile(milliseconds, 0.99) / percentile(idle, 0.99)).toFixed(1) : ''
  return [name, String(milliseconds.length), ...figures, ratio, runs]
}

function add(waits: Waits, more: Waits): void {
  waits.gateway.push(...more.gateway)
  waits.plain.push(...more.plain)
}

const gateway = await openProbedGateway({ LOG_LEVEL: 'error' })
const [form, bars] = [ledgerForm(ROWS), { type: 'application/json', body: barsBody() }]
const audit = (): Promise<number | null> => buy('/v1/audit', form)
const checkBars = (): Promise<number | null> => buy('/v1/bars/qc', bars)
// The first calls compile code and open threads.
await audit()
await checkBars()
const idle: Waits = { gateway: [], plain: [] }
const loads = Object.entries({
  'an audit of 200,000 rows': [audit],
  'a check of 50,000 bars': [checkBars],
  'both at once': [audit, checkBars],
  'six of each at once': [...Array<typeof audit>(6).fill(audit), ...Array<typeof audit>(6).fill(checkBars)],
}).map(([name, works]) => ({
  name,
  works,
  waits: { gateway: [], plain: [] } as Waits,
  took: [] as (number | null)[],
}))
const isOverAfter = (seconds: number): (() => boolean) => {
  const end = performance.now() + seconds * 1000
  return () => performance.now() >= end
}
for (let round = 0; round < rounds; round += 1) {
  add(idle, await gateway.probe(isOverAfter(seconds)))
  for (const { works, waits, took } of loads) {
    const isOver = isOverAfter(seconds)
    let working = works.length
    const runs = works.map(async (one) => {
      took.push(...(await repeat(isOver, one)))
      working -= 1
    })
    add(waits, await gateway.probe(() => working === 0))
    await Promise.all(runs)
    await sleep(500)
  }
}
const PLAIN = '  from plain node:http'
sayTable(
  [
    ['unpaid 402 during', 'calls', 'p50 ms', 'p99 ms', 'max ms', 'p99/idle', 'runs'],
    row('nothing else', idle.gateway, ''),
    row(PLAIN, idle.plain, ''),
    ...loads.flatMap(({ name, waits, took }) => {
      const done = took.filter((one) => one !== null)
      const mean = (done.reduce((sum, one) => sum + one, 0) / done.length).toFixed(2)
      const runs = `${done.length}, ${mean} s each; ${took.length - done.length} refused or timed out`
      return [row(name, waits.gateway, runs, idle.gateway), row(PLAIN, waits.plain, '', idle.plain)]
    }),
  ],
  [0, 6],
)
