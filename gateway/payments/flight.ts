/**
 * Payments being worked on in this process. The same payment arriving twice at once runs once: the first takes off,
 * its twins wait and get what it gets.
 */
import type { Caller } from './bearer.ts'
import type { PaymentKey, PaymentPayload } from './payment.ts'

/** How a flight ended for its twins: a result or a refusal to share, or null where each should try for itself. */
export type Landing<Result> = { readonly result: Result } | { readonly error: unknown } | null

export interface Passenger extends Caller {
  readonly key: PaymentKey
  readonly payload: PaymentPayload
  readonly fingerprint: string
}

export interface Flight<Result> {
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
  /** Resolves when nothing is in the air. */
  idle(): Promise<void>
}

export function createFlights<Result>(): Flights<Result> {
  const flights = new Map<PaymentKey, InFlight<Result>>()
  return {
    takeOff(passenger) {
      if (flights.has(passenger.key)) return null
      let land: (landing: Landing<Result>) => void = () => {}
      const landed = new Promise<Landing<Result>>((resolve) => {
        land = resolve
      })
      const flight = { passenger, landed }
      flights.set(passenger.key, flight)
      return {
        land(landing) {
          if (flights.get(passenger.key) === flight) flights.delete(passenger.key)
          land(landing)
        },
      }
    },
    find: (key) => flights.get(key),
    async idle() {
      while (flights.size > 0) await Promise.all([...flights.values()].map((flight) => flight.landed))
    },
  }
}
