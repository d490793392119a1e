/**
 * Compares the journal with the chain: every transfer of the token to `payTo`, and every payment recorded as settled,
 * ends up in one bucket. The comparison reads and alerts. The only thing it writes to the journal is a debt to a payer,
 * and it can move no money.
 */
import type { Hex, Network } from '../../config/networks.ts'
import type { Agreement } from '../../methods/exact-evm/nodes/agreement.ts'
import { createNodes } from '../../methods/exact-evm/nodes/nodes.ts'
import { BLOCKS_PER_REQUEST, LOOK_BACK_BLOCKS } from '../../methods/exact-evm/authorization-outcome.ts'
import { quantity, type Rpc } from '../../methods/exact-evm/nodes/rpc.ts'
import type { EvmIntent } from '../../methods/exact-evm/settlement-intent.ts'
import { mayStillSettle, recordLateSettlement as recordLateDebt } from '../../payments/debts.ts'
import { paymentKey } from '../../methods/payment-method.ts'
import type { Journal, PaymentRecord, Settlement } from '../../payments/journal/journal.ts'
import type { Logger } from '../../plugin/plugin.ts'
import type { SendAlert } from '../alert-webhook.ts'
import { BUCKETS, type Bucket, bucketOfSettled, bucketOfTransfer, isSentByOthers, type Transfer } from './buckets.ts'
import { readAgreedHeight, readAgreedTransfers, readTransfers } from './chain-transfers.ts'
import { type Findings, type Row, rowToJson } from './findings.ts'

interface SharedParts {
  readonly network: Network
  readonly payTo: Hex
  readonly journal: Pick<Journal, 'find' | 'settlements' | 'openPayments' | 'settledLate' | 'owed'>
  readonly findings: Findings
  readonly alert: SendAlert
  readonly log: Logger
  readonly now: () => Date
}

export interface ComparisonParts extends SharedParts {
  readonly rpc: Rpc
  /** Decides which payments two nodes have to show. If absent, `rpc` is believed. */
  readonly agreement?: Agreement
  /** The operator's own wallets, lower case. Their payments are not revenue and cause no alerts. */
  readonly own: ReadonlySet<string>
  /** How many blocks below the head are left alone because the chain may still replace them. */
  readonly depth: number
  /** How many blocks before the head the first run begins; null: at the first block of the chain. */
  readonly lookBack: number | null
  /** How long a payment recorded as settled may be ahead of the blocks read. */
  readonly graceSeconds: number
  /** After how many settled payments a run ends, give or take a page. Default: 200,000. */
  readonly maxJudged?: number
}

/** The wallet that is paid on one network, and where to read its chain. */
export interface ComparedRecipient {
  /** One node, or several in a list. */
  readonly rpcUrl: string
  /** A local chain: read from its first block, with no reorganisations to wait for. */
  readonly isLocal: boolean
  readonly network: Network
  readonly payTo: Hex
  /** From this amount on, in atomic units, two nodes have to show a payment. */
  readonly twoNodesFrom: bigint
}

export interface Comparison {
  readonly at: Date
  /** The last block read, or null if none was. */
  readonly readTo: number | null
  /** Why the chain could not be read to its head, or null. */
  readonly unreadable: string | null
  readonly buckets: Readonly<Record<Bucket, number>>
}

/** Blocks of Base are treated as final at this depth. */
const DEPTH = 12
const GRACE_SECONDS = 300
const READS_PER_RUN = 500
const MAX_RECHECKED = 1_000
const MAX_PENDING = 100
const DOUBTFUL = ['pending', 'unknown', 'amount_differs', 'unreadable', 'missing'] as const
const MAX_JUDGED_PER_RUN = 200_000
const SETTLEMENTS_PER_PAGE = 2_000
/**
 * Payments settled this recently are judged again by the next run: the clocks of processes differ by a little, and a
 * payment is recorded some seconds after the time that it carries.
 */
const OVERLAP_MS = 120_000
/** Doubtful rows are checked again for this long; after that they wait for a person. */
const RECHECK_MS = 86_400_000
const MAX_ALERTED_PER_RUN = 100

