/** The 402s of all editions: one set for each catalog. */
import type { Network } from '../config/networks.ts'
import { ServiceError } from '../errors.ts'
import type { Listing } from '../methods/payment-method.ts'
import type { Payments } from '../payments/payments.ts'
import type { Catalog, Operation } from '../plugin/catalog.ts'
import { type Challenges, createChallenges, type Quote } from '../x402/challenge.ts'
import { createSignInChallenge } from '../x402/sign-in-with-x.ts'
import type { Offers } from '../x402/signed-offers.ts'

export interface Quotes {
  /** Returns the 402s of a catalog. */
  of(catalog: Catalog): Challenges
}

/**
 * Creates the 402s. They leave out networks that cannot settle, and ask callers to sign in where that is checked. `offers`
 * signs their requirements.
 */
export function createQuotes(payments: Payments, offers?: Offers): Quotes {
  const { baseUrl, recipients, methods: formats, settler, signIn } = payments
  const [leading, ...others] = recipients
  const networks = recipients.map(({ network }) => network)
  const shared = {
    baseUrl,
    ...leading,
    others,
    formats,
    isReady: (network: Network): boolean => settler.health(network).ready,
    ...(offers ? { offers } : {}),
    ...(signIn ? { signInChallenge: createSignInChallenge(payments, networks) } : {}),
  }
  const challengesByCatalog = new WeakMap<Catalog, Challenges>()
  return {
    of(catalog) {
      let made = challengesByCatalog.get(catalog)
      if (!made) {
        made = createChallenges({ ...shared, catalog })
        challengesByCatalog.set(catalog, made)
      }
      return made
    },
  }
}

const DESCRIBED = new ServiceError('payment_required', 'This describes the resource for a facilitator.')

/** Builds the resource description for facilitators that list it; a distinct message keeps it out of the 402 cache. */
export function listingOf(challenges: Challenges, operation: Operation, url: string): Listing {
  const { v2 }: Quote = challenges.write(operation, url, DESCRIBED)
  const { bazaar } = v2['extensions'] as Readonly<Record<string, unknown>>
  return { resource: v2['resource'] as Listing['resource'], extensions: { bazaar } }
}
