import type { FromSchema } from 'tollgate/plugin'

const positive = { type: 'number', exclusiveMinimum: 0 } as const
/** Defaults for a kind of market, used for missing data. */
const entry = {
  type: 'object',
  additionalProperties: false,
  required: ['fee_bps', 'spread_bps', 'sigma_daily', 'adv_usd'],
  properties: {
    fee_bps: { type: 'number', minimum: 0, description: 'Taker fee, bps.' },
    maker_fee_bps: {
      type: 'number',
      minimum: 0,
      description: 'Fee of a posted order that fills, bps; as fee_bps unless set.',
    },
    spread_bps: positive,
    sigma_daily: positive,
    adv_usd: positive,
  },
} as const

/** JSON Schema of the product's settings. */
export const settingsSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['classes'],
  properties: {
    classes: {
      type: 'object',
      additionalProperties: false,
      required: ['spot', 'perpetual', 'equity'],
      properties: { spot: entry, perpetual: entry, equity: entry },
    },
  },
} as const

export type MarketClass = FromSchema<typeof entry>
export type MarketClasses = FromSchema<typeof settingsSchema>['classes']
export type ClassName = keyof MarketClasses

/** "BTC-PERP" and "btcusdt_perp" name the perpetual of a spot market. */
const PERPETUAL = /^(.+?)[-_/ ]?PERP$/i

/**
 * The market behind a name. Bars of a perpetual, and its price without a book of its own, are those of its spot market.
 *
 * @example marketBehind('btc-perp') // { market: 'btc', isPerpetual: true }
 */
export function marketBehind(name: string): { readonly market: string; readonly isPerpetual: boolean } {
  const [, market] = PERPETUAL.exec(name) ?? []
  return market === undefined ? { market: name, isPerpetual: false } : { market, isPerpetual: true }
}

/** The coin of a spot market: "BTC" of "BTC-USD". */
export const coinOf = (symbol: string): string => symbol.split('-')[0]!

/** Our name for the perpetual of a spot market. */
export const perpetualOf = (symbol: string): string => `${symbol}-PERP`