/** Compares the journal with one chain or several. */
export interface Compare {
  (): Promise<Comparison>
  /**
   * Reads only the newest blocks, those that may still be replaced included, and alerts what it finds. It is cheap, so
   * that a payment which others have sent is found within seconds. Throws RpcError if the chain cannot be read.
   */
  look(): Promise<void>
}

/** Creates the comparison of one recipient, with the settings that suit a local or a public chain. */
export function comparisonOf({
  rpcUrl,
  isLocal,
  own,
  twoNodesFrom,
  ...parts
}: ComparedRecipient & SharedParts & { readonly own: readonly string[] }): Compare {
  const nodes = createNodes({ addresses: rpcUrl, network: parts.network, log: parts.log })
  return createComparison({
    ...parts,
    rpc: nodes,
    agreement: { from: twoNodesFrom, nodes, log: parts.log },
    own: new Set(own.map((wallet) => wallet.toLowerCase())),
    depth: isLocal ? 0 : DEPTH,
    lookBack: isLocal ? null : LOOK_BACK_BLOCKS,
    graceSeconds: GRACE_SECONDS,
  })
}

/** Creates the comparison of one recipient. Each run reads what is new and checks again what was in doubt. */
export function createComparison(parts: ComparisonParts): Compare {
  const { network, journal, findings, log, now } = parts
  /** An outage is alerted once, when it begins. */
  let wasReadable = true

  async function reportReadability(error: unknown): Promise<string | null> {
    if (error === null) {
      wasReadable = true
      return null
    }
    const reason = error instanceof Error ? error.message : 'unknown'
    log.warn({ err: error }, 'reconciliation could not read the chain')
    const event = 'reconciliation.unreadable'
    if (wasReadable && (await parts.alert({ event, message: 'the chain cannot be read', details: { reason } })))
      wasReadable = false
    return reason
  }

  async function look(): Promise<void> {
    // Where no two nodes agree on old blocks, the newest ones are looked at all the same: an alarm needs no proof.
    const read = await Promise.allSettled([readNewBlocks(parts)])
    await readTail(parts)
    await judgePending(parts)
    await alertFindings(parts)
    if (read[0].status === 'rejected') throw read[0].reason
  }

  async function compare(): Promise<Comparison> {
    let failure: unknown = null
    let read: ReadBlocks | null = null
    let waiting = 0
    try {
      read = await readNewBlocks(parts)
      await recheck(parts)
      if (read) waiting = await judgeSettled(parts, read)
    } catch (error) {
      failure = error
    }
    const unreadable = await reportReadability(failure)
    await alertFindings(parts)
    const counts = await findings.counts(network.caip2)
    const buckets = Object.fromEntries(BUCKETS.map((bucket) => [bucket, counts.get(bucket) ?? 0])) as Record<
      Bucket,
      number
    >
    const open = (await journal.openPayments()).filter((payment) => payment.network === network.caip2)
    const submitted = open.filter(({ state }) => state === 'submitted').map(({ key }) => key)
    buckets.pending += submitted.length - (await findings.transferred(submitted)).size + waiting
    if (unreadable !== null) buckets.unreadable += 1
    return { at: now(), readTo: read?.block ?? null, unreadable, buckets }
  }

  return Object.assign(compare, { look })
}

interface ReadBlocks {
  /** The last block read, and its time in milliseconds since the epoch. */
  readonly block: number
  readonly time: number
  /** Payments settled before this time (ms) were judged by earlier runs. */
  readonly judged: number
}

const cursorId = ({ network, payTo }: ComparisonParts): string =>
  `${network.caip2}/${network.asset}/${payTo}`.toLowerCase()

