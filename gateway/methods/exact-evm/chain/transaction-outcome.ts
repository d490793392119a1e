/** What became of one payment that was sent, read from the receipt of its transaction or from the token's logs. */
import type { Logger } from '../../../plugin/plugin.ts'
import type { Outcome } from '../../payment-method.ts'
import type { Network } from '../../../config/networks.ts'
import type { PendingTransaction } from './pending-transaction.ts'
import {
  depthOf,
  hasTransfer,
  type ReadOutcome,
  settledOutcome,
  type TransactionReceipt,
} from '../authorization-outcome.ts'
import type { Simulate } from '../onchain-check.ts'
import type { Transfer } from '../eip3009.ts'

/** A payment that was sent. */
export interface SentPayment {
  readonly transfer: Transfer
  /** Nothing before this block can be our settlement. Null if the height was not known. */
  readonly fromBlock: number | null
  /** Whether it shares its transaction with other payments, which may have made it fail. */
  readonly isShared: boolean
}

export interface OutcomeParts {
  readonly network: Network
  readonly readOutcome: ReadOutcome
  readonly simulate: Simulate
  /** How many blocks deep a payment is final. */
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
export async function outcomeOfReceipt(
  parts: OutcomeParts,
  sent: SentPayment,
  receipt: TransactionReceipt,
  height: number,
): Promise<Outcome> {
  const { network, readOutcome, simulate, depth, sendAlone } = parts
  const { transfer, fromBlock, isShared } = sent
  const transaction = receipt.transactionHash
  const isShallow = depthOf(receipt, height) < depth
  if (hasTransfer(receipt, network, transfer)) return settledOutcome(transaction, isShallow)
  if (isShallow) return { state: 'pending', transaction }
  const outcome = await readOutcome({ ...transfer, fromBlock })
  if (outcome.state !== 'pending') return outcome
  const refusal = await simulate(transfer)
  if (refusal?.reason === 'invalid_transaction_state') return { state: 'pending', transaction }
  if (refusal === null && isShared) {
    // The token would accept it, so another payment of the batch made it fail.
    const tx = await sendAlone(sent)
    if (tx === null) return { state: 'pending', transaction }
    return awaitOutcome(parts, { ...sent, isShared: false }, tx, 'confirmed')
  }
  const unexplained = { reason: 'invalid_transaction_state', message: 'The transaction failed on the chain.' }
  return { state: 'refused', ...(refusal ?? unexplained), transaction }
}

/** Waits until a payment is in a block, or final. Pending if that takes longer than `confirmSeconds`. Never rejects. */
export async function awaitOutcome(
  parts: OutcomeParts,
  sent: SentPayment,
  tx: PendingTransaction,
  wait: 'mined' | 'confirmed',
): Promise<Outcome> {
  const { network, readOutcome, depth, confirmSeconds, log } = parts
  const deadline = performance.now() + confirmSeconds * 1000
  try {
    const mined = await before(deadline, wait === 'mined' ? tx.mined : tx.confirmed)
    if (mined && wait === 'mined' && hasTransfer(mined, network, sent.transfer))
      return settledOutcome(mined.transactionHash, depth > 1)
    const receipt = mined && (await before(deadline, tx.confirmed))
    if (receipt) return await outcomeOfReceipt(parts, sent, receipt, Number(receipt.blockNumber) + depth - 1)
    const outcome = await readOutcome({ ...sent.transfer, fromBlock: sent.fromBlock })
    const isEnough = outcome.state !== 'settled' || wait === 'mined' || !outcome.provisional
    return outcome.state !== 'pending' && isEnough ? outcome : { state: 'pending', transaction: tx.hash }
  } catch (error) {
    log.warn({ err: error, transaction: tx.hash }, 'the outcome of a settlement could not be read')
    return { state: 'pending', transaction: tx.hash }
  }
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
