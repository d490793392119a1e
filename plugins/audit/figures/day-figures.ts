import type { AuditDays } from '../../../schemas/types.d.ts'
import { centralInterval, stationaryBootstrap } from '../../lib/quant/bootstrap.ts'
import { autocorrelation } from '../../lib/quant/descriptive-statistics.ts'
import { regressOnBenchmark } from '../../lib/quant/benchmark-regression.ts'
import { deflatedSharpe, LARGE_SAMPLE, minimumTrackRecord, smallSampleSharpe } from '../../lib/quant/sharpe-ratio.ts'
import { studentQuantile, studentTail } from '../../lib/quant/student-t.ts'
import { DAY, YEAR } from '../trade-ledger.ts'
import { dailySharpeVariance } from './overfitting-figures.ts'
import { sampleOf } from './performance-figures.ts'
import type { PortfolioDays } from './portfolio-days.ts'
import type { Trial } from './trials.ts'

const BPS = 1e4
/** With a smaller share of marked days, the audit uses blocks. */
export const MIN_MARKED_SHARE = 0.9
/** A block is at least this many times as long as the longest trade, so that few trades lie in two blocks. */
const BLOCK_LENGTHS = 2

/** A benchmark with returns on a smaller share of the days is not compared. */
const MIN_COMPARED = 0.5

type Comparison = NonNullable<AuditDays['comparisons']>[number]

interface Judged {
  readonly portfolio: PortfolioDays | null
  readonly trial: Trial
  /** Number of trials that the record was chosen from. */
  readonly trials: number
  /** Name of the benchmark of the request; null without one. */
  readonly benchmark: string | null
}

/**
 * The judged trial as a series of days, and what its statistics say: trades that overlap count as often as they are
 * independent. Days without a position count as 0 between the first entry and the last exit, and not at all outside. If too
 * many days have no price, blocks of at least twice the longest trade take the place of days, with profits at the exits.
 */
export function dayFigures(parts: Judged): AuditDays {
  const { portfolio, trial } = parts
  const units = portfolio?.units.get(trial.index)
  if (!portfolio || !units) return { ...NO_FIGURES, why: 'the ledger spans too many days' }
  const { from, to, markedShare } = portfolio
  const span = to - from
  const shared = { days: span, marked_share: markedShare }
  if (markedShare >= MIN_MARKED_SHARE) {
    const why = markedShare === 1 ? null : 'some positions have no price on some days'
    const series = units.subarray(from, to)
    const step = {
      length: 1,
      perYear: daysPerYear(portfolio),
      variance: dailySharpeVariance(portfolio, trial.index),
      squares: portfolio.tripSquares,
    }
    const found = figuresOf(series, parts, step)
    if (!found)
      return { ...NO_FIGURES, ...shared, why: 'there are too few trades or days, or their returns do not vary' }
    const money = portfolio.money && sampleOf(portfolio.money.subarray(from, to)).sharpePerTrade
    const comparisons = comparisonsOf(portfolio, series, parts.benchmark)
    return {
      method: 'marked',
      why,
      ...shared,
      block_days: null,
      ...found,
      money_t_stat: money === null ? null : money * Math.sqrt(span),
      ...weakest(comparisons),
      comparisons,
    }
  }
  return { ...NO_FIGURES, ...shared, ...blockFigures(parts, portfolio) }
}

const NO_FIGURES = {
  method: 'none',
  why: null,
  days: 0,
  marked_share: 0,
  block_days: null,
  effective_bets: null,
  mean_bps: null,
  mean_ci95_bps: null,
  t_stat: null,
  p_value: null,
  sharpe: null,
  autocorrelation: null,
  psr: null,
  dsr: null,
  min_trl_days: null,
  money_t_stat: null,
  benchmark: null,
  alpha_bps: null,
  alpha_t_stat: null,
  beta: null,
  comparisons: [],
} as const satisfies AuditDays

/** Days of the judged trial in a year, by the calendar. */
function daysPerYear({ days, from, to }: PortfolioDays): number {
  return ((to - from) * YEAR) / DAY / (days[to - 1]! - days[from]! + 1)
}

interface Step {
  /** Days in one observation. */
  readonly length: number
  readonly perYear: number
  /** Variance of the Sharpe ratios of the trials, per observation; null if it is that of worthless trials. */
  readonly variance: number | null
  /** Sum of the squared results of the trips. */
  readonly squares: number
}