/** Reads the blocks since the last run, range by range. Returns null while there are none. */
async function readNewBlocks(parts: ComparisonParts): Promise<ReadBlocks | null> {
  const { rpc, agreement, findings, depth, lookBack } = parts
  const id = cursorId(parts)
  const height = agreement ? await readAgreedHeight(agreement) : Number(await rpc.call<Hex>('eth_blockNumber'))
  const head = height - depth
  if (head < 0) return null
  let cursor = await findings.cursor(id)
  const isFirst = !cursor
  if (!cursor) {
    const block = lookBack === null ? 0 : Math.max(0, head - lookBack)
    cursor = { id, block, judged: lookBack === null ? 0 : await timeOf(rpc, block) }
  }
  const { judged } = cursor
  let next = cursor.block
  for (let reads = 0; next <= head && reads < READS_PER_RUN; reads++) {
    const to = Math.min(next + BLOCKS_PER_REQUEST - 1, head)
    // Only the newest blocks can have been read before, when they were not final.
    const instead = isFirst || to < head ? undefined : { network: parts.network.caip2, from: next, to }
    await findings.put(await readRows(parts, next, to), { id, block: to + 1, judged }, instead)
    next = to + 1
  }
  const block = next - 1
  return block < 0 ? null : { block, time: await timeOf(rpc, block), judged }
}

/**
 * Reads the blocks that the chain may still replace for payments that others have sent. They are read again once they are
 * deep; what a reorganisation has removed by then is forgotten.
 */
async function readTail(parts: ComparisonParts): Promise<void> {
  const { rpc, agreement, network, payTo, findings, depth } = parts
  if (depth === 0) return
  const cursor = await findings.cursor(cursorId(parts))
  const read = async (node: Rpc): Promise<readonly Transfer[]> => {
    const head = Number(await node.call<Hex>('eth_blockNumber'))
    // A chain that is younger than this depth has no cursor yet.
    const from = cursor?.block ?? Math.max(0, head - depth)
    return head < from || head - from >= BLOCKS_PER_REQUEST
      ? []
      : readTransfers(node, network, payTo, { from, to: head })
  }
  const rows = await rowsOf(parts, agreement ? await readFromAll(agreement, read) : await read(rpc), false)
  const foreign = rows.filter(({ isForeign }) => isForeign)
  if (foreign.length > 0) await findings.put(foreign)
}

/** Returns what any node shows: what one hides another has, and an alarm needs no proof. Throws Error if none answers. */
async function readFromAll(
  { nodes }: Agreement,
  read: (node: Rpc) => Promise<readonly Transfer[]>,
): Promise<readonly Transfer[]> {
  const answers = await nodes.askEach(read)
  if (answers.length === 0) throw new Error('no node shows the newest blocks')
  const shown = answers.flatMap(({ answer }) => answer)
  return [...new Map(shown.map((transfer) => [`${transfer.transaction}/${transfer.logIndex}`, transfer])).values()]
}

async function timeOf(rpc: Rpc, block: number): Promise<number> {
  const { timestamp } = await rpc.call<{ timestamp: Hex }>('eth_getBlockByNumber', quantity(block), false)
  return Number(timestamp) * 1000
}

/** Returns one row per transfer in a range of blocks that are deep, both ends included. */
async function readRows(parts: ComparisonParts, from: number, to: number): Promise<Row[]> {
  const { rpc, agreement, network, payTo } = parts
  const range = { from, to }
  const transfers = agreement
    ? await readAgreedTransfers(agreement, network, payTo, range)
    : await readTransfers(rpc, network, payTo, range)
  return rowsOf(parts, transfers, true)
}

/**
 * Returns the row of each transfer.
 * @param isFinal whether their blocks are deep enough to record a debt
 */
async function rowsOf(parts: ComparisonParts, transfers: readonly Transfer[], isFinal: boolean): Promise<Row[]> {
  const records = await Promise.all(
    transfers.map(async (transfer) => {
      const { from: payer, nonce } = transfer
      const record = nonce ? await parts.journal.find(paymentKey(parts.network, payer, nonce)) : null
      return isFinal ? recordLateSettlement(parts, transfer, record) : record
    }),
  )
  const ours = sendersOf(records)
  return transfers.map((transfer, at) => rowOfTransfer(parts, transfer, records[at] ?? null, ours))
}

