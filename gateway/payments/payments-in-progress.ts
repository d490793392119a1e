/**
 * The payments that this process is working on. If the same payment arrives in several requests at once, the first one
 * does the work and the others wait for its outcome. The amount of each payment is held on its payer's balance until
 * the chain shows the transfer, so that one balance cannot pay for several answers. The journal knows
 * the payments of other processes.
 */
import type { Commitment, DecodedPayment, PaymentKey } from '../methods/payment-method.ts'
import type { PresentedPayment } from './payment.ts'

/** A result or an error for all duplicates, or null if each of them has to try for itself. */
type SharedOutcome<Result> = { readonly result: Result } | { readonly error: unknown } | null

/** The parts of a request that identify its duplicates. */
type RequestInProgress = Pick<PresentedPayment, 'payment' | 'fingerprint' | 'identifier' | 'place'>

export interface PaymentInProgress<Result> {
  /** Holds the amount on the payer's balance. Call it once the payment is proved, or anybody could block a payer. */
  holdBalance(): void
  /**
   * Ends the work; a second call changes nothing. The hold ends with it, unless the money may move later: then it stays
   * until `releaseHold`, or until the payment can no longer be settled.
   */
  finish(outcome: SharedOutcome<Result>, options?: { readonly keepHold: boolean }): void
}

export interface PaymentsInProgress<Result> {
  /**
   * Starts the work, or returns null if the payment is in progress. Synchronous, so that two requests cannot both
   * start.
   */
  start(request: RequestInProgress): PaymentInProgress<Result> | null
  find(
    key: PaymentKey,
  ): { readonly request: RequestInProgress; readonly outcome: Promise<SharedOutcome<Result>> } | undefined
  /** The payments of the same payer and network whose amounts were held before this one's. */
  heldBefore(payment: DecodedPayment): readonly Commitment[]
  /** Ends a hold that `finish` kept. */
  releaseHold(payment: DecodedPayment): void
  /** Notes that the settlement of a payment whose answer has left is watched, until the returned function is called. */
  watch(key: PaymentKey): () => void
  /** Whether a payment is in progress or watched: then nobody else in this process has to look what becomes of it. */
  isBusy(key: PaymentKey): boolean
  /** Resolves when no payment is in progress. */
  idle(): Promise<void>
}

/** A block's time may lag this far behind the clock, so that an expired payment may still get into a block. */
export const BLOCK_TIME_LAG_SECONDS = 60

/** Creates the list of one process. Holds of expired payments end with the clock. */
export function createPaymentsInProgress<Result>(now: () => Date): PaymentsInProgress<Result> {
  const inProgress = new Map<PaymentKey, { request: RequestInProgress; outcome: Promise<SharedOutcome<Result>> }>()
  const holds = createBalanceHolds(now)
  const watched = new Set<PaymentKey>()
  return {
    start(request) {
      const { payment } = request
      if (inProgress.has(payment.key)) return null
      let resolve: (outcome: SharedOutcome<Result>) => void = () => {}
      const outcome = new Promise<SharedOutcome<Result>>((resolveOutcome) => {
        resolve = resolveOutcome
      })
      const entry = { request, outcome }
      inProgress.set(payment.key, entry)
      return {
        holdBalance() {
          if (inProgress.get(payment.key) === entry) holds.add(payment)
        },
        finish(shared, { keepHold } = { keepHold: false }) {
          if (inProgress.get(payment.key) === entry) {
            inProgress.delete(payment.key)
            if (!keepHold) holds.remove(payment)
          }
          resolve(shared)
        },
      }
    },
    find: (key) => inProgress.get(key),
    heldBefore: (payment) => holds.before(payment),
    releaseHold(payment) {
      if (!inProgress.has(payment.key)) holds.remove(payment)
    },
    watch(key) {
      watched.add(key)
      return () => void watched.delete(key)
    },
    isBusy: (key) => inProgress.has(key) || watched.has(key),
    async idle() {
      while (inProgress.size > 0) await Promise.all([...inProgress.values()].map(({ outcome }) => outcome))
    },
  }
}

/** Amounts held, by balance (one payer on one network) and in the order in which they were added. */
function createBalanceHolds(now: () => Date) {
  const byBalance = new Map<string, Map<PaymentKey, DecodedPayment>>()
  const balanceOf = ({ network, payer }: DecodedPayment): string => `${network}/${payer}`
  const isOver = ({ expiresAt }: DecodedPayment): boolean =>
    Number(expiresAt) + BLOCK_TIME_LAG_SECONDS < Math.floor(now().getTime() / 1000)

  function remove(payment: DecodedPayment): void {
    const held = byBalance.get(balanceOf(payment))
    if (held?.delete(payment.key) && held.size === 0) byBalance.delete(balanceOf(payment))
  }

  /** Removes holds that were kept for payments without a further request. */
  function removeExpired(): void {
    for (const held of byBalance.values()) for (const payment of held.values()) if (isOver(payment)) remove(payment)
  }

  return {
    remove,
    add(payment: DecodedPayment): void {
      if (byBalance.size >= SWEEP_FROM) removeExpired()
      const held = byBalance.get(balanceOf(payment)) ?? new Map<PaymentKey, DecodedPayment>()
      byBalance.set(balanceOf(payment), held.set(payment.key, payment))
    },
    before(payment: DecodedPayment): readonly DecodedPayment[] {
      const held = [...(byBalance.get(balanceOf(payment))?.values() ?? [])]
      const own = held.findIndex(({ key }) => key === payment.key)
      return (own === -1 ? held : held.slice(0, own)).filter((each) => !isOver(each))
    },
  }
}

/** With fewer balances than this, expired holds cost nothing worth a sweep. */
const SWEEP_FROM = 1_000
