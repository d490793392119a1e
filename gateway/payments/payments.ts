/**
 * The money path of one call: what was presented, what it already bought, and permission to work for it. Nobody is
 * charged before the answer is on disk; no product byte leaves before settlement; an unclear outcome is never called a
 * failure.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Catalog, Operation } from '../plugin/catalog.ts'
import { ServiceError } from '../errors.ts'
import { type Recipients, recipientsOf } from '../config/pay-to.ts'
import type { Network } from '../config/networks.ts'
import type { Logger } from '../plugin/plugin.ts'
import {
  decodePayment,
  type DecodedPayment,
  methodOf,
  type PaymentKey,
  type PaymentMethod,
  type Settler,
} from '../methods/payment-method.ts'
import { createRequirements, isForAnotherRoute, offeredOn } from '../x402/payment-requirements.ts'
import { placeOf, type PresentedPayment } from './presented-payment.ts'
import { identifierOf } from '../x402/payment-identifier.ts'
import { createFlights } from './in-flight.ts'
import { assertNotLate } from './late-settlement.ts'
import type { Offers } from '../x402/signed-offers.ts'
import type { Journal } from './journal/journal.ts'
import type { FormerPrices } from './price-history.ts'
import { createPurchase, type PaidAnswer, type Purchase } from './purchase.ts'
import { createRecall, identifierConflict } from './replay.ts'
import { createUnproven } from '../methods/exact-evm/unverified-limit.ts'
import { createChallenge, type Quote } from '../x402/challenge.ts'

export interface PaymentsParts extends Recipients {
  readonly baseUrl: string
  readonly journal: Journal
  readonly log: Logger
  /** One per network. */
  readonly methods: readonly PaymentMethod[]
  readonly settler: Settler
  readonly now: () => Date
  /** Waits some milliseconds; the default is a timer. */
  readonly pause?: (ms: number) => Promise<unknown>
  /** Amounts honoured besides the price: signed old quotes within their grace. */
  readonly formerPrices?: (operation: Operation) => FormerPrices
  /** Signs what is asked in a 402; absent: nothing is signed. */
  readonly offers?: Offers
}

/** A caller, as far as the money path needs to know. */
export interface Payer {
  readonly id: string
  readonly signal: AbortSignal
  readonly credential: { readonly payments: readonly (string | Readonly<Record<string, unknown>>)[] } | null
  /** HTTP header Idempotency-Key, as sent. */
  readonly idempotencyKey?: string
  /** Where the call comes from. */
  readonly client: string
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
  /** Notes that the answer this payment bought has left in full. */
  delivered(key: PaymentKey): Promise<void>
  /** Whether a call of this process is at work on a payment. */
  isWorking(key: PaymentKey): boolean
  /** Resolves when no payment is being worked on. */
  idle(): Promise<void>
}

