import { type Place, wrongCell } from './cell-values.ts'

export interface Moments {
  /** Epoch milliseconds of a cell, or null where it is no time. Throws InvalidInput where zones are mixed. */
  read(text: string, place: Place): number | null
  /** Whether the times read name their zone; false where none was read. */
  zoned(): boolean
  /** Every time read is a bare date, or midnight on its own clock. */
  daily(): boolean
  /** What was taken to come first in dates like 1/2/2024, where the file does not say; null where nothing was. */
  assumed(): 'day' | 'month' | null
}

const ISO =
  /^(\d{4})([-/.]?)(\d\d?)\2(\d\d?)(?:[T ,]+(\d\d?):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s*(Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)?)?$/i
/** "20240102;093000", "20240102 09:30:00", "20240102093000". */
const COMPACT = /^(\d{4})(\d\d)(\d\d)[;T, -]?(\d\d):?(\d\d):?(\d\d)$/
const CLOCK = String.raw`(?:[ ,]+(\d\d?):(\d\d)(?::(\d\d)(?:\.\d{1,9})?)?\s*([AP]M)?)?$`
const NUMBERED = new RegExp(String.raw`^(\d\d?)([/.-])(\d\d?)\2(\d{4}|\d\d)${CLOCK}`, 'i')
const NAMED = new RegExp(
  String.raw`^(?:(\d\d?)[ -])?(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?(?:[ -](\d\d?),?)?[ -](\d{4}|\d\d)${CLOCK}`,
  'i',
)
const MONTHS = 'janfebmaraprmayjunjulaugsepoctnovdec'
const EPOCH = /^\d{9,19}(?:\.\d+)?$/
const DAY = 86_400_000
const HOUR = 3_600_000
const MAX_KNOWN = 100_000

/**
 * Reads the times of one file. ISO 8601 with or without a zone ("2024-01-02", "2024-01-02 09:30:00-05:00"), "20240102",
 * "20240102;093000", numbered dates ("1/2/2024 9:30 AM", "31.1.2024 9:30", "31-01-24"), named months ("Jan 31, 2024",
 * "31-Jan-2024"), epoch seconds, milliseconds, microseconds and nanoseconds. Numbered dates are in the order that
 * `dayFirst` says; where it does not, days come first but between slashes. A file either names the zone of every time or
 * of none; offsets may differ by the hour of daylight saving and no more.
 */
export function createMoments(dayFirst: boolean | null): Moments {
  let naive: Place | null = null
  let first: { readonly offset: number; readonly place: Place } | null = null
  let isDaily = true
  let assumed: ReturnType<Moments['assumed']> = null
  const parse = createParser((text, place) => {
    const [, one = '', mark, other = '', year = '', ...clock] = NUMBERED.exec(text) ?? ([] as Digits[])
    if (mark === undefined) return null
    const isDayFirst = mark === '.' || (dayFirst ?? mark === '-')
    if (dayFirst === null && mark !== '.') assumed = isDayFirst ? 'day' : 'month'
    const [day, month] = isDayFirst ? [one, other] : [other, one]
    if (Number(month) > 12) throw ambiguous(text, place, isDayFirst)
    return naiveOf(wallOf(yearOf(year), month, day, ...hoursOf(clock)))
  })

  function zone(offset: number | null, place: Place): void {
    if (offset === null) naive ??= place
    else first ??= { offset, place }
    if (naive && first) throw mixed(place, `row ${place === naive ? first.place.row : naive.row} does it the other way`)
    if (first && offset !== null && Math.abs(offset - first.offset) > HOUR)
      throw mixed(place, `the offset of row ${first.place.row} is another one`)
  }

  return {
    read(text, place) {
      const parsed = parse(text, place)
      if (parsed === null) return null
      zone(parsed.offset, place)
      if (isDaily && parsed.wall % DAY !== 0) isDaily = false
      return parsed.wall - (parsed.offset ?? 0)
    },
    zoned: () => first !== null,
    daily: () => isDaily,
    assumed: () => assumed,
  }
}

interface Parsed {
  /** The written clock as if it were UTC. */
  readonly wall: number
  /** Milliseconds to subtract for UTC; null where the text does not say. */
  readonly offset: number | null
}

type Parse = (text: string, place: Place) => Parsed | null

