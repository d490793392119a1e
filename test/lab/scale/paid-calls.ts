/**
 * A discrete-event simulation of paid calls: callers, event loops and cores, the journal, and the chain. It answers how
 * busy every part is, how long calls take, and which part is full first.
 *
 * Assumptions: calls come at random (Poisson) and each goes to a process at random. The event loop's part of a call is
 * spread evenly over its steps. A call always costs the same. What is not CPU is a fixed time. With SQLite, the CPU of the
 * other threads is the journal's and is spent by the one writer of the file; with PostgreSQL, the server spends its own.
 */
import { quantileSorted } from '../../../plugins/lib/quant/descriptive-statistics.ts'
import { seededRandom } from '../../../plugins/lib/quant/seeded-random.ts'
import { type Batching, Blocks, type ChainLimits, feeGrowth, steadyGas, Wallet } from './chain.ts'
import type { CallCost } from './costs.ts'
import { Clock, Cores, EventLoop, GroupCommit, Lock, MAX_GROUP, SharedSync } from './queues.ts'

/** The journal in one SQLite file per machine, or in one PostgreSQL server per cell. */
export type JournalSetup =
  | { readonly engine: 'sqlite'; readonly syncSeconds: number }
  | {
      readonly engine: 'postgresql'
      readonly syncSeconds: number
      /** There and back again, without the server's work. */
      readonly networkSeconds: number
      readonly cores: number
      /** CPU of the server per statement, and per change in it. */
      readonly statementSeconds: number
      readonly changeSeconds: number
    }

/** Each payment is moved on a chain before its answer leaves. */
export interface ExactSettling {
  readonly scheme: 'exact'
  /** Chains among which the payments are spread. */
  readonly networks: number
  readonly chain: ChainLimits
  /** The part of each block that is left for us. */
  readonly share: number
  readonly batching: Batching
  /** How often a gateway looks for a new block. */
  readonly pollSeconds: number
}

/** Each payment is a signed voucher of a channel. Nothing waits for a chain; channels are claimed later. */
export interface Vouchers {
  readonly scheme: 'vouchers'
}

export type SettlingSetup = ExactSettling | Vouchers

export interface Setup {
  readonly paidPerSecond: number
  /** Unpaid calls, answered with 402, for each paid one. */
  readonly unpaidPerPaid: number
  /** So many paid calls come at once, in the middle, spread over the cells. */
  readonly burst: number
  /** Independent copies of everything below: each has its part of the buyers. One is simulated. */
  readonly cells: number
  /** Machines per cell. */
  readonly machines: number
  readonly coresPerMachine: number
  readonly processesPerMachine: number
  readonly paid: CallCost
  readonly unpaid: CallCost
  /** An answer of a node of the chain. */
  readonly nodeSeconds: number
  readonly journal: JournalSetup
  readonly settling: SettlingSetup
  /** How long to simulate, after a warm-up. */
  readonly seconds: number
  readonly seed: number
}

export interface ResourceUse {
  readonly name: string
  /** 1: full. What is asked of it, as a part of what it can do; above 1 its queue grows for ever. */
  readonly use: number
}

export interface Latency {
  readonly mean: number
  readonly p50: number
  readonly p99: number
}

export interface Outcome {
  readonly paid: Latency
  readonly unpaid: Latency
  readonly resources: readonly ResourceUse[]
  /** Paid calls that were answered per second, of all cells. */
  readonly answeredPerSecond: number
  /** Changes per commit of the journal. */
  readonly changesPerCommit: number
  readonly commitsPerSecond: number
  /** Null without a chain. */
  readonly settling: {
    readonly paymentsPerTransaction: number
    readonly gasPerPayment: number
    readonly transactionsPerSecond: number
    /** By how much the base fee of each network would rise per block, if nobody else used it. 0: it does not. */
    readonly feeGrowthPerBlock: number
  } | null
  /** How long until the last call of the burst was answered. Null without a burst. */
  readonly burstSeconds: number | null
}

type Step = () => void
type Change = 'reserve' | 'move' | 'deliver'

/** Durable changes of a paid call: reserved, submitted with the answer, settled, delivered. A voucher is not sent. */
export const CHANGES = { exact: 4, vouchers: 3 } as const
/** Turns of the event loop of a paid call. */
const TURNS = { exact: 3, vouchers: 3 } as const

