/** What a format is, and what formats with a row for each trip or for each fill share. */
import type { NumberCell, Table } from './dress.ts'
import { tripResult } from './true-result.ts'
import { decimal, type Limits, type TrueFill, type TrueTrades, type TrueTrip } from './true-trades.ts'

export interface Format {
  readonly name: string
  readonly limits: Limits
  readonly table: (trades: TrueTrades, choose: Choose) => LedgerTable
}

/** Picks one of several spellings, always the same one for the same draw. */
export type Choose = <Value>(list: readonly Value[]) => Value

export interface LedgerTable extends Table {
  /** Money by which rounding in this file may move the sum of all trips, and basis points by which it may move the mean. */
  readonly error: { readonly money: number; readonly bps: number }
  /** What stated profits are; absent if there are none. */
  readonly profit?: 'gross' | 'net'
  /** The file states the fees; else only its profits are after them. */
  readonly statesFees: boolean
  /** The file states the contract size. */
  readonly statesSize?: true
  /** The file does not name the instrument, so the request must. */
  readonly isUnnamed?: true
  /** The file has fills, so that something can be left of a position. */
  readonly hasFills?: true
  /** How this file spells a symbol. */
  readonly symbolOf?: (symbol: TrueTrip['market']) => string
  /** JSON instead of a table. */
  readonly json?: unknown
}

export function createChoose(salt: number): Choose {
  let state = salt + 1
  return (list) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return list[(state >>> 9) % list.length]!
  }
}

export const moneyCell = (value: number, currency: string, decimals = 2): NumberCell => ({
  value,
  decimals,
  money: currency,
})

/** A trip in one row: mean prices with more decimals, the fees of all its fills, and what rounding does to it. */
export interface TripRow {
  readonly trip: TrueTrip
  readonly index: number
  readonly qty: number
  readonly entryAt: number
  readonly exitAt: number
  readonly entryPrice: NumberCell
  readonly exitPrice: NumberCell
  readonly entryFee: NumberCell
  readonly exitFee: NumberCell
  readonly fees: NumberCell
  /** The same fees in two kinds, such as commission and swap. */
  readonly mainFee: NumberCell
  readonly otherFee: NumberCell
  /** The fees as a number, rounded as they are written. */
  readonly paid: number
  readonly gross: number
  readonly net: number
}

const MORE_DECIMALS = 6
const PROFIT_DECIMALS = 8

export function tripRows(trades: TrueTrades): { rows: TripRow[]; error: LedgerTable['error'] } {
  const error = { money: 0, bps: 0 }
  const rows = trades.trips.map((trip, index) => {
    const { market, entries, exits } = trip
    const { qty, entryPrice, exitPrice, fees, gross, value } = tripResult(trip)
    const [entry, exit] = [priceOf(entryPrice, market), priceOf(exitPrice, market)]
    const digits = trades.fees === 'base' ? PROFIT_DECIMALS : market.feeDecimals
    const entryFee = decimal(feesOf(entries, trip, exitPrice), digits)
    const exitFee = decimal(feesOf(exits, trip, exitPrice), digits)
    const moved = market.size * qty * (Math.abs(entry.value - entryPrice) + Math.abs(exit.value - exitPrice))
    const off = moved + Math.abs(entryFee + exitFee - fees)
    error.money += off
    error.bps += (1e4 * off) / value / trades.trips.length
    const paid = decimal(entryFee + exitFee, digits)
    const other = Math.trunc((paid * 10 ** digits) / 4) / 10 ** digits
    return {
      trip,
      index,
      qty,
      entryAt: entries[0]!.at,
      exitAt: exits.at(-1)!.at,
      entryPrice: entry,
      exitPrice: exit,
      entryFee: moneyCell(entryFee, market.quote, digits),
      exitFee: moneyCell(exitFee, market.quote, digits),
      fees: moneyCell(paid, market.quote, digits),
      mainFee: moneyCell(paid - other, market.quote, digits),
      otherFee: moneyCell(other, market.quote, digits),
      paid,
      gross,
      net: gross - paid,
    }
  })
  return { rows, error }
}

function priceOf(price: number, market: TrueTrip['market']): NumberCell {
  const isWritten = Math.abs(decimal(price, market.priceDecimals) - price) < 1e-12 * price
  const decimals = market.priceDecimals + (isWritten ? 0 : MORE_DECIMALS)
  return { value: decimal(price, decimals), decimals, money: market.quote }
}

