import type { VenueName } from './funding-rate.ts'

export interface Settings {
  /** Each venue has its own switch, and its address can be another one. */
  readonly venues?: Readonly<Partial<Record<VenueName, { readonly enabled?: boolean; readonly url?: string }>>>
  /** How far back a moment may be asked for, online. */
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
