/**
 * Two public listings of services for agents, as facilitators serve them. Each lists forty services, ten of which the
 * other lists too.
 *
 * Source: x402 specification, version 2, "Discovery API".
 */
import type { VenueRoute, VenueScript } from '../scripted-venue.ts'

export const LISTINGS = ['cdp', 'payai'] as const
export type ListingName = (typeof LISTINGS)[number]

const SERVICES = 40
const SHARED = 10
const MOST = 100

export interface ListedService {
  readonly url: string
  /** Atomic units of USDC. */
  readonly amount: string
}

/** What a listing holds. */
export function servicesOf(name: ListingName): readonly ListedService[] {
  const first = LISTINGS.indexOf(name) * (SERVICES - SHARED)
  return Array.from({ length: SERVICES }, (_, at) => {
    const nth = first + at
    return { url: `https://service-${nth}.example/v1/answer`, amount: String(1_000 * (1 + (nth % 9))) }
  })
}

/** The scripted venue of a listing. */
export const listingVenue = (name: ListingName): string => `${name}-listing`

function resources(name: ListingName): VenueRoute {
  return {
    name: 'resources',
    path: /^\/discovery\/resources$/,
    answer({ query }, view) {
      const limit = Math.min(MOST, Number(query.get('limit') ?? MOST))
      const offset = Number(query.get('offset') ?? 0)
      const services = servicesOf(name)
      const items = services.slice(offset, offset + limit).map(({ url, amount }) => ({
        resource: url,
        type: 'http',
        x402Version: 2,
        lastUpdated: new Date(view.now - 3_600_000).toISOString(),
        accepts: [
          {
            scheme: 'exact',
            network: 'eip155:8453',
            asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
            amount,
            payTo: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C',
            maxTimeoutSeconds: 60,
          },
        ],
      }))
      return {
        rows: items,
        wrap: (rows) => ({ x402Version: 2, items: rows, pagination: { limit, offset, total: services.length } }),
      }
    },
  }
}

/** Both listings. */
export const serviceListings: readonly VenueScript[] = LISTINGS.map((name) => ({
  name: listingVenue(name),
  routes: [resources(name)],
  limit: { weight: 60, seconds: 60 },
  refusals: {
    unknownSymbol: () => ({ status: 404, body: { error: 'not found' } }),
    rateLimited: { status: 429, body: { error: 'rate limit exceeded' } },
  },
}))
