/**
 * The outcome of an authorization, read from the token's logs. The token's `authorizationState` alone proves nothing:
 * it is also true after a cancellation and after a transfer to somebody else. The logs show which it was:
 * AuthorizationUsed of this payer and nonce, followed by the Transfer it allowed.
 */
import type { Outcome } from '../payment-method.ts'
import type { Hex, Network } from '../../config/networks.ts'
import { type Agreement, askTwoNodes, needsAgreement } from './nodes/agreement.ts'
import { quantity, type Rpc, RpcError } from './nodes/rpc.ts'
import { type Authorization, stateData, TOPICS, word } from './eip3009.ts'

/** An authorization that may have been sent. Nothing before `fromBlock` can be our settlement of it. */
export type SentAuthorization = Pick<Authorization, 'from' | 'to' | 'value' | 'nonce' | 'validBefore'> & {
  /** See `finalDepth`. */
  readonly minBlocks?: number
  /** Null if the height of the chain was not known before sending. */
  readonly fromBlock: number | null
}

export interface Log {
  readonly address: Hex
  readonly topics: readonly Hex[]
  readonly data: Hex
  readonly transactionHash: Hex
  readonly blockNumber: Hex
}

export interface TransactionReceipt {
  readonly status: Hex
  readonly transactionHash: Hex
  readonly blockHash: Hex
  readonly blockNumber: Hex
  /** The account that sent the transaction. */
  readonly from?: Hex
  readonly logs: readonly Log[]
  readonly gasUsed?: Hex
  /** Wei per unit of gas. */
  readonly effectiveGasPrice?: Hex | null
  /** The fee of an OP Stack chain for the data, in wei. */
  readonly l1Fee?: Hex | null
}

/** The cost of a transaction, in wei. Some nodes write null for fields that do not apply. */
export function costOf({
  gasUsed,
  effectiveGasPrice,
  l1Fee,
}: Pick<TransactionReceipt, 'gasUsed' | 'effectiveGasPrice' | 'l1Fee'>): bigint {
  return BigInt(gasUsed ?? 0) * BigInt(effectiveGasPrice ?? 0) + BigInt(l1Fee ?? 0)
}

/**
 * Reads the outcome of an authorization from the chain.
 * - settled: the money moved to `payTo`; provisional while the block is not deep enough.
 * - refused: cancelled or moved elsewhere (deep enough), used before we sent anything, or expired unused by the chain's
 *   time.
 * - pending: everything else.
 * @throws RpcError if the chain cannot be read
 */
export type ReadOutcome = (sent: SentAuthorization) => Promise<Outcome>

/** Blocks per eth_getLogs request: public nodes refuse wider ranges. */
export const BLOCKS_PER_REQUEST = 2_000
/** About a day of two-second blocks: how far logs are searched if nothing says where to begin. */
export const LOOK_BACK_BLOCKS = 43_200
/** A reorganisation may replace the newest block by one with an earlier time. This much later, its time is certain. */
const REORGANISATION_SECONDS = 10n

/** How the outcome of a payment is read. */
export interface OutcomeReaderOptions {
  /** How many blocks deep an event must be to be final; 1, the default: the newest block is enough. */
  readonly depth?: number
  /** Which payments are decided by two nodes. If absent, the first node that answers decides. */
  readonly agreement?: Agreement
}

/** Creates the reader of one network. Where two nodes have to agree and do not, the outcome is pending. */
export function createOutcomeReader(
  rpc: Rpc,
  network: Network,
  { depth = 1, agreement }: OutcomeReaderOptions = {},
): ReadOutcome {
  return async (sent) => {
    const blocks = finalDepth(depth, sent.minBlocks)
    if (!agreement || !needsAgreement(agreement, sent.value))
      return (await readFrom(rpc, network, sent, blocks)).outcome
    const about = { payer: sent.from, nonce: sent.nonce }
    const agreed = await askTwoNodes(agreement, (node) => readFrom(node, network, sent, blocks), meaningOf, about)
    return agreed === null ? pending : agreed[0].outcome
  }
}

/** The state of an authorization according to one node. */
interface Reading {
  readonly outcome: Outcome
  /** The hash of the block with its transaction, if there is one. */
  readonly block: Hex | null
}

function meaningOf({ outcome, block }: Reading): string {
  const { state } = outcome
  if (state === 'refused') return `refused: ${outcome.reason}, block ${block ?? 'none'}`
  const depth = state === 'settled' && outcome.provisional ? ', not final yet' : ''
  return `${state}${depth}, transaction ${outcome.transaction ?? 'none'}, block ${block ?? 'none'}`
}

