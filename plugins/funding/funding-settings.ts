import type { VenueName } from './funding-rate.ts'
import { VENUES } from './venues/funding-venues.ts'

export interface Settings {
  /** Switches and API addresses of the venues. */
  readonly venues?: Readonly<Partial<Record<VenueName, { readonly enabled?: boolean; readonly url?: string }>>>
  /** How many hours of answers are kept in online mode. */
  readonly keep_hours: number
  /** Seconds after which a request of a poll counts as failed. */
  readonly poll_request_seconds?: number
  /** Symbols whose settled rates are kept. */
  readonly history_symbols?: readonly string[]
  /** How many symbols with extreme rates have their settled rates kept, too. */
  readonly extreme_symbols: number
  /** How many days of settled rates are fetched at first. */
  readonly history_days: number
  /** How many days of settled rates are kept. */
  readonly keep_settled_days: number
  /** Symbols whose order books are read. */
  readonly book_symbols?: readonly string[]
  /** Seconds between two readings. */
  readonly book_seconds?: number
  /** Seconds after which a request for an order book counts as failed. */
  readonly book_request_seconds?: number
  /** Milliseconds between two requests for settled rates or order books to one venue. */
  readonly history_pause_ms?: number
}

const TEN_SYMBOLS = ['BTC', 'ETH', 'SOL', 'XRP', 'DOGE', 'ADA', 'LTC', 'LINK', 'AVAX', 'BNB']

const VENUE = {
  type: 'object',
  additionalProperties: false,
  properties: {
    enabled: { type: 'boolean', default: true },
    url: { type: 'string', pattern: '^https?://', description: 'Without a path. Default: the public address.' },
  },
}

/** JSON Schema of the product's settings. */
export const settingsSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    venues: {
      type: 'object',
      additionalProperties: false,
      properties: Object.fromEntries(Object.keys(VENUES).map((name) => [name, VENUE])),
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
}
