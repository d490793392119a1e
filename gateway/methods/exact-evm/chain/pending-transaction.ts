/** A transaction from its signing until nobody watches it any more. */
import type { Logger } from '../../../plugin/plugin.ts'
import type { Hex } from '../../../config/networks.ts'
import type { TransactionReceipt } from '../judge.ts'
import type { Fees, Signer } from './transaction-signer.ts'
import type { InFlight } from './transaction-tracker.ts'

/** A signed transaction. Sending may sign it anew; `hashes` keeps every form that may be mined. */
export interface Sending extends InFlight {
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

/** A sending as its sender sees it. */
export interface Flying extends Sending {
  to: Hex
  data: Hex
  gas: bigint
  fees: Fees
  /** Monotonic milliseconds of the last sending. */
  sentAt: number
  /** The node had it already when it was last sent again. */
  isKnown: boolean
  /** How often in a row the node has said no to sending it again, in words we do not know. */
  doubts: number
}

type Fields = Pick<Flying, 'nonce' | 'to' | 'data' | 'gas' | 'fees' | 'fromBlock'>

/** Signs a transaction. `depth`: how many blocks deep is confirmed. */
export function createFlying(
  { signer, depth, log }: { readonly signer: Signer; readonly depth: number; readonly log: Logger },
  fields: Fields,
): Flying {
  const { raw, hash } = signer.sign({ ...fields, ...fields.fees })
  const [mined, confirmed] = [latch<TransactionReceipt | null>(), latch<TransactionReceipt | null>()]
  const flying: Flying = {
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
      log.warn({ nonce: flying.nonce, transaction: flying.hash }, 'a transaction has left its block; it is sent again')
      flying.sentAt = Number.NEGATIVE_INFINITY
    },
    land(receipt) {
      mined.set(receipt)
      confirmed.set(receipt)
    },
  }
  return flying
}

/** Signs it anew, with another nonce, fee or call. */
export function signAgain(signer: Signer, flying: Flying, change: Partial<Fields>): void {
  Object.assign(flying, change)
  Object.assign(flying, signer.sign({ ...flying, ...flying.fees }))
  flying.hashes.push(flying.hash)
}

/** A promise that is kept from outside, once. */
function latch<Value>(): { readonly value: Promise<Value>; set(value: Value): void } {
  const held: { resolve?: (value: Value) => void } = {}
  const value = new Promise<Value>((resolve) => {
    held.resolve = resolve
  })
  return { value, set: (kept) => held.resolve?.(kept) }
}
