/**
 * What became of an authorization, read from the token's logs. The token's `authorizationState` alone proves nothing:
 * it is also true after a cancellation and after a transfer to somebody else. The logs show which it was:
 * AuthorizationUsed of this payer and nonce, followed by the Transfer it allowed.
 */
import type { Outcome } from '../payment-method.ts'
import type { Hex, Network } from '../../config/networks.ts'
import { quantity, type Rpc } from './nodes/rpc.ts'
import { type Authorization, stateData, TOPICS, word } from './eip3009.ts'

/** An authorization that may have been sent. Nothing before `fromBlock` can be our settlement of it. */
export type SentAuthorization = Pick<Authorization, 'from' | 'to' | 'value' | 'nonce' | 'validBefore'> & {
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
  readonly blockNumber: Hex
  readonly logs: readonly Log[]
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

/**
 * Creates the reader of one network.
 * @param depth how many blocks deep an event must be to be final; 1: the newest block is enough
 */
export function createOutcomeReader(rpc: Rpc, network: Network, depth = 1): ReadOutcome {
  return async (sent) => {
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
      const wasUsedBefore = fromBlock > 0 && (await isUsedAt(fromBlock - 1).catch(() => false))
      return wasUsedBefore ? refused('invalid_transaction_state', 'The authorization had been used before.') : pending
    }
    if (BigInt(head.timestamp) < validBefore + REORGANISATION_SECONDS) return pending
    return refused(
      'invalid_exact_evm_payload_authorization_valid_before',
      'The authorization expired before it was settled.',
    )
  }
}

/** Finds the log of the authorization's use or cancellation between `fromBlock` and `height`. */
async function findLog(
  rpc: Rpc,
  { asset }: Network,
  { from: payer, nonce }: SentAuthorization,
  fromBlock: number,
  height: number,
): Promise<Log | undefined> {
  const topics = [[TOPICS.used, TOPICS.canceled], `0x${word(payer)}`, nonce]
  for (let from = fromBlock; from <= height; from += BLOCKS_PER_REQUEST) {
    const range = { fromBlock: quantity(from), toBlock: quantity(Math.min(from + BLOCKS_PER_REQUEST - 1, height)) }
    const [log] = await rpc.call<Log[]>('eth_getLogs', { address: asset, topics, ...range })
    if (log) return log
  }
  return undefined
}

async function outcomeOfLog(
  rpc: Rpc,
  network: Network,
  { topics, transactionHash }: Log,
  sent: SentAuthorization,
  isShallow: boolean,
): Promise<Outcome> {
  if (topics[0] === TOPICS.canceled)
    return isShallow ? pending : refused('invalid_transaction_state', 'The payer cancelled the authorization.')
  const receipt = await rpc.call<TransactionReceipt | null>('eth_getTransactionReceipt', transactionHash)
  if (!receipt) return pending
  if (hasTransfer(receipt, network, sent)) return settledOutcome(transactionHash, isShallow)
  if (isShallow) return pending
  return refused('invalid_transaction_state', 'The authorization was used for another transfer.')
}

/**
 * How many blocks deep a log or receipt is at this height of the chain.
 * @example depthOf({ blockNumber: '0x64' }, 100) → 1, depthOf({ blockNumber: '0x64' }, 102) → 3
 */
export function depthOf({ blockNumber }: Pick<Log, 'blockNumber'>, height: number): number {
  return Math.max(1, height - Number(blockNumber) + 1)
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
export function settledOutcome(transaction: Hex, isShallow: boolean): Outcome {
  return { state: 'settled', transaction, ...(isShallow ? { provisional: true as const } : {}) }
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
