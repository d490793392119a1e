import { nyseClosed } from '../lib/quant/nyse.ts'
import { findBreaks } from './breaks.ts'
import type { Add } from './finding.ts'
import { DAY } from './interval.ts'
import { formatMoment } from './moment.ts'
import { dayName, type Session, wallClock } from './session.ts'

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
export const STEPS = 1.99
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
  add: Add,
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
      observed: formatMoment(after),
      expected: formatMoment(before + interval),
      score: hole.missing,
      confidence: isThin ? 0.9 : 0.99,
      explanation: `${words} missing since ${formatMoment(before)}`,
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
