import { probabilityOfOverfitting } from '../../lib/quant/backtest-overfitting.ts'
import { type Haircut, haircuts, sharpePValue } from '../../lib/quant/multiple-testing.ts'
import {
  deflatedSharpe,
  LARGE_SAMPLE,
  minimumBacktest,
  minimumTrackRecord,
  smallSampleSharpe,
} from '../../lib/quant/sharpe-ratio.ts'
import { studentTail } from '../../lib/quant/student-t.ts'
import { superiorAbility } from '../../lib/quant/superior-predictive-ability.ts'
import { DAY } from '../trade-ledger.ts'
import { tradesPerYear, sampleOf } from './performance-figures.ts'
import type { PortfolioDays } from './portfolio-days.ts'
import type { Trial } from './trials.ts'

/**
 * Measures how much of the result luck explains: the probabilistic Sharpe ratio against zero, the deflated Sharpe ratio
 * against the best trial that luck would give, the minimum track record and backtest length, haircuts, and, if the ledger
 * contains the trials, the probability of backtest overfitting and Hansen's test of the best of them. `stated` is the number of trials that the buyer
 * states; the ledger's own count replaces it if it is higher. Formulas use Sharpe ratios per trade; `sr0` and the haircut
 * Sharpe ratios are annualised like `sharpe`.
 */
export function overfittingOf(best: Trial, trials: readonly Trial[], stated: number, portfolio: PortfolioDays | null) {
  const { sample, trades } = best
  const count = Math.max(stated, trials.length)
  const { sharpePerTrade: sharpe, skewness, kurtosis } = sample
  const overfit = backtestOverfitting(trials)
  const pbo = {
    pbo: overfit.pbo,
    pbo_not_checked: overfit.pbo === null ? overfit.why : null,
    pbo_blocks: overfit.pbo === null ? null : overfit.blocks,
    pbo_periods: overfit.pbo === null ? null : overfit.periods,
    degradation_slope: overfit.pbo === null ? null : overfit.slope,
    loss_probability: overfit.pbo === null ? null : overfit.loss,
    ...superiorAbilityOf(trials, portfolio),
  }
  if (sharpe === null) return { ...NO_STATISTICS, n_trials: count, ...pbo }
  const track = { sharpe, observations: trades.length, skewness, kurtosis }
  const measured = sharpeVarianceOf(trials)
  const variance = measured ?? 1 / (trades.length - 1)
  const { benchmark } = deflatedSharpe(track, count, variance)
  const perYear = tradesPerYear(trades)
  const annual = (ratio: number): number | null => (perYear === null ? null : ratio * Math.sqrt(perYear))
  const record = minimumTrackRecord(track)
  const others = trials.flatMap((trial) =>
    trial === best || trial.sample.sharpePerTrade === null
      ? []
      : pValueOf(trial.sample.sharpePerTrade, trial.trades.length),
  )
  const p = pValueOf(sharpe, trades.length)
  const cut = haircuts(sharpe, trades.length, count, others.length > 0 ? others : undefined, p)
  const shown = ({ p, sharpe: left, haircut }: Haircut) => ({ p, sharpe: annual(left), haircut })
  const length = perYear === null ? null : minimumBacktest(sharpe * Math.sqrt(perYear), count)
  return {
    psr: smallSampleSharpe(track),
    dsr: smallSampleSharpe(track, benchmark),
    sr0: annual(benchmark),
    sr0_per_trade: benchmark,
    sr_variance: variance,
    sr_variance_source: measured === null ? ('null_hypothesis' as const) : ('trials' as const),
    n_trials: count,
    min_trl_trades: finite(record),
    min_trl_years: perYear === null ? null : finite(record / perYear),
    min_btl_years: length && finite(length.years),
    min_btl_bound_years: length && finite(length.bound),
    p_value: cut.p,
    haircut_sharpe: annual(cut.bonferroni.sharpe),
    haircuts: {
      bonferroni: shown(cut.bonferroni),
      sidak: shown(cut.sidak),
      holm: cut.holm && shown(cut.holm),
      bhy: cut.bhy && shown(cut.bhy),
    },
    ...pbo,
  }
}

/** Two-sided p value of a Sharpe ratio per trade, by Student's t for a small sample. */
const pValueOf = (sharpe: number, trades: number): number =>
  trades < LARGE_SAMPLE
    ? 2 * studentTail(Math.abs(sharpe) * Math.sqrt(trades), trades - 1)
    : sharpePValue(sharpe, trades)

const finite = (value: number): number | null => (Number.isFinite(value) ? value : null)

const NO_STATISTICS = {
  psr: null,
  dsr: null,
  sr0: null,
  sr0_per_trade: null,
  sr_variance: null,
  sr_variance_source: null,
  min_trl_trades: null,
  min_trl_years: null,
  min_btl_years: null,
  min_btl_bound_years: null,
  p_value: null,
  haircut_sharpe: null,
  haircuts: null,
} as const

