import type { BarQualityReport } from '../../schemas/types.d.ts'
import type { Bars } from './bar-input.ts'
import type { CheckedBars } from './check-bars.ts'
import { FAMILIES, type Finding, type Severity } from './finding-codes.ts'
import { formatBarTime } from './bar-times.ts'
import { roundNamed, roundProbability, roundTo, roundWritten } from '../lib/quant/rounding.ts'
import type { PrintThresholds } from './print-checks.ts'
import { SPLIT_LOG_ODDS } from './unadjusted-splits.ts'

/** Published with every report. A change in the meaning of the numbers needs a new name. */
export const MODEL = 'qc/1'
const MAX_FINDINGS = 1000
const WEIGHTS: Readonly<Record<Severity, number>> = { error: 1, warning: 0.3, info: 0 }
/** Grades with the least score of each. A lower score is an F. */
const GRADES: readonly (readonly [number, BarQualityReport['grade']])[] = [
  [0.95, 'A'],
  [0.85, 'B'],
  [0.7, 'C'],
  [0.5, 'D'],
]
/** How numbers of the answer follow from other numbers in it. The methodology page has the rest. */
const FORMULAS = {
  score: '1 - min(1, 100 * (counts.error + 0.3 * counts.warning) / bars)',
  bad_print_score: 'abs(ln(observed / inputs.beyond)) / (inputs.scale * inputs.volume_excuse)',
  log_odds: 'gap_log_odds + range_log_odds + turnover_log_odds + share_volume_log_odds',
}
/** A larger share of errors makes the bars unusable. */
const MAX_ERROR_SHARE = 0.001

/**
 * The answer of POST /v1/bars/qc. The score is 1 - min(1, 100 · Σ weight / bars), with weight 1 for an error, 0.3 for a
 * warning and 0 for an info. The report lists the worst 1,000 findings in order of rows; the counts include all.
 */
export function qualityReport(bars: Bars, checked: CheckedBars, symbol: string | null): BarQualityReport {
  const { findings, splits, coverage, thresholds } = checked
  const counts = { error: 0, warning: 0, info: 0 }
  const byCode: Record<string, number> = {}
  for (const { code, severity } of findings) {
    counts[severity] += 1
    byCode[code] = (byCode[code] ?? 0) + 1
  }
  const { score, grade } = gradeOf(counts, bars.count)
  const [first, last] = extent(bars.time)
  return {
    symbol,
    bars: bars.count,
    interval_seconds: checked.interval,
    session: checked.session,
    first: formatBarTime(first),
    last: formatBarTime(last),
    score,
    grade,
    usable:
      splits.length === 0 &&
      byCode['series_discontinuity'] === undefined &&
      counts.error <= MAX_ERROR_SHARE * bars.count,
    counts,
    by_code: byCode,
    findings: worst(findings).map((finding) => ({
      code: finding.code,
      family: FAMILIES[finding.code],
      severity: finding.severity,
      index: finding.index,
      timestamp: formatBarTime(bars.time[finding.index]!),
      field: finding.field,
      observed: shown(finding.observed),
      expected: shown(finding.expected),
      score: finding.score === null ? null : roundTo(finding.score, 4),
      confidence: roundProbability(finding.confidence),
      explanation: finding.explanation,
      ...(finding.inputs ? { inputs: roundNamed(finding.inputs) } : {}),
    })),
    findings_truncated: findings.length > MAX_FINDINGS,
    splits: splits.map(({ index, time, split }) => ({
      timestamp: formatBarTime(time),
      index,
      ratio: split.ratio.name,
      factor: roundWritten(split.ratio.factor),
      log_odds: roundTo(split.logOdds, 4),
      adjust_before: true,
      evidence: roundNamed(split.evidence),
    })),
    formulas: FORMULAS,
    coverage,
    ...(checked.extended ? { sessions: sessionsOf(checked, checked.extended) } : {}),
    thresholds: {
      ...shownThresholds(thresholds),
      split_log_odds: SPLIT_LOG_ODDS,
      stale_run_bars: checked.staleRun,
      tick: checked.tick,
    },
    not_checked: checked.notChecked,
    model: MODEL,
  }
}

type Counts = Readonly<Record<Severity, number>>

function gradeOf(counts: Counts, bars: number): Pick<BarQualityReport, 'score' | 'grade'> {
  const weight = counts.error * WEIGHTS.error + counts.warning * WEIGHTS.warning
  const score = roundTo(1 - Math.min(1, (100 * weight) / Math.max(1, bars)), 4)
  return { score, grade: GRADES.find(([least]) => score >= least)?.[1] ?? 'F' }
}

function shownThresholds(thresholds: PrintThresholds | null) {
  return {
    wick: thresholds && roundTo(thresholds.wick, 4),
    close: thresholds && roundTo(thresholds.close, 4),
    carried_close: thresholds && roundTo(thresholds.carried, 4),
  }
}

/** Grade and thresholds of regular and of extended hours. */
function sessionsOf(
  { findings, thresholds }: CheckedBars,
  { isExtended, thresholds: ofExtended }: NonNullable<CheckedBars['extended']>,
): NonNullable<BarQualityReport['sessions']> {
  return ([0, 1] as const).map((part) => {
    const counts = { error: 0, warning: 0, info: 0 }
    for (const { index, severity } of findings) if (isExtended[index] === part) counts[severity] += 1
    const bars = isExtended.filter((one) => one === part).length
    return {
      session: part === 0 ? ('regular' as const) : ('extended' as const),
      bars,
      ...gradeOf(counts, bars),
      counts,
      thresholds: shownThresholds(part === 0 ? thresholds : ofExtended),
    }
  })
}

/** The 1,000 most severe findings, in order of rows. */
function worst(findings: readonly Finding[]): Finding[] {
  const bySeverity = [...findings].sort(
    (a, b) => WEIGHTS[b.severity] - WEIGHTS[a.severity] || b.confidence - a.confidence || a.index - b.index,
  )
  return bySeverity.slice(0, MAX_FINDINGS).sort((a, b) => a.index - b.index)
}

function extent(times: Float64Array): [number, number] {
  let [first, last] = [Infinity, -Infinity]
  for (const time of times) {
    if (time < first) first = time
    if (time > last) last = time
  }
  return [first, last]
}

/** Without the rounding errors of adjusting for splits and undoing it. */
function shown<Value extends number | string | null>(value: Value): Value | number | null {
  if (typeof value !== 'number') return value
  return Number.isFinite(value) ? roundWritten(value) : null
}
