/**
 * The chain as judge of an unclear settlement. `authorizationState` alone proves nothing (it is also true after a
 * cancel, and after a transfer to somebody else), so the judge reads what the token logged: AuthorizationUsed of this
 * payer and nonce, with the Transfer that followed it.
 */
import type { Outcome } from '../payment-method.ts'
import type { Hex, Network } from '../../config/networks.ts'
import type { Rpc } from './nodes/rpc.ts'
import { type Authorization, stateData, TOPICS, word } from './eip3009.ts'

/** The authorization asked about. Only what happened in `fromBlock` or later can be our settlement. */
export type Question = Pick<Authorization, 'from' | 'to' | 'value' | 'nonce' | 'validBefore'> & {
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

export type Judge = (question: Question) => Promise<Outcome>

/** Blocks asked for at once; public nodes refuse wide ranges. */
const RANGE = 2_000
/** Where the height before sending is not known: about a day of two-second blocks. */
const LOOK_BACK = 43_200
/** A block may still be replaced by one with an earlier time; after this long its time is trusted. */
const REORGANISATION_SECONDS = 10n

/**
 * Settled: the money moved to `payTo`, provisionally where the block is less than `depth` deep (1: the newest block
 * will do). Refused: so deep cancelled or moved elsewhere, used before we sent anything, or expired unused by the time
 * of the chain. Everything else is pending. Throws RpcError where the chain cannot be read.
 */
export function createJudge(rpc: Rpc, network: Network, depth = 1): Judge {
  const { asset } = network

  return async (question) => {
    const { from: payer, nonce, validBefore } = question
    const head = await rpc.call<{ number: Hex; timestamp: Hex }>('eth_getBlockByNumber', 'latest', false)
    const height = Number(head.number)
    const fromBlock = question.fromBlock ?? Math.max(0, height - LOOK_BACK)
    const log = await findLog(question, fromBlock, height)
    if (log) return judged(log, question, depth > 1 && depthOf(log, height) < depth)
    const state = async (block: number): Promise<boolean> =>
      BigInt(await rpc.call<Hex>('eth_call', { to: asset, data: stateData(payer, nonce) }, hex(block))) !== 0n
    if (await state(height)) {
      const before = fromBlock > 0 && (await state(fromBlock - 1).catch(() => false))
      return before ? refused('invalid_transaction_state', 'The authorization had been used before.') : pending
    }
    if (BigInt(head.timestamp) < validBefore + REORGANISATION_SECONDS) return pending
    return refused(
      'invalid_exact_evm_payload_authorization_valid_before',
      'The authorization expired before it was settled.',
    )
  }

  async function findLog(
    { from: payer, nonce }: Question,
    fromBlock: number,
    height: number,
  ): Promise<Log | undefined> {
    const topics = [[TOPICS.used, TOPICS.canceled], `0x${word(payer)}`, nonce]
    for (let from = fromBlock; from <= height; from += RANGE) {
      const range = { fromBlock: hex(from), toBlock: hex(Math.min(from + RANGE - 1, height)) }
      const [log] = await rpc.call<Log[]>('eth_getLogs', { address: asset, topics, ...range })
      if (log) return log
    }
    return undefined
  }

  async function judged({ topics, transactionHash }: Log, question: Question, isShallow: boolean): Promise<Outcome> {
    if (topics[0] === TOPICS.canceled)
      return isShallow ? pending : refused('invalid_transaction_state', 'The payer cancelled the authorization.')
    const receipt = await rpc.call<TransactionReceipt | null>('eth_getTransactionReceipt', transactionHash)
    if (!receipt) return pending
    if (hasTransfer(receipt, network, question)) return settled(transactionHash, isShallow)
    if (isShallow) return pending
    return refused('invalid_transaction_state', 'The authorization was used for another transfer.')
  }
}

/** How many blocks deep something is, given the height of the chain: 1 in the newest block. */
export function depthOf({ blockNumber }: Pick<Log, 'blockNumber'>, height: number): number {
  return Math.max(1, height - Number(blockNumber) + 1)
}

/** The outcome of a transfer that is in a block. */
export function settled(transaction: Hex, isShallow: boolean): Outcome {
  return { state: 'settled', transaction, ...(isShallow ? { provisional: true as const } : {}) }
}

/**
 * Whether a transaction moved this payment. The token logs AuthorizationUsed and the Transfer it allows one after the
 * other, so a transfer that belongs to another nonce in the same transaction does not count.
 */
export function hasTransfer(
  { status, logs }: TransactionReceipt,
  { asset }: Network,
  { from, to, value, nonce }: Omit<Question, 'fromBlock' | 'validBefore'>,
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

function hex(block: number): Hex {
  return `0x${block.toString(16)}`
}
