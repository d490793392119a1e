/**
 * Tracks the pending transactions of one account with one request per interval, however many there are. The account's
 * transaction count shows which of them are in a block, and only their receipts are fetched. A transaction in a block
 * is tracked until a reorganisation is no longer expected to remove it.
 */
import type { Hex } from '../../../config/networks.ts'
import { depthOf, type TransactionReceipt } from '../authorization-outcome.ts'
import type { Rpc } from '../nodes/rpc.ts'

export interface TrackedTransaction {
  readonly nonce: number
  /** Every transaction that was sent with this nonce. At most one of them is mined. */
  readonly hashes: readonly Hex[]
  /** The transaction is this many blocks deep (1: the newest). Called again once it is deep enough. */
  onMined(receipt: TransactionReceipt, depth: number): void
  /** A reorganisation removed its block, and it is in no other block. */
  onReorganised(): void
  /** Tracking has ended. Null: it was dropped, or another transaction used its nonce. */
  onFinished(receipt: TransactionReceipt | null): void
}

export interface TransactionTracker<Transaction extends TrackedTransaction> {
  add(transaction: Transaction): void
  has(nonce: number): boolean
  /** Stops tracking a transaction; it finishes with null. */
  drop(transaction: Transaction): void
  /** Lowest nonce first. */
  all(): readonly Transaction[]
  /** Stops tracking; all transactions finish with null. */
  close(): void
}

export interface TrackerOptions {
  readonly rpc: Rpc
  readonly address: Hex
  readonly pollMs: number
  /** Transactions are tracked at least until they are this many blocks deep. */
  readonly depth: number
  /** Called after each poll with the account's transaction count. */
  readonly onPoll: (count: number) => Promise<void>
  readonly onError: (error: unknown) => void
}

interface Tracked<Transaction> {
  readonly transaction: Transaction
  /** Since when its nonce is used without a receipt, as performance.now(). */
  missingSince: number | null
  /** Its receipt, since when it is known, and the height of the chain when it was last fetched. */
  receipt: TransactionReceipt | null
  minedSince: number
  height: number
}

/** Shared by the functions of this file. */
interface Context<Transaction> {
  readonly options: TrackerOptions
  readonly tracked: Map<number, Tracked<Transaction>>
}

/** How long the receipt of a used nonce may be missing: nodes behind one address may differ by some seconds. */
const MISSING_MS = 10_000
/** After the required depth, a transaction is tracked until it is this deep, or for this long. */
const TRACKED_BLOCKS = 12
const TRACKED_MS = 120_000
/** The interval is this many times longer while every transaction is in a block. */
const IDLE_FACTOR = 4
const RECEIPTS_PER_REQUEST = 100

/** Creates the tracker of one account. Its timer runs only while there are transactions to track. */
export function createTracker<Transaction extends TrackedTransaction>(
  options: TrackerOptions,
): TransactionTracker<Transaction> {
  const { pollMs, onError } = options
  const tracked = new Map<number, Tracked<Transaction>>()
  const context: Context<Transaction> = { options, tracked }
  let timer: NodeJS.Timeout | null = null
  let polling = false
  let closed = false

  function schedule(): void {
    if (polling || closed || tracked.size === 0) return
    const allMined = [...tracked.values()].every(({ receipt }) => receipt !== null)
    if (timer) clearTimeout(timer)
    timer = setTimeout(() => void pollNow(), allMined ? IDLE_FACTOR * pollMs : pollMs)
    // A process that has nothing else to do need not wait for blocks to get deeper.
    if (allMined) timer.unref()
  }

  async function pollNow(): Promise<void> {
    polling = true
    await poll(context).catch(onError)
    polling = false
    schedule()
  }

  return {
    add(transaction) {
      if (closed) return transaction.onFinished(null)
      const wasIdle = tracked.size === 0 || !timer?.hasRef()
      tracked.set(transaction.nonce, { transaction, missingSince: null, receipt: null, minedSince: 0, height: 0 })
      if (wasIdle) schedule()
    },
    has: (nonce) => tracked.has(nonce),
    drop(transaction) {
      const entry = tracked.get(transaction.nonce)
      if (entry) finish(context, entry, null)
    },
    all: () =>
      [...tracked.values()].map(({ transaction }) => transaction).sort((one, other) => one.nonce - other.nonce),
    close() {
      closed = true
      if (timer) clearTimeout(timer)
      for (const entry of tracked.values()) finish(context, entry, null)
    },
  }
}