export const EVENT_LOOPS = 'event loops of the gateways'
export const GATEWAY_CORES = 'cores of the gateways'
export const JOURNAL_WRITER = 'journal: the writer of each file'
export const JOURNAL_STATEMENTS = 'journal: one statement at a time per process'
export const DATABASE_CORES = 'journal: cores of the database'
export const PENDING = 'wallets: transactions in the pool of the node'
export const BLOCK_GAS = 'chain: gas of the blocks'
export const STEADY_GAS = 'chain: gas at which the fee stays'

interface Process {
  readonly loop: EventLoop
  readonly cores: Cores
  readonly write: (change: Change, done: Step) => void
  readonly commits: GroupCommit<Change>
  /** One wallet for each network. */
  readonly wallets: readonly Wallet[]
}

interface Cell {
  readonly clock: Clock
  readonly random: () => number
  readonly processes: readonly Process[]
  readonly machines: readonly Cores[]
  readonly databaseCores: Cores | null
  readonly chains: readonly Blocks[]
}

function buildCell(setup: Setup): Cell {
  const { journal, settling, nodeSeconds } = setup
  const clock = new Clock()
  const random = seededRandom(setup.seed)
  const machines = Array.from({ length: setup.machines }, () => new Cores(clock, setup.coresPerMachine))
  const databaseCores = journal.engine === 'postgresql' ? new Cores(clock, journal.cores) : null
  const log = new SharedSync(clock, journal.syncSeconds)
  const chains =
    settling.scheme === 'exact'
      ? Array.from(
          { length: settling.networks },
          () =>
            new Blocks(
              clock,
              settling.chain,
              settling.share / setup.cells,
              random(),
              () => random() * settling.pollSeconds,
            ),
        )
      : []
  const processes = machines.flatMap((cores) => {
    const commit = commitOf(setup, clock, { cores, writer: new Lock(), databaseCores, log })
    return Array.from({ length: setup.processesPerMachine }, (): Process => {
      const commits = new GroupCommit<Change>(clock, commit)
      const wallets =
        settling.scheme === 'exact'
          ? chains.map((blocks) => new Wallet(clock, blocks, settling.chain, settling.batching, nodeSeconds))
          : []
      return {
        loop: new EventLoop(cores),
        cores,
        commits,
        write: (change, done) => commits.write(change, done),
        wallets,
      }
    })
  })
  return { clock, random, processes, machines, databaseCores, chains }
}

interface JournalParts {
  readonly cores: Cores
  /** The one writer of the machine's file. */
  readonly writer: Lock
  readonly databaseCores: Cores | null
  readonly log: SharedSync
}

/** Returns what writes one group of changes. */
function commitOf(
  { journal, paid, settling }: Setup,
  clock: Clock,
  { cores, writer, databaseCores, log }: JournalParts,
): (size: number, done: Step) => void {
  if (journal.engine === 'sqlite') {
    const changeSeconds = paid.others / CHANGES[settling.scheme]
    return (size, done) =>
      writer.take((release) =>
        cores.run(size * changeSeconds, () =>
          clock.after(journal.syncSeconds, () => {
            release()
            done()
          }),
        ),
      )
  }
  const { networkSeconds, statementSeconds, changeSeconds } = journal
  return (size, done) =>
    clock.after(networkSeconds / 2, () =>
      databaseCores?.run(statementSeconds + size * changeSeconds, () =>
        log.sync(() => clock.after(networkSeconds / 2, done)),
      ),
    )
}

/** Takes one paid call through a process, and calls back when its answer has left. */
function pay(
  { nodeSeconds, paid, settling: { scheme } }: Setup,
  { clock, random }: Cell,
  at: Process,
  done: Step,
): void {
  const turn = paid.loop / TURNS[scheme]
  const answered = (): void =>
    at.loop.run(turn, () => {
      done()
      at.write('deliver', () => {})
    })
  const settle = (): void =>
    at.loop.run(turn, () =>
      (at.wallets[Math.floor(random() * at.wallets.length)] as Wallet).settle({
        record: (recorded) => at.write('move', recorded),
        mined: () => at.write('move', answered),
      }),
    )
  at.loop.run(turn, () =>
    clock.after(nodeSeconds, () =>
      at.write('reserve', scheme === 'exact' ? settle : () => at.loop.run(turn, () => at.write('move', answered))),
    ),
  )
}

/** Outcomes as callers saw them. */
interface Seen {
  /** How long calls took that came after the warm-up. */
  readonly paid: number[]
  readonly unpaid: number[]
  /** Paid calls that were answered in the time that is measured. */
  answered: number
  burstAnswered: number
  lastOfBurst: number
}

