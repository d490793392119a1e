/**
 * Payments that the chain has refused within the last seconds, so that the same payment, or another one of the same
 * empty wallet, asks no node again. Only refusals are remembered: a payment is accepted by what the chain says now.
 * They are remembered for so short a time because buyers add money, and wallets are deployed.
 */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Refusal } from '../../x402/payment-requirements.ts'
import type { Hex } from '../../config/networks.ts'
import type { Transfer } from './eip3009.ts'

/** How long a refusal is remembered. */
export const REFUSED_SECONDS = 3
const MAX_REFUSALS = 10_000

interface Remembered {
  readonly refusal: Refusal
  /** For a balance: the smallest amount that it did not cover. */
  readonly amount: bigint
  readonly until: number
}

/** The refusals of one network. `now` counts milliseconds. */
export class RecentRefusals {
  readonly #now: () => number
  /** By payer. */
  readonly #balances = new LRUCache<Hex, Remembered>({ max: MAX_REFUSALS })
  /** By digest of the transfer and its signature: anybody can send a wrong signature for any payer. */
  readonly #transfers = new LRUCache<string, Remembered>({ max: MAX_REFUSALS })

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Returns why a transfer is refused; null if the chain has to be asked. */
  find(transfer: Transfer): Refusal | null {
    const now = this.#now()
    const balance = this.#balances.get(transfer.from)
    if (balance && now < balance.until && transfer.value >= balance.amount) return balance.refusal
    const refused = this.#transfers.size === 0 ? undefined : this.#transfers.get(digestOf(transfer))
    return refused && now < refused.until ? refused.refusal : null
  }

  /** Remembers what the chain says of a transfer. Returns what to say of it: how soon money that was added counts. */
  add(transfer: Transfer, refusal: Refusal): Refusal {
    const [amount, until] = [transfer.value, this.#now() + REFUSED_SECONDS * 1000]
    if (refusal.reason !== 'insufficient_funds') {
      this.#transfers.set(digestOf(transfer), { refusal, amount, until })
      return refusal
    }
    const passing = { ...refusal, retryAfterSeconds: REFUSED_SECONDS }
    this.#balances.set(transfer.from, { refusal: passing, amount, until })
    return passing
  }
}

/** Covers every field: with any of them changed, the same signature may be right or wrong. */
function digestOf({ from, to, value, validAfter, validBefore, nonce, signature }: Transfer): string {
  const text = [from, to, value, validAfter, validBefore, nonce, signature].join(' ')
  return createHash('sha256').update(text).digest('base64')
}
