import { nyseClose, nyseClosed } from '../lib/quant/nyse.ts'
import { DAY } from './interval.ts'
import { median } from './scale.ts'
import { dayName, NIGHT, type Session, type WallClock, wallClock } from './session.ts'

/** An hour recurs when this share of the long breaks, or of the days, have it. */
const LONG_SHARE = 0.1
const DAY_SHARE = 0.3
/** Fewer long breaks than this teach nothing: none of those by night, or over a Saturday, is called a hole. */
const FEWEST = 3

/** How often breaks begin, or end, at each minute of the day. */
interface Side {
  readonly any: Map<number, number>
  readonly long: Map<number, number>
}

/**
 * Tells breaks between sessions from holes inside them, by what recurs: the minutes of the day at which breaks begin and
 * end are counted, and a break from a recurring minute to a recurring minute is no hole, but for whole trading days of the
 * NYSE within it. Answers a function: for the
 * place of a bar after a break, the number of bars missing inside sessions.
 */
export function findBreaks(
  times: Float64Array,
  places: readonly number[],
  interval: number,
  session: Session,
): (at: number) => number {
  const clock = (i: number): WallClock => wallClock(times[i]!, session.zone)
  const length = (at: number): number => times[at]! - times[at - 1]!
  const steps = (at: number): number => Math.round(length(at) / interval) - 1
  const long = places.filter((at) => length(at) >= NIGHT)
  const days = Math.max(1, (times[times.length - 1]! - times[0]!) / DAY)
  const tally = (minuteOf: (at: number) => number): Side => ({
    any: countBy(places.map(minuteOf)),
    long: countBy(long.map(minuteOf)),
  })
  const begins = tally((at) => clock(at - 1).minute)
  const ends = tally((at) => clock(at).minute)
  const recurs = ({ any, long: nights }: Side, minute: number): boolean =>
    (nights.get(minute) ?? 0) >= Math.max(2, LONG_SHARE * long.length) ||
    (any.get(minute) ?? 0) >= Math.max(3, DAY_SHARE * days)
  const regular = (at: number): boolean => recurs(begins, clock(at - 1).minute) && recurs(ends, clock(at).minute)

  const hasNights = long.length > 0.4 * days
  const weekend = median(long.filter(regular).map(steps)) || 0
  const closings = [...begins.any.keys()].filter((minute) => recurs(begins, minute))
  const openings = [...ends.any.keys()].filter((minute) => recurs(ends, minute))
  const perDay = times.length / Math.max(1, new Set(Array.from(times, (_, i) => clock(i).day)).size)

  return (at) => {
    const [from, to] = [clock(at - 1), clock(at)]
    const lost = session.name === 'us_equity' ? Math.round(tradingDaysBetween(from.day, to.day) * perDay) : 0
    if (regular(at)) return lost
    if (length(at) < NIGHT || from.day === to.day) return steps(at)
    if (long.length < FEWEST && isWeekend(times, at, from.day, to.day)) return 0
    if (!hasNights) return length(at) < 1.6 * DAY ? steps(at) : Math.max(0, steps(at) - weekend)
    if (long.length < FEWEST) return 0
    const close = session.name === 'us_equity' ? nyseClose(dayName(from.day)) : 960
    const tail = close < 960 ? Math.max(0, close * 60 - from.minute * 60 - interval) : ahead(from.minute, closings, 1)
    const head = ahead(to.minute, openings, -1)
    return Math.round(tail / interval) + Math.round(head / interval) + lost
  }
}

/** A break of at most three days with a whole Saturday in it. */
function isWeekend(times: Float64Array, at: number, from: number, to: number): boolean {
  // Days 2, 9, 16, … since 1970 were Saturdays.
  const saturday = from + 1 + ((((1 - from) % 7) + 7) % 7)
  return saturday < to && times[at]! - times[at - 1]! <= 3 * DAY
}

function countBy(minutes: readonly number[]): Map<number, number> {
  const counts = new Map<number, number>()
  for (const minute of minutes) counts.set(minute, (counts.get(minute) ?? 0) + 1)
  return counts
}

/** Seconds from a minute of the day to the nearest of others, later (1) or earlier (-1) that day; 0 for none. */
function ahead(minute: number, others: readonly number[], direction: 1 | -1): number {
  const distances = others.map((other) => direction * (other - minute)).filter((distance) => distance >= 0)
  return distances.length === 0 ? 0 : Math.min(...distances) * 60
}

function tradingDaysBetween(from: number, to: number): number {
  let days = 0
  for (let day = from + 1; day < to; day += 1) if (nyseClosed(dayName(day)) === null) days += 1
  return days
}