/** The figures of a series of days or blocks; null if it is too short or does not vary. */
function figuresOf(series: Float64Array, { trial, trials }: Judged, { length, perYear, variance, squares }: Step) {
  const { sharpePerTrade: sharpe, skewness, kurtosis, mean, deviation, trades: count } = sampleOf(series)
  if (sharpe === null || trial.trades.length < 2) return null
  const bets = effectiveBets(series, trial, squares)
  const t = sharpe * Math.sqrt(count)
  const degrees = Math.max(1, (bets < LARGE_SAMPLE ? Math.min(bets, count) : count) - 1)
  const sample = { sharpe, observations: count, skewness, kurtosis }
  const record = minimumTrackRecord(sample)
  const reach = Math.abs(studentQuantile(0.025, degrees)) * (deviation / Math.sqrt(count))
  const interval =
    bets < LARGE_SAMPLE ? [mean - reach, mean + reach] : centralInterval(stationaryBootstrap(series).mean)
  return {
    effective_bets: bets,
    mean_bps: (mean / length) * BPS,
    mean_ci95_bps: interval.map((end) => (end / length) * BPS),
    t_stat: t,
    p_value: 2 * studentTail(Math.abs(t), degrees),
    sharpe: sharpe * Math.sqrt(perYear),
    autocorrelation: autocorrelation(series, 1)[0]!,
    psr: smallSampleSharpe(sample, 0, bets),
    dsr: smallSampleSharpe(sample, deflatedSharpe(sample, trials, variance ?? undefined).benchmark, bets),
    min_trl_days: Number.isFinite(record) ? record * length : null,
  }
}

/**
 * The number of independent bets that a series is worth: the number of trades times the sum of their squared returns,
 * divided by the sum of the squared returns of the series. Without an edge the two sums agree if the trades are
 * independent; for trades that are open on the same days with the same result, the second is as many times larger as there
 * are trades. At least 1, and at most the number of trades.
 *
 * Source: the design effect of L. Kish, "Survey Sampling" (1965), section 8.2.
 *
 * @example two trades of 0.01 each on one day, and two of -0.01 on the next: 4 · 4e-4 / 8e-4 = 2
 */
function effectiveBets(series: Float64Array, { trades }: Trial, tripSquares: number): number {
  const bets = (trades.length * tripSquares) / sumOfSquares(series)
  return Math.max(1, Math.min(trades.length, bets))
}

const sumOfSquares = (values: Float64Array): number => values.reduce((sum, value) => sum + value * value, 0)

function blockFigures(parts: Judged, { days, from, to }: PortfolioDays): Partial<AuditDays> {
  const { trades, returns } = parts.trial
  const why = 'too many days have no price of the positions, neither of bars nor of fills'
  const longest = trades.reduce((most, { entryTime, exitTime }) => Math.max(most, exitTime - entryTime), 0)
  const least = BLOCK_LENGTHS * Math.max(1, Math.ceil(longest / DAY))
  const span = days[to - 1]! - days[from]! + 1
  const count = Math.floor(span / least)
  if (count < 3) return { why: `${why}, and the longest trade takes more than a sixth of the record` }
  const length = span / count
  const sums = new Float64Array(count)
  for (const [place, { exitTime }] of trades.entries()) {
    const block = Math.floor((exitTime / DAY - days[from]!) / length)
    sums[Math.max(0, Math.min(count - 1, block))]! += returns.net[place]!
  }
  const found = figuresOf(sums, parts, {
    length,
    perYear: YEAR / DAY / length,
    variance: null,
    squares: sumOfSquares(returns.net),
  })
  return found ? { ...found, method: 'blocks', why, block_days: length } : { why }
}

/** Compares the days with holding the traded symbols, and with the benchmark of the request. */
function comparisonsOf(portfolio: PortfolioDays, series: Float64Array, name: string | null): Comparison[] {
  const { holding, benchmark, from } = portfolio
  const compare = (label: string, other: Float64Array): Comparison[] => {
    const known = Array.from(series.keys()).filter((day) => !Number.isNaN(other[from + day]!))
    if (known.length < MIN_COMPARED * series.length) return []
    const fit = regressOnBenchmark(
      known.map((day) => series[day]!),
      known.map((day) => other[from + day]!),
    )
    if (!fit) return []
    return [
      { benchmark: label, days: known.length, alpha_bps: fit.alpha * BPS, alpha_t_stat: fit.alphaT, beta: fit.beta },
    ]
  }
  return [...compare('traded_symbols', holding), ...(benchmark && name !== null ? compare(name, benchmark) : [])]
}

/** The comparison that leaves the weakest alpha. */
function weakest(comparisons: readonly Comparison[]) {
  const [first, ...others] = comparisons
  if (!first) return { benchmark: null, alpha_bps: null, alpha_t_stat: null, beta: null }
  const { benchmark, alpha_bps, alpha_t_stat, beta } = others.reduce(
    (least, one) => (one.alpha_t_stat < least.alpha_t_stat ? one : least),
    first,
  )
  return { benchmark, alpha_bps, alpha_t_stat, beta }
}
