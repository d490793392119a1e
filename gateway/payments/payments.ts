/**
 * The payment of one call: reads the presented payment, returns the answer it has already bought, or admits it so that
 * the call may do its work. No buyer is charged before the answer is stored, no part of a paid answer leaves before the
 * settlement, and an unknown outcome is never reported as a failure.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { type Awaitable, isPromise } from '../awaitable.ts'
import type { Network } from '../config/networks.ts'
import { type Recipients, recipientsOf } from '../config/pay-to.ts'
import { ServiceError } from '../errors.ts'
import {
  type DecodedPayment,
  type Listing,
  methodOf,
  type PaymentKey,
  type PaymentMethod,
  type Settler,
} from '../methods/payment-method.ts'
import type { Catalog, Operation } from '../plugin/catalog.ts'
import type { Logger } from '../plugin/plugin.ts'
import type { Peers } from '../stores/peers.ts'
import type { PaymentRequirements } from '../x402/payment-requirements.ts'
import {
  type Challenges,
  createChallenges,
  createRevision,
  type FreshnessNotice,
  type Quote,
} from '../x402/challenge.ts'
import { createSignInChallenge } from '../x402/sign-in-with-x.ts'
import type { Offers } from '../x402/signed-offers.ts'
import { createPaymentsInProgress } from './payments-in-progress.ts'
import type { Journal, Reservation } from './journal/journal.ts'
import { assertNotSettledLate } from './late-settlement.ts'
import {
  checkEarly,
  checkOffline,
  createLargeBodyLimit,
  type EarlyCheckParts,
  invalidError,
  refusalOf,
} from './early-checks.ts'
import {
  type OfflineCheck,
  type PaymentRequest,
  type PresentedPayment,
  presentedPayment,
  type UnreadPayment,
} from './presented-payment.ts'
import { NodeCallBudget } from './node-call-budget.ts'
import type { FormerPrices } from './price-history.ts'
import { createPurchase, minBlocksOf, type PaidAnswer, pendingError, type Purchase, receiptOf } from './purchase.ts'
import { identifierConflict, nonceConflict, provesRecord, replay } from './replay.ts'
import { checkOnline, gasTerms, releaseUnlessCovered, reserveInTurn, unrecordedError } from './reservation.ts'
import type { WalletSignIn } from './wallet-sign-in.ts'

export interface PaymentsParts extends Recipients {
  readonly baseUrl: string
  readonly journal: Journal
  readonly log: Logger
  /** One per network. */
  readonly methods: readonly PaymentMethod[]
  readonly settler: Settler
  readonly now: () => Date
  /** Waits this many milliseconds; a timer if absent. */
  readonly pause?: (ms: number) => Promise<unknown>
  /** Amounts accepted besides the current price: former prices in their grace period. */
  readonly formerPrices?: (operation: Operation) => FormerPrices
  /** The `minBlocks` of payments of plans for real money. 1, the default: they are final like all others. */
  readonly planBlocks?: number
  /** Signs the requirements of a 402; they are not signed if absent. */
  readonly offers?: Offers
  /** The other processes, which count large bodies together with this one. */
  readonly peers?: Pick<Peers, 'addCalls'> | null
  /** Counts the calls of nodes that payments cause, together with those of others. If absent, it counts nothing else. */
  readonly nodeCalls?: NodeCallBudget
  /** Lets a wallet prove that a purchase is its own. If absent, only the identifier of the purchase proves it. */
  readonly signIn?: WalletSignIn
}

export interface Payments {
  /** Builds the 402 of an operation. `error` is the reason it is sent, `notice` says how fresh the data are. */
  quote(catalog: Catalog, operation: Operation, url: string, error: ServiceError, notice?: FreshnessNotice): Quote
  /** Returns what builds the 402s for calls of one address without a payment. Keep it for an address that is often called. */
  quotesAt(catalog: Catalog, operation: Operation, url: string): (notice?: FreshnessNotice) => Quote
  /** Returns the revision of the 402s for calls without a payment. While it is the same, so is a 402 without a notice. */
  revision(): number
  /** Reads the payment of a request; null if there is none. Throws `payment_invalid`, or 422 for a malformed header. */
  present(request: PaymentRequest): UnreadPayment | null
  /**
   * Checks a payment as far as is cheap, before the body of its request is read. Returns what it found; null if the payment
   * is refused by now, but has bought something before. Throws `payment_invalid`; for a large body also `rate_limited`, or
   * `settler_unavailable`.
   * @param version of the catalog that the price comes from
   */
  checkEarly(operation: Operation, unread: UnreadPayment, version: string): Awaitable<OfflineCheck | null>
  /**
   * Returns the answer that this payment has bought or is buying right now; null if it has bought nothing. Throws 409
   * if it was used for another request, 503 while the outcome of its settlement is unknown.
   */
  replay(operation: Operation, presented: PresentedPayment): Promise<PaidAnswer | null>
  /**
   * Checks and reserves a payment. Returns the purchase, or the answer that a duplicate request bought in the meantime.
   * Throws 409 if the payer has used the identifier for another payment.
   * @param catalog that the price comes from
   * @param url of the call
   */
  admit(
    operation: Operation,
    presented: PresentedPayment,
    catalog: Catalog,
    url: string,
  ): Promise<Purchase | PaidAnswer>
  /** Records that the call of a payment ended with a sale, so that neither its body nor its calls of nodes count. */
  sold(presented: PresentedPayment): Promise<void>
  /** Records that a buyer received the complete answer. */
  delivered(key: PaymentKey): Promise<void>
  /** Whether a call of this process is working on a payment, or watches its settlement. */
  isWorking(key: PaymentKey): boolean
  /** Resolves when no payment is being worked on. */
  idle(): Promise<void>
}

