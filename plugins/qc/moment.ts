import { UTC, type Zone } from './zone.ts'

const ISO =
  /^(\d{4})([-/.]?)(\d\d)\2(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(\.\d{1,9})?)?\s?(Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)?)?$/i
const EPOCH = /^-?\d{9,19}(\.\d+)?$/
/** Units of an epoch number by its size: each begins where the one before would be far in the future. */
const UNITS = [
  [1e17, 1e9],
  [1e14, 1e6],
  [1e11, 1e3],
  [0, 1],
] as const
const EARLIEST = -5_364_662_400 // 1800-01-01
const LATEST = 7_258_118_400 // 2200-01-01

/**
 * Epoch seconds of a timestamp: a number of seconds, of milliseconds above 1e11, microseconds above 1e14, nanoseconds
 * above 1e17, the same as text, or ISO 8601. A date alone is midnight UTC whatever the zone, as daily bars are labelled;
 * a time without an offset is on the zone's wall clock. Null where it is none of these, or before 1800 or after 2200.
 *
 * @example parseMoment('2024-07-01 09:30', createZone('America/New_York')!) // 1719840600
 */
export function parseMoment(value: unknown, zone: Zone = UTC): number | null {
  const seconds = typeof value === 'number' ? scaled(value) : typeof value === 'string' ? parseText(value, zone) : null
  return seconds !== null && seconds >= EARLIEST && seconds <= LATEST ? seconds : null
}

/** "2024-07-01T13:30:00Z", with milliseconds only where there are some. */
export function formatMoment(seconds: number): string {
  return new Date(Math.round(seconds * 1000)).toISOString().replace('.000Z', 'Z')
}

function scaled(value: number): number {
  const [, perSecond] = UNITS.find(([above]) => Math.abs(value) > above) ?? [0, 1]
  return value / perSecond
}

function parseText(value: string, zone: Zone): number | null {
  const text = value.trim()
  if (EPOCH.test(text)) return scaled(Number(text))
  const match = ISO.exec(text)
  if (!match) return null
  const [, year, , month, day, hour, minute, second = '0', fraction = '0', offset] = match
  const wall = Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour ?? 0), Number(minute ?? 0))
  if (new Date(wall).getUTCDate() !== Number(day) || Number(hour ?? 0) > 23 || Number(minute ?? 0) > 59) return null
  if (Number(month) > 12 || Number(second) > 59) return null
  const local = wall / 1000 + Number(second) + Number(fraction)
  if (hour === undefined) return local
  if (offset !== undefined) return local - offsetSeconds(offset)
  // The offset of the guess decides; asked twice, it is right on both sides of a change of clocks.
  return local - zone(local - zone(local))
}

function offsetSeconds(offset: string): number {
  if (/^[a-z]/i.test(offset)) return 0
  const [hours, minutes] = [offset.slice(1, 3), offset.replace(':', '').slice(3, 5) || '0']
  const size = Number(hours) * 3600 + Number(minutes) * 60
  return offset.startsWith('-') ? -size : size
}
