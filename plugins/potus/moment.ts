/** Moments in queries and answers: milliseconds since 1970 inside, RFC 3339 in UTC outside. */
import { InvalidInput } from 'tollgate/plugin'

const ISO = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)(Z|[+-]\d{2}:?\d{2})?)?$/i
/** Numbers below this are seconds: as milliseconds they would be before March 1973. */
const SECONDS_BELOW = 1e11
const LAST = Date.UTC(9999, 11, 31)

export const MINUTE = 60_000
export const HOUR = 3_600_000
export const DAY = 86_400_000

/**
 * Milliseconds of a moment in a query: ISO 8601 (UTC where no zone is given), or seconds or milliseconds since 1970.
 * Throws InvalidInput naming the field.
 *
 * @example parseMoment('2026-02-01', 'from') // 1769904000000
 */
export function parseMoment(value: string | number, field: string): number {
  const text = String(value).trim()
  const number = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN
  const time = Number.isNaN(number) ? ofIso(text) : number < SECONDS_BELOW ? number * 1000 : number
  if (time >= 0 && time <= LAST) return Math.floor(time)
  const msg = 'is not a moment; write ISO 8601 such as 2026-02-01T00:00:00Z, or seconds or milliseconds since 1970'
  throw new InvalidInput([{ loc: ['query', field], msg, type: 'datetime_parsing', input: value }])
}

function ofIso(text: string): number {
  // A plus sign that was not escaped arrives as a space.
  const [, day = '', clock = '00:00', zone = 'Z'] = text.replace(/(T.*) (\d{2}:?\d{2})$/i, '$1+$2').match(ISO) ?? []
  const midnight = new Date(`${day}T00:00:00Z`)
  // 30 February is read as 2 March.
  if (Number.isNaN(midnight.getTime()) || midnight.toISOString().slice(0, 10) !== day) return NaN
  return Date.parse(`${day}T${clock}${zone.toUpperCase()}`)
}

/** RFC 3339 in UTC, without milliseconds where there are none: "2026-02-01T00:00:00Z". */
export function iso(time: number): string {
  return new Date(time).toISOString().replace('.000Z', 'Z')
}

export function isoOrNull(time: number | null): string | null {
  return time === null ? null : iso(time)
}

export interface Range {
  readonly from: number
  /** Exclusive. */
  readonly to: number
}

/**
 * The range asked for: `to` defaults to just after `asOf`, `from` to `longest` before. Throws InvalidInput where it is
 * reversed or longer than `longest`.
 */
export function rangeOf(
  { from, to }: { readonly from?: string | number; readonly to?: string | number },
  asOf: number,
  longest: number | null,
  usual = longest ?? DAY,
): Range {
  const end = to === undefined ? asOf + 1 : parseMoment(to, 'to')
  const start = from === undefined ? Math.max(0, end - usual) : parseMoment(from, 'from')
  if (start > end) throw new InvalidInput('is after to; swap them', ['query', 'from'])
  if (longest !== null && end - start > longest + 1)
    throw new InvalidInput(`is more than ${longest / HOUR} hours before to; ask in parts`, ['query', 'from'])
  return { from: start, to: end }
}
