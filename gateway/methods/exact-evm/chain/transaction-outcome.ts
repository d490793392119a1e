/** The outcome of one payment that was sent, read from the receipt of its transaction or from the token's logs. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '../../../plugin/plugin.ts'
import type { Outcome } from '../../payment-method.ts'
import type { Hex, Network } from '../../../config/networks.ts'
import type { PendingTransaction } from './pending-transaction.ts'
import {
  costOf,
  depthOf,
  finalDepth,
  hasTransfer,
  type ReadOutcome,
  readReceipt,
  secondsToDepth,
  settledOutcome,
  type TransactionReceipt,
} from '../authorization-outcome.ts'
import { type Agreement, needsAgreement } from '../nodes/agreement.ts'
import type { Nodes } from '../nodes/nodes.ts'
import type { Simulate } from '../onchain-check.ts'
import type { Transfer } from '../eip3009.ts'

/** A payment that was sent. */
export interface SentPayment {
  readonly transfer: Transfer
  /** Nothing before this block can be our settlement. Null if the height was not known. */
  readonly fromBlock: number | null
  /** See `finalDepth`. */
  readonly minBlocks: number
  /** Whether it shares its transaction with other payments, which may have made it fail. */
  readonly isShared: boolean
  /** How many payments its transaction settles. Each of them bears an equal part of what it cost. */
  readonly payments: number
}

export interface OutcomeParts {
  readonly rpc: Nodes
  readonly network: Network
  readonly agreement: Agreement
  readonly readOutcome: ReadOutcome
  readonly simulate: Simulate
  /** How many blocks deep a payment is final that names no `minBlocks`. */
  readonly depth: number
  /** How long to wait for a block. */
  readonly confirmSeconds: number
  readonly log: Logger
  /** Sends a payment in a transaction of its own. Null: it cannot be sent now. */
  readonly sendAlone: (sent: SentPayment) => Promise<PendingTransaction | null>
}

/**
 * Finds out what a transaction in a block did for a payment. Only a deep block refuses, because a reorganisation may
 * replace a shallow one by a block in which the payment succeeds. A failed transaction proves nothing by itself:
 * another transaction may have settled the same payment.
 * @param height of the chain when the receipt was read
 * @throws RpcError if the chain cannot be read
 */
async function outcomeOfReceipt(
  parts: OutcomeParts,
  sent: SentPayment,
  receipt: TransactionReceipt,
  height: number,
): Promise<Outcome> {
  const { network, simulate, sendAlone } = parts
  const { transfer, isShared } = sent
  const transaction = receipt.transactionHash
  const isShallow = depthOf(receipt, height) < finalDepth(parts.depth, sent.minBlocks)
  if (hasTransfer(receipt, network, transfer)) return settledOutcome(receipt, isShallow)
  if (isShallow) return { state: 'pending', transaction }
  const outcome = await outcomeOfLogs(parts, sent)
  const burnt = costOf(receipt) / BigInt(sent.payments)
  if (outcome.state !== 'pending') return outcome.state === 'refused' ? { ...outcome, burnt } : outcome
  const refusal = await simulate(transfer)
  if (refusal?.reason === 'invalid_transaction_state') return { state: 'pending', transaction }
  if (refusal === null && isShared) {
    // The token would accept it, so another payment of the batch made it fail.
    const tx = await sendAlone(sent)
    if (tx === null) return { state: 'pending', transaction }
    return awaitOutcome(parts, { ...sent, isShared: false, payments: 1 }, tx, 'confirmed')
  }
  const unexplained = { reason: 'invalid_transaction_state', message: 'The transaction failed on the chain.' }
  return { state: 'refused', ...(refusal ?? unexplained), transaction, burnt }
}

/** Waits until a payment is in a block, or final. Pending if that takes longer than `confirmSeconds`. Never rejects. */
export async function awaitOutcome(
  parts: OutcomeParts,
  sent: SentPayment,
  tx: PendingTransaction,
  wait: 'mined' | 'confirmed',
): Promise<Outcome> {
  const { network, depth, confirmSeconds, log } = parts
  const blocks = finalDepth(depth, sent.minBlocks)
  const deadline = performance.now() + secondsToDepth(confirmSeconds, blocks - depth + 1) * 1000
  try {
    const mined = await before(deadline, wait === 'mined' ? tx.mined : tx.confirmed)
    // The tracker saw one node's view, at the default depth.
    if (needsAgreement(parts.agreement, sent.transfer.value) || (wait === 'confirmed' && blocks > depth))
      return await readUntilCertain(parts, sent, mined?.transactionHash ?? tx.hash, wait, deadline)
    if (mined && wait === 'mined' && hasTransfer(mined, network, sent.transfer))
      return settledOutcome(mined, blocks > 1)
    const receipt = mined && (await before(deadline, tx.confirmed))
    if (receipt) return await outcomeOfReceipt(parts, sent, receipt, Number(receipt.blockNumber) + depth - 1)
    const outcome = await outcomeOfLogs(parts, sent)
    const isEnough = outcome.state !== 'settled' || wait === 'mined' || !outcome.provisional
    return outcome.state !== 'pending' && isEnough ? outcome : { state: 'pending', transaction: tx.hash }
  } catch (error) {
    log.warn({ err: error, transaction: tx.hash }, 'the outcome of a settlement could not be read')
    return { state: 'pending', transaction: tx.hash }
  }
}

function outcomeOfLogs(
  { readOutcome }: OutcomeParts,
  { transfer, fromBlock, minBlocks }: SentPayment,
): Promise<Outcome> {
  return readOutcome({ ...transfer, fromBlock, minBlocks })
}

/** How often the nodes are asked again. */
const READ_AGAIN_MS = 500

/**
 * Reads the outcome until it is as certain as it has to be: until two nodes agree on a large payment, one of which may be a
 * block behind, and until the payment is deep enough. Pending if that takes too long. Throws RpcError.
 */
async function readUntilCertain(
  parts: OutcomeParts,
  sent: SentPayment,
  transaction: Hex,
  wait: 'mined' | 'confirmed',
  deadline: number,
): Promise<Outcome> {
  for (;;) {
    const outcome = await outcomeOfTransaction(parts, sent, transaction)
    const isTooShallow = outcome.state === 'settled' && outcome.provisional === true && wait === 'confirmed'
    if (outcome.state !== 'pending' && !isTooShallow) return outcome
    if (performance.now() >= deadline) return { state: 'pending', transaction }
    await delay(READ_AGAIN_MS)
  }
}

/**
 * The outcome of a payment whose transaction was sent: by its receipt, or by the token's logs if it is in no block.
 * @throws RpcError if the chain cannot be read
 */
export async function outcomeOfTransaction(parts: OutcomeParts, sent: SentPayment, transaction: Hex): Promise<Outcome> {
  const { rpc, network, agreement } = parts
  const read = await readReceipt(rpc, network, transaction, sent.transfer, agreement)
  if (read === null) return { state: 'pending', transaction }
  if (read.receipt) return outcomeOfReceipt(parts, sent, read.receipt, read.height)
  return outcomeOfLogs(parts, sent)
}

/** The value of a promise, or null once performance.now() reaches the deadline. */
async function before<Value>(deadline: number, promise: Promise<Value | null>): Promise<Value | null> {
  let timer: NodeJS.Timeout | undefined
  const expiry = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, Math.max(0, deadline - performance.now()), null)
  })
  try {
    return await Promise.race([promise, expiry])
  } finally {
    clearTimeout(timer)
  }
}
