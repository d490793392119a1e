import { FILE_RULES, readTimestamp } from '../../lib/time/timestamps.ts'
import { DAY } from '../trade-ledger.ts'
import { type CellPlace, cellError } from './cell-values.ts'

/** Reads the times of one file and remembers what they have in common. */
export interface TimeReader {
  /** Epoch milliseconds of a cell; null if it is not a time. Throws InvalidInput if the file mixes time zones. */
  read(text: string, place: CellPlace): number | null
  /** Whether the times read so far name their zone. False if none was read. */
  hasZone(): boolean
  /** Whether every time read so far is a bare date, or midnight on its own clock. */
  isDaily(): boolean
  /** The order assumed for dates like 1/2/2024 if the file does not settle it; null if nothing was assumed. */
  assumedOrder(): 'day' | 'month' | null
}

const CLOCK = String.raw`(?:[ ,]+(\d\d?):(\d\d)(?::(\d\d)(?:\.\d{1,9})?)?\s*([AP]M)?)?$`
/** "1/2/2024 9:30 AM", "31.1.2024", "31-01-24". */
const NUMBERED = new RegExp(String.raw`^(\d\d?)([/.-])(\d\d?)\2(\d{4}|\d\d)${CLOCK}`, 'i')
/** "Jan 31, 2024", "31-Jan-2024 2:30 PM". */
const NAMED = new RegExp(
  String.raw`^(?:(\d\d?)[ -])?(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?(?:[ -](\d\d?),?)?[ -](\d{4}|\d\d)${CLOCK}`,
  'i',
)
/** "20240102 9:30": the shared parser wants two digits for the hour after a compact date. */
const COMPACT_DAY = /^(\d{4})(\d\d)(\d\d)(?=[T ,]+\d\d?:)/
const MONTHS = 'janfebmaraprmayjunjulaugsepoctnovdec'
const HOUR = 3_600_000
const MAX_REMEMBERED = 100_000

/**
 * Reads every form that `readTimestamp` reads, and the dates of brokers: numbered ("1/2/2024 9:30 AM", "31.1.2024",
 * "31-01-24") and with named months ("Jan 31, 2024", "31-Jan-2024"). `dayFirst` gives the order of numbered dates. If it
 * is null, the month comes first between slashes and the day comes first otherwise.
 *
 * Either all times of a file name a zone or none does. Their offsets may differ by the hour of daylight saving, not more.
 */
export function createTimeReader(dayFirst: boolean | null): TimeReader {
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

  return {
    read(text, place) {
      const parsed = parse(text, place)
      if (parsed === null) return null
      checkZone(parsed.offset, place)
      if (isDaily && parsed.wall % DAY !== 0) isDaily = false
      return parsed.wall - (parsed.offset ?? 0)
    },
    hasZone: () => withZone !== null,
    isDaily: () => isDaily,
    assumedOrder: () => assumed,
  }
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
  const read = readTimestamp(text.replace(COMPACT_DAY, '$1-$2-$3'), FILE_RULES)
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
