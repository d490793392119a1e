/** The names of contracts: their underlying, the same at every venue, and the currency they are quoted in. */
import { pairName } from '../lib/symbol-names.ts'

/** Venue names of coins that everyone else calls something different. */
const NAMES: Readonly<Record<string, string>> = { XBT: 'BTC', XDG: 'DOGE' }
/** Contracts on many units of a cheap coin: 1000PEPE, 1MBABYDOGE, SHIB1000. The rate is the same as for one unit. */
const LOTS = [/^(?:10{3,6}|1M)(?=[A-Z])/, /(?<=[A-Z]{2})10{3,6}$/]
const QUOTES = ['FDUSD', 'USDT', 'USDC', 'BUSD', 'USDE', 'USD1', 'USD', 'EUR', 'BTC', 'ETH']
const DOLLARS = new Set(['USD', 'USDT', 'USDC', 'BUSD', 'FDUSD', 'USDE', 'USD1'])

/**
 * The common name of a contract's underlying, whatever the venue calls it.
 *
 * @example symbolOf('XBT') // "BTC"
 * @example symbolOf('1000PEPE') // "PEPE"
 */
export function symbolOf(base: string): string {
  const upper = base.toUpperCase()
  const single = LOTS.reduce((name, lot) => name.replace(lot, ''), upper)
  return NAMES[single] ?? single
}

/** Hyperliquid writes kPEPE for a thousand PEPE. In capitals it could be a coin of that name. */
const THOUSANDS = /^k(?=[A-Z]{2})/

/**
 * The underlying of a symbol or contract as people write it: with its quote, the currency it settles in, or its lot.
 *
 * @example underlyingOf('BTC/USDT:USDT') // "BTC"
 * @example underlyingOf('kPEPE') // "PEPE"
 */
export function underlyingOf(written: string): string {
  const pair = pairName(written.replace(THOUSANDS, ''))
  const [base = '', quote] = pair.split(/[-/_]/)
  if (quote !== undefined) return symbolOf(base)
  // Two letters before the quote may be a coin of their own: PYUSD, FDUSD.
  return symbolOf(/^(.{3,}?)(?:FDUSD|USD[TC]?)$/.exec(pair)?.[1] ?? pair)
}

/**
 * How many coins one unit of a contract is: 1000 for 1000PEPEUSDT, kPEPE and SHIB1000, otherwise 1.
 *
 * @example lotOf('1000PEPEUSDT') // 1000
 */
export function lotOf(instrument: string): number {
  if (/^1M(?=[A-Z])/.test(instrument)) return 1_000_000
  if (/^k(?=[A-Z]{2})/.test(instrument)) return 1000
  const [lot] = /^10{3,6}(?=[A-Z])/.exec(instrument) ?? /(?<=^[A-Z]{2,8})10{3,6}(?=$|[A-Z_-])/.exec(instrument) ?? []
  return lot === undefined ? 1 : Number(lot)
}

/** Splits a name such as BTCUSDT into base and quote; null if the quote is unknown. */
export function splitPair(instrument: string): { base: string; quote: string } | null {
  const quote = QUOTES.find((quote) => instrument.endsWith(quote) && instrument.length > quote.length)
  return quote ? { base: instrument.slice(0, -quote.length), quote } : null
}

/** True for the dollar and dollar tokens. Rates of such contracts can be compared. */
export function isDollar(quote: string): boolean {
  return DOLLARS.has(quote)
}
