import { InvalidInput } from 'tollgate/plugin'
import type { Code, Findings } from '../findings.ts'
import {
  type Fill,
  type Instrument,
  type OpenPosition,
  type UnmarkedPosition,
  type Remainder,
  type Trade,
  type TradeLedger,
  UNNAMED_SYMBOL,
  type UnknownFee,
} from '../trade-ledger.ts'
import { currencyCode, pairOf } from '../currency-pairs.ts'
import {
  decimalOf,
  fingerprint,
  isMissing,
  isUnset,
  type CellPlace,
  readNumber,
  refuseFormula,
  SMALLEST,
} from '../../lib/tables/cell-values.ts'
import { FeeSigns } from './fee-signs.ts'
import { type Field, type Header, isFills } from './ledger-header.ts'
import { sideOf } from './side-words.ts'
import type { Assumption, SkippedRows } from '../reading.ts'
import type { ReadingOptions } from '../reading-options.ts'
import { createTimeReader, type TimeReader } from '../../lib/tables/time-cells.ts'
import { createZone, type Zone } from '../../lib/time/time-zones.ts'

export interface ReadOptions {
  /** The symbol of a file that has no symbol column. */
  readonly symbol: string | undefined
  /** What the caller says of the file. */
  readonly stated: ReadingOptions
  /** The current time, epoch milliseconds. Later trades are in the future. */
  readonly now: number
  readonly findings: Findings
}

/** A structural finding of a row. */
interface Defect {
  readonly code: Code
  /** The column, as the file names it. */
  readonly field?: string
  /** The cell, as the file writes it. */
  readonly text?: string
}

/** A cell, cut for a message. */
const shown = (cell: string): string => cell.slice(0, 40)

const MAX_TRIALS = 256
/** A time without a zone may be ahead of UTC by up to this much. */
const FARTHEST_ZONE = 14 * 3_600_000

/**
 * What the readers of all layouts share: it reads cells by field, collects trades, fills and names, and excludes rows with
 * structural findings. Methods are arrow functions, so readers can destructure them.
 */
export class LedgerBuilder {
  readonly header: Header
  readonly options: ReadOptions
  readonly times: TimeReader
  /** The stated zone, if the times need it. */
  readonly zone: Zone | null
  readonly trades: Trade[] = []
  readonly fills: Fill[] = []
  /** Their last prices are known when all fills are. */
  readonly openPositions: UnmarkedPosition[] = []
  readonly remainders: Remainder[] = []
  readonly unknownFees: UnknownFee[] = []
  readonly warnings: string[] = []
  readonly counts = { rows: 0, excluded: 0, open: 0, unfilled: 0 }
  /** Contract sizes that the file gives apart from its trades, by symbol. */
  readonly contractSizes = new Map<string, number>()
  readonly #skipped = new Map<SkippedRows['kind'], SkippedRows>()
  readonly #assumptions: Assumption[] = []
  readonly #symbols = createNames()
  readonly #trials = createNames()
  readonly #sides = new Map<string, 1 | -1 | null>()
  /** Words of side that are not known, and how often each occurs. */
  readonly unknownSides = new Map<string, number>()
  readonly feeSigns: FeeSigns
  readonly #fingerprints = new Fingerprints()
  /** What columns say of the symbols, by their index. */
  readonly #instruments: { readonly currency: string | null; readonly contractSize: number }[] = []
  #balance = { time: Infinity, capital: Number.NaN }
  #excludedRow = -1

  constructor(header: Header, options: ReadOptions) {
    this.header = header
    this.options = options
    this.feeSigns = new FeeSigns(header)
    const { timezone } = options.stated
    this.zone = header.zone === null && timezone !== null ? createZone(timezone) : null
    const ofHeader = header.zone === null ? null : () => header.zone! * 60
    this.times = createTimeReader(header.format.dayFirst, { zone: ofHeader ?? this.zone, isDaily: header.isDaily })
  }

