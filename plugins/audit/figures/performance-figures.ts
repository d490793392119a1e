import { autocorrelation, moments } from '../../lib/quant/descriptive-statistics.ts'
import { centralInterval, stationaryBootstrap } from '../../lib/quant/bootstrap.ts'
import { sharpeError, sharpeScale } from '../../lib/quant/sharpe-ratio.ts'
import { DAY, type Trade, YEAR } from '../trade-ledger.ts'

/** Maximum number of autocorrelation lags. Lags beyond a quarter of the sample are noise and not used either. */
const MAX_LAGS = 250
const BPS = 1e4

export interface Sample {
  readonly trades: number
  /** Mean divided by sample deviation (n-1), per trade; null if the returns do not vary or there is only one. */
  readonly sharpePerTrade: number | null
  readonly skewness: number
  readonly kurtosis: number
  readonly mean: number
  /** Sample deviation (n-1). */
  readonly deviation: number
}

/**
 * The sample statistics of returns: mean, Sharpe ratio with the sample deviation (n-1), population skewness and kurtosis.
 *
 * @example sampleOf([0.01, 0.02, 0.03]).sharpePerTrade // 2
 */
export function sampleOf(returns: ArrayLike<number>): Sample {
  const { count, mean, variance, skewness, kurtosis } = moments(returns)
  const deviation = Math.sqrt((variance * count) / (count - 1))
  const varies = count > 1 && deviation > 1e-12 * Math.max(Math.abs(mean), 1e-6)
  return { trades: count, mean, deviation, skewness, kurtosis, sharpePerTrade: varies ? mean / deviation : null }
}

/** Trades per year between the first entry and the last exit; null if they are less than a day apart. */
export function tradesPerYear(trades: readonly Trade[]): number | null {
  const { first, last } = spanOf(trades)
  return last - first >= DAY ? trades.length / ((last - first) / YEAR) : null
}

/** The first entry and the last exit of trades, epoch milliseconds. */
export function spanOf(trades: readonly Trade[]): { readonly first: number; readonly last: number } {
  let [first, last] = [Infinity, -Infinity]
  for (const { entryTime, exitTime } of trades) {
    first = Math.min(first, entryTime)
    last = Math.max(last, exitTime)
  }
  return { first, last }
}

/** The performance part of a report. `gross` and `net` hold the returns of `trades`, which are ordered by exit. */
export function performanceOf(trades: readonly Trade[], gross: Float64Array, net: Float64Array) {
  const sample = sampleOf(net)
  const count = trades.length
  const { sharpePerTrade } = sample
  const perYear = tradesPerYear(trades)
  const annual = perYear === null || sharpePerTrade === null ? null : sharpePerTrade * Math.sqrt(perYear)
  const draws = count > 1 ? stationaryBootstrap(net) : null
  const toSample = Math.sqrt((count - 1) / count)
  const sharpeDraws = draws && perYear !== null ? draws.sharpe.map((one) => one * toSample * Math.sqrt(perYear)) : null
  const grossSample = sampleOf(gross)
  const won = winnings(net)
  return {
    trades: count,
    gross_expectancy_bps: grossSample.mean * BPS,
    net_expectancy_bps: sample.mean * BPS,
    expectancy_ci95_bps: draws ? centralInterval(draws.mean).map((mean) => mean * BPS) : null,
    breakeven_cost_per_side_bps: (grossSample.mean * BPS) / 2,
    win_rate: won.rate,
    payoff: won.payoff,
    profit_factor: won.factor,
    t_stat: sharpePerTrade === null ? null : sharpePerTrade * Math.sqrt(count),
    sharpe: annual,
    sharpe_per_trade: sharpePerTrade,
    sharpe_gross:
      perYear === null || grossSample.sharpePerTrade === null ? null : grossSample.sharpePerTrade * Math.sqrt(perYear),
    sharpe_gross_per_trade: grossSample.sharpePerTrade,
    sharpe_se:
      perYear === null || sharpePerTrade === null ? null : sharpeError(sharpePerTrade, count) * Math.sqrt(perYear),
    sharpe_lo: sharpePerTrade === null || perYear === null ? null : loSharpe(net, sharpePerTrade, perYear),
    sharpe_ci95: sharpeDraws ? centralInterval(sharpeDraws) : null,
    skewness: sample.skewness,
    kurtosis: sample.kurtosis,
    max_drawdown: drawdown(net),
    trades_per_year: perYear,
    turnover_per_year: perYear === null ? null : 2 * perYear,
    exposure: exposure(trades),
    average_holding_days: trades.reduce((sum, { entryTime, exitTime }) => sum + exitTime - entryTime, 0) / count / DAY,
  }
}

function winnings(net: Float64Array) {
  let [wins, gains, losses] = [0, 0, 0]
  let lost = 0
  for (const value of net) {
    if (value > 0) {
      wins += 1
      gains += value
    } else if (value < 0) {
      lost += 1
      losses -= value
    }
  }
  return {
    rate: wins / net.length,
    /** Mean win divided by mean loss. */
    payoff: wins > 0 && lost > 0 ? gains / wins / (losses / lost) : null,
    factor: losses > 0 ? gains / losses : null,
  }
}

/** Annual Sharpe ratio adjusted for autocorrelation (Lo 2002); null if the correlations imply no variance. */
function loSharpe(net: Float64Array, sharpe: number, perYear: number): number | null {
  const lags = Math.max(0, Math.min(Math.ceil(perYear) - 1, Math.floor(net.length / 4), MAX_LAGS))
  const scale = sharpeScale(perYear, autocorrelation(net, lags))
  return Number.isFinite(scale) ? sharpe * scale : null
}

/** Deepest fall of the running sum of returns from its peak, with one unit per trade; 0 or negative. */
function drawdown(net: Float64Array): number {
  let [sum, peak, deepest] = [0, 0, 0]
  for (const value of net) {
    sum += value
    peak = Math.max(peak, sum)
    deepest = Math.min(deepest, sum - peak)
  }
  return deepest
}

/** Share of the time from first entry to last exit in which at least one trade is open; null if that time is 0. */
function exposure(trades: readonly Trade[]): number | null {
  const byEntry = trades.toSorted((one, other) => one.entryTime - other.entryTime)
  let [covered, until] = [0, -Infinity]
  for (const { entryTime, exitTime } of byEntry) {
    covered += Math.max(0, exitTime - Math.max(entryTime, until))
    until = Math.max(until, exitTime)
  }
  const { first, last } = spanOf(trades)
  return last > first ? covered / (last - first) : null
}
