/**
 * The money path of one call: what was presented, what it already bought, and permission to work for it. Nobody is
 * charged before the answer is on disk; no product byte leaves before settlement; an unclear outcome is never called a
 * failure.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Catalog, Operation } from '../catalog/catalog.ts'
import { ServiceError } from '../errors.ts'
import { createExact, NOT_SIGNED } from './exact.ts'
import { identifierOf } from './identifier.ts'
import { createFlights } from './flight.ts'
import { decodePayment } from './payload.ts'
import {
  type Hex,
  type Journal,
  type Network,
  paymentKey,
  type PaymentKey,
  type PaymentPayload,
  type Settler,
} from './payment.ts'
import type { FormerPrices } from './prices.ts'
import { createPurchase, type PaidAnswer, type Purchase } from './purchase.ts'
import { createRecall, identifierConflict } from './recall.ts'
import { createUnproven } from './unproven.ts'
import { createQuotes, createRequirements, type Quote } from './requirements.ts'

export interface PaymentsParts {
  readonly network: Network
  readonly payTo: Hex
  readonly baseUrl: string
  readonly journal: Journal
  readonly settler: Settler
  readonly now: () => Date
  /** Waits some milliseconds; the default is a timer. */
  readonly pause?: (ms: number) => Promise<unknown>
  /** Amounts honoured besides the price: signed old quotes within their grace. */
  readonly formerPrices?: (operation: Operation) => FormerPrices
}

/** A caller, as far as the money path needs to know. */
export interface Payer {
  readonly id: string
  readonly signal: AbortSignal
  readonly credential: { readonly payments: readonly (string | Readonly<Record<string, unknown>>)[] } | null
  /** HTTP header Idempotency-Key, as sent. */
  readonly idempotencyKey?: string
}

/** A payment as presented with one request, bound to that request's fingerprint. */
export interface PresentedPayment {
  readonly payload: PaymentPayload
  readonly key: PaymentKey
  readonly fingerprint: string
  /** The payer's own name for this purchase. */
  readonly identifier: string | null
  readonly callId: string
  readonly signal: AbortSignal
}

export interface Payments {
  quote(catalog: Catalog, operation: Operation, url: string, error: ServiceError): Quote
  /** Reads what the caller presented; null where there is no payment. Throws `payment_invalid`, or 422 for a header. */
  present(payer: Payer, fingerprint: string): PresentedPayment | null
  /**
   * The answer this payment has already bought, or is buying at this moment. Null: it has bought nothing. Throws 409
   * where it was used for another request, 503 while its settlement is unclear.
   */
  recall(operation: Operation, presented: PresentedPayment): Promise<PaidAnswer | null>
  /**
   * Checks and reserves. Returns the purchase to work for, or the answer a twin bought meanwhile. `version` is that of
   * the catalog whose price is asked. Throws 409 where the payer has used the identifier for another payment.
   */
  admit(operation: Operation, presented: PresentedPayment, version: string): Promise<Purchase | PaidAnswer>
  /** Whether a call of this process is at work on a payment. */
  isWorking(key: PaymentKey): boolean
  /** Resolves when no payment is being worked on. */
  idle(): Promise<void>
}

export function createPayments(parts: PaymentsParts): Payments {
  const { network, payTo, baseUrl, journal, settler, now } = parts
  const exact = createExact(network)
  const flights = createFlights<PaidAnswer>()
  const nowSeconds = (): number => Math.floor(now().getTime() / 1000)
  const { pause = delay } = parts
  const unproven = createUnproven()
  const recall = createRecall({ network, journal, settler, exact, flights, nowSeconds, pause })
  const quotes = new WeakMap<Catalog, ReturnType<typeof createQuotes>>()

  /** The requirements this payment meets: the price, or a former one that is still honoured; and which catalog's. */
  function asked(operation: Operation, { value }: PaymentPayload, version: string) {
    const requirements = createRequirements(operation, network, payTo)
    const former = value === requirements.amount ? undefined : parts.formerPrices?.(operation).get(value)
    if (former === undefined) return { requirements, priceVersion: version }
    return { requirements: { ...requirements, amount: value }, priceVersion: former }
  }

  return {
    quote(catalog, operation, url, error) {
      let make = quotes.get(catalog)
      if (!make) quotes.set(catalog, (make = createQuotes({ catalog, network, payTo, baseUrl })))
      return make(operation, url, error)
    },

    present({ id, signal, credential, idempotencyKey }, fingerprint) {
      const payloads = (credential?.payments ?? []).map((payment) => decodePayment(payment, [network]))
      const [payload, ...others] = payloads
      if (!payload) return null
      const key = paymentKey(network, payload)
      if (others.some((other) => paymentKey(network, other) !== key))
        throw new ServiceError('payment_invalid', 'Two different payments came with one call. Send one of them.', {
          reason: 'invalid_payload',
        })
      const identifier = identifierOf(payload, idempotencyKey)
      return { payload, key, fingerprint, identifier, callId: id, signal }
    },

    recall: (operation, presented) => legible(() => recall(operation, presented)),
    admit: (operation, presented, version) => legible(() => admit(operation, presented, version)),
    isWorking: (key) => flights.find(key) !== undefined,
    idle: () => flights.idle(),
  }

  async function admit(
    operation: Operation,
    presented: PresentedPayment,
    version: string,
  ): Promise<Purchase | PaidAnswer> {
    const { payload, key, fingerprint, identifier, callId, signal } = presented
    const { requirements, priceVersion } = asked(operation, payload, version)
    const refusal = exact(payload, requirements, nowSeconds())
    const proven = refusal === null
    if (refusal && refusal.reason !== NOT_SIGNED)
      throw new ServiceError('payment_invalid', refusal.message, { reason: refusal.reason })
    const health = settler.health()
    if (!health.ready) throw new ServiceError('settler_unavailable', undefined, { cause: health.reason })

    const named = identifier === null ? null : await journal.identified(payload.from, identifier)
    if (named && named.key !== key) throw identifierConflict(named)
    const flight = flights.takeOff(presented)
    if (!flight) return (await recall(operation, presented)) ?? admit(operation, presented, version)
    try {
      if (!proven) await unproven(payload.from)
      const doubt = await settler.check(payload, requirements, { proven })
      if (doubt) {
        const { message } = refusal?.reason === doubt.reason ? refusal : doubt
        throw new ServiceError('payment_invalid', message, { reason: doubt.reason })
      }
      const { reserved, record } = await journal.reserve({
        key,
        fingerprint,
        operation: operation.id,
        route: operation.route,
        network: network.caip2,
        asset: network.asset,
        payer: payload.from,
        payTo: requirements.payTo,
        amount: requirements.amount,
        nonce: payload.nonce,
        validAfter: payload.validAfter,
        validBefore: payload.validBefore,
        signature: payload.signature,
        version: payload.version,
        priceVersion,
        callId,
        identifier,
      })
      if (reserved)
        return createPurchase({
          journal,
          settler,
          record,
          payload,
          requirements,
          wait: operation.wait,
          flight,
          signal,
        })
      if (record.key !== key) throw identifierConflict(record)
    } catch (error) {
      flight.land(signal.aborted ? null : { error })
      throw error
    }
    // Another process, or a call that landed between recall and take-off, has the row: its outcome is ours.
    flight.land(null)
    return (await recall(operation, presented)) ?? admit(operation, presented, version)
  }
}

/** Where the ledger cannot be read nobody knows what this payment has done: never call it uncharged then. */
async function legible<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof ServiceError) throw error
    throw new ServiceError('ledger_unavailable', undefined, { cause: error })
  }
}