const feesOf = (fills: readonly TrueFill[], { market }: TrueTrip, exitPrice: number): number =>
  fills.reduce((sum, { fee, feeCurrency }) => {
    if (feeCurrency === market.quote) return sum + fee
    return feeCurrency === market.base ? sum + fee * exitPrice : sum
  }, 0)

export const qtyCell = ({ trip: { market }, qty }: TripRow): NumberCell => ({
  value: qty,
  decimals: market.qtyDecimals,
})
/** A profit in cents, or with eight decimals if it is in a coin. */
export const profitCell = (profit: number, { trip: { market } }: TripRow): NumberCell =>
  moneyCell(profit, market.quote, market.feeDecimals)

/** An execution with its trip, for formats with a row for each fill. */
export interface FillRow extends TrueFill {
  readonly trip: TrueTrip
  readonly leg: 'entry' | 'exit' | 'turn'
  /** Quantity with the sign of the order. */
  readonly signed: number
  readonly value: number
  /** Profit of an exit after all fees that it closes, by the mean entry price; 0 for an entry. */
  readonly profit: number
}

/**
 * All executions, oldest first. With `merges`, the exit and the entry of an order that turns a position are one row, as
 * venues write them.
 */
export function fillRows({ trips }: TrueTrades, merges: boolean): FillRow[] {
  const rows: FillRow[] = []
  const lastOf = new Map<string, FillRow>()
  for (const trip of trips) {
    const { market, sign } = trip
    const { entryPrice } = tripResult(trip)
    const all = [
      ...trip.entries.map((fill) => ['entry', fill] as const),
      ...trip.exits.map((fill) => ['exit', fill] as const),
    ]
    for (const [at, [leg, fill]] of all.entries()) {
      const profit = leg === 'exit' ? sign * fill.qty * market.size * (fill.price - entryPrice) : 0
      const row: FillRow = { ...fill, ...rowParts(trip, fill), leg, profit }
      const before = lastOf.get(market.symbol)
      if (at === 0 && trip.turns && merges && before !== undefined) {
        const qty = decimal(before.qty + fill.qty, market.qtyDecimals)
        const fee = decimal(before.fee + fill.fee, 8)
        const merged = { ...before, qty, fee }
        rows[rows.indexOf(before)] = { ...merged, ...rowParts(trip, merged), trip: before.trip, leg: 'turn' }
        continue
      }
      rows.push(row)
      lastOf.set(market.symbol, row)
    }
  }
  return rows.sort((one, other) => one.at - other.at)
}

const rowParts = (trip: TrueTrip, { qty, sign, price }: Pick<TrueFill, 'qty' | 'sign' | 'price'>) => ({
  trip,
  signed: sign * qty,
  value: qty * price * trip.market.size,
})

/**
 * A fee shared between two trips by quantity may be off by a unit of its last decimal. What is left of a position may count
 * at its last price, or as lost.
 */
export function fillError({ trips }: TrueTrades, merges: boolean): LedgerTable['error'] {
  const error = { money: 0, bps: 0 }
  for (const { left, value } of trips.map(tripResult)) {
    error.money += left
    error.bps += (1e4 * left) / value / trips.length
  }
  if (!merges) return error
  for (const trip of trips)
    if (trip.turns) error.bps += (1e4 * 2 * 10 ** -trip.market.feeDecimals) / smallestValue(trips) / trips.length
  return error
}

const smallestValue = (trips: readonly TrueTrip[]): number => Math.min(...trips.map((trip) => tripResult(trip).value))

export const fillQtyCell = ({ trip: { market }, qty, feeCurrency, leg }: FillRow, signed = 1): NumberCell => ({
  value: qty * signed,
  decimals:
    market.qtyDecimals + (leg === 'exit' && feeCurrency !== 'none' && !isWhole(qty, market.qtyDecimals) ? 5 : 0),
})

const isWhole = (qty: number, decimals: number): boolean => Math.abs(decimal(qty, decimals) - qty) < 1e-12

export const fillPriceCell = ({ trip: { market }, price }: FillRow): NumberCell => ({
  value: price,
  decimals: market.priceDecimals,
  money: market.quote,
})

/** Decimals of a fee, by its currency. */
export const feeDecimals = ({ trip: { market }, feeCurrency }: FillRow): number =>
  feeCurrency === market.quote ? market.feeDecimals : feeCurrency === market.base ? market.qtyDecimals + 5 : 8

export const fillFeeCell = (row: FillRow, sign: 1 | -1 = 1): NumberCell => ({
  value: sign * row.fee,
  decimals: feeDecimals(row),
})