/** Judges transfers again whose payments had not settled when they were read, by the journal alone. */
async function judgePending(parts: ComparisonParts): Promise<void> {
  const { findings, journal, network } = parts
  const pending = (await findings.list(['pending'], MAX_PENDING, network.caip2)).filter(
    ({ payment }) => payment !== null,
  )
  const records = await Promise.all(pending.map(({ payment }) => journal.find(payment ?? '')))
  const ours = sendersOf(records)
  const judged = pending.map((row, at): Row => {
    const record = records[at] ?? null
    const transfer = transferOf(row)
    return { ...row, ...bucketOfTransfer(transfer, record), isForeign: isSentByOthers(transfer, record, ours) }
  })
  const changed = judged.filter(({ bucket }) => bucket !== 'pending')
  if (changed.length > 0) await findings.put(changed)
}

/** The transfer of a row that has a payment. */
function transferOf({ id, transaction, block, payer, amount, payment, sender }: Row): Transfer {
  const nonce = payment?.split('/').at(-1) as Hex
  const logIndex = Number(id.split('/').at(-1))
  return { transaction: transaction as Hex, logIndex, block: block ?? 0, from: payer, amount, nonce, sender }
}

/** The accounts that sent the transactions of these payments, in lower case: several workers have one each. */
function sendersOf(records: readonly (PaymentRecord | null)[]): ReadonlySet<string> {
  const senders = records.map((record) => (record?.intent as EvmIntent | null | undefined) ?? null)
  return new Set(senders.flatMap((intent) => (intent?.kind === 'chain' ? [intent.sender.toLowerCase()] : [])))
}

function rowOfTransfer(
  { network, own, now }: ComparisonParts,
  transfer: Transfer,
  record: PaymentRecord | null,
  ours: ReadonlySet<string>,
): Row {
  const { from: payer, nonce, transaction, logIndex, block, amount, sender } = transfer
  const payment = nonce ? paymentKey(network, payer, nonce) : null
  const { bucket, note } = bucketOfTransfer(transfer, record)
  const isOwn = own.has(payer.toLowerCase())
  const isForeign = isSentByOthers(transfer, record, ours)
  const place = { network: network.caip2, transaction, block, payer, amount, payment, isOwn, sender, isForeign }
  return { id: `${transaction}/${logIndex}`, bucket, note, ...place, at: now().getTime() }
}

/**
 * Records a debt if a payment arrived after its reservation had been released: the payer got nothing for it. Returns
 * the record as it is afterwards.
 */
async function recordLateSettlement(
  { journal, payTo, alert }: ComparisonParts,
  { amount, transaction }: Transfer,
  record: PaymentRecord | null,
): Promise<PaymentRecord | null> {
  if (!mayStillSettle(record) || record.amount !== amount || !isSameText(record.payTo, payTo)) return record
  if (!(await recordLateDebt(journal, record, transaction))) return record
  await alert({
    event: 'reconciliation.late',
    message: 'a payment arrived after it was released: it is owed to the payer',
    details: { payment: record.key, transaction, amount: String(amount) },
  })
  return journal.find(record.key)
}

/** Checks doubtful rows again: the journal or the node may know more by now. */
async function recheck(parts: ComparisonParts): Promise<void> {
  const { findings, network, now } = parts
  const doubtful = await findings.list(DOUBTFUL, MAX_RECHECKED, network.caip2)
  const recent = doubtful.filter(({ at, bucket }) => bucket === 'unreadable' || now().getTime() - at < RECHECK_MS)
  const blocks = new Set(recent.flatMap(({ block }) => (block === null ? [] : [block])))
  for (const block of blocks) await findings.put(await readRows(parts, block, block))
  const withoutTransfer = doubtful.filter(({ block }) => block === null).map((row) => row.id)
  for (const found of await findings.transferred(withoutTransfer)) await findings.remove(found)
}

/**
 * Judges the payments settled since the last run that have no transfer. Returns how many of them wait because the chain
 * is not read far enough yet.
 */
