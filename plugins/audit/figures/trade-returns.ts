import { costPerSide, type Preset } from '../cost-presets.ts'
import type { Trade } from '../trade-ledger.ts'

export interface Returns {
  /** Direction times (exit / entry - 1), a fraction, ordered by exit. */
  readonly gross: Float64Array
  /** After costs. */
  readonly net: Float64Array
  /** Trades whose reported fees took the place of the preset's commission. */
  readonly reported: number
}

const BPS = 1e-4

/**
 * Returns of trades, gross and net of costs: r - 2·(cost per side + extra)/1e4, where fees the file reports replace the
 * preset's commission by fees/(qty·entry price). Fees that are zero on every trade count as not reported.
 *
 * @example a long from 100 to 101 at large_cap (3 bps a side): gross 0.01, net 0.0094
 */
export function returnsOf(trades: readonly Trade[], preset: Preset, extraBps: number): Returns {
  const hasFees = trades.some(({ fees }) => fees > 0)
  const gross = new Float64Array(trades.length)
  const net = new Float64Array(trades.length)
  let reported = 0
  for (const [index, { sign, qty, entryPrice, exitPrice, fees }] of trades.entries()) {
    const made = sign * (exitPrice / entryPrice - 1)
    gross[index] = made
    const paid = hasFees ? fees / (qty * entryPrice) : Number.NaN
    const isReported = Number.isFinite(paid)
    if (isReported) reported += 1
    const perSide = costPerSide(preset) + extraBps - (isReported ? preset.commission : 0)
    net[index] = made - 2 * perSide * BPS - (isReported ? paid : 0)
  }
  return { gross, net, reported }
}

/** Ordered by exit, then by row: the order in which results arrive. */
export function byExit(trades: readonly Trade[]): Trade[] {
  return trades.toSorted((one, other) => one.exitTime - other.exitTime || one.row - other.row)
}

/** Columns of equal length, oldest first. */
interface Equity {
  /** Exit of the last trade of each step. */
  readonly at: readonly string[]
  /** Sum of returns so far, one unit a trade, before and after costs. */
  readonly gross: readonly number[]
  readonly net: readonly number[]
  /** Deepest fall of the net sum from its peak within the step; 0 or negative. */
  readonly drawdown: readonly number[]
}

const STEPS = 240

/**
 * The running sums of the returns in at most 240 steps, so that a picture of them loses no depth: each step carries the
 * deepest drawdown within it. `trades` are ordered by exit and belong to `gross` and `net` one by one.
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

/** To a millionth: a hundredth of a basis point. */
const micro = (value: number): number => Math.round(value * 1e6) / 1e6
