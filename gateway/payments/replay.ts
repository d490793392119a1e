/**
 * What a payment has already bought. It comes before everything that may have changed since: a buyer who paid gets the
 * stored answer even if the price, the schema or the route is another one now.
 */
import type { Operation } from '../plugin/catalog.ts'
import { ServiceError } from '../errors.ts'
import { isBuyer, isWithheld } from './replay-access.ts'
import type { Flights } from './in-flight.ts'
import type { Journal, PaymentRecord } from './journal/journal.ts'
import type { PaymentRequirements } from '../x402/payment-requirements.ts'
import { type DecodedPayment, methodOf, type PaymentMethod, type Settler } from '../methods/payment-method.ts'
import type { Network } from '../config/networks.ts'
import type { Logger } from '../plugin/plugin.ts'
import { owedError } from './late-settlement.ts'
import type { PresentedPayment } from './presented-payment.ts'
import { conclude, type PaidAnswer, pending, receiptOf, send } from './purchase.ts'

export interface RecallParts {
  readonly methods: readonly PaymentMethod[]
  readonly journal: Journal
  readonly log: Logger
  readonly settler: Settler
  readonly flights: Flights<PaidAnswer>
  readonly nowSeconds: () => number
  readonly pause: (ms: number) => Promise<unknown>
}

/** How often a payment that another process works on is looked at. */
const POLL_MS = 100
/** How long an answer may be on its way to its buyer. */
const DELIVERY_MS = 10_000

