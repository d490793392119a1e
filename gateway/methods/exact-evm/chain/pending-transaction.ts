/** A transaction, from its signature until it is final or given up. */
import type { Logger } from '../../../plugin/plugin.ts'
import type { Hex } from '../../../config/networks.ts'
import type { TransactionReceipt } from '../judge.ts'
import type { Fees, Signer } from './transaction-signer.ts'
import type { TrackedTransaction } from './transaction-tracker.ts'

/** A signed transaction. Sending it may sign it again; `hashes` keeps every version that may be mined. */
export interface PendingTransaction extends TrackedTransaction {
  nonce: number
  raw: Hex
  hash: Hex
  readonly hashes: Hex[]
  /** The first block it can be in. */
  readonly fromBlock: number
  /** The receipt once it is in a block, or null where it will never be known here. */
  readonly mined: Promise<TransactionReceipt | null>
  /** The same, once that block is as deep as is asked for. */
  readonly confirmed: Promise<TransactionReceipt | null>
}

/** A pending transaction with what its sender needs to send it again. */
export interface OwnTransaction extends PendingTransaction {
  to: Hex
  data: Hex
  gas: bigint
  fees: Fees
  /** Monotonic milliseconds of the last sending. */
  sentAt: number
  /** The node had it already when it was last sent again. */
  isKnown: boolean
  /** How often in a row the node refused to take it again, with a message that is not known here. */
  doubts: number
}

type Fields = Pick<OwnTransaction, 'nonce' | 'to' | 'data' | 'gas' | 'fees' | 'fromBlock'>

/** Signs a transaction. `depth`: how many blocks deep is confirmed. */
export function createTransaction(
  { signer, depth, log }: { readonly signer: Signer; readonly depth: number; readonly log: Logger },
  fields: Fields,
): OwnTransaction {
  const { raw, hash } = signer.sign({ ...fields, ...fields.fees })
  const [mined, confirmed] = [latch<TransactionReceipt | null>(), latch<TransactionReceipt | null>()]
  const tx: OwnTransaction = {
    ...fields,
    raw,
    hash,
    hashes: [hash],
    mined: mined.value,
    confirmed: confirmed.value,
    sentAt: performance.now(),
    isKnown: false,
    doubts: 0,
    seen(receipt, deep) {
      mined.set(receipt)
      if (deep >= depth) confirmed.set(receipt)
    },
    vanished() {
      log.warn({ nonce: tx.nonce, transaction: tx.hash }, 'a transaction has left its block; it is sent again')
      tx.sentAt = Number.NEGATIVE_INFINITY
    },
    finish(receipt) {
      mined.set(receipt)
      confirmed.set(receipt)
    },
  }
  return tx
}

/** Signs a transaction again, with another nonce, fee or call. */
export function signAgain(signer: Signer, tx: OwnTransaction, change: Partial<Fields>): void {
  Object.assign(tx, change)
  Object.assign(tx, signer.sign({ ...tx, ...tx.fees }))
  tx.hashes.push(tx.hash)
}

/** A promise that is resolved from outside, once. */
function latch<Value>(): { readonly value: Promise<Value>; set(value: Value): void } {
  const held: { resolve?: (value: Value) => void } = {}
  const value = new Promise<Value>((resolve) => {
    held.resolve = resolve
  })
  return { value, set: (kept) => held.resolve?.(kept) }
}
