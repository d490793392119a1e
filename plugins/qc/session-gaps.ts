import { median } from '../lib/quant/rolling-median.ts'
import { nyseClosed, nyseClose } from '../lib/time/nyse-calendar.ts'
import { DAY, formatBarTime } from './bar-times.ts'
import type { AddFinding } from './finding-codes.ts'
import { dayName, type Session, wallClock, NIGHT, type WallClock } from './session-detection.ts'

export interface Coverage {
  /** Bars in the request plus bars missing inside sessions. */
  readonly expected_bars: number
  readonly missing: number
  /** Longest gap inside a session; null if there is none. */
  readonly longest_gap_seconds: number | null
}

/** Coverage of bars without a common step, where no bar can be missing. */
export const wholeCoverage = ({ length }: Float64Array): Coverage => ({
  expected_bars: length,
  missing: 0,
  longest_gap_seconds: null,
})

/** More steps than this since the previous bar are a hole. */
const STEPS = 1.99
/** A market with more holes than this share of its bars is thin. Only holes longer than chance are reported there. */
const THIN = 0.002
/** A hole in a thin market is reported if holes of its length are expected fewer times than this in the file. */
const CHANCE = 0.05
/** Number of bars on either side that show how thin the market was at the time. */
const AROUND = 100
/** In an unknown calendar, up to this many missing weekdays count as a holiday. */
const MAX_HOLIDAY_DAYS = 4

interface Hole {
  /** Place of the first bar after it. */
  readonly at: number
  readonly missing: number
}

/**
 * Reports gaps inside sessions and returns the coverage. A gap is more than 1.99 steps since the previous bar. Breaks that
 * begin and end at hours where breaks recur (nights, weekends, a daily pause) are not gaps. In a thin market, where many
 * bars follow a hole, only holes longer than chance at the local rate are reported; the others still count as missing.
 */
export function checkGaps(
  times: Float64Array,
  rows: Int32Array,
  interval: number,
  session: Session,
  add: AddFinding,
): Coverage {
  const holes = findHoles(times, interval, session)
  const missing = holes.reduce((sum, hole) => sum + hole.missing, 0)
  const isThin = holes.length > THIN * times.length + 5
  const expected = isThin ? expectation(holes, times.length) : () => 0
  let longest = 0
  for (const hole of holes) {
    const [before, after] = [times[hole.at - 1]!, times[hole.at]!]
    longest = Math.max(longest, after - before)
    if (expected(hole) >= CHANCE) continue
    const subject = hole.missing === 1 ? '1 bar is' : `${hole.missing} bars are`
    add({
      code: 'gap',
      severity: 'warning',
      index: rows[hole.at]!,
      field: 'timestamp',
      observed: formatBarTime(after),
      expected: formatBarTime(before + interval),
      score: hole.missing,
      confidence: isThin ? 0.9 : 0.99,
      explanation: `${subject} missing since ${formatBarTime(before)}`,
    })
  }
  return { expected_bars: times.length + missing, missing, longest_gap_seconds: longest || null }
}

/**
 * Returns a function that gives the expected number of holes as long as a given one, n·q^L. The chance q that a bar is
 * missing comes from the 200 bars around the hole: the other missing bars plus one, divided by that number plus the bars
 * that are present.
 */
function expectation(holes: readonly Hole[], count: number): (hole: Hole) => number {
  const missingBefore = new Float64Array(count + 1)
  for (const { at, missing } of holes) missingBefore[at + 1]! += missing
  for (let i = 1; i <= count; i += 1) missingBefore[i]! += missingBefore[i - 1]!
  return ({ at, missing }) => {
    const [from, to] = [Math.max(0, at - AROUND), Math.min(count, at + AROUND)]
    const others = missingBefore[to]! - missingBefore[from]! - missing + 1
    return count * (others / (others + to - from)) ** missing
  }
}

