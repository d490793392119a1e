import { deflatedSharpe } from '../../lib/quant/dsr.ts'
import { type Haircut, haircuts, sharpePValue } from '../../lib/quant/haircut.ts'
import { probabilisticSharpe } from '../../lib/quant/psr.ts'
import { minimumBacktest, minimumTrackRecord } from '../../lib/quant/record.ts'
import { tradesPerYear } from './performance.ts'
import { overfitOf, sharpeVarianceOf, type Trial } from './trials.ts'

/**
 * How much of the result luck explains: PSR against zero, DSR against the best of the trials by luck, the shortest
 * record and backtest that would convince, haircuts, and PBO where the ledger holds the trials. Formulas work on Sharpe
 * ratios per trade; `sr0` and the haircut Sharpe ratios are annualised like `sharpe`.
 */
export function overfittingOf(best: Trial, trials: readonly Trial[], stated: number) {
  const { sample, trades } = best
  const count = Math.max(stated, trials.length)
  const { sharpePerTrade: sharpe, skewness, kurtosis } = sample
  const overfit = overfitOf(trials)
  const pbo = {
    pbo: overfit.pbo,
    pbo_not_checked: overfit.pbo === null ? overfit.why : null,
    pbo_blocks: overfit.pbo === null ? null : overfit.blocks,
    pbo_periods: overfit.pbo === null ? null : overfit.periods,
    degradation_slope: overfit.pbo === null ? null : overfit.slope,
    loss_probability: overfit.pbo === null ? null : overfit.loss,
  }
  if (sharpe === null) return { ...NOTHING, n_trials: count, ...pbo }
  const of = { sharpe, observations: trades.length, skewness, kurtosis }
  const measured = sharpeVarianceOf(trials)
  const variance = measured ?? 1 / (trades.length - 1)
  const { dsr, benchmark } = deflatedSharpe(of, count, variance)
  const perYear = tradesPerYear(trades)
  const annual = (ratio: number): number | null => (perYear === null ? null : ratio * Math.sqrt(perYear))
  const record = minimumTrackRecord(of)
  const others = trials.flatMap((trial) =>
    trial === best || trial.sample.sharpePerTrade === null
      ? []
      : sharpePValue(trial.sample.sharpePerTrade, trial.trades.length),
  )
  const cut = haircuts(sharpe, trades.length, count, others.length > 0 ? others : undefined)
  const shown = ({ p, sharpe: left, haircut }: Haircut) => ({ p, sharpe: annual(left), haircut })
  const length = perYear === null ? null : minimumBacktest(sharpe * Math.sqrt(perYear), count)
  return {
    psr: probabilisticSharpe(of),
    dsr,
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

const finite = (value: number): number | null => (Number.isFinite(value) ? value : null)

const NOTHING = {
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