/** Variance (n-1) of the Sharpe ratios of the trials, per trade; null for fewer than two ratios. */
function sharpeVarianceOf(trials: readonly Trial[]): number | null {
  return varianceOf(trials.flatMap(({ sample }) => sample.sharpePerTrade ?? []))
}

/**
 * Variance (n-1) of the Sharpe ratios of the trials, per day; null for fewer than two ratios. The part of it that the judged
 * trial alone adds is not luck: without that trial it may be smaller, but not smaller than that of worthless trials.
 */
export function dailySharpeVariance({ days, units }: PortfolioDays, judged: number): number | null {
  if (units.size < 2) return null
  const ratios = [...units].map(([index, series]) => ({ index, ratio: sampleOf(series).sharpePerTrade }))
  const of = (chosen: typeof ratios): number | null => varianceOf(chosen.flatMap(({ ratio }) => ratio ?? []))
  const all = of(ratios)
  const others = of(ratios.filter(({ index }) => index !== judged)) ?? 0
  return all === null ? null : Math.min(all, Math.max(others, 1 / (days.length - 1)))
}

function varianceOf(ratios: readonly number[]): number | null {
  if (ratios.length < 2) return null
  const mean = ratios.reduce((sum, one) => sum + one, 0) / ratios.length
  return ratios.reduce((sum, one) => sum + (one - mean) ** 2, 0) / (ratios.length - 1)
}

const MIN_TRIALS = 4
const MIN_PERIODS = 60
/** With sixteen blocks, each must have at least ten periods. */
const MIN_PERIODS_FOR_16_BLOCKS = 160
/** Trials times periods. Above this number, eight blocks keep the work small. */
const MAX_CELLS = 5_000_000

type Overfit =
  | {
      readonly pbo: number
      readonly blocks: number
      readonly periods: number
      readonly slope: number
      readonly loss: number
    }
  | { readonly pbo: null; readonly why: string }

/**
 * The probability of backtest overfitting. The periods are the days on which any trial closed a trade. The return of a
 * trial in a period is the sum of its trades on that day, or 0.
 */
function backtestOverfitting(trials: readonly Trial[]): Overfit {
  if (trials.length < MIN_TRIALS) return { pbo: null, why: `needs a trial column with at least ${MIN_TRIALS} trials` }
  const days = new Map<number, number>()
  const exits = trials.map(({ trades }) => trades.map(({ exitTime }) => Math.floor(exitTime / DAY)))
  for (const day of new Set(exits.flat().sort((one, other) => one - other))) days.set(day, days.size)
  if (days.size < MIN_PERIODS)
    return { pbo: null, why: `needs at least ${MIN_PERIODS} days with exits, has ${days.size}` }
  const series = trials.map(({ returns }, trial) => {
    const sums = new Float64Array(days.size)
    for (const [index, day] of (exits[trial] ?? []).entries()) sums[days.get(day) ?? 0]! += returns.net[index]!
    return sums
  })
  const hasSixteen = days.size >= MIN_PERIODS_FOR_16_BLOCKS && trials.length * days.size <= MAX_CELLS
  const found = probabilityOfOverfitting(series, hasSixteen ? 16 : 8)
  if (!found) return { pbo: null, why: 'too few days per block' }
  const { pbo, blocks, slope, lossProbability } = found
  return { pbo, blocks, periods: days.size, slope, loss: lossProbability }
}

/** Trials times draws times blocks of a draw. Above this number there are fewer draws, and below 200 draws no test. */
const MAX_STEPS = 5e7
const DRAWS = { least: 200, most: 1000 }

/** Hansen's test and White's reality check on the daily returns of the trials. */
function superiorAbilityOf(trials: readonly Trial[], portfolio: PortfolioDays | null) {
  const none = { spa_p_value: null, spa_lower_p_value: null, spa_upper_p_value: null, reality_check_p_value: null }
  if (trials.length < 2) return { ...none, spa_not_checked: 'needs several trials' }
  const units = portfolio?.units
  const series = [...(units?.values() ?? [])]
  const affordable = MAX_STEPS / (series.length * (1 + (series[0]?.length ?? 0) ** (2 / 3)))
  if (units?.size !== trials.length || affordable < DRAWS.least)
    return { ...none, spa_not_checked: 'too many trials or days' }
  const found = superiorAbility(series, { draws: Math.min(DRAWS.most, Math.floor(affordable)) })
  if (!found) return { ...none, spa_not_checked: 'there are too few days, or the returns do not vary' }
  return {
    spa_p_value: found.consistent,
    spa_lower_p_value: found.lower,
    spa_upper_p_value: found.upper,
    reality_check_p_value: found.realityCheck,
    spa_not_checked: null,
  }
}
