const NUMBER = /^([+-]?)(\d*)(?:\.(\d*))?(?:e([+-]?\d{1,3}))?$/i

/**
 * Reads a number of a payload as a plain decimal without an exponent, keeping its digits; null if it is no number.
 * Venues send both strings and JSON numbers.
 *
 * @example decimalOf('1.25e-05') // "0.0000125"
 */
export function decimalOf(value: unknown): string | null {
  if (typeof value !== 'string' && !(typeof value === 'number' && Number.isFinite(value))) return null
  const [, sign = '', whole = '', fraction = '', power = '0'] = NUMBER.exec(String(value).trim()) ?? []
  if (whole + fraction === '') return null
  const digits = whole + fraction
  const point = whole.length + Number(power)
  const left =
    digits
      .slice(0, Math.max(0, point))
      .padEnd(point, '0')
      .replace(/^0+(?=\d)/, '') || '0'
  const right = '0'.repeat(Math.max(0, -point)) + digits.slice(Math.max(0, point))
  return `${sign === '-' ? '-' : ''}${left}${right === '' ? '' : `.${right}`}`
}

/** Reads a price: a positive number, or null. */
export function priceOf(value: unknown): number | null {
  const decimal = decimalOf(value)
  return decimal !== null && Number(decimal) > 0 && Number.isFinite(Number(decimal)) ? Number(decimal) : null
}

/** Epoch seconds of a field in milliseconds, or null. */
export function secondsOf(milliseconds: unknown): number | null {
  const decimal = decimalOf(milliseconds)
  return decimal !== null && Number(decimal) > 0 ? Math.floor(Number(decimal) / 1000) : null
}

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

/** Splits a name such as BTCUSDT into base and quote; null if the quote is unknown. */
export function splitPair(instrument: string): { base: string; quote: string } | null {
  const quote = QUOTES.find((quote) => instrument.endsWith(quote) && instrument.length > quote.length)
  return quote ? { base: instrument.slice(0, -quote.length), quote } : null
}

/** True for the dollar and dollar tokens. Rates of such contracts can be compared. */
export function isDollar(quote: string): boolean {
  return DOLLARS.has(quote)
}
