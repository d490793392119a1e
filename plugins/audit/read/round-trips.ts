import {
  addFills,
  type LedgerBuilder,
  isSigned,
  readSide,
  type RowReader,
  settleFees,
  settleSigns,
} from './ledger-rows.ts'
import type { Field } from './ledger-header.ts'
import { feeCurrencyReader, settleTripFees } from './fee-currency.ts'
import { isUnset, SMALLEST } from '../../lib/tables/cell-values.ts'

/** Reads rows that are round trips: each row is one trade. */
export function readRoundTrips(builder: LedgerBuilder): RowReader {
  const { has, text, number, needPrice, needTime, exclude, counts, trades } = builder
  const isByOrder = hasPurchaseAndSale(builder)
  const funding = new Map<number, number>()
  const feeCurrency = feeCurrencyReader(builder)
  const feeCurrencies = new Map<number, string>()

  function row(cells: readonly string[], row: number): void {
    if (builder.isRepeated(cells, row)) return
    if (isOpen(builder, cells)) {
      counts.open += 1
      noteOpen(cells, row)
      return
    }
    const before = counts.excluded
    const symbol = builder.symbol(cells, row)
    const leg = isByOrder ? byOrder(cells, row) : AS_NAMED
    const [entryPrice, exitPrice] = [needPrice(cells, row, leg.entryPrice), needPrice(cells, row, leg.exitPrice)]
    const entryTime = needTime(cells, row, leg.entryTime)
    const exitTime = needTime(cells, row, leg.exitTime, entryTime)
    const qty = quantity(builder, cells, row, entryPrice)
    const sign = isByOrder ? leg.sign : readSide(builder, cells, row, qty ?? 1)
    if (entryTime !== null && exitTime !== null && exitTime < entryTime) exclude(row, { code: 'exit_before_entry' })
    if (counts.excluded > before) return
    if (symbol === null || entryTime === null || exitTime === null || qty === null || sign === null) return
    trades.push({
      row,
      exitRow: row,
      symbol,
      sign,
      qty: isByOrder || isSigned(builder) ? Math.abs(qty) : qty,
      entryTime,
      entryPrice,
      exitTime,
      exitPrice,
      fees: fees(builder, cells, row, { qty: Math.abs(qty), entryPrice, exitPrice }),
      pnl: number(cells, row, 'pnl'),
      trial: builder.trial(cells, row),
    })
    if (has('funding')) funding.set(row, number(cells, row, 'funding'))
    const currency = feeCurrency(cells)
    if (currency !== '') feeCurrencies.set(row, currency)
    builder.noteBalance(cells, row, exitTime)
  }

  /** Which columns are the entry of a trade that has a purchase and a sale: the earlier of the two. */
  function byOrder(cells: readonly string[], row: number): Legs {
    if (has('side')) return readSide(builder, cells, row, 1) === -1 ? SOLD_FIRST : BOUGHT_FIRST
    const [bought, sold] = (['buyTime', 'sellTime'] as const).map((field) => timeOf(builder, cells, row, field))
    return sold !== null && bought !== null && sold! < bought! ? SOLD_FIRST : BOUGHT_FIRST
  }

  /** Notes an open trade if its row states the entry. */
  function noteOpen(cells: readonly string[], row: number): void {
    if (isUnset(text(cells, 'entryTime')) || isUnset(text(cells, 'entryPrice'))) return
    const before = counts.excluded
    const symbol = builder.symbol(cells, row)
    const entryPrice = needPrice(cells, row, 'entryPrice')
    const entryTime = needTime(cells, row, 'entryTime')
    const qty = quantity(builder, cells, row, entryPrice)
    const sign = readSide(builder, cells, row, qty ?? 1)
    if (counts.excluded > before || symbol === null || entryTime === null || qty === null || sign === null) return
    const trial = builder.trial(cells, row)
    const paid = number(cells, row, has('entryFees') ? 'entryFees' : 'fees')
    builder.openPositions.push({
      row,
      symbol,
      trial,
      sign,
      qty: Math.abs(qty),
      entryTime,
      entryPrice,
      fees: Math.abs(paid),
    })
  }

  return {
    row,
    end() {
      settleSigns(builder, trades)
      settleFees(builder)
      if (funding.size > 0)
        for (const [index, trade] of trades.entries()) {
          const received = funding.get(trade.row)
          if (received) trades[index] = { ...trade, fees: (trade.fees || 0) - received }
        }
      settleTripFees(builder, feeCurrencies)
      for (const trade of trades) addFills(builder, trade)
      for (const { entryTime: time, entryPrice: price, fees: fee, ...position } of builder.openPositions)
        builder.fills.push({ ...position, leg: 'entry', time, price, fee })
    },
  }
}

