import {
  addFills,
  type LedgerBuilder,
  isSigned,
  readSide,
  type RowReader,
  settleFees,
  settleSigns,
} from './ledger-rows.ts'
import { isUnset, SMALLEST } from './cell-values.ts'

/** Reads rows that are round trips: each row is one trade. */
export function readRoundTrips(builder: LedgerBuilder): RowReader {
  const { has, text, number, needNumber, needPrice, needTime, exclude, name, counts, trades } = builder

  const isOpen = (cells: readonly string[]): boolean =>
    /^open$/i.test(text(cells, 'status')) || (isUnset(text(cells, 'exitTime')) && isUnset(text(cells, 'exitPrice')))

  function quantity(cells: readonly string[], row: number, entryPrice: number): number | null {
    if (!has('qty')) return has('stake') ? number(cells, row, 'stake') / entryPrice : Number.NaN
    const qty = needNumber(cells, row, 'qty')
    if (Number.isNaN(qty)) return null
    if (Math.abs(qty) >= SMALLEST) return qty
    exclude(row, { code: 'nonpositive_qty', field: name('qty') })
    return null
  }

  function row(cells: readonly string[], row: number): void {
    if (builder.isRepeated(cells, row)) return
    if (isOpen(cells)) {
      counts.open += 1
      return
    }
    const before = counts.excluded
    const symbol = builder.symbol(cells, row)
    const [entryPrice, exitPrice] = [needPrice(cells, row, 'entryPrice'), needPrice(cells, row, 'exitPrice')]
    const [entryTime, exitTime] = [needTime(cells, row, 'entryTime'), needTime(cells, row, 'exitTime')]
    const qty = quantity(cells, row, entryPrice)
    const sign = readSide(builder, cells, row, qty ?? 1)
    if (entryTime !== null && exitTime !== null && exitTime < entryTime) exclude(row, { code: 'exit_before_entry' })
    if (counts.excluded > before) return
    if (symbol === null || entryTime === null || exitTime === null || qty === null || sign === null) return
    trades.push({
      row,
      exitRow: row,
      symbol,
      sign,
      qty: isSigned(builder, cells) ? Math.abs(qty) : qty,
      entryTime,
      entryPrice,
      exitTime,
      exitPrice,
      fees: fees(builder, cells, row, Math.abs(qty), entryPrice, exitPrice),
      pnl: number(cells, row, 'pnl'),
      trial: builder.trial(cells, row),
    })
  }

  return {
    row,
    end() {
      settleSigns(builder, trades)
      settleFees(builder)
      for (const trade of trades) addFills(builder, trade)
    },
  }
}

/** Money paid for both sides, from one column, from one per side, or from rates per side less funding received (freqtrade). */
function fees(
  { has, number }: LedgerBuilder,
  cells: readonly string[],
  row: number,
  qty: number,
  entryPrice: number,
  exitPrice: number,
): number {
  if (has('entryRate')) {
    const paid = qty * (number(cells, row, 'entryRate') * entryPrice + number(cells, row, 'exitRate') * exitPrice)
    return paid - (number(cells, row, 'funding') || 0)
  }
  if (has('entryFees')) return number(cells, row, 'entryFees') + number(cells, row, 'exitFees')
  return number(cells, row, 'fees')
}
