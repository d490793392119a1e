import { nyseClosed } from '../quant/nyse.ts'
import { findBreaks } from './breaks.ts'
import type { Add } from './finding.ts'
import { DAY } from './interval.ts'
import { formatMoment } from './moment.ts'
import { chanceLength } from './runs.ts'
import { dayName, type Session, wallClock } from './session.ts'

export interface Coverage {
  /** Bars there plus bars missing inside sessions. */
  readonly expected_bars: number
  readonly missing: number
  /** Longest hole inside a session; null where there is none. */
  readonly longest_gap_seconds: number | null
}

/** More steps than this since the bar before are a hole. */
export const STEPS = 1.99
/** Above this share of bars after a hole the market is thin, and only holes longer than chance are reported. */
const THIN = 0.002
/** Holes of a thin market are reported from the length expected fewer times than this. */
const CHANCE = { short: 3, chance: 0.05 }
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
 * that are longer than chance; the rest count as missing.
 */
export function checkGaps(
  times: Float64Array,
  rows: Int32Array,
  interval: number,
  session: Session,
  add: Add,
): Coverage {
  const holes = findHoles(times, interval, session)
  const lengths = holes.map(({ missing }) => missing)
  const missing = lengths.reduce((sum, length) => sum + length, 0)
  const least = holes.length > THIN * times.length + 5 ? chanceLength(lengths, CHANCE) : 1
  let longest = 0
  for (const hole of holes) {
    const [before, after] = [times[hole.at - 1]!, times[hole.at]!]
    longest = Math.max(longest, after - before)
    if (hole.missing < least) continue
    const words = hole.missing === 1 ? '1 bar is' : `${hole.missing} bars are`
    add({
      code: 'gap',
      severity: 'warning',
      index: rows[hole.at]!,
      field: 'timestamp',
      observed: formatMoment(after),
      expected: formatMoment(before + interval),
      score: hole.missing,
      confidence: least === 1 ? 0.99 : 0.9,
      explanation: `${words} missing since ${formatMoment(before)}`,
    })
  }
  return { expected_bars: times.length + missing, missing, longest_gap_seconds: longest || null }
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