/** Reads the account's transaction count and fetches the receipts that may have changed. */
async function poll<Transaction extends TrackedTransaction>(context: Context<Transaction>): Promise<void> {
  const { rpc, address, depth, onPoll } = context.options
  const [count = 0, height = 0] = (
    await rpc.batch([['eth_getTransactionCount', address, 'latest'], ['eth_blockNumber']])
  ).map(numberOf)
  const mined: Tracked<Transaction>[] = []
  for (const entry of context.tracked.values())
    if (entry.transaction.nonce < count) mined.push(entry)
    else if (entry.receipt !== null) {
      Object.assign(entry, { receipt: null, missingSince: null })
      entry.transaction.onReorganised()
    }
  const due = mined.filter((entry) => isDue(entry, height, depth))
  for (let from = 0; from < due.length; from += RECEIPTS_PER_REQUEST)
    await fetchReceipts(context, due.slice(from, from + RECEIPTS_PER_REQUEST), height)
  await onPoll(count)
}

/** Whether a receipt has to be fetched: not while a block is only getting deeper between the depths that matter. */
function isDue({ receipt, minedSince, height: before }: Tracked<unknown>, height: number, required: number): boolean {
  if (receipt === null) return true
  const depth = depthOf(receipt, height)
  if (depth < TRACKED_BLOCKS && performance.now() - minedSince > TRACKED_MS)
    return depth >= required || before !== height
  const isConfirmedNow = depth >= required && depthOf(receipt, before) < required
  return before !== height && (isConfirmedNow || depth >= TRACKED_BLOCKS)
}

async function fetchReceipts<Transaction extends TrackedTransaction>(
  context: Context<Transaction>,
  entries: readonly Tracked<Transaction>[],
  height: number,
): Promise<void> {
  const hashes = entries.flatMap(({ transaction }) => transaction.hashes)
  const answers = await context.options.rpc.batch(hashes.map((hash) => ['eth_getTransactionReceipt', hash] as const))
  const receipts = new Map<string, TransactionReceipt>()
  for (const answer of answers)
    if (answer && !(answer instanceof Error)) {
      const receipt = answer as TransactionReceipt
      receipts.set(receipt.transactionHash.toLowerCase(), receipt)
    }
  const now = performance.now()
  for (const entry of entries) {
    const receipt = entry.transaction.hashes.map((hash) => receipts.get(hash)).find((each) => each !== undefined)
    if (receipt) recordReceipt(context, entry, receipt, height, now)
    else if (now - (entry.missingSince ??= now) > MISSING_MS) finish(context, entry, null)
  }
}

function recordReceipt<Transaction extends TrackedTransaction>(
  context: Context<Transaction>,
  entry: Tracked<Transaction>,
  receipt: TransactionReceipt,
  height: number,
  now: number,
): void {
  const depth = depthOf(receipt, height)
  if (entry.receipt === null) entry.minedSince = now
  Object.assign(entry, { receipt, missingSince: null, height })
  entry.transaction.onMined(receipt, depth)
  const isOld = depth >= TRACKED_BLOCKS || now - entry.minedSince > TRACKED_MS
  if (depth >= context.options.depth && isOld) finish(context, entry, receipt)
}

function finish<Transaction extends TrackedTransaction>(
  { tracked }: Context<Transaction>,
  { transaction }: Tracked<Transaction>,
  receipt: TransactionReceipt | null,
): void {
  tracked.delete(transaction.nonce)
  transaction.onFinished(receipt)
}

function numberOf(answer: unknown): number {
  if (answer instanceof Error) throw answer
  return Number(answer)
}