/** Reads the outcome from one node. */
async function readFrom(rpc: Rpc, network: Network, sent: SentAuthorization, depth: number): Promise<Reading> {
  const { from: payer, nonce, validBefore } = sent
  const head = await rpc.call<{ number: Hex; timestamp: Hex }>('eth_getBlockByNumber', 'latest', false)
  const height = Number(head.number)
  const fromBlock = sent.fromBlock ?? Math.max(0, height - LOOK_BACK_BLOCKS)
  const log = await findLog(rpc, network, sent, fromBlock, height)
  if (log) return outcomeOfLog(rpc, network, log, sent, depth > 1 && depthOf(log, height) < depth)
  const isUsedAt = async (block: number): Promise<boolean> => {
    const call = { to: network.asset, data: stateData(payer, nonce) }
    return BigInt(await rpc.call<Hex>('eth_call', call, quantity(block))) !== 0n
  }
  if (await isUsedAt(height)) {
    const wasUsedBefore = async (): Promise<boolean> => {
      try {
        return await isUsedAt(fromBlock - 1)
      } catch (error) {
        if (!(error instanceof RpcError) || error.fault !== 'refused') return false
        // After a long stop, many nodes no longer have the state of that block. They keep logs for longer.
        const earlier = await findEarlierLog(rpc, network, sent, fromBlock)
        return earlier !== undefined && depthOf(earlier, height) >= depth
      }
    }
    // If the payment was sent at an unknown height, an earlier use may be our own settlement.
    const mayHaveBeen = sent.fromBlock !== null && fromBlock > 0
    const outcome =
      mayHaveBeen && (await wasUsedBefore())
        ? refused('invalid_transaction_state', 'The authorization had been used before.')
        : pending
    return { outcome, block: null }
  }
  if (BigInt(head.timestamp) < validBefore + REORGANISATION_SECONDS) return { outcome: pending, block: null }
  const outcome = refused(
    'invalid_exact_evm_payload_authorization_valid_before',
    'The authorization expired before it was settled.',
  )
  return { outcome, block: null }
}

/** Finds the log of the authorization's use or cancellation between `fromBlock` and `height`. */
async function findLog(
  rpc: Rpc,
  network: Network,
  sent: SentAuthorization,
  fromBlock: number,
  height: number,
): Promise<Log | undefined> {
  for (let from = fromBlock; from <= height; from += BLOCKS_PER_REQUEST) {
    const log = await logWithin(rpc, network, sent, from, Math.min(from + BLOCKS_PER_REQUEST - 1, height))
    if (log) return log
  }
  return undefined
}

/** Finds it before `fromBlock`, the newest blocks first: payments are sent soon after they were found unused. */
async function findEarlierLog(
  rpc: Rpc,
  network: Network,
  sent: SentAuthorization,
  fromBlock: number,
): Promise<Log | undefined> {
  const first = Math.max(0, fromBlock - LOOK_BACK_BLOCKS)
  for (let end = fromBlock - 1; end >= first; end -= BLOCKS_PER_REQUEST) {
    const log = await logWithin(rpc, network, sent, Math.max(first, end - BLOCKS_PER_REQUEST + 1), end)
    if (log) return log
  }
  return undefined
}

/** Finds it in a range of blocks that a node answers for. */
async function logWithin(
  rpc: Rpc,
  { asset }: Network,
  { from: payer, nonce }: SentAuthorization,
  fromBlock: number,
  toBlock: number,
): Promise<Log | undefined> {
  const topics = [[TOPICS.used, TOPICS.canceled], `0x${word(payer)}`, nonce]
  const range = { fromBlock: quantity(fromBlock), toBlock: quantity(toBlock) }
  const [log] = await rpc.call<Log[]>('eth_getLogs', { address: asset, topics, ...range })
  return log
}

async function outcomeOfLog(
  rpc: Rpc,
  network: Network,
  { topics, transactionHash }: Log,
  sent: SentAuthorization,
  isShallow: boolean,
): Promise<Reading> {
  const receipt = await rpc.call<TransactionReceipt | null>('eth_getTransactionReceipt', transactionHash)
  const block = receipt?.blockHash ?? null
  if (topics[0] === TOPICS.canceled) {
    const canceled = refused('invalid_transaction_state', 'The payer cancelled the authorization.')
    return { outcome: isShallow ? pending : canceled, block }
  }
  if (!receipt) return { outcome: pending, block }
  if (hasTransfer(receipt, network, sent)) return { outcome: settledOutcome(receipt, isShallow), block }
  if (isShallow) return { outcome: pending, block }
  return { outcome: refused('invalid_transaction_state', 'The authorization was used for another transfer.'), block }
}

/** A receipt, and the height of the chain when it was read. Without a receipt, the transaction is in no block. */
export interface ReadReceipt {
  readonly receipt: TransactionReceipt | null
  readonly height: number
}

/**
 * Reads the receipt of a payment's transaction; of a large payment, what two nodes say alike about the block, the
 * status and the transfer. Null: no two nodes agree. Throws RpcError if the chain cannot be read.
 */
