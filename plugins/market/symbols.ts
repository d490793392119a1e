import type { FromSchema } from 'tollgate/plugin'
import type { SampleSymbol } from './sample-bars.ts'
import { VENUES, type VenueName } from './venues/bar-venues.ts'

const VENUE_NAMES = Object.keys(VENUES) as VenueName[]

/** The same schema for every venue. */
function byVenue<const Schema>(schema: Schema): Readonly<Record<VenueName, Schema>> {
  return Object.fromEntries(VENUE_NAMES.map((venue) => [venue, schema])) as Record<VenueName, Schema>
}

/** JSON Schema of the product's settings. */
export const settingsSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['symbols'],
  properties: {
    history_start: {
      type: 'string',
      format: 'date-time',
      description:
        'Back-fill goes back to this time. Half a year before the first snapshot sold is enough for the models to start warm.',
    },
    symbols: {
      type: 'array',
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['symbol', 'name', 'tick', 'session'],
        properties: {
          symbol: { type: 'string' },
          name: { type: 'string' },
          aliases: { type: 'array', items: { type: 'string' }, default: [] },
          session: { enum: ['24x7', 'us_equity'] },
          price: {
            type: 'number',
            exclusiveMinimum: 0,
            description:
              'Price at the start of the sample. A symbol without price, volatility and turnover is not in the sample.',
          },
          volatility: {
            type: 'number',
            exclusiveMinimum: 0,
            description: 'Volatility of the sample per year, a fraction.',
          },
          turnover: {
            type: 'number',
            exclusiveMinimum: 0,
            description: 'Turnover of the sample per day, in the quote currency.',
          },
          tick: { type: 'number', exclusiveMinimum: 0 },
          venues: {
            type: 'object',
            additionalProperties: false,
            properties: byVenue({ type: 'string' }),
            default: {},
          },
          live: {
            type: 'array',
            items: { enum: VENUE_NAMES },
            description:
              'Venues that are asked every minute, at least two. Default: every venue where it is quoted in dollars.',
          },
          backfill: {
            type: 'array',
            items: { enum: VENUE_NAMES },
            description:
              'Venues that are asked for the past, at least two that keep years. The first two are asked, the others if these fail or do not agree. Default: those of `live` that keep years.',
          },
          tolerance_bps: {
            type: 'number',
            exclusiveMinimum: 0,
            default: 50,
            description:
              'Venues agree if their opens and closes differ by no more than this, basis points, or by half of what they moved in the minute.',
          },
          history_start: {
            type: 'string',
            format: 'date-time',
            description: 'Where its back-fill begins, if that is later: when its second venue listed it.',
          },
        },
      },
    },
    books: {
      type: 'boolean',
      default: true,
      description: 'Whether to poll the order books of the venues in online mode.',
    },
    keep_books_every_seconds: {
      type: 'integer',
      minimum: 120,
      maximum: 86_400,
      default: 300,
      description:
        'How often an order book of each symbol is kept, thinned, for the ranges of cost estimates, and another one half a minute later.',
    },
    keep_books_days: {
      type: 'integer',
      minimum: 1,
      maximum: 3650,
      default: 30,
      description: 'Days for which these order books are kept.',
    },
    request_seconds: {
      type: 'number',
      exclusiveMinimum: 0,
      default: 8,
      description: 'A request to a venue that takes longer counts as failed.',
    },
    venues: {
      type: 'object',
      additionalProperties: false,
      description: 'Public market-data APIs, used in online mode.',
      properties: byVenue({
        type: 'object',
        additionalProperties: false,
        required: ['url'],
        properties: {
          url: { type: 'string' },
          book_url: {
            type: 'string',
            description: 'Another API of the venue that has order books with a limit. Only coinbase has one.',
          },
          enabled: { type: 'boolean', default: true },
          per_second: { type: 'number', exclusiveMinimum: 0, description: 'Requests per second.' },
        },
      }),
    },
  },
} as const

export type Settings = FromSchema<typeof settingsSchema>
/** One entry of `symbols`. One without the numbers of a sample has no sample. */
export type CoveredSymbol = Settings['symbols'][number]

/** The venues of a symbol in online mode. */
export interface SymbolVenues {
  readonly live: readonly VenueName[]
  readonly backfill: readonly VenueName[]
  /** Largest difference of venues that agree (log ratio). */
  readonly tolerance: number
}

/** `tolerance_bps` of a symbol that states none. */
export const DEFAULT_TOLERANCE_BPS = 50
const LEAST_VENUES = 2
/** Names of pairs that are quoted in Tether or USD Coin. Bitfinex calls them UST and UDC. */
const TOKENS = /(USDT|USDC|UST|UDC)$/i

/** False for the name of a pair in a token, whose price in dollars is not known. */
export function isInDollars(code: string): boolean {
  return !TOKENS.test(code)
}

/** The symbols that have a sample. */
export function sampledSymbols(symbols: readonly CoveredSymbol[]): readonly (CoveredSymbol & SampleSymbol)[] {
  return symbols.filter(
    (one): one is CoveredSymbol & SampleSymbol =>
      one.price !== undefined && one.volatility !== undefined && one.turnover !== undefined,
  )
}

/**
 * The venues of a symbol that are enabled, with the defaults; null if fewer than two are left for the present or for the
 * past because others are not enabled: then nothing of it can be published. Throws a message for the operator if the
 * settings name fewer than two, or one that is quoted in a token whose price in dollars is not known.
 */
export function venuesOf(symbol: CoveredSymbol, { venues }: Pick<Settings, 'venues'>): SymbolVenues | null {
  const hasDollars = (name: VenueName): boolean => isInDollars(symbol.venues[name] ?? '')
  const named = (Object.keys(symbol.venues) as VenueName[]).filter(hasDollars)
  const isListed = (name: VenueName): boolean => symbol.venues[name] !== undefined
  const live = (symbol.live ?? named).filter(isListed)
  const backfill = (symbol.backfill ?? symbol.live ?? named).filter((name) => isListed(name) && VENUES[name].keepsYears)
  const foreign = [...live, ...backfill].find((name) => !hasDollars(name))
  if (foreign)
    throw new Error(
      `${symbol.symbol}: ${symbol.venues[foreign]} of ${foreign} is not quoted in dollars; take ${foreign} out of live and backfill`,
    )
  for (const [role, names] of Object.entries({ live, backfill }))
    if (names.length < LEAST_VENUES)
      throw new Error(
        `${symbol.symbol}: ${role} has ${names.length} venues, but no minute is published unless ${LEAST_VENUES} agree; name more in venues and ${role}`,
      )
  const isEnabled = (name: VenueName): boolean => venues?.[name]?.enabled !== false
  const enabled = { live: live.filter(isEnabled), backfill: backfill.filter(isEnabled) }
  if (Object.values(enabled).some((names) => names.length < LEAST_VENUES)) return null
  return { ...enabled, tolerance: (symbol.tolerance_bps ?? DEFAULT_TOLERANCE_BPS) / 10_000 }
}