  /** The rows that are no trades, by kind. */
  get skipped(): readonly SkippedRows[] {
    return [...this.#skipped.values()]
  }

  get assumptions(): readonly Assumption[] {
    return this.#assumptions
  }

  get symbolNames(): readonly string[] {
    return this.#symbols.list
  }

  get trialNames(): readonly string[] {
    return this.#trials.list
  }

  /** Whether the file has a column for the field. */
  readonly has = (field: Field): boolean => this.header.columns[field] !== undefined

  /** The name of the column of a field, as the file writes it. */
  readonly name = (field: Field): string => this.header.names[this.header.columns[field] ?? -1] ?? field

  /** The text of a cell, '' if there is no such column. */
  readonly text = (cells: readonly string[], field: Field): string => {
    const column = this.header.columns[field]
    return column === undefined ? '' : (cells[column] ?? '')
  }

  /** Counts a row that is no trade. */
  readonly skip = (kind: SkippedRows['kind'], row: number): void => {
    const { rows, first } = this.#skipped.get(kind) ?? { rows: 0, first: row }
    this.#skipped.set(kind, { kind, rows: rows + 1, first })
  }

  /** Notes something that the file does not say, once for each code. `parameter` states it instead. */
  readonly assume = (code: Assumption['code'], text: string, parameter: string | null): void => {
    if (!this.#assumptions.some((known) => known.code === code)) this.#assumptions.push({ code, text, parameter })
  }

  /** Excludes a row from the statistics and adds a finding. A row with several defects is counted once. */
  readonly exclude = (row: number, defect: Defect): void => {
    this.options.findings.add({ row, severity: 'error', ...defect })
    if (row !== this.#excludedRow) this.counts.excluded += 1
    this.#excludedRow = row
  }

  /** Notes the balance of a row: the earliest one, less the profit of its row, is the capital. */
  readonly noteBalance = (cells: readonly string[], row: number, time: number): void => {
    if (!this.has('balance') || time >= this.#balance.time) return
    const balance = this.number(cells, row, 'balance')
    if (balance > 0) this.#balance = { time, capital: balance - (this.number(cells, row, 'pnl') || 0) }
  }

  /** Money in the account at the start, as the request or a column of balances says; null if neither does. */
  readonly capital = (): number | null => {
    const { capital } = this.options.stated
    if (capital !== null || !(this.#balance.capital > 0)) return capital
    const text = `The balance before the first trade, ${this.#balance.capital}, is taken as the capital.`
    this.assume('capital', text, 'capital')
    return this.#balance.capital
  }

  /** The currency of the prices of a symbol: as the request, a column or the name of the symbol says; null if unknown. */
  readonly currencyOf = (symbol: number): string | null => {
    const { quoteCurrency } = this.options.stated
    if (quoteCurrency !== null) return currencyCode(quoteCurrency)
    return this.columnCurrencyOf(symbol) ?? pairOf(this.symbolNames[symbol] ?? '')?.quote ?? this.#namedCurrency()
  }

  /** The currency in the name of a column of prices: USD for "Price (USD)". */
  #namedCurrency(): string | null {
    const { price, entryPrice } = this.header.currencies
    return price ?? entryPrice ?? null
  }

  /** The currency that a column gives for a symbol; null if none does. */
  readonly columnCurrencyOf = (symbol: number): string | null => this.#instruments[symbol]?.currency ?? null

  /** The size of a contract that a column or another section of a statement gives for a symbol; NaN if none does. */
  readonly columnSizeOf = (symbol: number): number =>
    this.#instruments[symbol]?.contractSize || (this.contractSizes.get(this.symbolNames[symbol] ?? '') ?? Number.NaN)

  /** An optional number: NaN if it is missing. A text that is no number is a finding. `fees` is the sum of all columns of fees. */
  readonly number = (cells: readonly string[], row: number, field: Field): number => {
    if (field === 'fees') return this.#fees(cells, row)
    const column = this.header.columns[field]
    if (column === undefined) return Number.NaN
    const value = this.#numberAt(cells, row, column)
    if (field === 'entryFees' || field === 'exitFees') this.feeSigns.add(value)
    return value
  }

  /** The fees of a row as the file signs them: the sum of all columns of fees, NaN if all are empty. */
  #fees(cells: readonly string[], row: number): number {
    let sum = Number.NaN
    for (const column of this.header.feeColumns) {
      const fee = this.#numberAt(cells, row, column)
      if (!Number.isNaN(fee)) sum = Number.isNaN(sum) ? fee : sum + fee
    }
    this.feeSigns.add(sum)
    return sum
  }

  #numberAt(cells: readonly string[], row: number, column: number): number {
    const cell = cells[column] ?? ''
    if (isUnset(cell)) return Number.NaN
    const place = new Place(this, row, column)
    const value = readNumber(cell, place, decimalOf(this.header.format, column))
    if (Number.isNaN(value)) {
      const field = place.column
      this.options.findings.add({ row, code: 'unreadable_number', severity: 'warning', field, text: shown(cell) })
    }
    return value
  }

  /**
   * The sign that a word of side gives: of the position for round trips, of the order for fills. Null and a finding if the
   * word is not known; null and an open trade if it says that the trade is still open.
   */
  readonly side = (cells: readonly string[], row: number, field: 'side' | 'exitSide'): 1 | -1 | null => {
    const cell = this.text(cells, field)
    let side = this.#sides.get(cell)
    if (side === undefined) {
      side = this.#sideOf(cell, field)
      if (this.#sides.size < MAX_WORDS) this.#sides.set(cell, side)
    }
    if (side !== null) return side
    if (isUnset(cell)) this.exclude(row, { code: 'missing_value', field: this.name(field) })
    else {
      this.unknownSides.set(cell, (this.unknownSides.get(cell) ?? 0) + 1)
      this.exclude(row, { code: 'unknown_side', field: this.name(field), text: shown(cell) })
    }
    return null
  }

  #sideOf(cell: string, field: 'side' | 'exitSide'): 1 | -1 | null {
    const { layout } = this.header
    // LEAN writes the direction of a trade as 0 for long and 1 for short.
    if (layout === 'lean_trades' && /^[01]$/.test(cell)) return cell === '0' ? 1 : -1
    const side = sideOf(cell)
    if (side === null) return null
    return isFills(layout) || field === 'exitSide' ? side.order : side.position
  }

  /** A required number: NaN and a finding if it is missing. */
  readonly needNumber = (cells: readonly string[], row: number, field: Field): number => {
    const { format, columns } = this.header
    const value = readNumber(this.text(cells, field), this.#place(row, field), decimalOf(format, columns[field] ?? -1))
    if (Number.isNaN(value)) {
      const cell = this.text(cells, field)
      if (isUnset(cell)) this.exclude(row, { code: 'missing_value', field: this.name(field) })
      else this.exclude(row, { code: 'unreadable_number', field: this.name(field), text: shown(cell) })
    }
    return value
  }

  /** A required price: a finding if it is missing or not above zero. */
  readonly needPrice = (cells: readonly string[], row: number, field: Field): number => {
    const price = this.needNumber(cells, row, field)
    if (price < SMALLEST) this.exclude(row, { code: 'nonpositive_price', field: this.name(field) })
    return price
  }

  /**
   * A required time, epoch milliseconds: null and a finding if it is missing, unreadable or in the future. `notBefore`
   * decides which it is if the clocks of the zone show it twice.
   */
  readonly needTime = (
    cells: readonly string[],
    row: number,
    field: Field,
    notBefore: number | null = null,
  ): number | null => {
    const cell = this.#timeText(cells, field)
    const place = this.#place(row, field)
    if (isUnset(cell)) {
      this.exclude(row, { code: 'missing_value', field: this.name(field) })
      return null
    }
    refuseFormula(cell, place)
    const time = this.times.read(cell, place, notBefore ?? undefined)
    if (time === null) this.exclude(row, { code: 'unparseable_time', field: this.name(field), text: shown(cell) })
    else if (time > this.options.now + (this.times.hasZone() ? 0 : FARTHEST_ZONE)) {
      this.exclude(row, { code: 'future_time', field: this.name(field) })
      return null
    }
    return time
  }

  /** Index of the symbol of a row: null and a finding if it is missing. */
  readonly symbol = (cells: readonly string[], row: number): number | null => {
    const columns = this.header.instrumentColumns
    if (columns.length === 0) {
      const only = this.#symbols.index(this.options.symbol ?? UNNAMED_SYMBOL)
      this.#noteInstrument(cells, row, only)
      return only
    }
    const cell = this.#instrument(cells, columns)
    if (isMissing(cell)) {
      this.exclude(row, { code: 'missing_value', field: this.name('symbol') })
      return null
    }
    refuseFormula(cell, this.#place(row, 'symbol'))
    const index = this.#symbols.index(cell)
    this.#noteInstrument(cells, row, index)
    return index
  }

  /** The name of the instrument, with the expiry, strike and right of an option. A row without a symbol has none. */
  #instrument(cells: readonly string[], columns: readonly number[]): string {
    const name = cells[columns[0]!] ?? ''
    if (columns.length === 1 || isMissing(name)) return name
    return columns
      .map((column) => cells[column] ?? '')
      .filter((part) => !isUnset(part))
      .join(' ')
  }

  /** Index of the trial of a row. Throws InvalidInput beyond 256 trials. */
  readonly trial = (cells: readonly string[], row: number): number => {
    const index = this.#trials.index(this.text(cells, 'trial'))
    if (index < MAX_TRIALS) return index
    const msg = `Row ${row} starts trial ${MAX_TRIALS + 1}. A ledger can have at most ${MAX_TRIALS} trials.`
    throw new InvalidInput([{ loc: ['body', 'file', row, this.name('trial')], msg, type: 'too_many_trials' }])
  }

  /** Whether the file had the same row before. If so, the row is excluded with a finding. */
  readonly isRepeated = (cells: readonly string[], row: number): boolean => {
    if (this.#fingerprints.add(fingerprint(cells))) return false
    this.exclude(row, { code: 'duplicate_trade' })
    return true
  }

  /** Notes what the first row of a symbol says of it: the currency of its prices, and the size of a contract. */
  #noteInstrument(cells: readonly string[], row: number, symbol: number): void {
    if (this.#instruments[symbol] || !(this.has('currency') || this.has('contractSize'))) return
    const currency = this.text(cells, 'currency')
    this.#instruments[symbol] = {
      currency: /^[A-Za-z]{3,6}$/.test(currency) ? currencyCode(currency) : null,
      contractSize: this.number(cells, row, 'contractSize'),
    }
  }

  #place(row: number, field: Field): CellPlace {
    return new Place(this, row, this.header.columns[field] ?? -1)
  }

  /** The text of a time. The day and the time of day may have columns of their own. */
  #timeText(cells: readonly string[], field: Field): string {
    const cell = this.text(cells, field)
    const clock = field === 'time' ? this.text(cells, 'clock') : ''
    return clock === '' ? cell : `${cell} ${/^\d{4,6}$/.test(clock) ? clockOf(clock) : clock}`
  }
}

/** "93000" → "09:30:00", "0930" → "09:30:00". */
function clockOf(digits: string): string {
  const six = digits.length === 4 ? `${digits}00` : digits.padStart(6, '0')
  return `${six.slice(0, 2)}:${six.slice(2, 4)}:${six.slice(4)}`
}

/** Where a cell is. Its column is looked up only for an error. */
class Place implements CellPlace {
  readonly file = 'file'
  readonly row: number
  readonly #builder: LedgerBuilder
  readonly #index: number

  constructor(builder: LedgerBuilder, row: number, index: number) {
    this.row = row
    this.#builder = builder
    this.#index = index
  }

  get column(): string {
    return this.#builder.header.names[this.#index] ?? ''
  }
}

/** The ledger with everything that the builder collected. */
export function buildLedger(
  builder: LedgerBuilder,
  instruments: readonly Instrument[],
  openPositions: readonly OpenPosition[],
  warnings: readonly string[],
): TradeLedger {
  const { header, trades, fills, symbolNames, trialNames, counts, times, has, remainders, unknownFees } = builder
  const capital = builder.capital()
  return {
    layout: header.layout,
    trades,
    fills,
    reading: { columns: header.readings, assumptions: builder.assumptions, skipped: builder.skipped },
    symbols: symbolNames,
    instruments,
    trials: trialNames,
    ...counts,
    openPositions,
    remainders,
    unknownFees,
    capital,
    zoned: times.hasZone(),
    daily: times.isDaily(),
    hasQty: has('qty') || has('stake'),
    warnings,
  }
}

/**
 * A set of fingerprints: a table of which at most half is used, searched from the place that a fingerprint gives. A Set
 * would keep an object for each, and take several times as long.
 */
class Fingerprints {
  #table = new Float64Array(1024).fill(NaN)
  #count = 0

  /** Adds a fingerprint. Returns false if it was there before. */
  add(fingerprint: number): boolean {
    const place = this.#placeOf(fingerprint)
    if (this.#table[place] === fingerprint) return false
    this.#table[place] = fingerprint
    this.#count += 1
    if (this.#count * 2 > this.#table.length) this.#grow()
    return true
  }

  /** Where a fingerprint is, or the free place where it belongs. */
  #placeOf(fingerprint: number): number {
    const last = this.#table.length - 1
    let place = (fingerprint / 0x100000) & last
    while (!Number.isNaN(this.#table[place]) && this.#table[place] !== fingerprint) place = (place + 1) & last
    return place
  }

  #grow(): void {
    const smaller = this.#table
    this.#table = new Float64Array(2 * smaller.length).fill(NaN)
    for (const fingerprint of smaller)
      if (!Number.isNaN(fingerprint)) this.#table[this.#placeOf(fingerprint)] = fingerprint
  }
}

/** Numbers names in the order in which they first appear. */
function createNames() {
  const list: string[] = []
  const known = new Map<string, number>()
  return {
    list,
    index(name: string): number {
      const index = known.get(name) ?? list.length
      if (index === list.length) {
        list.push(name)
        known.set(name, index)
      }
      return index
    },
  }
}

const YES = /^(?:true|yes|y|1)$/i
/** Different words of side that are remembered. */
const MAX_WORDS = 1000

/**
 * Returns 1 for long or buy and -1 for short or sell. It reads the side column, a flag, the side of the exit, or the sign
 * of the quantity, in this order. Returns null and adds a finding if the side is unknown, and null for a trade whose side
 * says that it is still open.
 */
export function readSide(builder: LedgerBuilder, cells: readonly string[], row: number, qty: number): 1 | -1 | null {
  const { has, text } = builder
  if (has('side')) return builder.side(cells, row, 'side')
  if (has('short')) return YES.test(text(cells, 'short')) ? -1 : 1
  if (has('long')) return YES.test(text(cells, 'long')) ? 1 : -1
  if (has('exitSide')) {
    const sign = builder.side(cells, row, 'exitSide')
    return sign === null ? null : sign === 1 ? -1 : 1
  }
  return qty < 0 ? -1 : 1
}

/** Whether the sign of the quantity gives the side, so that a negative quantity is valid. */
export function isSigned({ has }: LedgerBuilder): boolean {
  return !has('side') && !has('short') && !has('long') && !has('exitSide')
}

interface Signed {
  readonly row: number
  readonly sign: 1 | -1
  readonly qty: number
}

/**
 * Makes quantities positive, in place. If the file has a side column, a negative quantity is an error and its row is
 * excluded, unless exactly the sales are negative throughout the file.
 */
export function settleSigns({ exclude, name }: LedgerBuilder, items: Signed[]): void {
  const isConvention = items.every(({ qty, sign }) => !(qty * sign < 0))
  let kept = 0
  for (const item of items) {
    if (item.qty < 0 && !isConvention) exclude(item.row, { code: 'nonpositive_qty', field: name('qty') })
    else {
      items[kept] = item.qty < 0 ? { ...item, qty: -item.qty } : item
      kept += 1
    }
  }
  items.length = kept
}

export interface RowReader {
  row(cells: readonly string[], row: number): void
  /** Called after the last row. */
  end(): void
}

/** Makes fees positive that are paid, in trades and fills. */
export function settleFees({ feeSigns, has, trades, fills }: LedgerBuilder): void {
  if (has('entryRate') || feeSigns.paid() === 1) return
  for (const [index, trade] of trades.entries()) trades[index] = { ...trade, fees: 0 - trade.fees }
  for (const [index, fill] of fills.entries()) fills[index] = { ...fill, fee: 0 - fill.fee }
}

/** Adds both executions of a round trip to the fills. */
export function addFills({ fills }: LedgerBuilder, trade: Trade): void {
  const { symbol, trial, sign, qty, row, exitRow, fees } = trade
  const exit = -sign as 1 | -1
  const half = fees / 2
  fills.push({
    row,
    leg: 'entry',
    symbol,
    trial,
    sign,
    time: trade.entryTime,
    price: trade.entryPrice,
    qty,
    fee: half,
  })
  fills.push({
    row: exitRow,
    leg: 'exit',
    symbol,
    trial,
    sign: exit,
    time: trade.exitTime,
    price: trade.exitPrice,
    qty,
    fee: half,
  })
}
