/**
 * What a payment has to show before the body of its request is read. Anybody can send a large body, and to read one costs
 * more than to check a signature. So a payment that cannot be accepted is refused first, and a body of more than 64 kB is
 * read only for a payer who could pay, and who has not let many such bodies go unpaid. The journal is asked last, because
 * a payment that has bought its answer gets it again, whatever became of its price and its time.
 */
import type { Awaitable } from '../awaitable.ts'
import type { Recipient } from '../config/pay-to.ts'
import { ServiceError } from '../errors.ts'
import { type DecodedPayment, methodOf, type OfflineRefusal } from '../methods/payment-method.ts'
import type { Operation } from '../plugin/catalog.ts'
import { createSharedLimit, type SharedLimitOptions } from '../stores/shared-limit.ts'
import { createRequirements, isForAnotherRoute, offeredOn, type Refusal } from '../x402/payment-requirements.ts'
import type { CountedBody, OfflineCheck, UnreadPayment } from './presented-payment.ts'
import type { FormerPrices } from './price-history.ts'
import { isKnown, type ReplayParts } from './replay.ts'

export interface EarlyCheckParts extends ReplayParts {
  readonly baseUrl: string
  readonly recipients: readonly [Recipient, ...Recipient[]]
  readonly formerPrices: ((operation: Operation) => FormerPrices) | undefined
  readonly largeBodies: LargeBodyLimit
}

/** Larger bodies are read only for payers who could pay. */
const SMALL_BODY_BYTES = 65_536

/** Whether a body is read only for a payer who could pay. */
export const isLargeBody = (bodyBytes: number): boolean => bodyBytes > SMALL_BODY_BYTES

/**
 * Checks a payment against what the operation asks for, offline. Throws `payment_invalid` if no settler could accept it.
 * @param version of the catalog that the price comes from
 */
export function checkOffline(
  parts: EarlyCheckParts,
  operation: Operation,
  payment: DecodedPayment,
  version: string,
): OfflineCheck {
  const { baseUrl, methods, now } = parts
  const { requirements, priceVersion } = requirementsMet(parts, operation, payment, version)
  const atSeconds = Math.floor(now().getTime() / 1000)
  const refusal = methodOf(methods, requirements.network.caip2).verify(payment, requirements, atSeconds)
  if (refusal && !refusal.needsSettler) throw invalidError(refusal)
  if (isForAnotherRoute(operation, baseUrl, payment.envelope)) throw invalidError(OTHER_ROUTE)
  return { requirements, priceVersion, refusal, atSeconds }
}

/**
 * Decides whether the body of a request may be read for its payment. Returns what the offline check found, or null for a
 * payment that is refused by now and has bought something before. Throws `payment_invalid`, `rate_limited`, or
 * `settler_unavailable`.
 */
export function checkEarly(
  parts: EarlyCheckParts,
  operation: Operation,
  unread: UnreadPayment,
  version: string,
): Awaitable<OfflineCheck | null> {
  const { payment, bodyBytes } = unread
  let checked: OfflineCheck
  try {
    checked = checkOffline(parts, operation, payment, version)
  } catch (error) {
    return unlessKnown(parts, unread, error)
  }
  if (bodyBytes === 0 || (checked.refusal === null && !isLargeBody(bodyBytes))) return checked
  return lookAtPayer(parts, unread, checked)
}

async function unlessKnown(
  parts: EarlyCheckParts,
  { payment, bodyBytes }: UnreadPayment,
  error: unknown,
): Promise<null> {
  if (!(await isKnown(parts, payment))) throw error
  // Settled payments are public. Those who repeat one must not use up what its buyer may send.
  if (isLargeBody(bodyBytes)) await parts.largeBodies.admit(`again ${payment.key}`)
  return null
}

/** Asks the settler what it knows of the payer, before a large body is read or a signature that it has to verify counts. */
async function lookAtPayer(
  parts: EarlyCheckParts,
  unread: UnreadPayment,
  checked: OfflineCheck,
): Promise<OfflineCheck | null> {
  const { settler, inProgress } = parts
  const { payment, bodyBytes, nodeCalls } = unread
  const { requirements, refusal } = checked
  const { ready, reason } = settler.health(requirements.network)
  if (!ready) throw new ServiceError('settler_unavailable', undefined, { cause: reason })
  const isLarge = isLargeBody(bodyBytes)
  const proven = refusal === null
  let problem = (await settler.mayPay?.(payment, requirements, { proven, nodeCalls })) ?? null
  if (!problem && isLarge && !proven) {
    await nodeCalls.countCodeCheck(proven)
    problem = await settler.check(payment, requirements, { proven, ahead: inProgress.heldBefore(payment), nodeCalls })
  }
  if (problem) return unlessKnown(parts, unread, invalidError(refusalOf(problem, refusal)))
  return isLarge ? { ...checked, largeBody: await parts.largeBodies.admit(payment.payer) } : checked
}

/** The offline check says more about the same problem. */
export function refusalOf(problem: Refusal, offline: OfflineRefusal | null): Refusal {
  return offline?.reason === problem.reason ? offline : problem
}

/**
 * The requirements to check a payment against, at the current or an accepted former price, and that price's catalog
 * version.
 */
function requirementsMet(
  { recipients, methods, formerPrices }: EarlyCheckParts,
  operation: Operation,
  { amount, network }: DecodedPayment,
  version: string,
): Pick<OfflineCheck, 'requirements' | 'priceVersion'> {
  const offered = offeredOn(operation, recipients)
  const recipient = offered.find((each) => each.network.caip2 === network) ?? offered[0]
  const requirements = createRequirements(operation, methodOf(methods, recipient.network.caip2), recipient.payTo)
  const former = amount === requirements.amount ? undefined : formerPrices?.(operation).get(amount)
  if (former === undefined) return { requirements, priceVersion: version }
  return { requirements: { ...requirements, amount }, priceVersion: former }
}

const OTHER_ROUTE: Refusal = {
  reason: 'invalid_payment_requirements',
  message: 'The payment was signed for another route. Request a quote from this route and sign that.',
}

/** The 402 of a refused payment. */
export function invalidError({ reason, message, retryAfterSeconds }: Refusal): ServiceError {
  const headers = retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }
  return new ServiceError('payment_invalid', message, { reason, headers })
}

/** Counts the large bodies of each payer that were read and did not lead to a sale. */
export interface LargeBodyLimit {
  /** Counts a body. Throws RateLimited above the limit. */
  admit(name: string): Promise<CountedBody>
}

const UNPAID_BODIES = 20

/** Creates the limit of one process; with `peers`, of all processes together. */
export function createLargeBodyLimit(peers: SharedLimitOptions['peers'] = null): LargeBodyLimit {
  const message = `More than ${UNPAID_BODIES} large requests of this payer were not paid.`
  const limit = createSharedLimit({ name: 'large', points: UNPAID_BODIES, seconds: 60, message, peers })
  return {
    async admit(name) {
      const counted = await limit.count(name)
      return { paid: () => counted.takeBack() }
    },
  }
}
