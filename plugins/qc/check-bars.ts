import type { Bars } from './bar-input.ts'
import { checkCalendar, checkGrid, gridOf, checkOrder } from './timestamp-checks.ts'
import { checkDecimals, checkPrints, type PrintThresholds } from './print-checks.ts'
import type { Finding } from './finding-codes.ts'
import { checkGaps, type Coverage, wholeCoverage } from './session-gaps.ts'
import { checkImpossible, checkTick } from './price-checks.ts'
import { inferInterval } from './bar-interval.ts'
import { type Zone } from '../lib/time/time-zones.ts'
import { DAY } from './bar-times.ts'
import { checkDiscontinuity, checkDividends } from './level-changes.ts'
import { adjust, measureScales, selectRows, type Series, without } from './clean-series.ts'
import { extendedHours, findSession, type SessionName } from './session-detection.ts'
import { findSplits, type Split } from './unadjusted-splits.ts'
import { checkStale } from './stale-runs.ts'
import { checkVolume } from './volume-checks.ts'

export interface CheckOptions {
  /** Seconds; null to infer it from the times. */
  readonly interval: number | null
  readonly session: SessionName | 'auto'
  /** Null if the request names no time zone. */
  readonly zone: Zone | null
  readonly allowNegative: boolean
}

export interface CheckedBars {
  readonly findings: readonly Finding[]
  readonly splits: readonly { readonly index: number; readonly time: number; readonly split: Split }[]
  readonly interval: number
  readonly session: SessionName
  readonly coverage: Coverage
  readonly thresholds: PrintThresholds | null
  /** Thresholds of extended hours, and by row of the request 1 for a bar in them; null if the day has no such parts. */
  readonly extended: { readonly thresholds: PrintThresholds | null; readonly isExtended: Uint8Array } | null
  readonly staleRun: number
  readonly tick: number | null
  /** Codes that could not be checked, with the reason. */
  readonly notChecked: Readonly<Record<string, string>>
}

/**
 * Runs every check. The order matters, because each check needs the results of those before it: impossible rows are
 * dropped, rows are sorted by time, splits are undone, bars displaced by a power of ten are removed, and the remaining
 * bars are judged by their own local scale.
 */
export function checkBars(bars: Bars, options: CheckOptions): CheckedBars {
  const findings: Finding[] = []
  const notChecked: Record<string, string> = {}
  const add = (finding: Finding): void => {
    findings.push(finding)
  }
  const usable = checkImpossible(bars, options.allowNegative, add)
  const ordered = checkOrder(bars, add)
  const times = Float64Array.from(ordered, (row) => bars.time[row]!)
  const interval = options.interval ?? inferInterval(times)
  const session = findSession(options.session, times, interval, options.zone)
  const grid = gridOf(times, interval)
  const isClocked = options.interval !== null || interval > DAY || grid.isRegular
  if (isClocked) checkGrid(times, ordered, { interval, zone: options.zone }, grid, add)
  else notChecked['off_grid_timestamp'] = notChecked['gap'] = 'the bars have no common step'
  const coverage = isClocked ? checkGaps(times, ordered, interval, session, add) : wholeCoverage(times)
  checkCalendar(times, ordered, interval, session, add)

  const rows = ordered.filter((row) => usable[row] === 1)
  const { tick, least } = checkTick(bars, rows, add)
  if (!bars.volume) notChecked['volume'] = 'the request has no volume'
  const raw = selectRows(bars, rows)
  const isExtended = extendedHours(bars.time, interval, session)
  const common = { interval, session: session.name, coverage, tick, notChecked }
  if (raw.low.some((price) => price <= 0)) {
    notChecked['bad_print'] = notChecked['split'] = 'ratios of prices need prices above zero'
    const extended = isExtended && { thresholds: null, isExtended }
    return { ...common, findings, splits: [], thresholds: null, extended, staleRun: checkStale(raw, add) }
  }
  const discontinuities = checkDiscontinuity(raw, interval, add)
  const found = findSplits(raw, interval, least)
  const splits = found.map((split) => ({ index: raw.rows[split.at]!, time: raw.time[split.at]!, split }))
  for (const split of found) add(splitFinding(raw, split))
  const level = adjust(
    raw,
    found.map(({ at, ratio }) => ({ at, factor: ratio.factor })),
  )
  const series = without(level, checkDecimals(level, add))
  const scales = measureScales(series, interval, least)
  const parts = { scales, interval, tick, step: least, extended: isExtended, add }
  const [thresholds = null, ofExtended = null] = checkPrints(series, parts)
  const extended = isExtended && { thresholds: ofExtended, isExtended }
  const staleRun = checkStale(series, add)
  checkVolume(series, scales, interval, session, add)
  if (interval === DAY && session.name !== '24x7' && discontinuities.length === 0) checkDividends(series, scales, add)
  return { ...common, findings, splits, thresholds, extended, staleRun }
}

function splitFinding(series: Series, { at, ratio, logOdds }: Split): Finding {
  const close = series.close[at - 1]!
  return {
    code: 'unadjusted_split',
    severity: 'error',
    index: series.rows[at]!,
    field: 'open',
    observed: series.open[at]!,
    expected: close,
    score: logOdds,
    confidence: 1 / (1 + Math.exp(-logOdds)),
    explanation: `opens at ${series.open[at]} after a close of ${close}: ${ratio.name} split; divide earlier prices by ${ratio.factor}`,
  }
}
