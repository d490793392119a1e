/** What the chain says of one payment that was sent, from the receipt of its transaction or from the token's logs. */
import type { Logger } from '../../../plugin/plugin.ts'
import type { Outcome } from '../../payment-method.ts'
import type { Hex, Network } from '../../../config/networks.ts'
import type { PendingTransaction } from './pending-transaction.ts'
import { depthOf, hasTransfer, type Judge, settled, type TransactionReceipt } from '../judge.ts'
import type { Simulate } from '../check.ts'
import type { Transfer } from '../eip3009.ts'

/** A payment that was sent: what it asks of the token, and what is asked of the chain. */
export interface Sent {
  readonly transfer: Transfer
  /** Only what happened in this block or later can be our settlement. */
  readonly fromBlock: number | null
  /** It shared its transaction with others, which may have failed it. */
  readonly isShared: boolean
}

export interface VerdictParts {
  readonly network: Network
  readonly judge: Judge
  readonly simulate: Simulate
  /** How many blocks deep is certain. */
  readonly depth: number
  /** How long a block is waited for. */
  readonly confirmSeconds: number
  readonly log: Logger
  /** Sends a payment in a transaction of its own. Null: it cannot be sent now. */
  readonly alone: (sent: Sent) => Promise<PendingTransaction | null>
}

export interface Verdicts {
  /** Of a receipt, at this height of the chain. Throws RpcError. */
  concluded(sent: Sent, receipt: TransactionReceipt, height: number): Promise<Outcome>
  /** Waits for the block, or for the depth that is certain. Never rejects. */
  awaited(sent: Sent, tx: PendingTransaction, wait: 'mined' | 'confirmed'): Promise<Outcome>
}

export function createVerdicts(parts: VerdictParts): Verdicts {
  const { network, judge, simulate, depth, confirmSeconds, log, alone } = parts

  /**
   * What a transaction in a block did. Only a deep one refuses: a shallow block may be replaced by one in which the
   * payment succeeds. One that failed may have lost against another that moved the same payment.
   */
  async function concluded(sent: Sent, receipt: TransactionReceipt, height: number): Promise<Outcome> {
    const { transfer, fromBlock, isShared } = sent
    const transaction = receipt.transactionHash
    const isShallow = depthOf(receipt, height) < depth
    if (hasTransfer(receipt, network, transfer)) return settled(transaction, isShallow)
    if (isShallow) return { state: 'pending', transaction }
    const verdict = await judge({ ...transfer, fromBlock })
    if (verdict.state !== 'pending') return verdict
    const named = await simulate(transfer)
    if (named?.reason === 'invalid_transaction_state') return { state: 'pending', transaction }
    if (named === null && isShared) return goneAlone(sent, transaction)
    const unnamed = { reason: 'invalid_transaction_state', message: 'The transaction failed on the chain.' }
    return { state: 'refused', ...(named ?? unnamed), transaction }
  }

  /** A batch failed it although the token would take it: a neighbour's doing. */
  async function goneAlone(sent: Sent, transaction: Hex): Promise<Outcome> {
    const tx = await alone(sent)
    if (tx === null) return { state: 'pending', transaction }
    return awaited({ ...sent, isShared: false }, tx, 'confirmed')
  }

  async function awaited(sent: Sent, tx: PendingTransaction, wait: 'mined' | 'confirmed'): Promise<Outcome> {
    const until = performance.now() + confirmSeconds * 1000
    try {
      const mined = await before(until, wait === 'mined' ? tx.mined : tx.confirmed)
      if (mined && wait === 'mined' && hasTransfer(mined, network, sent.transfer))
        return settled(mined.transactionHash, depth > 1)
      const receipt = mined && (await before(until, tx.confirmed))
      if (receipt) return await concluded(sent, receipt, Number(receipt.blockNumber) + depth - 1)
      const verdict = await judge({ ...sent.transfer, fromBlock: sent.fromBlock })
      const isFar = verdict.state !== 'settled' || wait === 'mined' || !verdict.provisional
      return verdict.state !== 'pending' && isFar ? verdict : { state: 'pending', transaction: tx.hash }
    } catch (error) {
      log.warn({ err: error, transaction: tx.hash }, 'the outcome of a settlement could not be read')
      return { state: 'pending', transaction: tx.hash }
    }
  }

  return { concluded, awaited }
}

/** The value, or null at this moment of performance.now(). */
async function before<Value>(moment: number, promise: Promise<Value | null>): Promise<Value | null> {
  let timer: NodeJS.Timeout | undefined
  const expiry = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, Math.max(0, moment - performance.now()), null)
  })
  try {
    return await Promise.race([promise, expiry])
  } finally {
    clearTimeout(timer)
  }
}
