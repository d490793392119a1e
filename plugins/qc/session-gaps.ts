import { median } from '../lib/quant/rolling-median.ts'
import { nyseClosed, nyseClose } from '../lib/time/nyse-calendar.ts'
import { DAY, formatBarTime } from './bar-times.ts'
import type { AddFinding } from './finding-codes.ts'
import { dayName, type Session, wallClock, NIGHT, type WallClock } from './trading-session.ts'

export interface Coverage {
  /** Bars there plus bars missing inside sessions. */
  readonly expected_bars: number
  readonly missing: number
  /** Longest hole inside a session; null where there is none. */
  readonly longest_gap_seconds: number | null
}

/** Of bars that keep no step: none can be missing. */
export const wholeCoverage = ({ length }: Float64Array): Coverage => ({
  expected_bars: length,
  missing: 0,
  longest_gap_seconds: null,
})

/** More steps than this since the bar before are a hole. */
const STEPS = 1.99
/** Above this share of bars after a hole the market is thin, and only holes longer than chance are reported. */
const THIN = 0.002
/** Holes of a thin market are reported where so long ones are expected fewer times than this in the file. */
const CHANCE = 0.05
/** Bars on either side that tell how thin the market was at the time. */
const AROUND = 100
/** On weekdays of a calendar we do not know, holidays last up to this many days. */
const LONGEST_HOLIDAY = 4

interface Hole {
  /** Place of the first bar after it. */
  readonly at: number
  readonly missing: number
}

/**
 * Holes inside sessions: more than 1.99 steps since the bar before. A break that begins and ends at hours where breaks
 * recur (nights, weekends, a daily pause) is none. In a thin market, where many bars follow a hole, those are reported
 * that are longer than chance at the rate of the time; the rest count as missing.
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
    const words = hole.missing === 1 ? '1 bar is' : `${hole.missing} bars are`
    add({
      code: 'gap',
      severity: 'warning',
      index: rows[hole.at]!,
      field: 'timestamp',
      observed: formatBarTime(after),
      expected: formatBarTime(before + interval),
      score: hole.missing,
      confidence: isThin ? 0.9 : 0.99,
      explanation: `${words} missing since ${formatBarTime(before)}`,
    })
  }
  return { expected_bars: times.length + missing, missing, longest_gap_seconds: longest || null }
}

/**
 * How many holes as long as one are expected in the file, n·q^L, were every bar missing with the chance q that bars were
 * missing in around it: among so many bars there, those missing beside them but for the hole itself, and one more.
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

/** Trading days between two daily bars. Holidays of a calendar we do not know are given the benefit of the doubt. */
function missingDays(before: number, after: number, { name, zone }: Session): number {
  let missing = 0
  const last = wallClock(after, zone).day
  for (let day = wallClock(before, zone).day + 1; day < last; day += 1) {
    const reason = nyseClosed(dayName(day))
    if (reason === null || (name !== 'us_equity' && reason !== 'weekend')) missing += 1
  }
  return name === 'us_equity' || missing > LONGEST_HOLIDAY ? missing : 0
}

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
