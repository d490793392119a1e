import { InvalidInput } from 'tollgate/plugin'

const ISO = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)(Z|[+-]\d{2}:?\d{2})?)?$/i
/** Numbers above this are milliseconds: as seconds they would be the year 5138. */
const MILLISECONDS_ABOVE = 1e11
const LAST_SECOND = Date.UTC(9999, 11, 31) / 1000

/**
 * Epoch seconds of a moment in a query: ISO 8601 (UTC where no zone is given), or seconds or milliseconds since 1970.
 * Throws InvalidInput naming the field.
 *
 * @example parseMoment('2026-02-01', 'start') === parseMoment(1769904000000, 'start') // 1769904000
 */
export function parseMoment(value: string | number, field: string): number {
  const seconds = typeof value === 'number' || /^-?\d+(\.\d+)?$/.test(value) ? ofNumber(Number(value)) : ofIso(value)
  if (seconds >= 0 && seconds <= LAST_SECOND) return Math.floor(seconds)
  const msg = 'is not a moment; write ISO 8601 such as 2026-02-01T00:00:00Z, or seconds or milliseconds since 1970'
  throw new InvalidInput([{ loc: ['query', field], msg, type: 'datetime_parsing', input: value }])
}

function ofNumber(value: number): number {
  return value > MILLISECONDS_ABOVE ? value / 1000 : value
}

function ofIso(text: string): number {
  // A plus sign that was not escaped arrives as a space.
  const match = text
    .trim()
    .replace(/ (\d{2}:?\d{2})$/, (all, zone: string) => (/T/i.test(text) ? `+${zone}` : all))
    .match(ISO)
  if (!match) return NaN
  const [, day = '', clock = '00:00', zone = 'Z'] = match
  const midnight = new Date(`${day}T00:00:00Z`)
  // 30 February is read as 2 March.
  if (Number.isNaN(midnight.getTime()) || midnight.toISOString().slice(0, 10) !== day) return NaN
  return Date.parse(`${day}T${clock}${zone.toUpperCase()}`) / 1000
}

/** ISO 8601 to the second, as answers carry it: "2026-02-01T00:00:00Z". */
export function isoSeconds(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace('.000Z', 'Z')
}