/** What the functions of this file share. */
type Context = EarlyCheckParts

/** Creates the payments of one gateway. */
export function createPayments(parts: PaymentsParts): Payments {
  const { baseUrl, journal, log, methods, settler, now, formerPrices, signIn, planBlocks = 1, pause = delay } = parts
  const inProgress = createPaymentsInProgress<PaidAnswer>(() => Math.floor(now().getTime() / 1000))
  const shared = { baseUrl, journal, log, methods, settler, now, formerPrices, signIn, planBlocks, pause, inProgress }
  const recipients = recipientsOf(parts)
  const nodeCalls = parts.nodeCalls ?? new NodeCallBudget(parts)
  const context: Context = {
    ...shared,
    recipients,
    largeBodies: createLargeBodyLimit(parts.peers),
  }
  const networks = recipients.map(({ network }) => network)
  const signing = signIn ? { signInChallenge: createSignInChallenge(parts, networks) } : {}
  const challengesByCatalog = new WeakMap<Catalog, Challenges>()
  const isReady = (network: Network): boolean => settler.health(network).ready

  function challengesOf(catalog: Catalog): Challenges {
    let made = challengesByCatalog.get(catalog)
    if (!made) {
      made = createChallenges({ ...parts, ...signing, catalog, formats: methods, isReady })
      challengesByCatalog.set(catalog, made)
    }
    return made
  }

  return {
    quote: (catalog, operation, url, error, notice) => challengesOf(catalog).write(operation, url, error, notice),
    quotesAt: (catalog, operation, url) => challengesOf(catalog).at(operation, url),
    revision: createRevision({ ...parts, isReady }, networks),
    present: (request) => presentedPayment(request, methods, nodeCalls),
    checkEarly(operation, unread, version) {
      const checked = checkEarly(context, operation, unread, version)
      return isPromise(checked) ? withJournal(() => checked) : checked
    },
    async sold({ checked, nodeCalls }) {
      await Promise.all([checked?.largeBody?.paid(), nodeCalls.sold()])
    },
    replay: (operation, presented) => withJournal(() => replay(context, operation, presented)),
    admit(operation, presented, catalog, url) {
      const listing = (): Listing => listingOf(challengesOf(catalog).write(operation, url, DESCRIBED))
      return withJournal(() => admit(context, operation, presented, { version: catalog.version, listing }))
    },
    delivered: (key) => journal.delivered(key),
    isWorking: (key) => inProgress.isBusy(key),
    idle: () => inProgress.idle(),
  }
}

/** Its 402 describes what is paid for. It has a text of its own, so that it never replaces the one that is kept for callers. */
const DESCRIBED = new ServiceError('payment_required', 'This describes the resource for a facilitator.')

/** What the 402 says of the resource, for facilitators that list it. */
function listingOf({ v2 }: Quote): Listing {
  const { bazaar } = v2['extensions'] as Readonly<Record<string, unknown>>
  return { resource: v2['resource'] as Listing['resource'], extensions: { bazaar } }
}

/** What is sold. */
interface Sold {
  /** Of the catalog that the price comes from. */
  readonly version: string
  readonly listing: () => Listing
}

/**
 * Reports an unreadable journal as `ledger_unavailable`: the payment may have settled, so no error may call it
 * uncharged.
 */
async function withJournal<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof ServiceError) throw error
    throw new ServiceError('ledger_unavailable', undefined, { cause: error })
  }
}

/**
 * Checks and reserves a payment. Tries again, a limited number of times and only while the caller waits, if another
 * call, here or in another process, releases the same payment meanwhile.
 */
async function admit(
  context: Context,
  operation: Operation,
  presented: PresentedPayment,
  sold: Sold,
): Promise<Purchase | PaidAnswer> {
  for (let tries = 1; ; tries++) {
    const admitted = await tryToAdmit(context, operation, presented, sold)
    if (admitted) return admitted
    const bought = await replay(context, operation, presented)
    if (bought) return bought
    if (tries === MAX_TRIES || presented.connection.hasLeft) throw takenOverError(context, presented)
    await context.pause(RETRY_MS)
  }
}

