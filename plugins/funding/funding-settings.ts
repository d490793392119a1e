import type { VenueName } from './funding-rate.ts'

export interface Settings {
  /** Switches and API addresses of the venues. */
  readonly venues?: Readonly<Partial<Record<VenueName, { readonly enabled?: boolean; readonly url?: string }>>>
  /** How many hours of answers are kept in online mode. */
  readonly keep_hours: number
}

const VENUE = {
  type: 'object',
  additionalProperties: false,
  properties: {
    enabled: { type: 'boolean', default: true },
    url: { type: 'string', pattern: '^https?://', description: 'Without a path. Default: the public address.' },
  },
}

export const settingsSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    venues: {
      type: 'object',
      additionalProperties: false,
      properties: Object.fromEntries(
        ['binance', 'bybit', 'okx', 'hyperliquid', 'dydx', 'kraken', 'gate', 'bitmex'].map((name) => [name, VENUE]),
      ),
    },
    keep_hours: { type: 'integer', minimum: 1, maximum: 168, default: 6 },
  },
}
