import { roundTo } from '../../lib/quant/rounding.ts'
import { costPerSide, type Preset } from '../cost-presets.ts'
import type { Instrument, Trade } from '../trade-ledger.ts'

export interface Returns {
  /** Direction times (exit / entry - 1), a fraction, ordered by exit. */
  readonly gross: Float64Array
  /** After costs. */
  readonly net: Float64Array
  /** Number of trades whose reported fees replace the commission of the preset. */
  readonly reported: number
}

/**
 * Returns of trades before and after costs: net = gross - 2·(cost per side + extra)/1e4. Fees that the file reports
 * replace the commission of the preset by fees/(qty·entry price·contract size). If all fees are zero, they count as not
 * reported.
 *
 * @example a long trade from 100 to 101 with large_cap (3 bps per side): gross 0.01, net 0.0094
 */
export function returnsOf(
  trades: readonly Trade[],
  instruments: readonly Instrument[],
  preset: Preset,
  extraBps: number,
): Returns {
  const hasFees = trades.some(({ fees }) => Number.isFinite(fees) && fees !== 0)
  const gross = new Float64Array(trades.length)
  const net = new Float64Array(trades.length)
  let reported = 0
  for (const [index, trade] of trades.entries()) {
    const { sign, entryPrice, exitPrice, fees } = trade
    const before = sign * (exitPrice / entryPrice - 1)
    gross[index] = before
    const paid = hasFees ? fees / entryValue(trade, instruments) : Number.NaN
    const isReported = Number.isFinite(paid)
    if (isReported) reported += 1
    const perSide = costPerSide(preset) + extraBps - (isReported ? preset.commission : 0)
    net[index] = before - 2 * perSide * 1e-4 - (isReported ? paid : 0)
  }
  return { gross, net, reported }
}

/** Money for a move of 1 in the price of one unit, at a price. */
export function pointValue({ contractSize, profits }: Instrument, price: number): number {
  return profits?.isInverse ? profits.size / price : contractSize
}

/** What a trade is worth at its entry, in money; NaN if the file has no quantity. */
export function entryValue(
  { symbol, qty, entryPrice }: Pick<Trade, 'symbol' | 'qty' | 'entryPrice'>,
  instruments: readonly Instrument[],
): number {
  return qty * entryPrice * pointValue(instruments[symbol]!, entryPrice)
}

/** Sorts trades by exit time, then by row. */
export function byExit(trades: readonly Trade[]): Trade[] {
  return trades.toSorted((one, other) => one.exitTime - other.exitTime || one.row - other.row)
}

/** The equity curve as columns of equal length, oldest first. */
interface Equity {
  /** Exit time of the last trade of each step. */
  readonly at: readonly string[]
  /** Running sum of returns before and after costs, with one unit per trade. */
  readonly gross: readonly number[]
  readonly net: readonly number[]
  /** Deepest fall of the net sum from its peak within each step; 0 or negative. */
  readonly drawdown: readonly number[]
}

const STEPS = 240

/**
 * The equity curve in at most 240 steps. Each step holds the deepest drawdown within it, so a chart shows the full depth.
 * `gross` and `net` hold the returns of `trades`, which are ordered by exit.
 *
 * @example net 0.1, -0.3, 0.1 in one step each: net 0.1, -0.2, -0.1 and drawdown 0, -0.3, -0.2
 */
export function equityOf(trades: readonly Trade[], gross: Float64Array, net: Float64Array): Equity {
  const steps = Math.min(STEPS, trades.length)
  const at: string[] = []
  const columns: { gross: number[]; net: number[]; drawdown: number[] } = { gross: [], net: [], drawdown: [] }
  let [grossSum, netSum, peak, deepest] = [0, 0, 0, 0]
  for (const [index, { exitTime }] of trades.entries()) {
    grossSum += gross[index]!
    netSum += net[index]!
    peak = Math.max(peak, netSum)
    deepest = Math.min(deepest, netSum - peak)
    const step = Math.floor(((index + 1) * steps) / trades.length)
    if (step === at.length) continue
    at.push(new Date(exitTime).toISOString())
    columns.gross.push(micro(grossSum))
    columns.net.push(micro(netSum))
    columns.drawdown.push(micro(deepest))
    deepest = 0
  }
  return { at, ...columns }
}

/** Rounds to a millionth, a hundredth of a basis point. */
const micro = (value: number): number => roundTo(value, 6)
