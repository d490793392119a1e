import { NotFound } from 'tollgate/plugin'
import type { SampleSymbol } from './sample-bars.ts'
import { VENUES, type VenueName } from './venues/bar-venues.ts'

/** One entry of `symbols` in the product's settings. */
export interface CoveredSymbol extends SampleSymbol {
  readonly name: string
  /** Other spellings. Case, dash, slash and underscore are ignored. */
  readonly aliases: readonly string[]
  /** The name of the symbol at each venue, preferred venues first. */
  readonly venues: Readonly<Partial<Record<VenueName, string>>>
  /** Venues that are asked every minute. */
  readonly live?: readonly VenueName[]
  /** Venues that are asked for the past. */
  readonly backfill?: readonly VenueName[]
  /** Venues agree if their prices differ by no more than this, basis points. */
  readonly tolerance_bps?: number
}

export interface VenueSettings {
  readonly url: string
  /** Where order books with a limit are read, if that is another API. */
  readonly book_url?: string
  readonly enabled?: boolean
  readonly per_second?: number
}

export interface Settings {
  readonly history_start?: string
  readonly symbols: readonly CoveredSymbol[]
  /** False switches the polling of order books off. */
  readonly books?: boolean
  /** How often an order book is kept for the calibration of impact, seconds. */
  readonly keep_books_every_seconds?: number
  /** For how many days these are kept. */
  readonly keep_books_days?: number
  /** A request to a venue that takes longer counts as failed. */
  readonly request_seconds?: number
  readonly venues?: Readonly<Partial<Record<VenueName, VenueSettings>>>
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
        required: ['symbol', 'name', 'price', 'volatility', 'turnover', 'tick', 'session'],
        properties: {
          symbol: { type: 'string' },
          name: { type: 'string' },
          aliases: { type: 'array', items: { type: 'string' }, default: [] },
          session: { enum: ['24x7', 'us_equity'] },
          price: { type: 'number', exclusiveMinimum: 0, description: 'Price at the start of the sample.' },
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
            properties: Object.fromEntries(Object.keys(VENUES).map((venue) => [venue, { type: 'string' }])),
            default: {},
          },
          live: {
            type: 'array',
            items: { enum: Object.keys(VENUES) },
            description:
              'Venues that are asked every minute, at least two. Default: every venue where it is quoted in dollars.',
          },
          backfill: {
            type: 'array',
            items: { enum: Object.keys(VENUES) },
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
        'How often an order book of each symbol is kept, thinned, for the calibration of impact, and another one half a minute later.',
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
      properties: Object.fromEntries(
        Object.keys(VENUES).map((venue) => [
          venue,
          {
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
              per_second: { type: 'number', exclusiveMinimum: 0, description: 'Requests per second during back-fill.' },
            },
          },
        ]),
      ),
    },
  },
} as const

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

/**
 * The venues of a symbol that are enabled, with the defaults. Throws a message for the operator if fewer than two are left
 * for the present or for the past, or if one is quoted in a token whose price in dollars is not known.
 */
export function venuesOf(symbol: CoveredSymbol, { venues }: Pick<Settings, 'venues'>): SymbolVenues {
  const isEnabled = (name: VenueName): boolean => symbol.venues[name] !== undefined && venues?.[name]?.enabled !== false
  const isInDollars = (name: VenueName): boolean => !/(USDT|USDC)$/i.test(symbol.venues[name] ?? '')
  const named = (Object.keys(symbol.venues) as VenueName[]).filter(isInDollars)
  const keepsYears = (name: VenueName): boolean => VENUES[name].keepsYears
  const live = (symbol.live ?? named).filter(isEnabled)
  const backfill = (symbol.backfill ?? symbol.live ?? named).filter((name) => isEnabled(name) && keepsYears(name))
  const foreign = [...live, ...backfill].find((name) => !isInDollars(name))
  if (foreign)
    throw new Error(
      `${symbol.symbol}: ${symbol.venues[foreign]} of ${foreign} is not quoted in dollars; take ${foreign} out of live and backfill`,
    )
  for (const [role, names] of Object.entries({ live, backfill }))
    if (names.length < LEAST_VENUES)
      throw new Error(
        `${symbol.symbol}: ${role} has ${names.length} venues, but no minute is published unless ${LEAST_VENUES} agree; name more in venues and ${role}`,
      )
  return { live, backfill, tolerance: (symbol.tolerance_bps ?? DEFAULT_TOLERANCE_BPS) / 10_000 }
}

const normalised = (name: string): string => name.toUpperCase().replaceAll(/[-/_\s]/g, '')

/** Finds symbols by any of their spellings. Throws NotFound that names the field and the covered symbols. */
export function createSymbolIndex(symbols: readonly Pick<CoveredSymbol, 'symbol' | 'aliases'>[]): {
  resolve(name: string): string
} {
  const bySpelling = new Map<string, string>()
  for (const { symbol, aliases } of symbols) {
    for (const name of aliases) bySpelling.set(normalised(name), symbol)
    bySpelling.set(normalised(symbol), symbol)
  }
  return {
    resolve(name) {
      const symbol = bySpelling.get(normalised(name))
      if (symbol !== undefined) return symbol
      const covered = symbols.map((entry) => entry.symbol)
      const some =
        covered.length > 12 ? `${covered.slice(0, 12).join(', ')} and ${covered.length - 12} more` : covered.join(', ')
      throw new NotFound(`symbol: ${name} is not covered. Covered are ${some}.`)
    },
  }
}
