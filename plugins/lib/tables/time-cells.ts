import { FILE_RULES, readTimestamp } from '../time/timestamps.ts'
import type { Zone } from '../time/time-zones.ts'
import { type CellPlace, cellError } from './cell-values.ts'

/** Reads the times of one file and remembers what they have in common. */
export interface TimeReader {
  /**
   * Epoch milliseconds of a cell; null if it is not a time. Throws InvalidInput if the file mixes time zones. Of an hour
   * that the clocks of the zone show twice, it is the first that is not before `notBefore`.
   */
  read(text: string, place: CellPlace, notBefore?: number): number | null
  /** Whether the times read so far name their zone, or it is known. False if none was read. */
  hasZone(): boolean
  /** Times that the clocks of the zone show twice, and that they skip. */
  readonly odd: { readonly repeated: number; readonly skipped: number }
  /** Whether every time read so far is a bare date, or midnight on its own clock. */
  isDaily(): boolean
  /** The order assumed for dates like 1/2/2024 if the file does not settle it; null if nothing was assumed. */
  assumedOrder(): 'day' | 'month' | null
}

/** What is known of the times of a file that name no zone. */
export interface KnownZone {
  /** Their zone. Bare dates stay days of UTC. */
  readonly zone?: Zone | null
  /** Whether all of them are midnight, so that they are days and not moments. */
  readonly isDaily?: boolean
}

const CLOCK = String.raw`(?:[ ,]+(\d\d?):(\d\d)(?::(\d\d)(?:\.\d{1,9})?)?\s*([AP]M)?)?$`
/** "1/2/2024 9:30 AM", "31.1.2024", "31-01-24". Of "1/3/2024 as of 1/2/2024" (Schwab), the second is the day of the trade. */
const NUMBERED = new RegExp(String.raw`^(?:[\d/.-]+ as of )?(\d\d?)([/.-])(\d\d?)\2(\d{4}|\d\d)${CLOCK}`, 'i')
/** "Jan 31, 2024", "31-Jan-2024 2:30 PM". */
const NAMED = new RegExp(
  String.raw`^(?:(\d\d?)[ -])?(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?(?:[ -](\d\d?),?)?[ -](\d{4}|\d\d)${CLOCK}`,
  'i',
)
/** "20240102 9:30": the shared parser wants two digits for the hour after a compact date. */
const COMPACT_DAY = /^(\d{4})(\d\d)(\d\d)(?=[T ,]+\d\d?:)/
/** "14:35 2024-11-16" (Bybit). */
const CLOCK_FIRST = /^(\d\d:\d\d(?::\d\d)?) (\d{4}-\d\d-\d\d)$/
/** "2024-01-02;10:00:00", "2024-01-02;100000" (Interactive Brokers). */
const SEMICOLON = /^(\d{4}-\d\d-\d\d);(\d\d):?(\d\d):?(\d\d)$/
const MONTHS = 'janfebmaraprmayjunjulaugsepoctnovdec'
const HOUR = 3_600_000
const DAY = 24 * HOUR
const MAX_REMEMBERED = 100_000

/**
 * Reads every form that `readTimestamp` reads, and the dates of brokers: numbered ("1/2/2024 9:30 AM", "31.1.2024",
 * "31-01-24") and with named months ("Jan 31, 2024", "31-Jan-2024"). `dayFirst` gives the order of numbered dates. If it
 * is null, the month comes first between slashes and the day comes first otherwise.
 *
 * Either all times of a file name a zone or none does. Their offsets may differ by the hour of daylight saving, not more.
 * If the zone is known, the times that name none are read as its clocks.
 */
export function createTimeReader(dayFirst: boolean | null, zones: KnownZone = {}): TimeReader {
  const { zone = null, isDaily: isAllDaily = false } = zones
  const odd = { repeated: 0, skipped: 0 }
  let withoutZone: CellPlace | null = null
  let withZone: { readonly offset: number; readonly place: CellPlace } | null = null
  let isDaily = true
  let assumed: ReturnType<TimeReader['assumedOrder']> = null
  const parse = createParser((text, place) => {
    const [, first = '', mark, second = '', year = '', ...clock] = NUMBERED.exec(text) ?? ([] as Digits[])
    if (mark === undefined) return null
    const isDayFirst = mark === '.' || (dayFirst ?? mark === '-')
    if (dayFirst === null && mark !== '.') assumed = isDayFirst ? 'day' : 'month'
    const [day, month] = isDayFirst ? [first, second] : [second, first]
    if (Number(month) > 12) throw ambiguous(text, place, isDayFirst)
    return localTime(year, month, day, clock)
  })

  function checkZone(offset: number | null, place: CellPlace): void {
    if (offset === null) withoutZone ??= place
    else withZone ??= { offset, place }
    if (withoutZone && withZone) {
      const other = place === withoutZone ? withZone.place.row : withoutZone.row
      throw mixedZones(place, `the time in row ${other} ${offset === null ? 'names a zone' : 'names none'}`)
    }
    if (withZone && offset !== null && Math.abs(offset - withZone.offset) > HOUR)
      throw mixedZones(place, `row ${withZone.place.row} has another offset`)
  }

  /** The instant at which the clocks of the known zone show a time. They skip an hour in spring and repeat one in autumn. */
  function inZone(wall: number, known: Zone, notBefore: number): number {
    const [before, after] = [known((wall - DAY) / 1000) * 1000, known((wall + DAY) / 1000) * 1000]
    if (before === after) return wall - before
    const [one, other] = [wall - before, wall - after]
    const isOne = known(one / 1000) * 1000 === before
    const isOther = known(other / 1000) * 1000 === after
    if (isOne && isOther) {
      odd.repeated += 1
      const [first, second] = one < other ? [one, other] : [other, one]
      return first < notBefore ? second : first
    }
    // A clock that was not moved in spring goes on with the old offset.
    if (!isOne && !isOther) odd.skipped += 1
    return isOther ? other : one
  }

  return {
    odd,
    read(text, place, notBefore = Number.NEGATIVE_INFINITY) {
      const parsed = parse(text, place)
      if (parsed === null) return null
      if (isDaily && parsed.wall % DAY !== 0) isDaily = false
      if (zone !== null && parsed.offset === null) {
        const isDay = isAllDaily || !text.includes(':')
        return isDay && parsed.wall % DAY === 0 ? parsed.wall : inZone(parsed.wall, zone, notBefore)
      }
      checkZone(parsed.offset, place)
      return parsed.wall - (parsed.offset ?? 0)
    },
    hasZone: () => withZone !== null || zone !== null,
    isDaily: () => isDaily,
    assumedOrder: () => assumed,
  }
}

