import type { Fill, Trade } from '../trade-ledger.ts'
import { type LedgerBuilder, addFills, type RowReader } from './ledger-rows.ts'
import { SMALLEST } from '../../lib/tables/cell-values.ts'

/** The entry or the exit of a trade. */
interface Half extends Omit<Fill, 'leg'> {
  readonly pnl: number
}

interface Pair {
  entry?: Half
  exit?: Half
  /** One of its rows was excluded. */
  isExcluded: boolean
}

/** Reads TradingView's list of trades: two rows per trade number, "Entry long" and "Exit long", in either order. */
export function readTradingView(builder: LedgerBuilder): RowReader {
  const { text, number, needPrice, needTime, exclude, name, counts, trades } = builder
  const pairs = new Map<string, Pair>()

  function half(cells: readonly string[], row: number, isExit: boolean): Half | null {
    const before = counts.excluded
    const symbol = builder.symbol(cells, row)
    const price = needPrice(cells, row, 'price')
    const time = needTime(cells, row, 'time')
    const qty = number(cells, row, 'qty')
    if (qty < SMALLEST) exclude(row, { code: 'nonpositive_qty', field: name('qty') })
    const isShort = /short/i.test(text(cells, 'type'))
    if (counts.excluded > before || symbol === null || time === null) return null
    const sign = isShort === isExit ? 1 : -1
    const [fee, pnl] = [number(cells, row, 'fees'), number(cells, row, 'pnl')]
    return { row, symbol, sign, time, price, qty, fee, pnl, trial: builder.trial(cells, row) }
  }

  return {
    row(cells, row) {
      if (builder.isRepeated(cells, row)) return
      const number = text(cells, 'number')
      const type = text(cells, 'type')
      const isExit = /exit|close/i.test(type)
      if (number === '' || (!isExit && !/entry|open/i.test(type))) {
        exclude(row, { code: 'missing_value', field: name(number === '' ? 'number' : 'type') })
        return
      }
      const pair: Pair = pairs.get(number) ?? { isExcluded: false }
      pairs.set(number, pair)
      if (isExit && [text(cells, 'signal'), text(cells, 'time')].some((cell) => /^open$/i.test(cell))) return
      const side = isExit ? 'exit' : 'entry'
      if (pair[side]) return exclude(row, { code: 'duplicate_trade', field: name('number') })
      const read = half(cells, row, isExit)
      if (read) pair[side] = read
      else pair.isExcluded = true
    },
    end() {
      for (const { entry, exit, isExcluded } of pairs.values()) {
        if (isExcluded) continue
        if (!entry || !exit) {
          counts.open += 1
          if (entry) addOpen(builder, entry)
        } else if (exit.time < entry.time) exclude(exit.row, { code: 'exit_before_entry' })
        else trades.push(tradeOf(entry, exit))
      }
      for (const trade of trades) addFills(builder, trade)
    },
  }
}

function addOpen({ openPositions, fills }: LedgerBuilder, { row, symbol, sign, time, price, qty, trial }: Half): void {
  openPositions.push({ row, symbol, trial, sign, qty, entryTime: time, entryPrice: price, fees: Number.NaN })
  fills.push({ row, leg: 'entry', symbol, trial, sign, time, price, qty, fee: Number.NaN })
}

function tradeOf(entry: Half, exit: Half): Trade {
  const { row, symbol, sign, qty, trial } = entry
  return {
    row,
    exitRow: exit.row,
    symbol,
    sign,
    qty,
    entryTime: entry.time,
    entryPrice: entry.price,
    exitTime: exit.time,
    exitPrice: exit.price,
    fees: feesOf(entry.fee, exit.fee),
    pnl: exit.pnl,
    trial,
  }
}

/** The commission of a trade. Both rows carry the same one if it is that of the trade, and their own if they differ. */
function feesOf(entry: number, exit: number): number {
  if (Number.isNaN(entry) || entry === exit) return exit
  return Number.isNaN(exit) ? entry : entry + exit
}
