/**
 * Compares the ledger with the chain: every transfer of the token to the payee and every payment booked as settled ends
 * in one bucket. It reads, and tells; all it ever books is a debt to a payer, and it can move nothing.
 */
import type { Journal, PaymentRecord } from '../../payments/journal/journal.ts'
import { paymentKey } from '../../methods/payment-method.ts'
import type { Hex, Network } from '../../config/networks.ts'
import { bookLate, isOpenToLate } from '../../payments/late-settlement.ts'
import type { Rpc } from '../../methods/exact-evm/nodes/rpc.ts'
import type { Logger } from '../../plugin/plugin.ts'
import type { Tell } from '../alerts.ts'
import { BUCKETS, type Bucket, bucketOfSettled, bucketOfTransfer, type Transfer } from './buckets.ts'
import type { Row, Rows } from './rows.ts'
import { readTransfers } from './transfers.ts'

export interface ReconciliationParts {
  readonly rpc: Rpc
  readonly network: Network
  readonly payTo: Hex
  readonly journal: Pick<Journal, 'find' | 'list' | 'openPayments' | 'settledLate' | 'owed'>
  readonly rows: Rows
  readonly tell: Tell
  readonly log: Logger
  readonly now: () => Date
  /** Wallets whose payments are no revenue, lower case. */
  readonly own: ReadonlySet<string>
  /** Blocks behind the head that may still be replaced. */
  readonly depth: number
  /** How far back the first reading begins, in blocks; null: at the first block. */
  readonly lookBack: number | null
  readonly graceSeconds: number
}

export interface Comparison {
  readonly at: Date
  /** The last block read; null where none was. */
  readonly readTo: number | null
  /** Why the chain could not be read to its head. */
  readonly unreadable: string | null
  readonly buckets: Readonly<Record<Bucket, number>>
}

/** Blocks asked for at once; public nodes refuse wide ranges. */
const RANGE = 2_000
const RANGES_A_RUN = 500
const RECHECKED = 1_000
const DOUBTFUL = ['pending', 'unknown', 'amount_differs', 'unreadable', 'missing'] as const
const JUDGED_A_RUN = 50_000
/** Clocks of processes may differ: what was booked this recently is looked at again. */
const OVERLAP_MS = 3_600_000
/** A doubt older than this stands until somebody looks. */
const RECHECK_MS = 86_400_000
const TOLD_AT_ONCE = 100

