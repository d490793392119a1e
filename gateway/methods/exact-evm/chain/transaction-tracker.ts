/**
 * One watch over everything an account has in flight: a single look per interval, however many payments wait. The
 * account's transaction count says which transactions are in a block; only their receipts are fetched. What is in a
 * block is watched on until no reorganisation can be expected to take it out again.
 */
import type { Hex } from '../../../config/networks.ts'
import { depthOf, type TransactionReceipt } from '../judge.ts'
import type { Rpc } from '../nodes/rpc.ts'

export interface InFlight {
  readonly nonce: number
  /** Every transaction sent with this nonce; one of them at most is mined. */
  readonly hashes: readonly Hex[]
  /** It is in a block, this many blocks deep (1: the newest). Called again as it gets deeper. */
  seen(receipt: TransactionReceipt, depth: number): void
  /** It was in a block and is in none any more. */
  vanished(): void
  /** Nobody watches any more. Null: the nonce is spent and none of ours spent it, or it was dropped. */
  land(receipt: TransactionReceipt | null): void
}

export interface Watch<Flight extends InFlight> {
  add(flight: Flight): void
  has(nonce: number): boolean
  /** Watches it no more; it lands with null. */
  drop(flight: Flight): void
  /** Lowest nonce first. */
  all(): readonly Flight[]
  close(): void
}

export interface WatchOptions {
  readonly rpc: Rpc
  readonly address: Hex
  readonly pollMs: number
  /** It is watched until it is this deep, however long that takes. */
  readonly depth: number
  /** Called after each look with the account's transaction count, to mend what stands still. */
  readonly mend: (count: number) => Promise<void>
  readonly onError: (error: unknown) => void
}

interface Watched<Flight> {
  readonly flight: Flight
  /** Since when the nonce has been spent without a receipt. */
  lostSince: number | null
  /** The block it is in, since when, and at which height it was looked at last. */
  receipt: TransactionReceipt | null
  seenSince: number
  height: number
}

/** How long a receipt may be missing for a nonce that is spent: nodes behind one address differ by some seconds. */
const LOST_MS = 10_000
/** Beyond the depth that is asked for, it is watched to this depth or for this long. */
const KEPT_BLOCKS = 12
const KEPT_MS = 120_000
/** Looks are this many times rarer while all there is to see is blocks getting deeper. */
const CALM = 4
const BATCH = 100

export function createWatch<Flight extends InFlight>(options: WatchOptions): Watch<Flight> {
  const { rpc, address, pollMs, depth: wanted, mend, onError } = options
  const flights = new Map<number, Watched<Flight>>()
  let timer: NodeJS.Timeout | null = null
  let looking = false
  let closed = false

  function land({ flight }: Watched<Flight>, receipt: TransactionReceipt | null): void {
    flights.delete(flight.nonce)
    flight.land(receipt)
  }

  async function look(): Promise<void> {
    const [count = 0, height = 0] = (
      await rpc.batch([['eth_getTransactionCount', address, 'latest'], ['eth_blockNumber']])
    ).map(numberOf)
    const spent: Watched<Flight>[] = []
    for (const watched of flights.values())
      if (watched.flight.nonce < count) spent.push(watched)
      else if (watched.receipt !== null) {
        Object.assign(watched, { receipt: null, lostSince: null })
        watched.flight.vanished()
      }
    const news = spent.filter((watched) => isDue(watched, height))
    for (let from = 0; from < news.length; from += BATCH) await collect(news.slice(from, from + BATCH), height)
    await mend(count)
  }

  /** Blocks between the depth that is asked for and the last look change nothing. */
  function isDue({ receipt, seenSince, height: before }: Watched<Flight>, height: number): boolean {
    if (receipt === null) return true
    const depth = depthOf(receipt, height)
    if (depth < KEPT_BLOCKS && performance.now() - seenSince > KEPT_MS) return depth >= wanted || before !== height
    return before !== height && (depth <= wanted || depth >= KEPT_BLOCKS)
  }

  async function collect(spent: readonly Watched<Flight>[], height: number): Promise<void> {
    const hashes = spent.flatMap(({ flight }) => flight.hashes)
    const receipts = await rpc.batch(hashes.map((hash) => ['eth_getTransactionReceipt', hash] as const))
    const found = new Map<string, TransactionReceipt>()
    for (const receipt of receipts)
      if (receipt && !(receipt instanceof Error)) {
        const mined = receipt as TransactionReceipt
        found.set(mined.transactionHash.toLowerCase(), mined)
      }
    const now = performance.now()
    for (const watched of spent) {
      const receipt = watched.flight.hashes.map((hash) => found.get(hash)).find((each) => each !== undefined)
      if (receipt) see(watched, receipt, height, now)
      else if (now - (watched.lostSince ??= now) > LOST_MS) land(watched, null)
    }
  }

  function see(watched: Watched<Flight>, receipt: TransactionReceipt, height: number, now: number): void {
    const depth = depthOf(receipt, height)
    if (watched.receipt === null) watched.seenSince = now
    Object.assign(watched, { receipt, lostSince: null, height })
    watched.flight.seen(receipt, depth)
    const isOld = depth >= KEPT_BLOCKS || now - watched.seenSince > KEPT_MS
    if (depth >= wanted && isOld) land(watched, receipt)
  }

  function schedule(): void {
    if (looking || closed || flights.size === 0) return
    const isCalm = [...flights.values()].every(({ receipt }) => receipt !== null)
    if (timer) clearTimeout(timer)
    timer = setTimeout(() => void again(), isCalm ? CALM * pollMs : pollMs)
    // Blocks getting deeper keep no process alive that is done with everything else.
    if (isCalm) timer.unref()
  }

  async function again(): Promise<void> {
    looking = true
    await look().catch(onError)
    looking = false
    schedule()
  }

  return {
    add(flight) {
      if (closed) return flight.land(null)
      const wasCalm = flights.size === 0 || !timer?.hasRef()
      flights.set(flight.nonce, { flight, lostSince: null, receipt: null, seenSince: 0, height: 0 })
      if (wasCalm) schedule()
    },
    has: (nonce) => flights.has(nonce),
    drop(flight) {
      const watched = flights.get(flight.nonce)
      if (watched) land(watched, null)
    },
    all: () => [...flights.values()].map(({ flight }) => flight).sort((one, other) => one.nonce - other.nonce),
    close() {
      closed = true
      if (timer) clearTimeout(timer)
      for (const watched of flights.values()) land(watched, null)
    },
  }
}

function numberOf(answer: unknown): number {
  if (answer instanceof Error) throw answer
  return Number(answer)
}
