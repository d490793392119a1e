import { probabilityOfOverfitting } from '../../lib/quant/pbo.ts'
import { DAY, type Ledger, type Trade } from '../ledger.ts'
import type { Preset } from '../presets.ts'
import { sampleOf, type Sample } from './performance.ts'
import { byExit, type Returns, returnsOf } from './returns.ts'

export interface Trial {
  readonly name: string
  /** Ordered by exit. */
  readonly trades: readonly Trade[]
  readonly returns: Returns
  readonly sample: Sample
}

/** The trials of a ledger; one, of all its trades, where there is no trial column. */
export function trialsOf(ledger: Ledger, preset: Preset, extraBps: number): Trial[] {
  const groups = ledger.trials.map((): Trade[] => [])
  for (const trade of byExit(ledger.trades)) groups[trade.trial]?.push(trade)
  return groups.flatMap((trades, index) => {
    if (trades.length === 0) return []
    const returns = returnsOf(trades, preset, extraBps)
    return [{ name: ledger.trials[index] ?? '', trades, returns, sample: sampleOf(returns.net) }]
  })
}

/** The trial a researcher would show: the one of the highest Sharpe ratio. */
export function bestOf(trials: readonly Trial[]): Trial {
  const rank = ({ sample }: Trial): number => sample.sharpePerTrade ?? -Infinity
  return trials.reduce((best, trial) => (rank(trial) > rank(best) ? trial : best))
}

/** Variance (n-1) of the trials' Sharpe ratios per trade; null with fewer than two that have one. */
export function sharpeVarianceOf(trials: readonly Trial[]): number | null {
  const ratios = trials.flatMap(({ sample }) => sample.sharpePerTrade ?? [])
  if (ratios.length < 2) return null
  const mean = ratios.reduce((sum, one) => sum + one, 0) / ratios.length
  return ratios.reduce((sum, one) => sum + (one - mean) ** 2, 0) / (ratios.length - 1)
}

const MIN_TRIALS = 4
const MIN_PERIODS = 60
/** Sixteen blocks need ten periods each, and bounded work. */
const LONG = 160
const MAX_CELLS = 5_000_000

export type Overfit =
  | {
      readonly pbo: number
      readonly blocks: number
      readonly periods: number
      readonly slope: number
      readonly loss: number
    }
  | { readonly pbo: null; readonly why: string }

/**
 * Probability of backtest overfitting over the days on which any trial closed a trade: a trial's period return is the
 * sum of its trades that day, 0 where it has none.
 */
export function overfitOf(trials: readonly Trial[]): Overfit {
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
  const isLong = days.size >= LONG && trials.length * days.size <= MAX_CELLS
  const found = probabilityOfOverfitting(series, isLong ? 16 : 8)
  if (!found) return { pbo: null, why: 'too few days a block' }
  const { pbo, blocks, slope, lossProbability } = found
  return { pbo, blocks, periods: days.size, slope, loss: lossProbability }
}
