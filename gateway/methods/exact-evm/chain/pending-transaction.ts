/** A transaction of ours, from its signature until it is confirmed or given up. */
import type { Logger } from '../../../plugin/plugin.ts'
import type { Hex } from '../../../config/networks.ts'
import type { TransactionReceipt } from '../authorization-outcome.ts'
import type { Fees, SignedTransaction, Signer } from './transaction-signer.ts'
import type { TrackedTransaction } from './transaction-tracker.ts'

/** A signed transaction. It may be signed again while it is sent; `hashes` has every version that may be mined. */
export interface PendingTransaction extends TrackedTransaction {
  nonce: number
  raw: Hex
  hash: Hex
  readonly hashes: Hex[]
  /** The first block that can contain it. */
  readonly fromBlock: number
  /** Resolves with its receipt once it is in a block, or with null if it is no longer tracked. */
  readonly mined: Promise<TransactionReceipt | null>
  /** Like `mined`, once that block is deep enough. */
  readonly confirmed: Promise<TransactionReceipt | null>
}

/** A pending transaction with everything needed to send it again. */
export interface OwnTransaction extends PendingTransaction {
  to: Hex
  data: Hex
  gas: bigint
  fees: Fees
  /** When it was last sent, as performance.now(). */
  sentAt: number
  /** Whether the node already had it when it was last sent again. */
  isKnown: boolean
  /** How many times in a row the node refused it for a reason that is not understood. */
  unexplained: number
}

type Fields = Pick<OwnTransaction, 'nonce' | 'to' | 'data' | 'gas' | 'fees' | 'fromBlock'>

interface Parts {
  readonly signer: Signer
  readonly depth: number
  readonly log: Logger
}

/** Signs a transaction. It is confirmed once it is `depth` blocks deep. Throws RpcError `unsent`. */
export async function createTransaction(parts: Parts, fields: Fields): Promise<OwnTransaction> {
  return signedTransaction(parts, fields, await parts.signer.sign({ ...fields, ...fields.fees }))
}

/** A transaction that has been signed before. */
export function signedTransaction(
  { depth, log }: Omit<Parts, 'signer'>,
  fields: Fields,
  { raw, hash }: SignedTransaction,
): OwnTransaction {
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
    unexplained: 0,
    onMined(receipt, currentDepth) {
      mined.set(receipt)
      if (currentDepth >= depth) confirmed.set(receipt)
    },
    onReorganised() {
      log.warn(
        { nonce: tx.nonce, transaction: tx.hash },
        'a reorganisation removed the block of a transaction; it is sent again',
      )
      tx.sentAt = Number.NEGATIVE_INFINITY
    },
    onFinished(receipt) {
      mined.set(receipt)
      confirmed.set(receipt)
    },
  }
  return tx
}

/** Signs a transaction again, with another nonce, fee or call. Throws RpcError `unsent`, and changes nothing then. */
export async function signAgain(signer: Signer, tx: OwnTransaction, change: Partial<Fields>): Promise<void> {
  const { nonce, to, data, gas, fees } = { ...tx, ...change }
  const signed = await signer.sign({ nonce, to, data, gas, ...fees })
  Object.assign(tx, change, signed)
  tx.hashes.push(tx.hash)
}

/** A promise and the function that resolves it. Only the first call counts. */
function latch<Value>(): { readonly value: Promise<Value>; set(value: Value): void } {
  const resolvers: { resolve?: (value: Value) => void } = {}
  const value = new Promise<Value>((resolve) => {
    resolvers.resolve = resolve
  })
  return { value, set: (result) => resolvers.resolve?.(result) }
}
