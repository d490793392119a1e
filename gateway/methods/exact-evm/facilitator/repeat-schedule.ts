/**
 * When facilitators are asked again to settle a payment whose outcome is unknown: after two seconds at first, then less
 * and less often. Every process counts for itself; a payment that it does not know yet is due at once.
 */
import type { PaymentKey } from '../../payment-method.ts'

export interface RepeatSchedule {
  /** Notes that a payment has just been asked for. */
  asked(key: PaymentKey, expiresAt: bigint): void
  /**
   * Whether a payment is due. If so, it is noted as asked for, and its further repeats count from now. Null: not due.
   * Otherwise how often it has been asked for before.
   */
  take(key: PaymentKey, expiresAt: bigint): number | null
  forget(key: PaymentKey): void
}

interface Asked {
  times: number
  /** Milliseconds since the epoch. */
  dueAt: number
  /** Seconds since the epoch. */
  readonly expiresAt: bigint
}

const FIRST_MS = 2_000
const LONGEST_MS = 60_000
/** With more payments than this, those that have expired are forgotten. */
const SWEEP_FROM = 1_000

/** @param now milliseconds since the epoch */
export function createRepeatSchedule(now: () => number = Date.now): RepeatSchedule {
  const payments = new Map<PaymentKey, Asked>()

  function asked(key: PaymentKey, expiresAt: bigint): void {
    if (payments.size >= SWEEP_FROM)
      for (const [other, { expiresAt: end }] of payments) if (Number(end) * 1000 < now()) payments.delete(other)
    const times = (payments.get(key)?.times ?? 0) + 1
    const delay = Math.min(LONGEST_MS, FIRST_MS * 2 ** (times - 1))
    payments.set(key, { times, dueAt: now() + delay, expiresAt })
  }

  return {
    asked,
    take(key, expiresAt) {
      const { times, dueAt } = payments.get(key) ?? { times: 0, dueAt: 0 }
      if (now() < dueAt || now() >= Number(expiresAt) * 1000) return null
      asked(key, expiresAt)
      return times
    },
    forget: (key) => void payments.delete(key),
  }
}
