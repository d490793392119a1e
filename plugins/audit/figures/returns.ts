import type { Trade } from '../ledger.ts'
import { costPerSide, type Preset } from '../presets.ts'

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
