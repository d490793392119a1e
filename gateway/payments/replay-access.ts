/**
 * Who may get a stored answer again, or learn about a purchase. Once a payment has settled, anybody can copy its signature
 * from the chain, and most requests are easy to guess. So a caller has to prove that the purchase is his:
 *
 * - with its identifier (Idempotency-Key or payment-identifier), which is on no chain;
 * - or by signing in with the wallet that paid. That always works.
 *
 * Many buyers have neither at hand when a connection breaks. So a purchase without an identifier may also be fetched from
 * the network address that made it, until 60 seconds after its first delivery. Others may share that address, so it never
 * opens a plan, whose token is good for days.
 */
import { createHash } from 'node:crypto'
import { ERRORS, ServiceError } from '../errors.ts'
import { identifierInHeader } from '../x402/payment-identifier.ts'
import type { SignInRefusal } from '../x402/sign-in-with-x.ts'
import type { PaymentRecord } from './journal/journal.ts'
import type { Claim, ClaimedRequest } from './payment.ts'
import type { PayingWallet, WalletSignIn } from './wallet-sign-in.ts'

/** The facts that a proof is compared with. `deliveredAt` is null while nothing was delivered, in milliseconds since the epoch. */
type Purchased = Pick<PaymentRecord, 'identifier' | 'place' | 'deliveredAt'> & PayingWallet

/** The claim of a caller to the purchases of one payment. */
export interface ReplayAccess {
  readonly claim: Claim
  /** Whether the purchase is one of a plan. */
  readonly isPlan: boolean
  /** Absent where nobody can sign in. */
  readonly signIn?: WalletSignIn | undefined
  readonly now: () => Date
}

/**
 * The claim of a request without a payment.
 * @throws InvalidInput (422) for a malformed Idempotency-Key
 */
export function claimOf(request: ClaimedRequest): Claim {
  const { idempotencyKey } = request
  return claimBy(request, idempotencyKey === undefined ? null : identifierInHeader(idempotencyKey))
}

/** The claim of a request under this identifier. */
export function claimBy({ signIn, client, callerPlace }: ClaimedRequest, identifier: string | null): Claim {
  const place = client === null ? null : createHash('sha256').update(`bought from ${client}`).digest('hex').slice(0, 32)
  return { identifier, place, signIn: signIn ?? null, callerPlace: callerPlace ?? null }
}

/** How long after its first delivery an answer may be fetched again without proof, from the address that bought it. */
const GRACE_MS = 60_000

/** The check of the sign-in of a claim. A sign-in counts once, so it is checked once, however often a call asks. */
const signIns = new WeakMap<Claim, Promise<SignInRefusal | null>>()

/**
 * Throws unless the purchase is the caller's. The refusal is the same for every purchase.
 * @throws ServiceError `sign_in_required`
 * @throws Unavailable, RateLimited if the sign-in of a contract wallet cannot be checked now
 */
export async function assertAccess(access: ReplayAccess, bought: Purchased): Promise<void> {
  if (await hasAccess(access, bought)) return
  const refused = await signedIn(access, bought)
  if (refused) throw new ServiceError('sign_in_required', `${refused.message} ${ADVICE}`, { reason: refused.reason })
  throw new ServiceError('sign_in_required', undefined, { reason: 'sign_in_required' })
}

/** Whether the purchase is the caller's. */
export async function hasAccess(access: ReplayAccess, bought: Purchased): Promise<boolean> {
  const { identifier } = bought
  // A sign-in is used up wherever it arrives, so that nobody who has seen it can use it elsewhere.
  const others = (identifier !== null && identifier === access.claim.identifier) || isAtPlaceOf(access, bought)
  const signed = signedIn(access, bought)
  if (!signed) return others
  if (others) return signed.then(always, always)
  return (await signed) === null
}

function signedIn({ signIn, claim }: ReplayAccess, bought: Purchased): Promise<SignInRefusal | null> | null {
  if (!signIn || claim.signIn === null) return null
  const known = signIns.get(claim)
  if (known) return known
  const checked = signIn(claim.signIn, bought, claim.callerPlace)
  signIns.set(claim, checked)
  return checked
}

function isAtPlaceOf({ claim, isPlan, now }: ReplayAccess, { identifier, place, deliveredAt }: Purchased): boolean {
  if (isPlan || identifier !== null || claim.identifier !== null) return false
  if (place === null || place !== claim.place) return false
  return deliveredAt === null || now().getTime() - deliveredAt <= GRACE_MS
}

const ADVICE = ERRORS.sign_in_required.message

const always = (): boolean => true