export function createPayments(parts: PaymentsParts): Payments {
  const { baseUrl, journal, methods, settler, now } = parts
  const payees = recipientsOf(parts)
  const networks = payees.map(({ network }) => network)
  const flights = createFlights<PaidAnswer>()
  const nowSeconds = (): number => Math.floor(now().getTime() / 1000)
  const { pause = delay } = parts
  const unproven = createUnproven()
  const recall = createRecall({ methods, journal, log: parts.log, settler, flights, nowSeconds, pause })
  const quotes = new WeakMap<Catalog, ReturnType<typeof createChallenge>>()

  const isReady = (network: Network): boolean => settler.health(network).ready

  /** The requirements this payment meets: the price, or a former one that is still honoured; and which catalog's. */
  function asked(operation: Operation, { amount, network }: DecodedPayment, version: string) {
    const offered = offeredOn(operation, payees)
    const payee = offered.find((each) => each.network.caip2 === network) ?? offered[0]
    const requirements = createRequirements(operation, methodOf(methods, payee.network.caip2), payee.payTo)
    const former = amount === requirements.amount ? undefined : parts.formerPrices?.(operation).get(amount)
    if (former === undefined) return { requirements, priceVersion: version }
    return { requirements: { ...requirements, amount }, priceVersion: former }
  }

  return {
    quote(catalog, operation, url, error) {
      let make = quotes.get(catalog)
      if (!make) quotes.set(catalog, (make = createChallenge({ ...parts, catalog, formats: methods, isReady })))
      return make(operation, url, error)
    },

    present({ id, signal, credential, idempotencyKey, client }, fingerprint) {
      const decoded = (credential?.payments ?? []).map((each) => decodePayment(each, methods))
      const [payment, ...others] = decoded
      if (!payment) return null
      if (others.some(({ key }) => key !== payment.key))
        throw new ServiceError('payment_invalid', 'Two different payments came with one call. Send one of them.', {
          reason: 'invalid_payload',
        })
      const identifier = identifierOf(payment.envelope, idempotencyKey)
      return { payment, fingerprint, identifier, place: placeOf(client), callId: id, signal }
    },

    recall: (operation, presented) => legible(() => recall(operation, presented)),
    admit: (operation, presented, version) => legible(() => admit(operation, presented, version)),
    delivered: (key) => journal.delivered(key),
    isWorking: (key) => flights.find(key) !== undefined,
    idle: () => flights.idle(),
  }

  /** The token takes a payment only in a block later than validAfter: one signed for this very second would fail. */
  async function begun({ startsAt }: DecodedPayment): Promise<void> {
    const left = (Number(startsAt) + 1) * 1000 - now().getTime()
    // A timer may wake a moment early.
    if (left > 0) await pause(left + 10)
  }

  async function admit(
    operation: Operation,
    presented: PresentedPayment,
    version: string,
  ): Promise<Purchase | PaidAnswer> {
    const { payment, fingerprint, identifier, place, callId, signal } = presented
    const { key, network: caip2, payer } = payment
    const { requirements, priceVersion } = asked(operation, payment, version)
    const refusal = methodOf(methods, requirements.network.caip2).verify(payment, requirements, nowSeconds())
    const proven = refusal === null
    if (refusal && !refusal.needsSettler)
      throw new ServiceError('payment_invalid', refusal.message, { reason: refusal.reason })
    if (isForAnotherRoute(operation, baseUrl, payment.envelope))
      throw new ServiceError('payment_invalid', 'The payment was made for the quote of another route. Ask this one.', {
        reason: 'invalid_payment_requirements',
      })
    const { network } = requirements
    const health = settler.health(network)
    if (!health.ready) throw new ServiceError('settler_unavailable', undefined, { cause: health.reason })

    const named = identifier === null ? null : await journal.findByIdentifier(payer, identifier)
    if (named && named.key !== key) throw identifierConflict(named)
    const flight = flights.takeOff(presented)
    if (!flight) return (await recall(operation, presented)) ?? admit(operation, presented, version)
    try {
      await begun(payment)
      if (!proven) await unproven(payer)
      if (proven) flight.commit()
      const doubt = await settler.check(payment, requirements, { proven, ahead: flights.ahead(presented) })
      if (doubt) {
        // What a twin has sent meanwhile, here or in another process, is used or spent now: its outcome is ours.
        const standing = await journal.find(key)
        if (standing && standing.state !== 'released') {
          flight.land(null)
          const bought = await recall(operation, presented)
          if (bought) return bought
        }
        if (doubt.reason === 'invalid_transaction_state') await assertNotLate(journal, settler, key)
        const { message } = refusal?.reason === doubt.reason ? refusal : doubt
        throw new ServiceError('payment_invalid', message, { reason: doubt.reason })
      }
      if (!proven) flight.commit()
      const { reserved, record } = await journal.reserve({
        key,
        fingerprint,
        operation: operation.id,
        route: operation.route,
        network: caip2,
        asset: network.asset,
        payer,
        payTo: requirements.payTo,
        amount: requirements.amount,
        identity: payment.identity,
        startsAt: payment.startsAt,
        expiresAt: payment.expiresAt,
        proof: payment.proof,
        version: payment.envelope.version,
        priceVersion,
        callId,
        identifier,
        place,
      })
      if (reserved)
        return createPurchase({
          journal,
          log: parts.log,
          settler,
          record,
          payment,
          method: methodOf(methods, caip2),
          requirements,
          wait: operation.wait,
          flight,
          signal,
          nowSeconds,
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
