/** Reads and writes points in time. Every product uses this one parser, so the same text means the same instant everywhere. */
import { InvalidInput } from 'tollgate/plugin'

/** A timestamp as it was written. `offsetSeconds` is null if the text has no zone; most callers then assume UTC. */
export interface Timestamp {
  /** The written clock as if it were UTC, whole seconds since 1970. */
  readonly seconds: number
  /** Rest of the second, 0 to 999,999,999. Further digits are cut off. */
  readonly nanoseconds: number
  /** Seconds east of UTC, for instance 3600 for "+01:00". Subtract it from `seconds` for UTC. */
  readonly offsetSeconds: number | null
  /** False for a date without a time of day. */
  readonly hasTime: boolean
}

/** What a reader accepts beyond the shared grammar. */
export interface TimestampRules {
  /** Earliest and latest accepted time, epoch seconds. */
  readonly earliest: number
  readonly latest: number
  /** Shortest text that counts as an epoch number. Raise it if small numbers in the same place mean something else. */
  readonly minEpochDigits: number
}

/** For queries: 1970 to 9999, epoch numbers of any length. */
export const QUERY_RULES: TimestampRules = {
  earliest: 0,
  latest: Date.UTC(9999, 11, 31) / 1000,
  minEpochDigits: 1,
}

/** For payloads of other services, in which 0 means a missing time. */
export const PAYLOAD_RULES: TimestampRules = { ...QUERY_RULES, earliest: 1 }

/** For cells of uploaded files: 1800 to 2200, so that prices and quantities are not taken for times. */
export const FILE_RULES: TimestampRules = {
  earliest: Date.UTC(1800, 0, 1) / 1000,
  latest: Date.UTC(2200, 0, 1) / 1000,
  minEpochDigits: 9,
}

const ZONE = String.raw`\s*(Z|UTC?|GMT|[ECMP][SD]T|[+-]\d\d(?::?\d\d)?)`
const FRACTION = String.raw`(?:[.,](\d+))?`
/** "2026-02-01", "2026/2/1 9:30", "2026-02-01T09:30:00.5+01:00". A "+" that was not URL-encoded arrives as a space. */
const ISO = new RegExp(
  String.raw`^(\d{4})([-/.])(\d\d?)\2(\d\d?)(?:[T ,]+(\d\d?):(\d\d)(?::(\d\d)${FRACTION})?(?:${ZONE}| (\d\d:?\d\d))?)?$`,
  'i',
)
/** "20260201", "20260201;093000", "20260201 09:30", "20260201093000", "20260201T093000Z". */
const COMPACT = new RegExp(
  String.raw`^(\d{4})(\d\d)(\d\d)(?:(?:[;T, -]+(\d\d):?(\d\d)(?::?(\d\d)${FRACTION})?|(\d\d)(\d\d)(\d\d)${FRACTION})(?:${ZONE})?)?$`,
  'i',
)
/** "Sun, 01 Feb 2026 09:30:00 GMT" (RFC 5322 and HTTP). */
const RFC_5322 = new RegExp(
  String.raw`^(?:[a-z]{3,9},? +)?(\d\d?) +(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* +(\d{4})(?: +(\d\d?):(\d\d)(?::(\d\d))?(?:${ZONE})?)?$`,
  'i',
)
const MONTHS = 'janfebmaraprmayjunjulaugsepoctnovdec'
const EPOCH = /^([+-]?)(\d{1,19})(?:\.(\d+))?$/
/** Zone names of RFC 5322, in hours. */
const ZONE_HOURS: Readonly<Record<string, number>> = { E: -5, C: -6, M: -7, P: -8 }
/** Years of dates written as bare digits. Other eight or fourteen digits are an epoch number. */
const COMPACT_YEARS = [1800, 2200] as const

/**
 * Reads a timestamp as it was written; null if the value is not one or is outside the range of the rules.
 *
 * Text may be ISO 8601 or RFC 3339 with any number of fractional digits, a compact date ("20260201", "20260201093000"),
 * an RFC 5322 date, or an epoch number. The size of an epoch number determines its unit: below 1e11 seconds, from there
 * milliseconds, from 1e14 microseconds, from 1e17 nanoseconds. So seconds reach to the year 5138, and the other units
 * begin in 1973.
 *
 * @example readTimestamp('2026-02-01T01:00+01:00') // seconds 1769907600, offsetSeconds 3600
 */