/**
 * Whether a cell looks like a time: a date in any known form, or an epoch number of the years 2000 to 2100. Other numbers
 * are more often identifiers.
 */
export function isTime(text: string): boolean {
  if (!/\d/.test(text)) return false
  if (/^\d{9,19}$/.test(text) && !/^\d{14}$/.test(text)) return isEpoch(text)
  if (/^[\d.,+-]+$/.test(text) && !/^\d{8}$|^\d{14}$|^\d+([-.])\d+\1\d+$/.test(text)) return false
  return (NUMBERED.test(text) || (parseShared(text) ?? parseNamed(text)) !== null) && isRecent(text)
}

/** "20240102", but not "99999999": bare digits are a date only in the years in which people trade. */
const isRecent = (text: string): boolean => !/^\d{8}$|^\d{14}$/.test(text) || /^(?:19[5-9]|20)\d/.test(text)

const isEpoch = (text: string): boolean => {
  const parsed = parseShared(text)
  return parsed !== null && parsed.wall >= Date.UTC(2000, 0, 1) && parsed.wall < Date.UTC(2100, 0, 1)
}

interface Parsed {
  /** The written clock as if it were UTC, milliseconds. */
  readonly wall: number
  /** Milliseconds to subtract for UTC; null if the text names no zone. */
  readonly offset: number | null
}

type Parse = (text: string, place: CellPlace) => Parsed | null
type Digits = string | undefined

/** Files repeat days and times of day, so each is parsed once and the two are added. */
function createParser(parseNumbered: Parse): Parse {
  const parse: Parse = (text, place) => parseShared(text) ?? parseNamed(text) ?? parseNumbered(text, place)
  const [days, others] = [remembering(parse), remembering(parse)]
  const clocks = remembering((clock, place) => parse(`1970-01-01${clock}`, place))
  return (text, place) => {
    if (text[4] !== '-' || text[7] !== '-') return others(text, place)
    const day = days(text.slice(0, 10), place)
    if (day === null || text.length === 10) return day
    const clock = clocks(text.slice(10), place)
    return clock && { wall: day.wall + clock.wall, offset: clock.offset }
  }
}

function remembering(parse: Parse): Parse {
  const known = new Map<string, Parsed | null>()
  return (text, place) => {
    const earlier = known.get(text)
    if (earlier !== undefined) return earlier
    const parsed = parse(text, place)
    if (known.size < MAX_REMEMBERED) known.set(text, parsed)
    return parsed
  }
}

function parseShared(text: string): Parsed | null {
  const plain = text.replace(COMPACT_DAY, '$1-$2-$3').replace(SEMICOLON, '$1 $2:$3:$4').replace(CLOCK_FIRST, '$2 $1')
  const read = readTimestamp(plain, FILE_RULES)
  if (!read) return null
  const { seconds, nanoseconds, offsetSeconds } = read
  const offset = offsetSeconds === null ? null : offsetSeconds * 1000
  return { wall: seconds * 1000 + Math.floor(nanoseconds / 1e6), offset }
}

function parseNamed(text: string): Parsed | null {
  const [, before, name = '', after, year = '', ...clock] = NAMED.exec(text) ?? ([] as Digits[])
  const day = before ?? after
  if (day === undefined) return null
  return localTime(year, String(MONTHS.indexOf(name.slice(0, 3).toLowerCase()) / 3 + 1), day, clock)
}

/** The year "24" is 2024, "99" is 1999. `clock` is hour, minute, second and AM or PM. */
function localTime(year: string, month: string, day: string, clock: readonly Digits[]): Parsed | null {
  const fullYear = year.length === 4 ? year : `${Number(year) < 70 ? 20 : 19}${year}`
  const [hour, minute, second = '00', half] = clock
  const date = `${fullYear}-${month}-${day}`
  if (hour === undefined) return parseShared(date)
  const hours = half === undefined ? hour : (Number(hour) % 12) + (/^p/i.test(half) ? 12 : 0)
  return parseShared(`${date} ${hours}:${minute}:${second}`)
}

function ambiguous(text: string, place: CellPlace, isDayFirst: boolean) {
  const [here, elsewhere] = isDayFirst ? ['month', 'day'] : ['day', 'month']
  const msg = `${text} puts the ${here} first, but other dates put the ${elsewhere} first. Write dates as 2024-01-31.`
  return cellError(place, msg, 'ambiguous_date')
}

function mixedZones(place: CellPlace, reason: string) {
  return cellError(place, `The time zone is ambiguous: ${reason}. Write every time in one zone.`, 'mixed_time_zones')
}
