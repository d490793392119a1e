/**
 * Tracks all pending transactions of one account, with one request per interval however many there are. The account's
 * transaction count says which of them are in a block, and only their receipts are fetched. A transaction in a block is
 * tracked until no reorganisation can be expected to remove it.
 */
import type { Hex } from '../../../config/networks.ts'
import { depthOf, type TransactionReceipt } from '../judge.ts'
import type { Rpc } from '../nodes/rpc.ts'

export interface TrackedTransaction {
  readonly nonce: number
  /** Every transaction sent with this nonce; one of them at most is mined. */
  readonly hashes: readonly Hex[]
  /** It is in a block, this many blocks deep (1: the newest). Called again as it gets deeper. */
  seen(receipt: TransactionReceipt, depth: number): void
  /** It was in a block and is in none any more. */
  vanished(): void
  /** Nobody watches any more. Null: the nonce is spent and none of ours spent it, or it was dropped. */
  finish(receipt: TransactionReceipt | null): void
}

export interface TransactionTracker<Transaction extends TrackedTransaction> {
  add(transaction: Transaction): void
  has(nonce: number): boolean
  /** Watches it no more; it lands with null. */
  drop(transaction: Transaction): void
  /** Lowest nonce first. */
  all(): readonly Transaction[]
  close(): void
}

export interface TrackerOptions {
  readonly rpc: Rpc
  readonly address: Hex
  readonly pollMs: number
  /** It is watched until it is this deep, however long that takes. */
  readonly depth: number
  /** Called after each look with the account's transaction count, to mend what stands still. */
  readonly mend: (count: number) => Promise<void>
  readonly onError: (error: unknown) => void
}

interface Watched<Transaction> {
  readonly transaction: Transaction
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

export function createTracker<Transaction extends TrackedTransaction>(
  options: TrackerOptions,
): TransactionTracker<Transaction> {
  const { rpc, address, pollMs, depth: wanted, mend, onError } = options
  const tracked = new Map<number, Watched<Transaction>>()
  let timer: NodeJS.Timeout | null = null
  let looking = false
  let closed = false

  function finish({ transaction }: Watched<Transaction>, receipt: TransactionReceipt | null): void {
    tracked.delete(transaction.nonce)
    transaction.finish(receipt)
  }

  async function look(): Promise<void> {
    const [count = 0, height = 0] = (
      await rpc.batch([['eth_getTransactionCount', address, 'latest'], ['eth_blockNumber']])
    ).map(numberOf)
    const spent: Watched<Transaction>[] = []
    for (const watched of tracked.values())
      if (watched.transaction.nonce < count) spent.push(watched)
      else if (watched.receipt !== null) {
        Object.assign(watched, { receipt: null, lostSince: null })
        watched.transaction.vanished()
      }
    const news = spent.filter((watched) => isDue(watched, height))
    for (let from = 0; from < news.length; from += BATCH) await collect(news.slice(from, from + BATCH), height)
    await mend(count)
  }

  /** Blocks between the depth that is asked for and the last look change nothing. */
  function isDue({ receipt, seenSince, height: before }: Watched<Transaction>, height: number): boolean {
    if (receipt === null) return true
    const depth = depthOf(receipt, height)
    if (depth < KEPT_BLOCKS && performance.now() - seenSince > KEPT_MS) return depth >= wanted || before !== height
    return before !== height && (depth <= wanted || depth >= KEPT_BLOCKS)
  }

  async function collect(spent: readonly Watched<Transaction>[], height: number): Promise<void> {
    const hashes = spent.flatMap(({ transaction }) => transaction.hashes)
    const receipts = await rpc.batch(hashes.map((hash) => ['eth_getTransactionReceipt', hash] as const))
    const found = new Map<string, TransactionReceipt>()
    for (const receipt of receipts)
      if (receipt && !(receipt instanceof Error)) {
        const mined = receipt as TransactionReceipt
        found.set(mined.transactionHash.toLowerCase(), mined)
      }
    const now = performance.now()
    for (const watched of spent) {
      const receipt = watched.transaction.hashes.map((hash) => found.get(hash)).find((each) => each !== undefined)
      if (receipt) see(watched, receipt, height, now)
      else if (now - (watched.lostSince ??= now) > LOST_MS) finish(watched, null)
    }
  }

  function see(watched: Watched<Transaction>, receipt: TransactionReceipt, height: number, now: number): void {
    const depth = depthOf(receipt, height)
    if (watched.receipt === null) watched.seenSince = now
    Object.assign(watched, { receipt, lostSince: null, height })
    watched.transaction.seen(receipt, depth)
    const isOld = depth >= KEPT_BLOCKS || now - watched.seenSince > KEPT_MS
    if (depth >= wanted && isOld) finish(watched, receipt)
  }

  function schedule(): void {
    if (looking || closed || tracked.size === 0) return
    const isCalm = [...tracked.values()].every(({ receipt }) => receipt !== null)
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
    add(transaction) {
      if (closed) return transaction.finish(null)
      const wasCalm = tracked.size === 0 || !timer?.hasRef()
      tracked.set(transaction.nonce, { transaction, lostSince: null, receipt: null, seenSince: 0, height: 0 })
      if (wasCalm) schedule()
    },
    has: (nonce) => tracked.has(nonce),
    drop(transaction) {
      const watched = tracked.get(transaction.nonce)
      if (watched) finish(watched, null)
    },
    all: () =>
      [...tracked.values()].map(({ transaction }) => transaction).sort((one, other) => one.nonce - other.nonce),
    close() {
      closed = true
      if (timer) clearTimeout(timer)
      for (const watched of tracked.values()) finish(watched, null)
    },
  }
}

function numberOf(answer: unknown): number {
  if (answer instanceof Error) throw answer
  return Number(answer)
}
