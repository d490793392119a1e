import { type LedgerBuilder, isSigned, readSide, settleSigns, type RowReader } from './ledger-rows.ts'
import { coinOf } from '../currency-pairs.ts'
import { feeCurrencyReader, settleFeeCurrencies, type UnsettledExecution } from './fee-currency.ts'
import { inBooks, type MarkedExecution, opensOf } from './open-close.ts'
import { valueAtTheEnd } from './open-positions.ts'
import { positionHistory } from './positions.ts'
import { SMALLEST } from '../../lib/tables/cell-values.ts'

/** The states of filled orders, in the words and numbers of LEAN and of brokers. Other orders were not filled. */
const FILLED = /^(?:filled|partially ?filled|closed|completed?|executed|done|[23])$/i
/** "Open Long", "close_short": the position of an account that holds a long and a short one at once. */
const BOOK_SIDE = /^(open|close)[\s_-]*(long|short)$/i

/** Reads rows that are executions and joins them into round trips of positions, per symbol and trial. */
export function readFills(builder: LedgerBuilder): RowReader {
  const { has, number, needNumber, needPrice, needTime, exclude, name, counts, text, header } = builder
  const executions: (UnsettledExecution & MarkedExecution)[] = []
  /** Swap and other money received for holding the position, negative if it was paid, by row. */
  const received = new Map<number, number>()
  // Two executions can be identical. Only a file that numbers them can be said to repeat one.
  const isNumbered = header.names.some((column) => /(?:^|[\s_])id$|Id$|ID$|^Trade #$/.test(column))
  const feeCurrency = feeCurrencyReader(builder)

  /** The coin of a symbol if its name begins with a digit, so that "3331.91INCH" is 3331.9; '' otherwise. */
  function numberedCoin(symbol: number | null): string {
    const name = builder.symbolNames[symbol ?? -1] ?? ''
    return /^\d/.test(name) ? (coinOf(name) ?? '') : ''
  }

  function row(written: readonly string[], row: number): void {
    let cells = written
    if (has('status') && !FILLED.test(text(cells, 'status'))) {
      counts.unfilled += 1
      return
    }
    if (isNumbered && builder.isRepeated(cells, row)) return
    const before = counts.excluded
    const symbol = builder.symbol(cells, row)
    const coin = numberedCoin(symbol)
    if (coin !== '') cells = cells.map((cell) => (cell.endsWith(coin) ? cell.slice(0, -coin.length) : cell))
    const price = needPrice(cells, row, 'price')
    const time = needTime(cells, row, 'time')
    const qty = needNumber(cells, row, 'qty')
    if (Math.abs(qty) < SMALLEST) exclude(row, { code: 'nonpositive_qty', field: name('qty') })
    const bookSide = BOOK_SIDE.exec(text(cells, 'side'))
    const sign = bookSide ? signOf(bookSide) : readSide(builder, cells, row, qty)
    if (counts.excluded > before || symbol === null || time === null || sign === null) return
    builder.noteBalance(cells, row, time)
    executions.push({
      row,
      symbol,
      sign,
      time,
      price,
      qty: isSigned(builder) ? Math.abs(qty) : qty,
      fee: number(cells, row, 'fees'),
      feeCurrency: coin !== '' && text(written, 'fees').endsWith(coin) ? coin : feeCurrency(written),
      kind: 0,
      pnl: number(cells, row, 'pnl'),
      book: bookSide ? bookOf(bookSide[2] ?? '') : bookOf(text(cells, 'positionSide')),
      opens: opensOf(text(cells, 'openClose')),
      trial: builder.trial(cells, row),
    })
    if (has('funding')) received.set(row, number(cells, row, 'funding') || 0)
  }

  return {
    row,
    end() {
      settleSigns(builder, executions)
      const ordered = inOrder(executions)
      addPositions(builder, has('openClose') ? inBooks(ordered) : ordered, received)
    },
  }
}

function signOf([, what = '', side = '']: RegExpExecArray): 1 | -1 {
  return /open/i.test(what) === /long/i.test(side) ? 1 : -1
}

const bookOf = (text: string): 0 | 1 | -1 => (/^long$/i.test(text) ? 1 : /^short$/i.test(text) ? -1 : 0)

/** Sorts by time. Executions at the same time keep the order of the file, which may run from newest to oldest. */
function inOrder<Item extends UnsettledExecution>(executions: readonly Item[]): Item[] {
  let rising = 0
  for (let i = 1; i < executions.length; i += 1) rising += Math.sign(executions[i]!.time - executions[i - 1]!.time)
  return (rising < 0 ? executions.toReversed() : [...executions]).sort((one, other) => one.time - other.time)
}

/** Settles the fees of executions, which are in the order of time, and adds their positions to the ledger. */
function addPositions(
  builder: LedgerBuilder,
  executions: readonly UnsettledExecution[],
  received: ReadonlyMap<number, number>,
): void {
  if (builder.feeSigns.paid() < 0) for (const execution of executions) execution.fee *= -1
  const feeWarnings = settleFeeCurrencies(builder, executions)
  for (const execution of executions) {
    const money = received.get(execution.row)
    if (money) execution.fee = (execution.fee || 0) - money
  }
  const { trades, fills, open, remainders, partlyClosed, unopened } = positionHistory(executions)
  for (const trade of trades) builder.trades.push(trade)
  for (const fill of fills) builder.fills.push(fill)
  // Without a column of sides, all fills may be purchases because the sales are not recognised.
  const isNeverClosed = trades.length === 0 && !isSigned(builder)
  for (const position of isNeverClosed ? valueAtTheEnd(builder, open) : open) builder.openPositions.push(position)
  if (isNeverClosed && builder.trades.length > 0)
    builder.warnings.push('open_positions_valued_at_the_last_prices_of_the_file')
  for (const remainder of remainders) builder.remainders.push(remainder)
  builder.counts.open += open.length
  builder.warnings.push(...feeWarnings)
  if (remainders.length > 0) builder.warnings.push(`remainders_of_${remainders.length}_positions_not_counted_as_trades`)
  if (partlyClosed > 0) builder.warnings.push(`closed_parts_of_${partlyClosed}_open_positions_counted_as_trades`)
  if (unopened > 0) builder.warnings.push(`${unopened}_fills_close_positions_that_the_file_does_not_open`)
}
