/** Reads numbers from the payloads of venues, which send them as text, as JSON numbers and with exponents. */
import { roundTo } from '../lib/quant/rounding.ts'

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

/** An amount times its price in dollars, to the cent; null if either is missing or not positive. */
export function dollars(amount: unknown, price: unknown): number | null {
  const [count, each] = [priceOf(amount), priceOf(price)]
  return count === null || each === null ? null : roundTo(count * each, 2)
}