/** Whether the rows have "Buy date" and "Sell date": entry and exit of a long trade, and the reverse of a short one. */
const hasPurchaseAndSale = ({ has }: LedgerBuilder): boolean => !has('entryTime')

/** Whether a row is a trade that is still open. */
function isOpen(builder: LedgerBuilder, cells: readonly string[]): boolean {
  const { text, header } = builder
  return (
    /^open$/i.test(text(cells, 'status')) ||
    (header.opensStayOpen && /open/i.test(text(cells, 'side'))) ||
    (hasPurchaseAndSale(builder)
      ? isUnset(text(cells, 'sellTime')) !== isUnset(text(cells, 'buyTime'))
      : isUnset(text(cells, 'exitTime')) && isUnset(text(cells, 'exitPrice')))
  )
}

/** The signed quantity of a row: NaN if the file states none, null if the row is excluded for it. */
function quantity(
  { has, number, needNumber, exclude, name }: LedgerBuilder,
  cells: readonly string[],
  row: number,
  entryPrice: number,
): number | null {
  if (!has('qty')) return has('stake') ? number(cells, row, 'stake') / entryPrice : Number.NaN
  const qty = needNumber(cells, row, 'qty')
  if (Number.isNaN(qty)) return null
  if (Math.abs(qty) >= SMALLEST) return qty
  exclude(row, { code: 'nonpositive_qty', field: name('qty') })
  return null
}

interface Legs {
  readonly entryTime: Field
  readonly entryPrice: Field
  readonly exitTime: Field
  readonly exitPrice: Field
  readonly sign: 1 | -1
}

const AS_NAMED: Legs = {
  entryTime: 'entryTime',
  entryPrice: 'entryPrice',
  exitTime: 'exitTime',
  exitPrice: 'exitPrice',
  sign: 1,
}
const BOUGHT_FIRST: Legs = {
  entryTime: 'buyTime',
  entryPrice: 'buyPrice',
  exitTime: 'sellTime',
  exitPrice: 'sellPrice',
  sign: 1,
}
const SOLD_FIRST: Legs = {
  entryTime: 'sellTime',
  entryPrice: 'sellPrice',
  exitTime: 'buyTime',
  exitPrice: 'buyPrice',
  sign: -1,
}

/** A time without a finding if it is missing or unreadable. */
function timeOf({ times, text, name }: LedgerBuilder, cells: readonly string[], row: number, field: Field) {
  const cell = text(cells, field)
  return isUnset(cell) ? null : times.read(cell, { file: 'file', row, column: name(field) })
}

interface Amounts {
  readonly qty: number
  readonly entryPrice: number
  readonly exitPrice: number
}

/** Money paid for both sides, from the columns of fees, from one per side, or from rates per side (freqtrade). */
function fees(builder: LedgerBuilder, cells: readonly string[], row: number, amounts: Amounts): number {
  const { has, number } = builder
  const { qty, entryPrice, exitPrice } = amounts
  if (has('entryRate'))
    return qty * (number(cells, row, 'entryRate') * entryPrice + number(cells, row, 'exitRate') * exitPrice)
  if (has('entryFees')) return number(cells, row, 'entryFees') + number(cells, row, 'exitFees')
  return number(cells, row, 'fees')
}
