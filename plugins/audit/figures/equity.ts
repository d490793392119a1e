import type { Trade } from '../ledger.ts'

/** Columns of equal length, oldest first. */
export interface Equity {
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