export function readTimestamp(value: unknown, rules: TimestampRules = QUERY_RULES): Timestamp | null {
  const read = typeof value === 'number' ? readNumber(value) : typeof value === 'string' ? readText(value, rules) : null
  if (read === null) return null
  const utc = read.seconds - (read.offsetSeconds ?? 0) + read.nanoseconds / 1e9
  return utc >= rules.earliest && utc <= rules.latest ? read : null
}

/**
 * Epoch seconds with their fraction, UTC if the text has no zone; null if the value is not a timestamp.
 *
 * @example epochSeconds('2026-02-04 21:19:43.5') // 1770239983.5
 */
export function epochSeconds(value: unknown, rules?: TimestampRules): number | null {
  const read = readTimestamp(value, rules)
  return read && read.seconds - (read.offsetSeconds ?? 0) + read.nanoseconds / 1e9
}

/**
 * Whole epoch milliseconds, rounded down, UTC if the text has no zone; null if the value is not a timestamp.
 *
 * @example epochMilliseconds('1769904000123456') // 1769904000123: microseconds
 */
export function epochMilliseconds(value: unknown, rules?: TimestampRules): number | null {
  const read = readTimestamp(value, rules)
  return read && (read.seconds - (read.offsetSeconds ?? 0)) * 1000 + Math.floor(read.nanoseconds / 1e6)
}

/**
 * Whole epoch seconds of a query field, rounded down. Throws InvalidInput that names the field.
 *
 * @example requireEpochSeconds('2026-02-01', 'start') // 1769904000
 */
export function requireEpochSeconds(value: string | number, field: string): number {
  const read = readTimestamp(value) ?? refuse(value, field)
  return read.seconds - (read.offsetSeconds ?? 0)
}

/**
 * Whole epoch milliseconds of a query field, rounded down. Throws InvalidInput that names the field.
 *
 * @example requireEpochMilliseconds('2026-02-01', 'from') // 1769904000000
 */
export function requireEpochMilliseconds(value: string | number, field: string): number {
  return epochMilliseconds(value) ?? refuse(value, field)
}

/**
 * RFC 3339 in UTC to the second, rounded down, as most answers write it.
 *
 * @example formatSeconds(1769904000.9) // "2026-02-01T00:00:00Z"
 */
export function formatSeconds(seconds: number): string {
  return formatMilliseconds(Math.floor(seconds) * 1000)
}

/**
 * RFC 3339 in UTC, with milliseconds only if they are not zero.
 *
 * @example formatMilliseconds(1769904000120) // "2026-02-01T00:00:00.120Z"
 */
export function formatMilliseconds(milliseconds: number): string {
  const whole = Math.trunc(milliseconds)
  const second = Math.floor(whole / 1000)
  if (second !== lastSecond.second) lastSecond = { second, text: new Date(second * 1000).toISOString().slice(0, -5) }
  const rest = whole - second * 1000
  return rest === 0 ? `${lastSecond.text}Z` : `${lastSecond.text}.${String(rest).padStart(3, '0')}Z`
}

/** The second that was written last: an answer has several times of the same one, and so do many answers. */
let lastSecond = { second: NaN, text: '' }

function refuse(input: string | number, field: string): never {
  const msg = 'is not a timestamp; write RFC 3339 such as 2026-02-01T00:00:00Z, or seconds or milliseconds since 1970'
  throw new InvalidInput([{ loc: ['query', field], msg, type: 'datetime_parsing', input }])
}

/** Power of ten of an epoch number's unit: 0 for seconds, 3 for milliseconds, 6 for microseconds, 9 for nanoseconds. */
function unitOf(size: number): 0 | 3 | 6 | 9 {
  return size < 1e11 ? 0 : size < 1e14 ? 3 : size < 1e17 ? 6 : 9
}

function readNumber(value: number): Timestamp | null {
  if (!Number.isFinite(value)) return null
  const perSecond = 10 ** unitOf(Math.abs(value))
  const seconds = Math.floor(value / perSecond)
  return normalised(seconds, Math.round((value - seconds * perSecond) * (1e9 / perSecond)))
}

