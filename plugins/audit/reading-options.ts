import { InvalidInput } from 'tollgate/plugin'
import { createZone } from '../lib/time/time-zones.ts'

/** What the caller says of a file. It replaces what the audit would find out or assume. */
export interface ReadingOptions {
  /** What columns are used as, by the name in the file: "entry_time", or "ignore" for a column that is not to be used. */
  readonly columns: ReadonlyMap<string, string>
  /** Money for a move of 1 in the price of one unit of quantity: for all symbols, or by symbol; null if not stated. */
  readonly contractSize: number | ReadonlyMap<string, number> | null
  /** The currency of fees that name none. */
  readonly feeCurrency: string | null
  /** The currency of prices and profits. */
  readonly quoteCurrency: string | null
  /** Money in the account at the start. */
  readonly capital: number | null
  /** IANA name of the zone of times that name none. */
  readonly timezone: string | null
  /** The symbol to compare the returns with, beside the traded symbols. */
  readonly benchmark: string | null
}

export const NOTHING_STATED: ReadingOptions = {
  columns: new Map(),
  contractSize: null,
  feeCurrency: null,
  quoteCurrency: null,
  capital: null,
  timezone: null,
  benchmark: null,
}

/** The members of a request that say how to read the file. A form sends the first two as text. */
export interface StatedMembers {
  readonly columns?: Readonly<Record<string, string>> | string
  readonly contract_size?: number | Readonly<Record<string, number>> | string
  readonly fee_currency?: string
  readonly quote_currency?: string
  readonly capital?: number
  readonly timezone?: string
  readonly benchmark?: string
}

type Member = keyof StatedMembers

const LARGEST_CONTRACT = 1e9

/**
 * Reads what the caller says of the file. Throws InvalidInput that names the member.
 *
 * @example readingOptionsOf({ contract_size: 'EURUSD=100000, MNQ=2' }).contractSize // Map { 'EURUSD' → 100000, 'MNQ' → 2 }
 */
export function readingOptionsOf(stated: StatedMembers): ReadingOptions {
  const { timezone = null, capital = null, benchmark = null } = stated
  if (timezone !== null && createZone(timezone) === null) {
    const msg = `There is no time zone ${JSON.stringify(timezone)}. Use a name of the IANA database, such as Europe/Berlin, America/New_York or UTC.`
    throw refusal('timezone', msg)
  }
  return {
    columns: pairsOf('columns', stated.columns ?? {}, 'Pos=side, Ex. date=exit_time'),
    contractSize: contractSizeOf(stated.contract_size),
    feeCurrency: stated.fee_currency?.toUpperCase() ?? null,
    quoteCurrency: stated.quote_currency?.toUpperCase() ?? null,
    capital,
    timezone,
    benchmark,
  }
}

function contractSizeOf(stated: StatedMembers['contract_size']): ReadingOptions['contractSize'] {
  if (stated === undefined || typeof stated === 'number') return stated ?? null
  if (typeof stated === 'string' && !/[={]/.test(stated)) return sizeOf(stated, stated)
  const pairs = pairsOf('contract_size', stated, 'EURUSD=100000, MNQ=2')
  return new Map([...pairs].map(([symbol, size]) => [symbol, sizeOf(size, symbol)]))
}

function sizeOf(text: string, shown: string): number {
  const size = text.trim() === '' ? Number.NaN : Number(text)
  if (size > 0 && size <= LARGEST_CONTRACT) return size
  throw refusal(
    'contract_size',
    `${shown.slice(0, 40)} has no number above zero. Write one number, or EURUSD=100000, MNQ=2.`,
  )
}

/** Reads pairs from an object, the same in JSON text, or text such as "Pos=side, Ex. date=exit_time". */
function pairsOf(
  member: Member,
  stated: string | Readonly<Record<string, unknown>>,
  example: string,
): Map<string, string> {
  const object = typeof stated === 'string' && /^\s*\{/.test(stated) ? parsed(member, stated, example) : stated
  if (typeof object !== 'string')
    return new Map(Object.entries(object).map(([name, value]) => [name.trim(), String(value).trim()]))
  const pairs = new Map<string, string>()
  for (const pair of object.split(/[,;\n]/)) {
    if (pair.trim() === '') continue
    const at = pair.lastIndexOf('=')
    const [name, value] = [pair.slice(0, Math.max(at, 0)).trim(), pair.slice(at + 1).trim()]
    if (name === '' || value === '')
      throw refusal(
        member,
        `${JSON.stringify(pair.trim().slice(0, 60))} is no pair of name and value. Write ${example}.`,
      )
    pairs.set(name, value)
  }
  return pairs
}

function parsed(member: Member, text: string, example: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(text) as Readonly<Record<string, unknown>>
  } catch {
    throw refusal(member, `The text begins like JSON but is not. Write ${example}.`)
  }
}

const refusal = (member: Member, msg: string): InvalidInput =>
  new InvalidInput([{ loc: ['body', member], msg, type: `invalid_${member}` }])
