/** How views write numbers and times. Given to every view as `format`. */
import { STATUS_CODES } from 'node:http'

const GROUPED = new Intl.NumberFormat('en-US', { maximumFractionDigits: 6 })

export const format = {
  /** Atomic USDC as dollars, at least two decimals: 5000n is "$0.005", 750000000n is "$750.00". */
  usd(amount: bigint | string): string {
    const digits = amount.toString().padStart(7, '0')
    return `$${GROUPED.format(BigInt(digits.slice(0, -6)))}.${digits.slice(-6).replace(/0{1,4}$/, '')}`
  },

  /** A price, or "Free" where there is none. */
  price(amount: bigint | string | null): string {
    return amount === null ? 'Free' : format.usd(amount)
  },

  /** Two prices as a range, one where they are equal: "$0.005 to $0.02". */
  range(least: bigint, most: bigint): string {
    return least === most ? format.usd(least) : `${format.usd(least)} to ${format.usd(most)}`
  },

  /** A moment to the minute, UTC: "2026-11-20 09:41 UTC". Text that is no time comes back as it is. */
  time(moment: string | number | Date): string {
    const date = new Date(moment)
    return Number.isNaN(date.getTime()) ? String(moment) : `${date.toISOString().slice(0, 16).replace('T', ' ')} UTC`
  },

  /** The same moment for a `datetime` attribute: "2026-11-20T09:41:00.000Z". */
  iso(moment: string | number | Date): string {
    return new Date(moment).toISOString()
  },

  /** A fraction as a percentage: 0.874 is "87.4%". */
  percent(share: number, decimals = 1): string {
    return `${(share * 100).toFixed(decimals)}%`
  },

  /** Basis points as they are: 12.345 is "12.3 bps". */
  bps(value: number, decimals = 1): string {
    return `${value.toFixed(decimals)} bps`
  },

  /** A number with thousands separated: 417512 is "417,512". */
  number(value: number): string {
    return GROUPED.format(value)
  },

  /** A length of time in the largest unit that divides it: 86400 is "24 hours", 2592000 is "30 days". */
  duration(seconds: number): string {
    const units = [
      ['day', 86_400],
      ['hour', 3600],
      ['minute', 60],
    ] as const
    const [unit, size] = units.find(([, size]) => seconds % size === 0 && seconds / size > 1) ?? ['second', 1]
    return `${GROUPED.format(seconds / size)} ${unit}${seconds / size === 1 ? '' : 's'}`
  },

  /** A size in the largest decimal unit that divides it well: 42000000 is "42 MB", 4096 is "4.1 kB". */
  bytes(count: number): string {
    const units = [
      ['MB', 1_000_000],
      ['kB', 1000],
    ] as const
    const [unit, size] = units.find(([, size]) => count >= size) ?? ['bytes', 1]
    return `${Number((count / size).toFixed(1))} ${unit}`
  },

  /**
   * JSON for a data block inside a page (script type application/ld+json): no sign in it can end the block or begin
   * another.
   */
  dataBlock(value: unknown): string {
    return JSON.stringify(value).replace(
      /[<>&\u2028\u2029]/g,
      (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
    )
  },

  /** Prose cut where it has code in backticks: "see `a`" is a piece of text and a piece of code. */
  pieces(prose: string): readonly { readonly text: string; readonly isCode: boolean }[] {
    return prose.split('`').map((text, index) => ({ text, isCode: index % 2 === 1 }))
  },

  /** Indented JSON, for showing. */
  json(value: unknown): string {
    return JSON.stringify(value, null, 2)
  },

  /** The standard phrase of an HTTP status: 402 is "Payment Required". */
  status(code: number): string {
    return STATUS_CODES[code] ?? 'Error'
  },
} as const
