import type { BarQualityReport } from '../../schemas/types.d.ts'
import type { Bars } from './bar-input.ts'
import type { CheckedBars } from './check-bars.ts'
import { FAMILIES, type Finding, type Severity } from './finding-codes.ts'
import { formatBarTime } from './bar-times.ts'
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
  const weight = counts.error * WEIGHTS.error + counts.warning * WEIGHTS.warning
  const score = round(1 - Math.min(1, (100 * weight) / bars.count), 4)
  const [first, last] = extent(bars.time)
  return {
    symbol,
    bars: bars.count,
    interval_seconds: checked.interval,
    session: checked.session,
    first: formatBarTime(first),
    last: formatBarTime(last),
    score,
    grade: GRADES.find(([least]) => score >= least)?.[1] ?? 'F',
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
      score: finding.score === null ? null : round(finding.score, 4),
      confidence: round(finding.confidence, 4),
      explanation: finding.explanation,
      ...(finding.inputs ? { inputs: inSevenDigits(finding.inputs) } : {}),
    })),
    findings_truncated: findings.length > MAX_FINDINGS,
    splits: splits.map(({ index, time, split }) => ({
      timestamp: formatBarTime(time),
      index,
      ratio: split.ratio.name,
      factor: split.ratio.factor,
      log_odds: round(split.logOdds, 4),
      adjust_before: true,
      evidence: inSevenDigits(split.evidence),
    })),
    formulas: FORMULAS,
    coverage,
    thresholds: {
      wick: thresholds && round(thresholds.wick, 4),
      close: thresholds && round(thresholds.close, 4),
      carried_close: thresholds && round(thresholds.carried, 4),
      split_log_odds: SPLIT_LOG_ODDS,
      stale_run_bars: checked.staleRun,
      tick: checked.tick,
    },
    not_checked: checked.notChecked,
    model: MODEL,
  }
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

/** Rounds to twelve digits, which hides the rounding errors of adjusting for splits and undoing it. */
function shown<Value extends number | string | null>(value: Value): Value | number | null {
  if (typeof value !== 'number') return value
  return Number.isFinite(value) ? Number(value.toPrecision(12)) : null
}

function inSevenDigits<Numbers extends { readonly [Name in keyof Numbers]: number }>(numbers: Numbers): Numbers {
  const rounded = Object.entries<number>(numbers).map(([name, value]) => [name, Number(value.toPrecision(7))])
  return Object.fromEntries(rounded) as Numbers
}

function round(value: number, digits: number): number {
  return Number(value.toFixed(digits))
}