/** Builds `compare`: one look at what is new, and again at what was in doubt. */
export function createComparison(parts: ReconciliationParts): () => Promise<Comparison> {
  const { rpc, network, payTo, journal, rows, tell, log, now, own, depth, lookBack, graceSeconds } = parts
  const id = `${network.caip2}/${network.asset}/${payTo}`.toLowerCase()
  const graceMs = graceSeconds * 1000

  async function timeOf(block: number): Promise<number> {
    const { timestamp } = await rpc.call<{ timestamp: Hex }>('eth_getBlockByNumber', `0x${block.toString(16)}`, false)
    return Number(timestamp) * 1000
  }

  async function rowOf(transfer: Transfer): Promise<Row> {
    const { from: payer, nonce, transaction, logIndex, block, amount } = transfer
    const payment = nonce ? paymentKey(network, { from: payer, nonce }) : null
    const record = payment === null ? null : await booked(transfer, await journal.find(payment))
    const { bucket, note } = bucketOfTransfer(transfer, record)
    const isOwn = own.has(payer.toLowerCase())
    const place = { network: network.caip2, transaction, block, payer, amount, payment, isOwn }
    return { id: `${transaction}/${logIndex}`, bucket, note, ...place, at: now().getTime() }
  }

  /** The one thing that is booked here: money for a payment that was sent and given back is owed to its payer. */
  async function booked(
    { amount, transaction }: Transfer,
    record: PaymentRecord | null,
  ): Promise<PaymentRecord | null> {
    if (!isOpenToLate(record) || record.amount !== amount || !sameText(record.payTo, payTo)) return record
    if (!(await bookLate(journal, record, transaction))) return record
    const details = { payment: record.key, transaction, amount: String(amount) }
    await tell({ event: 'reconciliation.late', message: 'a payment came after it was given back: it is owed', details })
    return journal.find(record.key)
  }

  const read = async (from: number, to: number): Promise<Row[]> =>
    Promise.all((await readTransfers(rpc, network, payTo, { from, to })).map(rowOf))

  /** Reads what is new, range by range. Returns the last block read and its time. */
  async function advance(): Promise<{ block: number; time: number; judged: number } | null> {
    const head = Number(await rpc.call<Hex>('eth_blockNumber')) - depth
    if (head < 0) return null
    let cursor = await rows.cursor(id)
    if (!cursor) {
      const block = lookBack === null ? 0 : Math.max(0, head - lookBack)
      cursor = { id, block, judged: lookBack === null ? 0 : await timeOf(block) }
    }
    const { judged } = cursor
    let next = cursor.block
    for (let ranges = 0; next <= head && ranges < RANGES_A_RUN; ranges++) {
      const to = Math.min(next + RANGE - 1, head)
      await rows.put(await read(next, to), { id, block: to + 1, judged })
      next = to + 1
    }
    const block = next - 1
    return block < 0 ? null : { block, time: await timeOf(block), judged }
  }

  /** Looks again at what was not matched: the ledger or the node may know more by now. */
  async function recheck(): Promise<void> {
    const doubtful = await rows.list(DOUBTFUL, RECHECKED, network.caip2)
    const recent = doubtful.filter(({ at, bucket }) => bucket === 'unreadable' || now().getTime() - at < RECHECK_MS)
    const blocks = new Set(recent.flatMap(({ block }) => (block === null ? [] : [block])))
    for (const block of blocks) await rows.put(await read(block, block))
    const alone = doubtful.filter(({ block }) => block === null).map((row) => row.id)
    for (const found of await rows.transferred(alone)) await rows.remove(found)
  }

  /** Judges what the ledger calls settled since the last time. Returns how many wait for the chain's reading. */
  async function judge(block: number, time: number, judged: number): Promise<number> {
    const states = ['settled', 'owed'] as const
    const settled = await journal.list({ states, settledSince: judged, withoutAnswers: true, limit: JUDGED_A_RUN })
    const here = settled.filter((payment) => payment.network === network.caip2 && sameText(payment.payTo, payTo))
    const transferred = await rows.transferred(here.map(({ key }) => key))
    const alone = here.filter(({ key }) => !transferred.has(key))
    const verdicts = alone.map((payment) => ({
      payment,
      ...bucketOfSettled(payment.settledAt ?? 0, { now: now().getTime(), chain: time, graceMs }),
    }))
    const waiting = verdicts.filter(({ bucket }) => bucket === 'pending').map(({ payment }) => payment.settledAt ?? 0)
    const missing = verdicts.filter(({ bucket }) => bucket === 'missing')
    const until = Math.max(judged, Math.min(now().getTime() - OVERLAP_MS, ...waiting))
    await rows.put(
      missing.map(({ payment, note }) => missingRow(payment, note)),
      { id, block: block + 1, judged: until },
    )
    return waiting.length
  }

  function missingRow({ key, payer, amount, transaction }: PaymentRecord, note: string): Row {
    const isOwn = own.has(payer.toLowerCase())
    const words = transaction === null ? note : `${note} (${transaction})`
    const place = { network: network.caip2, transaction: null, block: null, payer, amount, payment: key, isOwn }
    return { id: key, bucket: 'missing', note: words, ...place, at: now().getTime() }
  }

  async function alarm(): Promise<void> {
    const untold = await rows.untold(TOLD_AT_ONCE)
    for (const bucket of new Set(untold.map((row) => row.bucket))) {
      const some = untold.filter((row) => row.bucket === bucket)
      const details = { count: some.length, rows: some.map(shown) }
      const message = `reconciliation: ${some.length} ${bucket.replace('_', ' ')}`
      if (await tell({ event: `reconciliation.${bucket}`, message, details }))
        await rows.told(some.map((row) => row.id))
    }
  }

  let wasReadable = true
  async function readable(error: unknown): Promise<string | null> {
    if (error === null) {
      wasReadable = true
      return null
    }
    const reason = error instanceof Error ? error.message : 'unknown'
    log.warn({ err: error }, 'the chain could not be read for reconciliation')
    const details = { reason }
    if (
      wasReadable &&
      (await tell({ event: 'reconciliation.unreadable', message: 'the chain cannot be read', details }))
    )
      wasReadable = false
    return reason
  }

  return async () => {
    let failure: unknown = null
    let reached: Awaited<ReturnType<typeof advance>> = null
    let waiting = 0
    try {
      reached = await advance()
      await recheck()
      if (reached) waiting = await judge(reached.block, reached.time, reached.judged)
    } catch (error) {
      failure = error
    }
    const unreadable = await readable(failure)
    await alarm()
    const found = await rows.counts(network.caip2)
    const buckets = Object.fromEntries(BUCKETS.map((bucket) => [bucket, found.get(bucket) ?? 0])) as Record<
      Bucket,
      number
    >
    const open = (await journal.openPayments()).filter((payment) => payment.network === network.caip2)
    const sent = open.filter(({ state }) => state === 'submitted').map(({ key }) => key)
    buckets.pending += sent.length - (await rows.transferred(sent)).size + waiting
    if (unreadable !== null) buckets.unreadable += 1
    return { at: now(), readTo: reached?.block ?? null, unreadable, buckets }
  }
}

/** One comparison of several places, one after the other. `readTo` is of the first, whose chain leads. */
export function together(compares: readonly (() => Promise<Comparison>)[]): () => Promise<Comparison> {
  return async () => {
    const found: Comparison[] = []
    for (const compare of compares) found.push(await compare())
    const [first] = found
    if (!first) throw new RangeError('There is nothing to compare.')
    const sum = (bucket: Bucket): number => found.reduce((total, { buckets }) => total + buckets[bucket], 0)
    const unreadable = found.flatMap((each) => each.unreadable ?? []).join('; ')
    return {
      ...first,
      unreadable: unreadable === '' ? null : unreadable,
      buckets: Object.fromEntries(BUCKETS.map((bucket) => [bucket, sum(bucket)])) as Comparison['buckets'],
    }
  }
}

/** A row for JSON: amounts as decimal strings, times in ISO form. */
export function shown({ amount, at, isOwn, ...row }: Row) {
  return { ...row, amount: amount === null ? null : String(amount), own: isOwn, at: new Date(at).toISOString() }
}

function sameText(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase()
}
