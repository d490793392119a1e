/** Merges the listings of all sources and the results of our own visits into one record per service. */
import type { DirectoryRecord } from '../../schemas/types.d.ts'
import { formatSeconds } from '../lib/time/timestamps.ts'
import { type Health, isHidden } from './liveness.ts'
import type { Listing, Price } from './listing.ts'

/** The listing of one source, and the time at which it first appeared there. */
export interface SourceListing {
  readonly source: string
  /** Sources with a smaller rank take precedence. */
  readonly rank: number
  readonly listing: Listing
  /** When the source first had the listing, epoch seconds. */
  readonly seen: number
}

/** Our own observations. No source can overwrite them. */
export interface Entry {
  readonly id: string
  readonly first_seen: number
  readonly health: Health
  /** When `payTo` was last seen to change. */
  readonly payto_changed: number | null
  readonly checks_30d: number
  readonly ok_30d: number
}

/** The record without the time from which it was known, which the store keeps. */
export type Body = Omit<DirectoryRecord, 'last_updated'>

/** A changed `payTo` address is flagged for this long. */
const FLAGGED_SECONDS = 30 * 86_400
/** The id of this service as a source of listings. */
export const SELF = 'self'

const formatOrNull = (seconds: number | null): string | null => (seconds === null ? null : formatSeconds(seconds))

/** The `payTo` addresses in one spelling, to detect a change. */
export function payeesOf(prices: readonly Price[]): string[] {
  const payees = prices.map(({ network, pay_to }) => (network.startsWith('eip155:') ? pay_to.toLowerCase() : pay_to))
  return [...new Set(payees)].sort((a, b) => (a < b ? -1 : 1))
}

/** The prices of a service: from its own 402, otherwise from its own document, otherwise from the first source with prices. */
export function pricesOf(listed: readonly SourceListing[], health: Health): readonly Price[] {
  if (health.terms.length > 0) return health.terms
  const own = listed.find(({ listing }) => listing.isOwn && listing.prices.length > 0)
  return (own ?? listed.find(({ listing }) => listing.prices.length > 0))?.listing.prices ?? []
}

/**
 * Merges the listings of one service in order of precedence. Names and texts come from the first source that has them,
 * prices from `pricesOf`. First seen, health and verified `payTo` come from our own observations alone.
 */
export function merge(listed: readonly SourceListing[], entry: Entry, at: number): Body {
  const all = listed.map(({ listing }) => listing)
  const first = <Value>(field: (listing: Listing) => Value | null): Value | null => {
    for (const listing of all) {
      const value = field(listing)
      if (value !== null && !(Array.isArray(value) && value.length === 0)) return value
    }
    return null
  }
  const { health } = entry
  const base = all[0]!
  const prices = pricesOf(listed, health)
  const host = base.url === null ? null : new URL(base.url).hostname
  const claims = listed.find(({ listing }) => listing.calls30d !== null)
  const isSelf = listed.some(({ source }) => source === SELF)
  return {
    id: entry.id,
    kind: base.kind,
    name: first(({ name }) => name) ?? (base.url === null ? (base.tool ?? '') : `${host}${new URL(base.url).pathname}`),
    description: first(({ description }) => description),
    provider: {
      host,
      name: first(({ provider }) => provider),
      verified: isSelf || health.terms.length > 0 || all.some(({ isOwn }) => isOwn),
    },
    url: base.url,
    url_is_template: base.isTemplate,
    tool: base.url === null ? null : base.tool,
    protocols: [...new Set(all.flatMap(({ protocols }) => protocols))].sort((a, b) => (a < b ? -1 : 1)),
    x402_version: all.reduce<number | null>(
      (most, { x402Version }) => Math.max(most ?? 0, x402Version ?? 0) || null,
      null,
    ),
    prices: [...prices],
    networks: [...new Set(prices.map(({ network }) => network))].sort((a, b) => (a < b ? -1 : 1)),
    schema_available: all.some(({ hasSchema }) => hasSchema),
    tags: [...new Set(all.flatMap(({ tags }) => tags))].slice(0, 20),
    packages: [...(first(({ packages }) => packages) ?? [])],
    version: first(({ version }) => version),
    liveness: {
      status: isSelf ? 'alive' : health.status,
      http_status: health.http_status,
      last_checked: formatOrNull(health.last_checked),
      last_alive: formatOrNull(health.last_alive),
      checks_30d: entry.checks_30d,
      ok_30d: entry.ok_30d,
    },
    reputation: {
      calls_30d: claims?.listing.calls30d ?? null,
      payers_30d: claims?.listing.payers30d ?? null,
      source: claims?.source ?? null,
      erc8004: first(({ erc8004 }) => erc8004),
    },
    sources: listed.map(({ source, seen, listing }) => ({
      id: source,
      seen: formatSeconds(seen),
      updated: formatOrNull(listing.updated),
    })),
    first_seen: formatSeconds(entry.first_seen),
    flags: flagsOf(all, prices, entry, isSelf, at),
  }
}

/** What a reader should know before using a service. `all` holds its listings in order of precedence. */
function flagsOf(
  all: readonly Listing[],
  prices: readonly Price[],
  { health, payto_changed }: Entry,
  isSelf: boolean,
  at: number,
): DirectoryRecord['flags'] {
  const { kind, url, isTemplate } = all[0]!
  const isPaid = kind === 'http_endpoint' || kind === 'mcp_tool'
  const payees = payeesOf(prices)
  const isContradicted =
    health.terms.length > 0 && all.some((one) => !payeesOf(one.prices).every((payee) => payees.includes(payee)))
  const isChanged = isContradicted || (payto_changed !== null && at - payto_changed < FLAGGED_SECONDS)
  return [
    ...(isSelf ? (['self'] as const) : []),
    ...(isTemplate ? (['template'] as const) : []),
    ...(isPaid && prices.length === 0 ? (['no_prices'] as const) : []),
    ...(url?.startsWith('http:') ? (['plain_http'] as const) : []),
    ...(isChanged ? (['payto_changed'] as const) : []),
    ...(health.refusal === null ? [] : (['refused'] as const)),
  ]
}

/** The columns that queries filter and sort by. */
export function columnsOf(body: Body) {
  const dollars = body.prices.map(({ amount_usd }) => amount_usd).filter((amount) => amount !== null)
  const padded = (words: readonly string[]): string => `|${words.join('|').toLowerCase()}|`
  const url = body.url ?? ''
  return {
    kind: body.kind,
    protocols: padded(body.protocols),
    networks: padded(body.networks),
    tags: padded(body.tags),
    words: [body.name, body.description ?? '', url, body.provider.name ?? '', ...body.tags].join(' ').toLowerCase(),
    name_key: body.name.toLowerCase().slice(0, 200),
    price_usd: dollars.length > 0 ? Math.min(...dollars) : null,
    alive: body.liveness.status === 'alive' ? 1 : 0,
    hidden: isHidden(body.liveness.status) ? 1 : 0,
  }
}
