import { InvalidInput } from 'tollgate/plugin'
import type { Code, Findings } from '../findings.ts'
import { type Fill, type TradeLedger, UNNAMED_SYMBOL, type Trade } from '../trade-ledger.ts'
import { fingerprint, isMissing, isUnset, type CellPlace, readNumber, refuseFormula, SMALLEST } from './cell-values.ts'
import type { Field, Header } from './ledger-header.ts'
import { createTimeReader, type TimeReader } from './ledger-times.ts'

export interface ReadOptions {
  /** The symbol of a file that has no symbol column. */
  readonly symbol: string | undefined
  /** The current time, epoch milliseconds. Later trades are in the future. */
  readonly now: number
  readonly findings: Findings
}

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
  readonly trades: Trade[] = []
  readonly fills: Fill[] = []
  readonly counts = { rows: 0, excluded: 0, open: 0, unfilled: 0 }
  readonly #symbols = createNames()
  readonly #trials = createNames()
  readonly #fingerprints = new Fingerprints()
  #excludedRow = -1

  constructor(header: Header, options: ReadOptions) {
    this.header = header
    this.options = options
    this.times = createTimeReader(header.format.dayFirst)
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

  /** Excludes a row from the statistics and adds a finding. A row with several defects is counted once. */
  readonly exclude = (row: number, { code, field }: { readonly code: Code; readonly field?: string }): void => {
    this.options.findings.add({ row, code, severity: 'error', ...(field === undefined ? {} : { field }) })
    if (row !== this.#excludedRow) this.counts.excluded += 1
    this.#excludedRow = row
  }

  /** An optional number: NaN if it is missing. */
  readonly number = (cells: readonly string[], row: number, field: Field): number => {
    const cell = this.text(cells, field)
    return isUnset(cell) ? Number.NaN : readNumber(cell, this.#place(row, field), this.header.format.decimal)
  }

  /** A required number: NaN and a finding if it is missing. */
  readonly needNumber = (cells: readonly string[], row: number, field: Field): number => {
    const value = readNumber(this.text(cells, field), this.#place(row, field), this.header.format.decimal)
    if (Number.isNaN(value)) this.exclude(row, { code: 'missing_value', field: this.name(field) })
    return value
  }

  /** A required price: a finding if it is missing or not above zero. */
  readonly needPrice = (cells: readonly string[], row: number, field: Field): number => {
    const price = this.needNumber(cells, row, field)
    if (price < SMALLEST) this.exclude(row, { code: 'nonpositive_price', field: this.name(field) })
    return price
  }

  /** A required time, epoch milliseconds: null and a finding if it is missing, unreadable or in the future. */
  readonly needTime = (cells: readonly string[], row: number, field: Field): number | null => {
    const cell = this.#timeText(cells, field)
    const place = this.#place(row, field)
    if (isUnset(cell)) {
      this.exclude(row, { code: 'missing_value', field: this.name(field) })
      return null
    }
    refuseFormula(cell, place)
    const time = this.times.read(cell, place)
    if (time === null) this.exclude(row, { code: 'unparseable_time', field: this.name(field) })
    else if (time > this.options.now + (this.times.hasZone() ? 0 : FARTHEST_ZONE)) {
      this.exclude(row, { code: 'future_time', field: this.name(field) })
      return null
    }
    return time
  }

  /** Index of the symbol of a row: null and a finding if it is missing. */
  readonly symbol = (cells: readonly string[], row: number): number | null => {
    if (!this.has('symbol')) return this.#symbols.index(this.options.symbol ?? UNNAMED_SYMBOL)
    const cell = this.text(cells, 'symbol')
    if (isMissing(cell)) {
      this.exclude(row, { code: 'missing_value', field: this.name('symbol') })
      return null
    }
    refuseFormula(cell, this.#place(row, 'symbol'))
    return this.#symbols.index(cell)
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

  #place(row: number, field: Field): CellPlace {
    return new Place(this, row, field)
  }

  /** The text of a time. The day and the time of day may have columns of their own. */
  #timeText(cells: readonly string[], field: Field): string {
    const cell = this.text(cells, field)
    const clock = field === 'time' ? this.text(cells, 'clock') : ''
    return /^\d\d?:\d\d/.test(clock) ? `${cell} ${clock}` : clock || cell
  }
}

/** Where a cell is. Its column is looked up only for an error. */
class Place implements CellPlace {
  readonly file = 'file'
  readonly row: number
  readonly #builder: LedgerBuilder
  readonly #field: Field

  constructor(builder: LedgerBuilder, row: number, field: Field) {
    this.row = row
    this.#builder = builder
    this.#field = field
  }

  get column(): string {
    return this.#builder.name(this.#field)
  }
}

/** The ledger with everything that the builder collected. */
export function buildLedger(builder: LedgerBuilder, warnings: readonly string[]): TradeLedger {
  const { header, trades, fills, symbolNames, trialNames, counts, times, has } = builder
  return {
    layout: header.layout,
    trades,
    fills,
    symbols: symbolNames,
    trials: trialNames,
    ...counts,
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

const UP = /^(?:long|buy|bought|bot|b|l|1|\+1|buy[ _]?to[ _]?(?:open|cover|close))$/i
const DOWN = /^(?:short|sell|sold|sld|s|-1|sell[ _]?short|sell[ _]?to[ _]?(?:open|close))$/i
const YES = /^(?:true|yes|1)$/i

/**
 * Returns 1 for long or buy and -1 for short or sell. It reads the side column, a flag for shorts, a type that says buy or
 * sell, or the sign of the quantity, in this order. Returns null and adds a finding if the side is unknown.
 */
export function readSide(builder: LedgerBuilder, cells: readonly string[], row: number, qty: number): 1 | -1 | null {
  const { header, has, text, exclude, name } = builder
  if (has('side')) {
    const cell = text(cells, 'side')
    // LEAN writes the direction of a trade as 0 for long and 1 for short.
    if (header.layout === 'lean_trades' && /^[01]$/.test(cell)) return cell === '0' ? 1 : -1
    if (UP.test(cell)) return 1
    if (DOWN.test(cell)) return -1
    exclude(row, { code: 'missing_value', field: name('side') })
    return null
  }
  if (has('short')) return YES.test(text(cells, 'short')) ? -1 : 1
  const type = text(cells, 'type')
  if (UP.test(type)) return 1
  if (DOWN.test(type)) return -1
  return qty < 0 ? -1 : 1
}

/** Whether the sign of the quantity gives the side, so that a negative quantity is valid. */
export function isSigned({ has, text }: LedgerBuilder, cells: readonly string[]): boolean {
  if (has('side') || has('short')) return false
  const type = text(cells, 'type')
  return !UP.test(type) && !DOWN.test(type)
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

/** Makes fees positive if the file writes all of them as negative amounts. Among positive fees, a negative one is a rebate. */
export function settleFees({ has, trades }: LedgerBuilder): void {
  if (has('entryRate') || trades.some(({ fees }) => fees > 0)) return
  for (const [index, trade] of trades.entries()) if (trade.fees < 0) trades[index] = { ...trade, fees: -trade.fees }
}

/** Adds both executions of a round trip to the fills. */
export function addFills({ fills }: LedgerBuilder, trade: Trade): void {
  const { symbol, sign, qty } = trade
  const exit = -sign as 1 | -1
  fills.push({ row: trade.row, leg: 'entry', symbol, sign, time: trade.entryTime, price: trade.entryPrice, qty })
  fills.push({ row: trade.exitRow, leg: 'exit', symbol, sign: exit, time: trade.exitTime, price: trade.exitPrice, qty })
}