/** The division of a large number may round up to the next second. */
function normalised(seconds: number, nanoseconds: number): Timestamp {
  const carry = Math.floor(nanoseconds / 1e9)
  return { seconds: seconds + carry, nanoseconds: nanoseconds - carry * 1e9, offsetSeconds: 0, hasTime: true }
}

function readText(value: string, rules: TimestampRules): Timestamp | null {
  const text = value.trim()
  const iso = ISO.exec(text)
  if (iso) {
    const [, year, , month, day, hour, minute, second, fraction, zone, unsigned] = iso
    return clockTime([year, month, day, hour, minute, second], fraction, unsigned === undefined ? zone : `+${unsigned}`)
  }
  const compact = COMPACT.exec(text)
  if (compact && Number(compact[1]) >= COMPACT_YEARS[0] && Number(compact[1]) <= COMPACT_YEARS[1]) {
    const [, year, month, day, ...rest] = compact
    const [hour, minute, second, fraction] = rest[0] === undefined ? rest.slice(4) : rest
    const read = clockTime([year, month, day, hour, minute, second], fraction, rest[8])
    if (read) return read
  }
  const epoch = EPOCH.exec(text)
  if (epoch) {
    const [, sign, whole = '', fraction = ''] = epoch
    return whole.length < rules.minEpochDigits ? null : epochText(whole, fraction, sign === '-')
  }
  const [, day, name = '', year, hour, minute, second, zone] = RFC_5322.exec(text) ?? []
  if (day === undefined) return null
  const month = String(MONTHS.indexOf(name.toLowerCase()) / 3 + 1)
  return clockTime([year, month, day, hour, minute, second], undefined, zone)
}

/** Reads the digits instead of a floating-point number, so that nanoseconds stay exact. */
function epochText(whole: string, fraction: string, isNegative: boolean): Timestamp {
  const unit = unitOf(Number(whole))
  const seconds = Number(whole.slice(0, whole.length - unit))
  const nanoseconds = nanosecondsOf(whole.slice(whole.length - unit) + fraction)
  return isNegative ? normalised(-seconds, -nanoseconds) : normalised(seconds, nanoseconds)
}

const nanosecondsOf = (digits: string): number => Number(digits.slice(0, 9).padEnd(9, '0'))

type Digits = string | undefined

/** Null for a day or a time that does not exist. 24:00:00 is midnight at the end of the day. */
function clockTime(
  [year, month, day, hour, minute, second]: readonly Digits[],
  fraction: Digits,
  zone: Digits,
): Timestamp | null {
  const [d, h, min, s] = [Number(day), Number(hour ?? 0), Number(minute ?? 0), Number(second ?? 0)]
  const nanoseconds = nanosecondsOf(fraction ?? '')
  const isEndOfDay = h === 24 && min === 0 && s === 0 && nanoseconds === 0
  if ((h > 23 && !isEndOfDay) || min > 59 || s > 59) return null
  // Date.UTC takes the years 0 to 99 for 1900 to 1999.
  const date = new Date(0)
  const midnight = date.setUTCFullYear(Number(year), Number(month) - 1, d)
  if (date.getUTCDate() !== d || date.getUTCMonth() !== Number(month) - 1) return null
  const offsetSeconds = zone === undefined ? null : offsetOf(zone)
  if (Number.isNaN(offsetSeconds)) return null
  const seconds = midnight / 1000 + h * 3600 + min * 60 + s
  return { seconds, nanoseconds, offsetSeconds, hasTime: hour !== undefined }
}

/** "-05:30" → -19800; NaN for an offset of a day or more. */
function offsetOf(zone: string): number {
  const name = zone.toUpperCase()
  if (/^[A-Z]/.test(name)) {
    if (name.length !== 3 || !/^[ECMP][SD]T$/.test(name)) return 0
    return ((ZONE_HOURS[name.charAt(0)] ?? 0) + (name.charAt(1) === 'D' ? 1 : 0)) * 3600
  }
  const [hours, minutes] = [Number(name.slice(1, 3)), Number(name.replace(':', '').slice(3) || 0)]
  if (hours > 23 || minutes > 59) return NaN
  return (name.startsWith('-') ? -1 : 1) * (hours * 3600 + minutes * 60)
}
