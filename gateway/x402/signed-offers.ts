/**
 * Signed offers (x402 extension offer-receipt): what a 402 asks, signed, so that a buyer can show later what was
 * promised. Each is signed once for an address and a while, and never for a request.
 */
import { LRUCache } from 'lru-cache'
import type { PaymentRequirements } from './payment-requirements.ts'
import type { Hex } from '../config/networks.ts'

/** `typ` of the JWS: an offer can never be taken for a receipt or an access token. */
export const OFFER_TYPE = 'x402-offer'

/** The signed statement, field by field as the extension has it (section 4.2). */
export interface OfferStatement {
  readonly version: 1
  readonly resourceUrl: string
  readonly scheme: string
  /** CAIP-2, for payers of x402 v1 too. */
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
  /** Which entry of `accepts` it is about. */
  readonly acceptIndex: number
  readonly signature: string
}

export interface Offers {
  /** The offers of one address, one for each of the requirements and in their order. Empty where nothing is promised. */
  of(url: string, requirements: readonly PaymentRequirements[]): readonly SignedOffer[]
  /** Seconds since the epoch in steps: what was signed in one step is renewed in the next. */
  step(): number
}

export interface OffersParts {
  readonly sign: (type: string, statement: Readonly<Record<string, unknown>>) => string
  readonly now: () => Date
  /** How long a price is honoured after it has changed: as long as an offer may promise it. */
  readonly graceSeconds: number
}

/** Too short a promise is of no use to a buyer. */
const LEAST_SECONDS = 60
const ADDRESSES = 1_000
/** Between the moment new prices were read and the one they are asked, the old ones are still offered. */
const MARGIN_SECONDS = 30

/**
 * With a grace of 300 seconds an offer is good for 135 to 270: it is signed at the start of each half, until the end of
 * the next. Whatever the price becomes, a payment of the old one is honoured until then.
 */
export function createOffers({ sign, now, graceSeconds }: OffersParts): Offers {
  const half = Math.floor((graceSeconds - MARGIN_SECONDS) / 2)
  const signed = new LRUCache<string, readonly SignedOffer[]>({ max: ADDRESSES })
  const step = (): number => (half <= 0 ? 0 : Math.floor(now().getTime() / 1000 / half) * half)

  return {
    step,
    of(url, requirements) {
      if (graceSeconds < LEAST_SECONDS) return []
      const at = step()
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
        return { format: 'jws', acceptIndex, signature: sign(OFFER_TYPE, { ...statement }) }
      })
      signed.set(key, offers)
      return offers
    },
  }
}
