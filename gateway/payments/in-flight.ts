/**
 * Payments being worked on in this process. The same payment arriving twice at once runs once: the first takes off,
 * its twins wait and get what it gets.
 */
import type { PresentedPayment } from './presented-payment.ts'
import type { Commitment, PaymentKey } from '../methods/payment-method.ts'

/** How a flight ended for its twins: a result or a refusal to share, or null where each should try for itself. */
export type Landing<Result> = { readonly result: Result } | { readonly error: unknown } | null

/** What is known of a payment in flight. */
export type Passenger = Pick<PresentedPayment, 'payment' | 'fingerprint' | 'identifier' | 'place'>

export interface Flight<Result> {
  /** From now on it counts among what its payer has promised: its signature was found to be his. */
  commit(): void
  /** Ends the flight; a second call changes nothing. */
  land(landing: Landing<Result>): void
}

interface InFlight<Result> {
  readonly passenger: Passenger
  readonly landed: Promise<Landing<Result>>
}

export interface Flights<Result> {
  /** Takes off, or returns null where the payment is in the air already. Synchronous, so two callers cannot both. */
  takeOff(passenger: Passenger): Flight<Result> | null
  find(key: PaymentKey): InFlight<Result> | undefined
  /** Payments of the same payer and network that were committed before this one. */
  ahead(passenger: Passenger): readonly Commitment[]
  /** Resolves when nothing is in the air. */
  idle(): Promise<void>
}

export function createFlights<Result>(): Flights<Result> {
  const flights = new Map<PaymentKey, InFlight<Result>>()
  const promised = new Map<string, Map<PaymentKey, Commitment>>()
  return {
    takeOff(passenger) {
      if (flights.has(passenger.payment.key)) return null
      let land: (landing: Landing<Result>) => void = () => {}
      const landed = new Promise<Landing<Result>>((resolve) => {
        land = resolve
      })
      const flight = { passenger, landed }
      flights.set(passenger.payment.key, flight)
      return {
        commit() {
          if (flights.get(passenger.payment.key) !== flight) return
          const purse = purseOf(passenger)
          promised.set(purse, (promised.get(purse) ?? new Map()).set(passenger.payment.key, passenger.payment))
        },
        land(landing) {
          if (flights.get(passenger.payment.key) === flight) {
            flights.delete(passenger.payment.key)
            const own = promised.get(purseOf(passenger))
            if (own?.delete(passenger.payment.key) && own.size === 0) promised.delete(purseOf(passenger))
          }
          land(landing)
        },
      }
    },
    find: (key) => flights.get(key),
    ahead(passenger) {
      const all = [...(promised.get(purseOf(passenger)) ?? new Map<PaymentKey, Commitment>())]
      const own = all.findIndex(([key]) => key === passenger.payment.key)
      return all.slice(0, own === -1 ? all.length : own).map(([, commitment]) => commitment)
    },
    async idle() {
      while (flights.size > 0) await Promise.all([...flights.values()].map((flight) => flight.landed))
    },
  }
}

/** A balance is one payer's on one network. */
function purseOf({ payment: { network, payer } }: Passenger): string {
  return `${network}/${payer}`
}