/** Days and times of day recur: each is parsed once, and together they make the moment. */
function createParser(numbered: Parse): Parse {
  const [days, clocks, others] = [createMemory(numbered), createMemory(numbered), createMemory(numbered)]
  return (text, place) => {
    if (text[4] !== '-' || text[7] !== '-') return others(text, place)
    const day = days(text.slice(0, 10), place)
    if (day === null || text.length === 10) return day
    const clock = clocks(`1970-01-01${text.slice(10)}`, place)
    return clock && { wall: day.wall + clock.wall, offset: clock.offset }
  }
}

function createMemory(numbered: Parse): Parse {
  const known = new Map<string, Parsed | null>()
  return (text, place) => {
    const kept = known.get(text)
    if (kept !== undefined) return kept
    const parsed = parse(text) ?? numbered(text, place)
    if (known.size < MAX_KNOWN) known.set(text, parsed)
    return parsed
  }
}

function parse(text: string): Parsed | null {
  const iso = ISO.exec(text)
  if (iso) {
    const [, year, , month, day, hour, minute, second, fraction = '', zone] = iso
    const wall = wallOf(year, month, day, hour, minute, second)
    if (wall === null) return null
    return { wall: wall + Number(fraction.slice(0, 3).padEnd(3, '0')), offset: zone === undefined ? null : shift(zone) }
  }
  const compact = COMPACT.exec(text)
  if (compact) {
    const [, year, month, day, hour, minute, second] = compact
    return naiveOf(wallOf(year, month, day, hour, minute, second))
  }
  if (EPOCH.test(text)) {
    const value = Number(text)
    const scale = value > 1e17 ? 1e-6 : value > 1e14 ? 1e-3 : value > 1e11 ? 1 : 1000
    return { wall: Math.floor(value * scale), offset: 0 }
  }
  const [, before, name = '', after, year = '', ...clock] = NAMED.exec(text) ?? ([] as Digits[])
  const day = before ?? after
  if (day === undefined) return null
  const month = String(MONTHS.indexOf(name.slice(0, 3).toLowerCase()) / 3 + 1)
  return naiveOf(wallOf(yearOf(year), month, day, ...hoursOf(clock)))
}

const naiveOf = (wall: number | null): Parsed | null => (wall === null ? null : { wall, offset: null })

/** "24" is 2024, "99" is 1999. */
const yearOf = (year: string): string => (year.length === 4 ? year : `${Number(year) < 70 ? 20 : 19}${year}`)

/** "12", "30", "15", "AM" → "0", "30", "15". */
function hoursOf([hour, minute, second, half]: readonly Digits[]): [Digits, Digits, Digits] {
  if (half === undefined) return [hour, minute, second]
  return [String((Number(hour) % 12) + (/^p/i.test(half) ? 12 : 0)), minute, second]
}

function ambiguous(text: string, place: Place, isDayFirst: boolean) {
  const [here, elsewhere] = isDayFirst ? ['month', 'day'] : ['day', 'month']
  const msg = `${text} puts the ${here} first, and other dates the ${elsewhere}; write year, month, day: 2024-01-31.`
  return wrongCell(place, msg, 'ambiguous_date')
}

type Digits = string | undefined

function wallOf(year: Digits, month: Digits, day: Digits, hour: Digits, minute: Digits, second: Digits): number | null {
  const [y, m, d] = [Number(year), Number(month), Number(day)]
  const [h, min, s] = [Number(hour ?? 0), Number(minute ?? 0), Number(second ?? 0)]
  if (y < 1800 || y > 2200 || m < 1 || m > 12 || d < 1 || d > 31 || h > 23 || min > 59 || s > 59) return null
  const wall = Date.UTC(y, m - 1, d, h, min, s)
  return d > 28 && new Date(wall).getUTCDate() !== d ? null : wall
}

/** "-05:30" → -5.5 hours in milliseconds. */
function shift(zone: string): number {
  if (/^[a-z]/i.test(zone)) return 0
  const size = Number(zone.slice(1, 3)) * HOUR + Number(zone.replace(':', '').slice(3) || 0) * 60_000
  return zone.startsWith('-') ? -size : size
}

function mixed(place: Place, why: string) {
  return wrongCell(place, `The time zone cannot be told: ${why}. Write every time in one zone.`, 'mixed_time_zones')
}