/** The counters at one moment. */
interface Counters {
  readonly loops: number
  readonly cores: number
  readonly databaseCores: number
  readonly changes: number
  readonly commits: number
  readonly payments: number
  readonly batches: number
  readonly pendingAtBlocks: number
  readonly blocks: number
  readonly sentGas: number
  readonly minedGas: number
}

function countersOf({ processes, machines, databaseCores, chains }: Cell): Counters {
  const sum = <Item>(items: readonly Item[], of: (item: Item) => number): number =>
    items.reduce((total, item) => total + of(item), 0)
  const wallets = processes.flatMap((process) => process.wallets)
  return {
    loops: sum(processes, ({ loop }) => loop.busySeconds),
    cores: sum(machines, ({ busySeconds }) => busySeconds),
    databaseCores: databaseCores?.busySeconds ?? 0,
    changes: sum(processes, ({ commits }) => commits.changes),
    commits: sum(processes, ({ commits }) => commits.commits),
    payments: sum(wallets, ({ payments }) => payments),
    batches: sum(wallets, ({ batches }) => batches),
    pendingAtBlocks: sum(wallets, ({ pendingAtBlocks }) => pendingAtBlocks),
    blocks: sum(wallets, ({ blocks }) => blocks),
    sentGas: sum(wallets, ({ gas }) => gas),
    minedGas: sum(chains, ({ gas }) => gas),
  }
}

const WARM_UP_SECONDS = 5

/**
 * Simulates one cell. The same setup always gives the same outcome.
 *
 * @example simulate({ paidPerSecond: 10, cells: 1, … }).resources // → [{ name: 'event loops of the gateways', use: 0.01 }, …]
 */
export function simulate(setup: Setup): Outcome {
  const cell = buildCell(setup)
  const { clock, random, processes } = cell
  const { seconds, unpaidPerPaid, cells } = setup
  const burst = Math.ceil(setup.burst / cells)
  const seen: Seen = { paid: [], unpaid: [], answered: 0, burstAnswered: 0, lastOfBurst: 0 }
  const end = WARM_UP_SECONDS + seconds
  const anyProcess = (): Process => processes[Math.floor(random() * processes.length)] as Process

  const callAndPay = (isOfBurst: boolean): void => {
    const began = clock.now
    pay(setup, cell, anyProcess(), () => {
      if (began >= WARM_UP_SECONDS) seen.paid.push(clock.now - began)
      if (clock.now >= WARM_UP_SECONDS && clock.now < end) seen.answered += 1
      if (!isOfBurst) return
      seen.lastOfBurst = clock.now
      seen.burstAnswered += 1
    })
  }
  const callUnpaid = (): void => {
    const began = clock.now
    const { loop, cores } = anyProcess()
    if (setup.unpaid.others > 0) cores.run(setup.unpaid.others, () => {})
    loop.run(setup.unpaid.loop, () => {
      if (began >= WARM_UP_SECONDS) seen.unpaid.push(clock.now - began)
    })
  }
  const arrive = (perSecond: number, call: Step): void => {
    if (!(perSecond > 0)) return
    const next = (): void =>
      clock.after(-Math.log(1 - random()) / perSecond, () => {
        if (clock.now > end) return
        call()
        next()
      })
    next()
  }

  const rate = setup.paidPerSecond / cells
  arrive(rate, () => callAndPay(false))
  arrive(rate * unpaidPerPaid, callUnpaid)
  const burstAt = WARM_UP_SECONDS + seconds / 2
  if (burst > 0)
    clock.after(burstAt, () => {
      for (let call = 0; call < burst; call++) callAndPay(true)
    })
  clock.run(WARM_UP_SECONDS)
  const before = countersOf(cell)
  clock.run(end)
  const after = countersOf(cell)
  // The last calls are still on their way.
  clock.run(end + DRAIN_SECONDS)
  const difference = Object.fromEntries(
    Object.entries(after).map(([name, value]) => [name, value - before[name as keyof Counters]]),
  ) as unknown as Counters
  return {
    paid: latencyOf(seen.paid),
    unpaid: latencyOf(seen.unpaid),
    resources: resourcesOf(setup, difference),
    answeredPerSecond: (seen.answered / seconds) * cells,
    changesPerCommit: difference.changes / difference.commits,
    commitsPerSecond: (difference.commits / seconds) * cells,
    settling: settlingOf(setup, difference),
    burstSeconds: burst > 0 && seen.burstAnswered === burst ? seen.lastOfBurst - burstAt : null,
  }
}

/** How long calls that are on their way may still take. */
const DRAIN_SECONDS = 30

