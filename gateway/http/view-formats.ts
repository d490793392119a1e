/** Formats numbers, times and code for views. Every view gets it as `format`. */
import { STATUS_CODES } from 'node:http'
import { withCommands } from '../config/project-root.ts'
import { dollars } from '../dollars.ts'
import { once } from '../once.ts'

/** Made when first used: ICU takes as long to begin as some packages to load. */
const grouped = once(() => new Intl.NumberFormat('en-US', { maximumFractionDigits: 6 }))

/** Formats a number with thousands separators and exactly `decimals` decimals. */
const fixed = (value: number, decimals: number): string =>
  value.toLocaleString('en-US', { minimumFractionDigits: decimals, maximumFractionDigits: decimals })

/** The formatting functions, under the names by which views call them. */
export const format = {
  /** Formats atomic USDC as dollars with at least two decimals: 5000n is "$0.005", 7500000000n is "$7,500.00". */
  usd(amount: bigint | string): string {
    const [whole = '0', fraction = ''] = dollars(BigInt(amount)).split('.')
    return `$${grouped().format(BigInt(whole))}.${fraction}`
  },

  /** Formats a price; null is "Free". */
  price(amount: bigint | string | null): string {
    return amount === null ? 'Free' : format.usd(amount)
  },

  /** Formats two prices as a range, or as one price if they are equal: "$0.005 to $0.02". */
  range(lowest: bigint, highest: bigint): string {
    return lowest === highest ? format.usd(lowest) : `${format.usd(lowest)} to ${format.usd(highest)}`
  },

  /** Formats a time to the minute in UTC: "2026-11-20 09:41 UTC". Returns text that is not a time unchanged. */
  time(moment: string | number | Date): string {
    const date = new Date(moment)
    return Number.isNaN(date.getTime()) ? String(moment) : `${date.toISOString().slice(0, 16).replace('T', ' ')} UTC`
  },

  /** Formats a time for a `datetime` attribute: "2026-11-20T09:41:00.000Z". */
  iso(moment: string | number | Date): string {
    return new Date(moment).toISOString()
  },

  /** Formats a fraction as a percentage: 0.874 is "87.4%", 12.5 is "1,250.0%". */
  percent(share: number, decimals = 1): string {
    return `${fixed(share * 100, decimals)}%`
  },

  /** Formats basis points: 1234.56 is "1,234.6 bps". */
  bps(value: number, decimals = 1): string {
    return `${fixed(value, decimals)} bps`
  },

  /** Formats a number with thousands separators: 417512 is "417,512". */
  number(value: number): string {
    return grouped().format(value)
  },

  /** Formats a duration in the largest unit that divides it: 86400 is "24 hours", 2592000 is "30 days". */
  duration(seconds: number): string {
    const units = [
      ['day', 86_400],
      ['hour', 3600],
      ['minute', 60],
    ] as const
    const [unit, size] = units.find(([, size]) => seconds % size === 0 && seconds / size > 1) ?? ['second', 1]
    return `${grouped().format(seconds / size)} ${unit}${seconds / size === 1 ? '' : 's'}`
  },

  /** Formats a size in decimal units: 42000000 is "42 MB", 4096 is "4.1 kB". */
  bytes(count: number): string {
    const units = [
      ['MB', 1_000_000],
      ['kB', 1000],
    ] as const
    const [unit, size] = units.find(([, size]) => count >= size) ?? ['bytes', 1]
    return `${Number((count / size).toFixed(1))} ${unit}`
  },

  /**
   * Serializes JSON for a data block in a page (script type application/ld+json). Escapes the characters that could end
   * the block or begin another.
   */
  dataBlock(value: unknown): string {
    return JSON.stringify(value).replace(
      /[<>&\u2028\u2029]/g,
      (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
    )
  },

  /** Splits prose at its backticks: "see `a`" is a piece of text and a piece of code. */
  pieces(prose: string): readonly { readonly text: string; readonly isCode: boolean }[] {
    return prose.split('`').map((text, index) => ({ text, isCode: index % 2 === 1 }))
  },

  /** Writes the commands in a text as an operator calls them here. */
  commands: withCommands,

  /**
   * Quotes one argument of a shell command that a page shows to be copied. Part of an address is chosen by the author
   * of the link: "/event/$(id)" is "'/event/$(id)'".
   */
  shell(argument: string): string {
    return /^[\w./:-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", String.raw`'\''`)}'`
  },

  /** Formats JSON with indentation. */
  json(value: unknown): string {
    return JSON.stringify(value, null, 2)
  },

  /** Returns the reason phrase of an HTTP status: 402 is "Payment Required". */
  status(code: number): string {
    return STATUS_CODES[code] ?? 'Error'
  },
} as const
