/**
 * Signed offers (x402 extension offer-receipt): the terms of a 402 with our signature, so that a buyer can prove later
 * what was promised. An offer is signed once per address and period, never per request.
 */
import { LRUCache } from 'lru-cache'
import type { PaymentRequirements } from './payment-requirements.ts'
import type { Hex } from '../config/networks.ts'

/** The signed statement, with the fields of the extension (section 4.2). */
export interface OfferStatement {
  readonly version: 1
  readonly resourceUrl: string
  readonly scheme: string
  /** CAIP-2, also for payers who use x402 v1. */
  readonly network: string
  readonly asset: Hex
  readonly payTo: Hex
  /** Atomic units. */
  readonly amount: string
  /** Seconds since the epoch. */
  readonly validUntil: number
}

/** An entry of `info.offers`. */
export interface SignedOffer {
  readonly format: 'jws'
  /** Index of the entry of `accepts` that it is for. */
  readonly acceptIndex: number
  readonly signature: string
}

export interface Offers {
  /**
   * The offers of one address, one per requirement and in that order. Empty if the grace period is too short to promise
   * anything, or the address too long for a header.
   */
  of(url: string, requirements: readonly PaymentRequirements[]): readonly SignedOffer[]
  /** Start of the current period in seconds since the epoch. Offers are signed once in each period. */
  periodStart(): number
}

export interface OffersParts {
  readonly sign: (statement: Readonly<Record<string, unknown>>) => string
  readonly now: () => Date
  /** How long an old price is honoured after a change: offers must not outlive it. */
  readonly graceSeconds: number
}

/** A shorter promise is of no use to a buyer. */
const MIN_GRACE_SECONDS = 60
/** About ten megabytes. With more products than this, each in turn, every 402 would be signed again. */
const CACHED_ADDRESSES = 10_000
/**
 * A longer address leaves no room for an offer in the header of a 402. Path parameters are the caller's, who needs no payment
 * to fill the memory with them.
 */
const MAX_ADDRESS_CHARACTERS = 1_024
/** Old prices are still offered between reading a new catalog and serving it. */
const MARGIN_SECONDS = 30

/**
 * Returns the signer of offers. With a grace of 300 seconds, an offer is valid for 135 to 270 seconds: it is signed at
 * the start of a period of 135 seconds and valid until the end of the next. A payment at the old price is honoured for
 * at least that long.
 */
export function createOffers({ sign, now, graceSeconds }: OffersParts): Offers {
  const half = Math.floor((graceSeconds - MARGIN_SECONDS) / 2)
  const signed = new LRUCache<string, readonly SignedOffer[]>({ max: CACHED_ADDRESSES })
  const periodStart = (): number => (half <= 0 ? 0 : Math.floor(now().getTime() / 1000 / half) * half)

  return {
    periodStart,
    of(url, requirements) {
      if (graceSeconds < MIN_GRACE_SECONDS || url.length > MAX_ADDRESS_CHARACTERS) return []
      const at = periodStart()
      const key = `${at} ${requirements.map(({ network, amount }) => `${network.caip2} ${amount}`).join()} ${url}`
      const known = signed.get(key)
      if (known) return known
      const offers = requirements.map(({ scheme, network, amount, payTo }, acceptIndex): SignedOffer => {
        const { caip2, asset } = network
        const statement: OfferStatement = {
          version: 1,
          resourceUrl: url,
          scheme,
          network: caip2,
          asset,
          payTo,
          amount: String(amount),
          validUntil: at + 2 * half,
        }
        return { format: 'jws', acceptIndex, signature: sign({ ...statement }) }
      })
      signed.set(key, offers)
      return offers
    },
  }
}
