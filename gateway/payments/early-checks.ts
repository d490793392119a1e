/**
 * What a payment has to show before the body of its request is read. Anybody can send a large body, and to read one costs
 * more than to check a signature. So a payment that cannot be accepted is refused first, and a body of more than 64 kB is
 * read only for a payer who could pay, and who has not let many such bodies go unpaid. The journal is asked last, because
 * a payment that has bought its answer gets it again, whatever became of its price and its time.
 */
import { createHash } from 'node:crypto'
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import type { Awaitable } from '../awaitable.ts'
import type { Recipient } from '../config/pay-to.ts'
import { RateLimited, ServiceError } from '../errors.ts'
import { type DecodedPayment, methodOf, type OfflineRefusal } from '../methods/payment-method.ts'
import type { Operation } from '../plugin/catalog.ts'
import type { CallTotal, Peers } from '../stores/peers.ts'
import { createRequirements, isForAnotherRoute, offeredOn, type Refusal } from '../x402/payment-requirements.ts'
import type { CountedBody, OfflineCheck } from './presented-payment.ts'
import type { FormerPrices } from './price-history.ts'
import { isKnown, type ReplayParts } from './replay.ts'

export interface EarlyCheckParts extends ReplayParts {
  readonly baseUrl: string
  readonly recipients: readonly [Recipient, ...Recipient[]]
  readonly formerPrices: ((operation: Operation) => FormerPrices) | undefined
  readonly limitSignatureChecks: (payer: string) => Promise<void>
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
 * @param bodyBytes the size of the body as it is announced; infinite if it is not
 */
export function checkEarly(
  parts: EarlyCheckParts,
  operation: Operation,
  payment: DecodedPayment,
  bodyBytes: number,
  version: string,
): Awaitable<OfflineCheck | null> {
  let checked: OfflineCheck
  try {
    checked = checkOffline(parts, operation, payment, version)
  } catch (error) {
    return unlessKnown(parts, payment, bodyBytes, error)
  }
  if (bodyBytes === 0 || (checked.refusal === null && !isLargeBody(bodyBytes))) return checked
  return lookAtPayer(parts, payment, checked, bodyBytes)
}

async function unlessKnown(
  parts: EarlyCheckParts,
  payment: DecodedPayment,
  bodyBytes: number,
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
  payment: DecodedPayment,
  checked: OfflineCheck,
  bodyBytes: number,
): Promise<OfflineCheck | null> {
  const { settler, inProgress, limitSignatureChecks } = parts
  const { requirements, refusal } = checked
  const { ready, reason } = settler.health(requirements.network)
  if (!ready) throw new ServiceError('settler_unavailable', undefined, { cause: reason })
  const isLarge = isLargeBody(bodyBytes)
  const proven = refusal === null
  let problem = (await settler.mayPay?.(payment, requirements, { proven })) ?? null
  if (!problem && isLarge && !proven) {
    await limitSignatureChecks(payment.payer)
    problem = await settler.check(payment, requirements, { proven, ahead: inProgress.heldBefore(payment) })
  }
  if (problem) return unlessKnown(parts, payment, bodyBytes, invalidError(refusalOf(problem, refusal)))
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
export function invalidError({ reason, message }: Refusal): ServiceError {
  return new ServiceError('payment_invalid', message, { reason })
}

/** Counts the large bodies of each payer that were read and did not lead to a sale. */
export interface LargeBodyLimit {
  /** Counts a body. Throws RateLimited above the limit. */
  admit(name: string): Promise<CountedBody>
}

const UNPAID_BODIES = 20
const WINDOW_SECONDS = 60

/**
 * Creates the limit of one process; with `peers`, of all processes together. A large body costs so much that it waits for
 * what the others say. While they cannot be reached, each process counts for itself.
 */
export function createLargeBodyLimit(peers: Pick<Peers, 'addCalls'> | null = null): LargeBodyLimit {
  const counts = new RateLimiterMemory({ points: UNPAID_BODIES, duration: WINDOW_SECONDS })

  /** Adds to what all processes counted. Null: there are no others, or they cannot be reached. */
  async function tell(name: string, calls: number, msLeft: number): Promise<CallTotal | null> {
    if (!peers) return null
    // Payments and payers do not leave the process.
    const caller = `large-${createHash('sha256').update(name).digest('base64url').slice(0, 22)}`
    const totals = await peers.addCalls([{ caller, calls, msLeft }]).catch(() => null)
    return totals?.[0] ?? null
  }

  /**
   * Takes a body back from the windows that it was counted in, this process's and that of all. Taken from a later window, it
   * would admit one more unpaid body there.
   */
  async function takeBack(name: string, ownEnd: number, sharedEnd: number): Promise<void> {
    const now = Date.now()
    // The time left bounds the window that begins if the other one ends meanwhile.
    await Promise.all([
      ownEnd > now && counts.reward(name, 1, { customDuration: (ownEnd - now) / 1000 }),
      sharedEnd > now && tell(name, -1, sharedEnd - now),
    ])
  }

  return {
    async admit(name) {
      const own = await counts.consume(name).catch((rejection: unknown) => {
        throw rejection instanceof RateLimiterRes ? tooMany(rejection.msBeforeNext) : rejection
      })
      const ownEnd = Date.now() + own.msBeforeNext
      const total = await tell(name, 1, WINDOW_SECONDS * 1000)
      const sharedEnd = total ? Date.now() + total.msLeft : 0
      if (!total || total.calls <= UNPAID_BODIES) return { paid: () => takeBack(name, ownEnd, sharedEnd) }
      // A body that is not read does not count.
      await takeBack(name, ownEnd, sharedEnd)
      throw tooMany(total.msLeft)
    },
  }
}

const tooMany = (ms: number): RateLimited =>
  new RateLimited(`More than ${UNPAID_BODIES} large requests of this payer were not paid.`, ms / 1000)
