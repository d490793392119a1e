import type { Fill, OpenPosition, UnmarkedPosition } from '../trade-ledger.ts'
import type { LedgerBuilder } from './ledger-rows.ts'

/** Open positions at the last price of their symbol in the file. */
export function markOpenPositions({ openPositions, fills }: LedgerBuilder): OpenPosition[] {
  if (openPositions.length === 0) return []
  const last = lastFills(fills)
  return openPositions.map((position) => {
    const { time, price } = last.get(position.symbol) ?? { time: position.entryTime, price: position.entryPrice }
    return time < position.entryTime
      ? { ...position, lastPrice: position.entryPrice, lastTime: position.entryTime }
      : { ...position, lastPrice: price, lastTime: time }
  })
}

/**
 * Values positions that the file never closes, as those of a savings plan, at the last price of their symbol: each counts as
 * one trade until then. Returns those of which the file has no later price.
 */
export function valueAtTheEnd(builder: LedgerBuilder, open: readonly UnmarkedPosition[]): UnmarkedPosition[] {
  const last = lastFills(builder.fills)
  return open.filter((position) => {
    const fill = last.get(position.symbol)
    if (!fill || fill.time <= position.entryTime) return true
    builder.trades.push({
      ...position,
      exitRow: fill.row,
      exitTime: fill.time,
      exitPrice: fill.price,
      pnl: Number.NaN,
    })
    return false
  })
}

function lastFills(fills: readonly Fill[]): Map<number, Fill> {
  const last = new Map<number, Fill>()
  for (const fill of fills) if (!(fill.time < (last.get(fill.symbol)?.time ?? -Infinity))) last.set(fill.symbol, fill)
  return last
}