async function judgeSettled(parts: ComparisonParts, { block, time, judged }: ReadBlocks): Promise<number> {
  const { findings, journal, network, payTo, graceSeconds, now, maxJudged = MAX_JUDGED_PER_RUN } = parts
  const readTo = { now: now().getTime(), chain: time, graceMs: graceSeconds * 1000 }
  const missing: Row[] = []
  const waiting: number[] = []
  const limit = Math.min(SETTLEMENTS_PER_PAGE, maxJudged)
  let last: number | Settlement = judged
  let judgedTo = readTo.now - OVERLAP_MS
  for (let count = 0; ;) {
    const page: readonly Settlement[] = await journal.settlements({ from: last, limit })
    const here = page.filter((payment) => payment.network === network.caip2 && isSameText(payment.payTo, payTo))
    const transferred = await findings.transferred(here.map(({ key }) => key))
    for (const payment of here) {
      if (transferred.has(payment.key)) continue
      const { bucket, note } = bucketOfSettled(payment.settledAt, readTo)
      if (bucket === 'pending') waiting.push(payment.settledAt)
      else missing.push(missingRow(parts, payment, note))
    }
    count += page.length
    last = page.at(-1) ?? last
    if (page.length < limit) break
    // The next run begins at the start of this millisecond.
    if (count >= maxJudged && typeof last === 'object' && last.settledAt > judged) {
      judgedTo = Math.min(judgedTo, last.settledAt)
      break
    }
  }
  const earliestWaiting = waiting.reduce((earliest, at) => Math.min(earliest, at), Number.POSITIVE_INFINITY)
  await findings.put(missing, {
    id: cursorId(parts),
    block: block + 1,
    judged: Math.max(judged, Math.min(judgedTo, earliestWaiting)),
  })
  return waiting.length
}

function missingRow({ network, own, now }: ComparisonParts, payment: Settlement, reason: string): Row {
  const { key, payer, amount, transaction } = payment
  const isOwn = own.has(payer.toLowerCase())
  const note = transaction === null ? reason : `${reason} (${transaction})`
  const place = {
    network: network.caip2,
    transaction: null,
    block: null,
    payer,
    amount,
    payment: key,
    isOwn,
    ...NO_SENDER,
  }
  return { id: key, bucket: 'missing', note, ...place, at: now().getTime() }
}

const NO_SENDER = { sender: null, isForeign: false } as const

/** Sends one alert per bucket for the rows that had none yet. */
async function alertFindings({ findings, alert }: ComparisonParts): Promise<void> {
  const rows = await findings.notAlerted(MAX_ALERTED_PER_RUN)
  for (const bucket of new Set(rows.map((row) => row.bucket))) {
    const found = rows.filter((row) => row.bucket === bucket)
    const details = { count: found.length, rows: found.map(rowToJson) }
    const message = `reconciliation: ${found.length} ${bucket.replace('_', ' ')}`
    if (await alert({ event: `reconciliation.${bucket}`, message, details }))
      await findings.markAlerted(found.map((row) => row.id))
  }
}

/** Combines several comparisons, run one after the other. `readTo` is that of the first, the leading network. */
export function compareAll(comparisons: readonly Compare[]): Compare {
  async function look(): Promise<void> {
    for (const each of comparisons) await each.look()
  }
  async function compare(): Promise<Comparison> {
    const results: Comparison[] = []
    for (const compare of comparisons) results.push(await compare())
    const [first] = results
    if (!first) throw new RangeError('There is no recipient to compare.')
    const sum = (bucket: Bucket): number => results.reduce((total, { buckets }) => total + buckets[bucket], 0)
    const unreadable = results.flatMap((each) => each.unreadable ?? []).join('; ')
    return {
      ...first,
      unreadable: unreadable === '' ? null : unreadable,
      buckets: Object.fromEntries(BUCKETS.map((bucket) => [bucket, sum(bucket)])) as Comparison['buckets'],
    }
  }
  return Object.assign(compare, { look })
}

function isSameText(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase()
}