export function createRecall(parts: RecallParts) {
  const { methods, journal, log, settler, flights, nowSeconds, pause } = parts
  const on = ({ network }: { readonly network: string }): Network => methodOf(methods, network).network

  return async function recall(operation: Operation, presented: PresentedPayment): Promise<PaidAnswer | null> {
    const { payment } = presented
    const { key } = payment
    const giveUp = nowSeconds() + operation.timeoutSeconds
    for (;;) {
      const flight = flights.find(key)
      if (flight) {
        const isTwin = flight.passenger.payment.proof === payment.proof || isSigned(payment)
        if (isTwin && flight.passenger.fingerprint !== presented.fingerprint) throw conflict(null)
        const landing = await flight.landed
        // Somebody who cannot show the signature waits, and is then told what anybody is told.
        if (isTwin && landing) {
          if ('error' in landing) throw landing.error
          if (isBuyer(flight.passenger, presented)) return replayed(landing.result)
        }
      }
      const record = await journal.find(key)
      if (!record || record.state === 'released') {
        if (flights.find(key)) continue
        return null
      }
      if (!isGenuine(record, payment)) return null
      if (record.fingerprint !== presented.fingerprint) throw conflict(record)
      if (flights.find(key)) continue
      // Another process works on it, or it is on its way to its buyer: the journal is what all can see.
      const isUnderWay = record.state === 'reserved' || (isWithheld(operation, record, presented) && isFresh(record))
      if (!isUnderWay) {
        const paid = await given(operation, record, presented)
        if (paid) return paid
        continue
      }
      if (nowSeconds() > giveUp || presented.signal.aborted) throw pendingOf(record, payment)
      await pause(POLL_MS)
    }
  }

  function isFresh({ updatedAt }: PaymentRecord): boolean {
    return nowSeconds() * 1000 - updatedAt < DELIVERY_MS
  }

  function pendingOf(record: PaymentRecord, { envelope: { version } }: DecodedPayment): Error {
    return pending(receiptOf(record, on(record), version, '', 'settlement_pending'))
  }

  /** A stored answer is of no use to anybody who cannot show the payment itself. */
  function isGenuine(record: PaymentRecord, payment: DecodedPayment): boolean {
    if (record.proof === payment.proof) return true
    return verify(payment, requirementsOf(record), Number(record.startsAt) + 1) === null
  }

  function verify(payment: DecodedPayment, requirements: PaymentRequirements, seconds: number) {
    return methodOf(methods, requirements.network.caip2).verify(payment, requirements, seconds)
  }

  /** One authorization can be signed in several ways, each as good as the other. */
  function isSigned(payment: DecodedPayment): boolean {
    const { amount, payTo, startsAt } = payment
    const { scheme, network } = methodOf(methods, payment.network)
    const asked = { scheme, network, amount, payTo, maxTimeoutSeconds: Number.MAX_SAFE_INTEGER }
    return verify(payment, asked, Number(startsAt) + 1) === null
  }

  function requirementsOf(record: PaymentRecord): PaymentRequirements {
    const { amount, payTo, startsAt, expiresAt } = record
    const { scheme, network } = methodOf(methods, record.network)
    return { scheme, network, amount, payTo, maxTimeoutSeconds: Number(expiresAt - startsAt) }
  }

  /** Delivers, or finishes, what a stored answer's payment is worth now. Null: another process was at it, look again. */
  async function given(
    operation: Operation,
    record: PaymentRecord,
    presented: PresentedPayment,
  ): Promise<PaidAnswer | null> {
    const { payment } = presented
    const method = methodOf(methods, record.network)
    const { answer } = record
    if (record.state === 'owed') throw owedError(record.transaction)
    if (record.state === 'settled') {
      if (!answer)
        throw new ServiceError('payment_already_used', 'This payment is spent and its answer is no longer kept.', {
          fields: { transaction: record.transaction },
        })
      if (answer.body.length === 0 && nowSeconds() >= Number(record.expiresAt))
        throw new ServiceError(
          'payment_already_used',
          'This payment is spent, and its time to fetch the stream again is over.',
          {
            fields: { transaction: record.transaction },
          },
        )
      const receipt = receiptOf(record, on(record), payment.envelope.version, record.transaction ?? '')
      return replayed({ ...answer, receipt })
    }
    if (answer?.body.length === 0 && record.state === 'answered') {
      // A stream that was never sent for: nothing is kept that could be given, so it is bought anew.
      await journal.released(record.key, record.attempt, 'the stream was not delivered')
      return null
    }
    if (!answer) throw new Error(`payment ${record.key} is ${record.state} without an answer`)
    const requirements = requirementsOf(record)
    const flight = flights.takeOff(presented)
    if (!flight) throw new Error(`payment ${record.key} took off twice`)
    const { signal } = presented
    const work = {
      journal,
      log,
      settler,
      method,
      record,
      payment,
      requirements,
      wait: operation.wait,
      flight,
      signal,
      nowSeconds,
    }
    try {
      if (record.state === 'answered') {
        const refusal = verify(payment, requirements, nowSeconds())
        // A contract wallet's signature was judged by the chain when it was reserved.
        const isKept = refusal?.needsSettler === true && record.proof === payment.proof
        if (!refusal || isKept) return await send(work, answer)
        if (!(await journal.released(record.key, record.attempt, refusal.reason))) {
          flight.land(null)
          return null
        }
        throw new ServiceError('payment_invalid', refusal.message, { reason: refusal.reason })
      }
      if (!(await journal.claim(record.key, record.attempt))) {
        flight.land(null)
        return null
      }
      const paid = await conclude(work, await settler.status(record), answer)
      flight.land({ result: paid })
      return paid.body.length === 0 ? replayed(paid) : paid
    } catch (error) {
      flight.land({ error })
      throw error
    }
  }
}

/** Says that the answer was made for an earlier request (the name is the one in use; no RFC has it yet). */
function replayed(paid: PaidAnswer): PaidAnswer {
  if (paid.body.length === 0) return { ...paid, again: true }
  return { ...paid, headers: { ...paid.headers, 'idempotent-replay': 'true' } }
}

/** The identifier belongs to another payment of this payer: a second one must not be charged for the same purchase. */
export function identifierConflict({ route, state }: PaymentRecord): ServiceError {
  return new ServiceError(
    'idempotency_conflict',
    `This idempotency key belongs to another payment, made for ${route} and ${state}. Send that payment again to get ` +
      'its answer; this one was not charged. A new purchase needs a new key.',
  )
}

function conflict(record: PaymentRecord | null): ServiceError {
  const where = record ? ` It was used for ${record.route}.` : ''
  return new ServiceError('payment_conflict', `This payment belongs to another request.${where} Sign a new one.`)
}
