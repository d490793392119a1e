/**
 * `npm run lab -- soak`: does a gateway survive a bad day? Starts it in production configuration on a local chain with a block a
 * second, measures its capacity in the first minute, and keeps it at 70 % of that with 402s, free calls, calls with a
 * token, and purchases over HTTP and MCP. Every minute something breaks; in the last third of the run, processes are
 * killed. Requests may be refused meanwhile and for five seconds more, and there is never a 500. At the end every payment is
 * compared as its buyer, the journal and the chain have it, and the heap must not have grown. Exits with 1 on any breach.
 * Needs Linux; as root it also fills the disk.
 */
import { copyFileSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { openJournal } from '../../gateway/payments/journal/open-journal.ts'
import { newWallets } from './bench/calls/payments.ts'
import { percentile } from './bench/percentile.ts'
import { faultsOf as moneyFaults, judge, readTransfers, type Verdict } from './chaos/verdict.ts'
import { flag, number, readOptions, say as print, text } from './experiment.ts'
import { untilReady } from './gateway.ts'
import { Buyers, type Product } from './soak/buyers.ts'
import { Client } from './soak/client.ts'
import { type Fault, faultsOf } from './soak/faults.ts'
import { MixedLoad } from './soak/load.ts'
import {
  budgetBreaches,
  errorsByCode,
  heapSlope,
  isPurchase,
  type Memory,
  RECOVERY_MS,
  recoveryOf,
  type Sample,
  timesOf,
} from './soak/measures.ts'
import { readMemory } from './soak/memory.ts'
import { type FaultResult, faultTable, minuteLine } from './soak/report.ts'
import { openScene, type Scene } from './soak/scene.ts'

const WALLETS = 400
const FUNDS = 1_000_000_000_000n
/** Agents that measure the capacity: enough purchases under way that the wait for a block limits nothing. */
const AGENTS = 300
const WARM_SECONDS = 12
const MEASURE_SECONDS = 25
const CALM_SECONDS = 15
/** Offered load as a share of capacity. */
const SHARE = 0.7
/** The p99 of 402s that is normal: a multiple of the one in calm time, and no machine is so quiet that less counts. */
const NORMAL = { times: 3, atLeastMs: 100 }
const BEFORE_FAULT_MS = 5_000
const MINUTE_MS = 60_000
/** Processes are killed in this last part of a run, so that before it they live long enough to show whether their heap grows. */
const KILLING_SHARE = 0.3
/** Longer than recovery leaves a payment alone that a process may still work on. */
const SETTLE_SECONDS = 120
/** The part of the heap that may be added in a minute: 6 % in half an hour, by which measurements scatter. */
const MAX_SLOPE = 0.002

const json = (body: object): Pick<Product, 'method' | 'body'> => ({ method: 'POST', body: JSON.stringify(body) })
const day = (nth: number): string => new Date(Date.UTC(2024, 5, 3 + nth)).toISOString().slice(0, 10)
const BARS = Array.from({ length: 60 }, (_, nth) => [day(nth), 100 + nth, 101 + nth, 99 + nth, 100.5 + nth, 800_000])
const ORDER = { symbol: 'BTC-USD', side: 'buy', notional_usd: 250_000, order_type: 'market' }
const PRODUCTS: readonly Product[] = [
  { kind: 'paid', method: 'GET', path: '/v1/regime/current' },
  { kind: 'paid', method: 'GET', path: '/v1/regime/history?limit=50' },
  { kind: 'paid', path: '/v1/cost/estimate', ...json(ORDER) },
  { kind: 'paid', path: '/v1/bars/qc', ...json({ symbol: 'ACME', interval: '1d', bars: BARS }) },
  { kind: 'mcp', method: 'POST', path: '/mcp', tool: { name: 'get_regime_current', arguments: {} } },
  { kind: 'mcp', method: 'POST', path: '/mcp', tool: { name: 'get_regime_history', arguments: { limit: 50 } } },
  { kind: 'plan', method: 'POST', path: '/v1/potus/subscribe/live/24h' },
]

interface SoakOptions {
  readonly minutes: number
  readonly workers: number
  readonly postgres: boolean
  readonly faultSeconds: number
  /** Only faults whose names begin with one of these. */
  readonly only: readonly string[]
}

/** The load, and what is normal for it. */
interface Normal {
  /** Calls a second. */
  readonly capacity: number
  readonly rate: number
  /** Milliseconds of a 402 while nothing is broken. */
  readonly calmP99: number
  /** The highest p99 that counts as normal. */
  readonly normalMs: number
}

interface Soak extends Normal {
  readonly faults: readonly FaultResult[]
  readonly skipped: readonly string[]
  readonly money: Verdict & { readonly purchases: number; readonly unresolved: number }
  readonly memory: readonly Memory[]
  /** Megabytes a minute in each process. */
  readonly heapSlope: number
  readonly breaches: readonly string[]
}

/** One run against one gateway. */
class SoakRun {
  readonly #scene: Scene
  readonly #client: Client
  readonly #buyers: Buyers
  readonly #load: MixedLoad
  readonly #options: SoakOptions
  readonly #say: (line: string) => void
  readonly #breaches: string[] = []
  readonly #memory: Memory[] = []

  private constructor(
    { scene, client, buyers, token }: { scene: Scene; client: Client; buyers: Buyers; token: string },
    options: SoakOptions,
    say: (line: string) => void,
  ) {
    this.#scene = scene
    this.#client = client
    this.#buyers = buyers
    this.#load = new MixedLoad(client, buyers, token)
    this.#options = options
    this.#say = say
  }

  /** Gives the buyers money, and buys the first token. */
  static async open(scene: Scene, client: Client, options: SoakOptions, say: (line: string) => void): Promise<SoakRun> {
    const wallets = newWallets(WALLETS)
    const accounts = wallets.map(({ address }) => address)
    await scene.market.fund(accounts, FUNDS)
    await untilReady(`http://127.0.0.1:${scene.port}`)
    const buyers = await Buyers.open(client, wallets, PRODUCTS)
    const token = await buyers.buyPlan()
    if (token === null) throw new Error('the plan was not delivered')
    return new SoakRun({ scene, client, buyers, token }, options, say)
  }

  async run(): Promise<Soak> {
    const duration = this.#options.minutes * MINUTE_MS
    const endsAt = Date.now() + duration
    const killsAt = endsAt - KILLING_SHARE * duration
    const { only } = this.#options
    const all = faultsOf(this.#scene).filter(({ name }) => only.some((beginning) => name.startsWith(beginning)))
    const skipped = all.flatMap(({ name, skip }) => (skip === undefined ? [] : [`${name}: ${skip}`]))
    for (const line of skipped) this.#say(`skipped: ${line}`)
    const possible = all.filter(({ skip }) => skip === undefined)
    const killing = possible.filter(({ kills }) => kills)
    const lasting = possible.filter(({ kills }) => !kills)
    if (possible.length === 0) throw new Error(`No fault that can be made here begins with ${only.join(' or ')}.`)
    const { normal, stop } = await this.#begin()
    const faults: FaultResult[] = []
    do {
      const next = nextFault(faults, Date.now() < killsAt ? [lasting, killing] : [killing, lasting])
      faults.push(await this.#minute(faults.length + 1, next.fault, next.round, normal.normalMs))
    } while (Date.now() + MINUTE_MS <= endsAt)
    await stop()
    const money = await this.#compare()
    const slope = heapSlope(this.#memory, lasting.length)
    const mean = this.#memory.reduce((sum, { heap }) => sum + heap, 0) / this.#memory.length
    if (slope > MAX_SLOPE * mean) this.#breaches.push(`the heap grows by ${slope.toFixed(2)} MB a minute`)
    return { ...normal, faults, skipped, money, memory: this.#memory, heapSlope: slope, breaches: this.#breaches }
  }

  /** Measures the capacity, and starts the load. `stop` ends it. */
  async #begin(): Promise<{ readonly normal: Normal; stop(): Promise<void> }> {
    this.#say('measuring the capacity')
    await this.#load.measureCapacity(AGENTS, WARM_SECONDS)
    const capacity = await this.#load.measureCapacity(AGENTS, MEASURE_SECONDS)
    const rate = SHARE * capacity
    this.#noteWrong(this.#client.takeSamples())
    const stop = this.#load.start(rate)
    await delay(CALM_SECONDS * 1000)
    const calm = this.#client.takeSamples()
    this.#noteWrong(calm)
    const calmP99 = percentile(timesOf('402', calm), 0.99)
    const normalMs = Math.max(NORMAL.atLeastMs, NORMAL.times * calmP99)
    const wait = `${calmP99.toFixed(0)} ms, up to ${normalMs.toFixed(0)} ms is normal`
    this.#say(`capacity ${capacity.toFixed(0)} calls/s, load ${rate.toFixed(0)} calls/s; p99 of a calm 402 ${wait}`)
    return { normal: { capacity, rate, calmP99, normalMs }, stop }
  }

  /** Breaks something, mends it, and measures what that did to the calls of a minute. */
  async #minute(minute: number, fault: Fault, round: number, normalMs: number): Promise<FaultResult> {
    const began = Date.now()
    // Its token is used from the next minute on.
    const plan = this.#buyers.buyPlan()
    await delay(BEFORE_FAULT_MS)
    const beganAt = performance.now()
    const { what, end } = await fault.begin(round).catch((error: Error) => {
      this.#breaches.push(`minute ${minute}, ${fault.name}: the fault could not be made: ${error.message}`)
      return { what: 'the fault could not be made', end: () => {} }
    })
    if (!fault.isMoment) await delay(this.#options.faultSeconds * 1000)
    await end()
    const endedAt = performance.now()
    await delay(2 * RECOVERY_MS)
    const memory = await readMemory(this.#scene.victim.pids(), this.#scene.output, minute)
    // A process that does the work of one that was killed needs more.
    if (!fault.kills) this.#memory.push(...memory)
    this.#load.token = (await plan) ?? this.#load.token
    await delay(began + MINUTE_MS - Date.now())
    const samples = this.#client.takeSamples()
    const { name, cuts = false } = fault
    const recovery = recoveryOf(samples, endedAt, normalMs)
    const broken = samples.filter(({ at }) => at >= beganAt && at <= endedAt)
    const p99During = (kind: string): number => percentile(timesOf(kind, broken), 0.99)
    const result: FaultResult = {
      name,
      what,
      calls: samples.length,
      delivered: samples.filter((sample) => isPurchase(sample) && sample.ending === 'answered').length,
      p99: percentile(timesOf('402', samples), 0.99),
      brokenP99: { quotes: p99During('402'), free: p99During('free') },
      errors: errorsByCode(samples),
      recovery,
      breaches: [...budgetBreaches(samples, { name, beganAt, endedAt, cuts }), ...recoveryBreaches(recovery)],
    }
    this.#breaches.push(...result.breaches.map((breach) => `minute ${minute}, ${name}: ${breach}`))
    this.#say(minuteLine(minute, result, memory, loadavg()[0] as number))
    return result
  }

  /** Ends the gateway, and compares what buyers, journal and chain have of every payment. */
  async #compare(): Promise<Soak['money']> {
    this.#say('the load has ended; every buyer repeats its open payments')
    const { market, victim, fromBlock, journal: place } = this.#scene
    const { network } = market.chain
    const { purchases } = this.#buyers
    const unresolved = await this.#buyers.resolveOpen()
    this.#noteWrong(this.#client.takeSamples())
    const journal = await openJournal(place)
    // An answer delivered before finality is recorded once the payment is final.
    for (let tries = 0; tries < SETTLE_SECONDS && (await journal.openPayments()).length > 0; tries++) await delay(1000)
    await victim.stop()
    const transfers = await readTransfers(market.rpc, network, market.payTo, fromBlock)
    const verdict = await judge(purchases, transfers, journal, network)
    await journal.close()
    this.#breaches.push(...moneyFaults(verdict))
    if (unresolved > 0) this.#breaches.push(`unresolved: ${unresolved}`)
    return { purchases: purchases.length, unresolved, ...verdict }
  }

  /** Notes answers that must never be, at a time without a fault. */
  #noteWrong(samples: readonly Sample[]): void {
    const wrong = samples.filter(({ ending }) => ending === 'wrong')
    if (wrong.length > 0) this.#breaches.push(`answers that must never be: ${JSON.stringify(errorsByCode(wrong))}`)
  }
}

/**
 * The fault of the next minute, and how often it was made before: the next of the first list, or of the second one if that
 * is empty.
 */
function nextFault(
  made: readonly FaultResult[],
  [first, second]: readonly [readonly Fault[], readonly Fault[]],
): { readonly fault: Fault; readonly round: number } {
  const faults = first.length > 0 ? first : second
  const count = made.filter(({ name }) => faults.some((fault) => fault.name === name)).length
  return { fault: faults[count % faults.length] as Fault, round: Math.floor(count / faults.length) }
}

function recoveryBreaches({ sold, quoted }: FaultResult['recovery']): readonly string[] {
  return [
    ...(sold * 1000 > RECOVERY_MS ? [`the first purchase was delivered after ${sold.toFixed(1)} s`] : []),
    ...(quoted * 1000 > RECOVERY_MS ? [`402s were slow for ${quoted.toFixed(1)} s`] : []),
  ]
}

/** Runs the soak. `say` receives progress lines. */
async function soak(options: SoakOptions, say: (line: string) => void): Promise<Soak> {
  const scene = await openScene(options)
  const client = new Client(`http://127.0.0.1:${scene.port}`)
  try {
    const result = await (await SoakRun.open(scene, client, options, say)).run()
    if (result.breaches.length > 0) {
      const kept = join(tmpdir(), `tollgate-soak-${Date.now()}.log`)
      copyFileSync(scene.output, kept)
      say(`what the gateway has printed is in ${kept}`)
    }
    return result
  } finally {
    await client.close()
    await scene.close()
  }
}

const { values } = readOptions({
  minutes: number('N', 'one fault a minute, for so long', 30),
  workers: number('N', 'processes of the gateway', 2, 1),
  postgres: flag('keep the journal in PostgreSQL'),
  faults: text('A,B', 'only faults whose names begin with one of these, such as node,disk', ''),
  'fault-seconds': number('N', 'how long each fault lasts', 20),
  json: flag('print everything as JSON'),
})
const options = { ...values, faultSeconds: values['fault-seconds'], only: values.faults.split(',') }
const result = await soak(options, values.json ? (line) => process.stderr.write(`${line}\n`) : print)
const { money, faults, breaches } = result
if (values.json)
  print(JSON.stringify(result, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value), 2))
else {
  const counts = Object.entries(money).map(([name, count]) => `${name} ${count}`)
  print(`\n${faultTable(faults)}\n\n${counts.join(', ')}`)
  print(`heap: ${result.heapSlope.toFixed(3)} MB a minute in each process`)
  for (const breach of breaches) print(`BREACH ${breach}`)
  print(breaches.length === 0 ? 'the gateway has kept its error budget' : `${breaches.length} breaches`)
}
if (breaches.length > 0) process.exitCode = 1
