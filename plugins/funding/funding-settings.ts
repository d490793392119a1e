import type { FromSchema } from 'tollgate/plugin'
import type { VenueName } from './funding-rate.ts'
import { VENUES } from './venues/funding-venues.ts'

const TEN_SYMBOLS = ['BTC', 'ETH', 'SOL', 'XRP', 'DOGE', 'ADA', 'LTC', 'LINK', 'AVAX', 'BNB']

const VENUE = {
  type: 'object',
  additionalProperties: false,
  properties: {
    enabled: { type: 'boolean', default: true },
    url: { type: 'string', pattern: '^https?://', description: 'Without a path. Default: the public address.' },
  },
} as const

/** JSON Schema of the product's settings. */
export const settingsSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    venues: {
      type: 'object',
      additionalProperties: false,
      properties: Object.fromEntries(Object.keys(VENUES).map((name) => [name, VENUE])) as Record<
        VenueName,
        typeof VENUE
      >,
    },
    keep_hours: {
      type: 'integer',
      minimum: 1,
      maximum: 168,
      default: 6,
      description: 'Hours for which the answers of the venues and their order books are kept.',
    },
    poll_request_seconds: {
      type: 'number',
      exclusiveMinimum: 0,
      maximum: 15,
      default: 10,
      description: 'A request for current rates that takes longer counts as failed.',
    },
    book_symbols: {
      type: 'array',
      items: { type: 'string', pattern: '^[A-Z0-9]{1,20}$' },
      description: 'Symbols whose order books are read, so that spreads state a tradable size. None switches that off.',
      default: TEN_SYMBOLS,
    },
    book_seconds: {
      type: 'integer',
      minimum: 60,
      maximum: 600,
      default: 300,
      description: 'Seconds between two readings of the order books.',
    },
    book_request_seconds: {
      type: 'number',
      exclusiveMinimum: 0,
      maximum: 60,
      default: 8,
      description: 'A request for an order book that takes longer counts as failed.',
    },
    history_symbols: {
      type: 'array',
      items: { type: 'string', pattern: '^[A-Z0-9]{1,20}$' },
      description: 'Symbols whose settled rates are kept.',
      default: TEN_SYMBOLS,
    },
    extreme_symbols: {
      type: 'integer',
      minimum: 0,
      maximum: 200,
      default: 50,
      description: 'How many symbols with extreme rates of the last 90 days have their settled rates kept, too.',
    },
    history_days: {
      type: 'integer',
      minimum: 1,
      maximum: 365,
      default: 90,
      description: 'Days of settled rates to fetch at first.',
    },
    keep_settled_days: {
      type: 'integer',
      minimum: 1,
      maximum: 3650,
      default: 730,
      description: 'Days for which settled rates are kept. It must be more than `history_days`.',
    },
    history_pause_ms: {
      type: 'integer',
      minimum: 0,
      maximum: 60_000,
      default: 1000,
      description: 'Milliseconds between two requests for settled rates or order books to one venue.',
    },
  },
} as const

export type Settings = FromSchema<typeof settingsSchema>