function findHoles(times: Float64Array, interval: number, session: Session): Hole[] {
  const places: number[] = []
  for (let i = 1; i < times.length; i += 1) if (times[i]! - times[i - 1]! > STEPS * interval) places.push(i)
  const steps = (at: number): number => Math.round((times[at]! - times[at - 1]!) / interval) - 1
  let missing = steps
  if (session.name !== '24x7' && interval === DAY) missing = (at) => missingDays(times[at - 1]!, times[at]!, session)
  else if (session.name !== '24x7' && interval < DAY) missing = findBreaks(times, places, interval, session)
  return places.map((at) => ({ at, missing: missing(at) })).filter((hole) => hole.missing > 0)
}

/** Number of trading days between two daily bars. In an unknown calendar, up to four weekdays count as a holiday. */
function missingDays(before: number, after: number, { name, zone }: Session): number {
  let missing = 0
  const last = wallClock(after, zone).day
  for (let day = wallClock(before, zone).day + 1; day < last; day += 1) {
    const reason = nyseClosed(dayName(day))
    if (reason === null || (name !== 'us_equity' && reason !== 'weekend')) missing += 1
  }
  return name === 'us_equity' || missing > MAX_HOLIDAY_DAYS ? missing : 0
}

/** A minute of the day recurs if breaks begin (or end) at it on this share of the long breaks, or of the days. */
const LONG_SHARE = 0.1
const DAY_SHARE = 0.3
/** Fewer long breaks than this show no pattern. Breaks over a night or a Saturday are then never called holes. */
const MIN_LONG_BREAKS = 3

/** How often breaks begin (or end) at each minute of the day. */
interface Side {
  readonly any: Map<number, number>
  readonly long: Map<number, number>
}

/**
 * Tells breaks between sessions from holes inside them by what recurs. It counts the minutes of the day at which breaks
 * begin and end. A break from a recurring minute to a recurring minute is not a hole, except for whole trading days of the
 * NYSE within it. Returns a function that gives, for the place of a bar after a break, the number of bars that are missing
 * inside sessions.
 */
function findBreaks(
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
    if (long.length < MIN_LONG_BREAKS && isWeekend(times, at, from.day, to.day)) return 0
    if (!hasNights) return length(at) < 1.6 * DAY ? steps(at) : Math.max(0, steps(at) - weekend)
    if (long.length < MIN_LONG_BREAKS) return 0
    const close = session.name === 'us_equity' ? nyseClose(dayName(from.day)) : 960
    const tail = close < 960 ? Math.max(0, close * 60 - from.minute * 60 - interval) : ahead(from.minute, closings, 1)
    const head = ahead(to.minute, openings, -1)
    return Math.round(tail / interval) + Math.round(head / interval) + lost
  }
}

/** Whether a break lasts at most three days and contains a whole Saturday. */
function isWeekend(times: Float64Array, at: number, from: number, to: number): boolean {
  // Days 2, 9, 16, … after 1970-01-01 are Saturdays.
  const saturday = from + 1 + ((((1 - from) % 7) + 7) % 7)
  return saturday < to && times[at]! - times[at - 1]! <= 3 * DAY
}

function countBy(minutes: readonly number[]): Map<number, number> {
  const counts = new Map<number, number>()
  for (const minute of minutes) counts.set(minute, (counts.get(minute) ?? 0) + 1)
  return counts
}

/** Seconds from a minute of the day to the nearest of `others`, later (1) or earlier (-1) that day; 0 if there is none. */
function ahead(minute: number, others: readonly number[], direction: 1 | -1): number {
  const distances = others.map((other) => direction * (other - minute)).filter((distance) => distance >= 0)
  return distances.length === 0 ? 0 : Math.min(...distances) * 60
}

function tradingDaysBetween(from: number, to: number): number {
  let days = 0
  for (let day = from + 1; day < to; day += 1) if (nyseClosed(dayName(day)) === null) days += 1
  return days
}