/**
 * How often to try to reserve a payment that others reserve and release at the same time, and the time between two
 * tries.
 */
const MAX_TRIES = 10
const RETRY_MS = 100

/** The 503 of a payment that others work on at the same time. */
function takenOverError({ methods }: Context, { payment }: PresentedPayment): ServiceError {
  const { network } = methodOf(methods, payment.network)
  return pendingError(receiptOf(payment, network, payment.envelope.version, '', 'settlement_pending'))
}

/**
 * Returns null if another call is working on the payment: then the outcome of that call counts. Throws 409 if the
 * identifier or the nonce belongs to another payment.
 */
async function tryToAdmit(
  context: Context,
  operation: Operation,
  presented: PresentedPayment,
  sold: Sold,
): Promise<Purchase | PaidAnswer | null> {
  const { journal, methods, settler, now, inProgress } = context
  const { payment, identifier, connection } = presented
  const { requirements, priceVersion, refusal } =
    freshCheck(context, presented) ?? checkOffline(context, operation, payment, sold.version)
  const recording = journal.health()
  if (!recording.ready) throw await unrecordedError(journal, payment.key, recording.reason)
  const health = settler.health(requirements.network)
  if (!health.ready) throw new ServiceError('settler_unavailable', undefined, { cause: health.reason })

  const named = identifier === null ? null : await journal.findByIdentifier(payment.payer, identifier)
  if (named && named.key !== payment.key)
    // Nobody has proved yet that a contract wallet signed this: it learns nothing of the wallet's purchase.
    throw refusal ? new ServiceError('idempotency_conflict') : identifierConflict(named)
  const work = inProgress.start(presented)
  if (!work) return null
  try {
    await untilValid(context, payment)
    const problem = await checkOnline(context, work, presented, requirements, refusal === null)
    if (problem) {
      // A duplicate request, here or in another process, may have settled the payment: then its outcome counts.
      const current = await journal.find(payment.key)
      if (current && current.state !== 'released') {
        work.finish(null)
        const bought = await replay(context, operation, presented)
        if (bought) return bought
      }
      if (problem.reason === 'invalid_transaction_state') await assertNotSettledLate(journal, settler, payment.key)
      throw invalidError(refusalOf(problem, refusal))
    }
    const reservation = {
      ...reservationOf(operation, presented, requirements, priceVersion),
      ...gasTerms(settler, payment),
    }
    const { reserved, record, ahead } = await reserveInTurn(context, reservation, connection)
    if (reserved) {
      const method = methodOf(methods, payment.network)
      const { wait } = operation
      // Each part by name: this runs for every payment, and copying the whole context costs more than the rest of it.
      const purchase = createPurchase({
        journal,
        log: context.log,
        settler,
        method,
        record,
        payment,
        requirements,
        wait,
        minBlocks: minBlocksOf(operation, requirements, context.planBlocks),
        isPlan: operation.plan !== null,
        listing: sold.listing,
        inProgress,
        work,
        now,
        connection,
      })
      await releaseUnlessCovered(context, purchase, payment, requirements, ahead)
      return purchase
    }
    if (record.key !== payment.key) throw identifierConflict(record)
    if (!provesRecord(methods, payment, record)) throw nonceConflict(record)
  } catch (error) {
    work.finish(connection.hasLeft ? null : { error })
    throw error
  }
  // The record belongs to another process, or to a call that ended between `replay` and `start`: its outcome counts.
  work.finish(null)
  return null
}

/** What the check before the body found, unless reading took so long that the payment may have expired. */
function freshCheck({ now }: Context, { checked }: PresentedPayment): OfflineCheck | null {
  return checked && now().getTime() / 1000 < checked.atSeconds + CHECK_SECONDS ? checked : null
}

/** Shorter than the time for which a payment must be valid when it is checked. */
const CHECK_SECONDS = 3

/** Waits until a payment is valid. A token accepts it only after the second of `startsAt`. */
async function untilValid({ now, pause }: Context, { startsAt }: DecodedPayment): Promise<void> {
  const remainingMs = (Number(startsAt) + 1) * 1000 - now().getTime()
  // A timer may fire slightly early.
  if (remainingMs > 0) await pause(remainingMs + 10)
}

function reservationOf(
  operation: Operation,
  { payment, fingerprint, callId, identifier, place }: PresentedPayment,
  { network: { asset }, payTo, amount }: PaymentRequirements,
  priceVersion: string,
): Reservation {
  const { key, network, payer, identity, startsAt, expiresAt, proof, envelope } = payment
  const { id, route } = operation
  return {
    key,
    network,
    asset,
    payer,
    payTo,
    amount,
    identity,
    startsAt,
    expiresAt,
    proof,
    version: envelope.version,
    operation: id,
    route,
    fingerprint,
    priceVersion,
    callId,
    identifier,
    place,
  }
}