export async function readReceipt(
  rpc: Rpc,
  network: Network,
  transaction: Hex,
  transfer: Omit<SentAuthorization, 'fromBlock' | 'validBefore'>,
  agreement?: Agreement,
): Promise<ReadReceipt | null> {
  const ask = (node: Rpc): Promise<ReadReceipt> => readTogether(node, transaction)
  if (!agreement || !needsAgreement(agreement, transfer.value)) return ask(rpc)
  const meaning = ({ receipt }: ReadReceipt): string =>
    receipt === null
      ? 'in no block'
      : `block ${receipt.blockHash}, status ${BigInt(receipt.status)}, ${hasTransfer(receipt, network, transfer) ? 'transferred' : 'not transferred'}`
  const agreed = await askTwoNodes(agreement, ask, meaning, { transaction })
  // The lower height counts: the block must be deep for both.
  return agreed === null ? null : { ...agreed[0], height: Math.min(...agreed.map(({ height }) => height)) }
}

/** The receipts that are being read from each node, by the hash of the transaction. */
const reading = new WeakMap<Rpc, Map<Hex, Promise<ReadReceipt>>>()

/** Reads a receipt once for all payments that ask for it at the same moment: those of a batch share a transaction. */
function readTogether(node: Rpc, transaction: Hex): Promise<ReadReceipt> {
  const ofNode = reading.get(node) ?? new Map<Hex, Promise<ReadReceipt>>()
  reading.set(node, ofNode)
  const shared = ofNode.get(transaction) ?? readAlone(node, transaction).finally(() => ofNode.delete(transaction))
  ofNode.set(transaction, shared)
  return shared
}

async function readAlone(node: Rpc, transaction: Hex): Promise<ReadReceipt> {
  const answers = await node.batch([['eth_getTransactionReceipt', transaction], ['eth_blockNumber']])
  const [receipt, height] = answers as readonly [TransactionReceipt | null | Error, Hex | Error]
  if (receipt instanceof Error) throw receipt
  if (height instanceof Error) throw height
  return { receipt, height: Number(height) }
}

/**
 * How many blocks deep a log or receipt is at this height of the chain.
 * @example depthOf({ blockNumber: '0x64' }, 100) → 1, depthOf({ blockNumber: '0x64' }, 102) → 3
 */
export function depthOf({ blockNumber }: Pick<Log, 'blockNumber'>, height: number): number {
  return Math.max(1, height - Number(blockNumber) + 1)
}

/**
 * How deep a payment is final: at the depth of all payments, CONFIRM_BLOCKS. One that has to outlast a rollback of that
 * many blocks names `minBlocks`. It is final one block deeper, and at `minBlocks` at the earliest.
 * @example finalDepth(5) → 5, finalDepth(5, 5) → 6, finalDepth(1, 5) → 5, finalDepth(9, 5) → 10
 */
export function finalDepth(depth: number, minBlocks = 1): number {
  return minBlocks > 1 ? Math.max(depth + 1, minBlocks) : depth
}

/** How long a further block may take, with a margin: blocks of Base are two seconds apart. */
const SECONDS_PER_BLOCK = 3

/**
 * How long to wait until a transaction is `depth` blocks deep, if it gets into its first block within `seconds`.
 * @example secondsToDepth(30, 1) → 30, secondsToDepth(30, 3) → 36
 */
export function secondsToDepth(seconds: number, depth: number): number {
  return seconds + SECONDS_PER_BLOCK * (depth - 1)
}

/** The outcome of a transfer that is in a block: provisional if the block is shallow. */
export function settledOutcome({ transactionHash, gasUsed }: TransactionReceipt, isShallow: boolean): Outcome {
  const gas = gasUsed === undefined ? {} : { gasUsed: BigInt(gasUsed) }
  return {
    state: 'settled',
    transaction: transactionHash,
    ...gas,
    ...(isShallow ? { provisional: true as const } : {}),
  }
}

/**
 * Whether a transaction settled this payment. The token logs AuthorizationUsed and the Transfer it allowed one after
 * the other, so a Transfer of another nonce in the same transaction does not count.
 */
export function hasTransfer(
  { status, logs }: TransactionReceipt,
  { asset }: Network,
  { from, to, value, nonce }: Omit<SentAuthorization, 'fromBlock' | 'validBefore'>,
): boolean {
  const isOf = (log: Log | undefined, topics: readonly string[]): boolean =>
    log !== undefined &&
    log.address.toLowerCase() === asset.toLowerCase() &&
    topics.every((topic, at) => log.topics[at]?.toLowerCase() === topic)
  const used = logs.findIndex((log) => isOf(log, [TOPICS.used, `0x${word(from)}`, nonce]))
  const next = logs[used + 1]
  return (
    BigInt(status) === 1n &&
    used >= 0 &&
    isOf(next, [TOPICS.transfer, `0x${word(from)}`, `0x${word(to)}`]) &&
    BigInt(next?.data ?? 0) === value
  )
}

const pending = { state: 'pending', transaction: null } as const

function refused(reason: string, message: string): Outcome {
  return { state: 'refused', reason, message }
}
