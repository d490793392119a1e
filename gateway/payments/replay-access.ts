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
import { ERRORS, ServiceError } from '../errors.ts'
import type { SignInRefusal } from '../x402/sign-in-with-x.ts'
import type { PaymentRecord } from './journal/journal.ts'
import type { Claim } from './presented-payment.ts'
import type { PayingWallet, WalletSignIn } from './wallet-sign-in.ts'

/** What is known of the purchase. `deliveredAt` is null while nothing was delivered, in milliseconds since the epoch. */
export type Purchased = Pick<PaymentRecord, 'identifier' | 'place' | 'deliveredAt'> & PayingWallet

export interface ReplayAccessParts {
  /** Absent where nobody can sign in. */
  readonly signIn?: WalletSignIn | undefined
  readonly now: () => Date
}

/** How long after its first delivery an answer may be fetched again without proof, from the address that bought it. */
const GRACE_MS = 60_000

/** What became of the sign-in of a claim. A sign-in counts once, so it is checked once, however often a call asks. */
const signIns = new WeakMap<Claim, Promise<SignInRefusal | null>>()

/** What a claim proves, for the purchases of one payment. */
export class ReplayAccess {
  readonly #parts: ReplayAccessParts
  readonly #claim: Claim
  readonly #isPlan: boolean

  /** @param isPlan whether the purchase is one of a plan */
  constructor(parts: ReplayAccessParts, claim: Claim, isPlan: boolean) {
    this.#parts = parts
    this.#claim = claim
    this.#isPlan = isPlan
  }

  /**
   * Throws unless the purchase is the caller's.
   * @throws ServiceError `sign_in_required`
   * @throws Unavailable, RateLimited if the sign-in of a contract wallet cannot be checked now
   */
  async assert(bought: Purchased): Promise<void> {
    if (!(await this.allows(bought))) throw await this.refusal(bought)
  }

  /** Whether the purchase is the caller's. */
  async allows(bought: Purchased): Promise<boolean> {
    // A sign-in is used up wherever it arrives, so that nobody who has seen it can use it elsewhere.
    const others = provesByIdentifier(bought, this.#claim) || this.#isAtPlaceOf(bought)
    const signedIn = this.#signedIn(bought)
    if (!signedIn) return others
    if (others) return signedIn.then(always, always)
    return (await signedIn) === null
  }

  /** The refusal of a caller who may not have the answer. It is the same for every purchase. */
  async refusal(bought: Purchased): Promise<ServiceError> {
    const refused = await this.#signedIn(bought)
    if (refused) return new ServiceError('sign_in_required', `${refused.message} ${ADVICE}`, { reason: refused.reason })
    return new ServiceError('sign_in_required', undefined, { reason: 'sign_in_required' })
  }

  #signedIn(bought: Purchased): Promise<SignInRefusal | null> | null {
    const { signIn } = this.#parts
    if (!signIn || this.#claim.signIn === null) return null
    const known = signIns.get(this.#claim)
    if (known) return known
    const checked = signIn(this.#claim.signIn, bought, this.#claim.callerPlace)
    signIns.set(this.#claim, checked)
    return checked
  }

  #isAtPlaceOf({ identifier, place, deliveredAt }: Purchased): boolean {
    if (this.#isPlan || identifier !== null || this.#claim.identifier !== null) return false
    if (place === null || place !== this.#claim.place) return false
    return deliveredAt === null || this.#parts.now().getTime() - deliveredAt <= GRACE_MS
  }
}

const ADVICE = ERRORS.sign_in_required.message

const always = (): boolean => true

function provesByIdentifier(bought: Purchased, claim: Claim): boolean {
  return bought.identifier !== null && bought.identifier === claim.identifier
}