function latencyOf(seconds: readonly number[]): Latency {
  const sorted = seconds.toSorted((one, other) => one - other)
  return {
    mean: sorted.reduce((sum, one) => sum + one, 0) / sorted.length,
    p50: quantileSorted(sorted, 0.5),
    p99: quantileSorted(sorted, 0.99),
  }
}

function resourcesOf(setup: Setup, used: Counters): readonly ResourceUse[] {
  const { machines, coresPerMachine, processesPerMachine, journal, settling, seconds, paid, cells } = setup
  const processes = machines * processesPerMachine
  const resources = [
    { name: EVENT_LOOPS, use: used.loops / seconds / processes },
    { name: GATEWAY_CORES, use: used.cores / seconds / machines / coresPerMachine },
  ]
  // A writer is always busy under load, with groups that grow. It is full when all its groups are.
  const fullGroups = used.changes / MAX_GROUP / seconds
  if (journal.engine === 'sqlite') {
    const changeSeconds = paid.others / CHANGES[settling.scheme]
    const groupSeconds = journal.syncSeconds + MAX_GROUP * changeSeconds
    resources.push({ name: JOURNAL_WRITER, use: (fullGroups / machines) * groupSeconds })
  } else {
    const { networkSeconds, statementSeconds, changeSeconds, syncSeconds, cores } = journal
    const groupSeconds = networkSeconds + statementSeconds + MAX_GROUP * changeSeconds + 1.5 * syncSeconds
    resources.push(
      { name: JOURNAL_STATEMENTS, use: (fullGroups / processes) * groupSeconds },
      { name: DATABASE_CORES, use: used.databaseCores / seconds / cores },
    )
  }
  if (settling.scheme === 'exact') {
    const { chain, networks, share } = settling
    const perSecond = (gas: number): number => (gas / seconds / networks) * cells
    resources.push(
      { name: PENDING, use: used.pendingAtBlocks / used.blocks / chain.pendingPerWallet },
      { name: BLOCK_GAS, use: (perSecond(used.sentGas) * chain.blockSeconds) / chain.blockGas / share },
      { name: STEADY_GAS, use: perSecond(used.minedGas) / steadyGas(chain) },
    )
  }
  return resources
}

function settlingOf({ settling, seconds, cells }: Setup, used: Counters): Outcome['settling'] {
  if (settling.scheme !== 'exact') return null
  const { chain, networks } = settling
  const use = (used.minedGas * cells) / seconds / networks / steadyGas(chain)
  return {
    paymentsPerTransaction: used.payments / used.batches,
    gasPerPayment: used.sentGas / used.payments,
    transactionsPerSecond: (used.batches / seconds) * cells,
    feeGrowthPerBlock: Math.max(0, feeGrowth(chain, use)),
  }
}

/** The part that has most to do. */
export function busiest({ resources }: Outcome): ResourceUse {
  return resources.reduce((most, one) => (one.use > most.use ? one : most))
}

/** How full the fullest part may be. Above it, waiting times grow fast. */
export const FULL = 0.8

export interface Capacity {
  /** Paid calls a second at which the first part is 80 % full. */
  readonly paidPerSecond: number
  /** The parts, the fullest first. */
  readonly resources: readonly ResourceUse[]
}

/**
 * Finds the rate at which the first part is 80 % full, within 1 %. Use grows almost in proportion to the rate, so each try
 * starts where the last one points to, between the rates that are known to be too low and too high.
 */
export function capacityOf(setup: Setup): Capacity {
  const seconds = Math.min(setup.seconds, SEARCH_SECONDS)
  let low = 0
  let high = Number.POSITIVE_INFINITY
  let rate = setup.paidPerSecond
  for (let tries = 0; ; tries++) {
    const outcome = simulate({ ...setup, paidPerSecond: rate, seconds, burst: 0 })
    const { use } = busiest(outcome)
    if (Math.abs(use - FULL) < 0.01 * FULL || high - low < 0.01 * rate || tries === MAX_TRIES)
      return { paidPerSecond: rate, resources: outcome.resources.toSorted((one, other) => other.use - one.use) }
    if (use < FULL) low = rate
    else high = rate
    const pointed = rate * Math.min(MAX_STEP, FULL / use)
    rate = pointed > low && pointed < high ? pointed : (low + Math.min(high, 2 * rate)) / 2
  }
}

const SEARCH_SECONDS = 20
const MAX_TRIES = 20
/** Largest step of the search: the rate asked for may be far below what a machine can do. */
const MAX_STEP = 8
