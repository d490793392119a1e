import { InvalidInput } from 'tollgate/plugin'
import type { Code, Findings } from '../findings.ts'
import { type Fill, type TradeLedger, UNNAMED_SYMBOL, type Trade } from '../trade-ledger.ts'
import { fingerprint, isMissing, isUnset, type CellPlace, readNumber, refuseFormula, SMALLEST } from './cell-values.ts'
import type { Field, Header } from './ledger-header.ts'
import { createTimeReader, type TimeReader } from './ledger-times.ts'

export interface ReadOptions {
  /** Symbol of a file without a column for it. */
  readonly symbol: string | undefined
  /** Nothing can have happened after this, epoch milliseconds. */
  readonly now: number
  readonly findings: Findings
}

const MAX_TRIALS = 256
/** A clock that names no zone may be ahead of UTC. */
const FARTHEST_ZONE = 14 * 3_600_000

/** What the readers of every layout share: cells by field, names by index, findings that take a row out. */
export interface LedgerBuilder {
  readonly header: Header
  readonly trades: Trade[]
  readonly fills: Fill[]
  readonly symbolNames: readonly string[]
  readonly trialNames: readonly string[]
  readonly counts: { rows: number; excluded: number; open: number; unfilled: number }
  readonly times: TimeReader
  readonly options: ReadOptions
  readonly has: (field: Field) => boolean
  /** The text of a cell, '' where there is no such column. */
  readonly text: (cells: readonly string[], field: Field) => string
  /** A number that must be there: NaN and a finding where it is not. */
  readonly needNumber: (cells: readonly string[], row: number, field: Field) => number
  /** A price above zero that must be there. */
  readonly needPrice: (cells: readonly string[], row: number, field: Field) => number
  /** A number that may be there: NaN where it is not. */
  readonly number: (cells: readonly string[], row: number, field: Field) => number
  /** A time that must be there: null and a finding where it is not. */
  readonly needTime: (cells: readonly string[], row: number, field: Field) => number | null
  readonly symbol: (cells: readonly string[], row: number) => number | null
  readonly trial: (cells: readonly string[], row: number) => number
  /** True where the very same row stood in the file before: found. */
  readonly isRepeated: (cells: readonly string[], row: number) => boolean
  /** Takes the row out of the statistics. */
  readonly exclude: (row: number, finding: { readonly code: Code; readonly field?: string }) => void
  readonly name: (field: Field) => string
}

export function createLedgerBuilder(header: Header, options: ReadOptions): LedgerBuilder {
  const { columns, names, writing } = header
  const { findings } = options
  const times = createTimeReader(writing.dayFirst)
  const counts = { rows: 0, excluded: 0, open: 0, unfilled: 0 }
  const symbols = createNames()
  const trials = createNames()
  const seen = new Set<number>()
  let excludedRow = -1

  const name = (field: Field): string => names[columns[field] ?? -1] ?? field
  const place = (row: number, field: Field): CellPlace => ({ file: 'file', row, column: name(field) })
  const text = (cells: readonly string[], field: Field): string => cells[columns[field] ?? -1] ?? ''

  /** The moment of a cell, put together where day and time of day have columns of their own. */
  function written(cells: readonly string[], field: Field): string {
    const cell = text(cells, field)
    const clock = field === 'time' ? text(cells, 'clock') : ''
    return /^\d\d?:\d\d/.test(clock) ? `${cell} ${clock}` : clock || cell
  }

  function exclude(row: number, finding: { readonly code: Code; readonly field?: string }): void {
    const { code, field } = finding
    findings.add({ row, code, severity: 'error', ...(field === undefined ? {} : { field }) })
    // A row can have more than one thing wrong and is left out once.
    if (row !== excludedRow) counts.excluded += 1
    excludedRow = row
  }

  function needNumber(cells: readonly string[], row: number, field: Field): number {
    const value = readNumber(text(cells, field), place(row, field), writing.decimal)
    if (Number.isNaN(value)) exclude(row, { code: 'missing_value', field: name(field) })
    return value
  }

  return {
    header,
    trades: [],
    fills: [],
    counts,
    times,
    options,
    symbolNames: symbols.list,
    trialNames: trials.list,
    has: (field) => columns[field] !== undefined,
    text,
    name,
    exclude,
    number: (cells, row, field) => {
      const cell = text(cells, field)
      return isUnset(cell) ? Number.NaN : readNumber(cell, place(row, field), writing.decimal)
    },
    needNumber,
    needPrice(cells, row, field) {
      const price = needNumber(cells, row, field)
      if (price < SMALLEST) exclude(row, { code: 'nonpositive_price', field: name(field) })
      return price
    },
    needTime(cells, row, field) {
      const cell = written(cells, field)
      if (isUnset(cell)) {
        exclude(row, { code: 'missing_value', field: name(field) })
        return null
      }
      refuseFormula(cell, place(row, field))
      const time = times.read(cell, place(row, field))
      if (time === null) exclude(row, { code: 'unparseable_time', field: name(field) })
      else if (time > options.now + (times.hasZone() ? 0 : FARTHEST_ZONE)) {
        exclude(row, { code: 'future_time', field: name(field) })
        return null
      }
      return time
    },
    symbol(cells, row) {
      if (columns.symbol === undefined) return symbols.index(options.symbol ?? UNNAMED_SYMBOL)
      const cell = text(cells, 'symbol')
      if (isMissing(cell)) {
        exclude(row, { code: 'missing_value', field: name('symbol') })
        return null
      }
      refuseFormula(cell, place(row, 'symbol'))
      return symbols.index(cell)
    },
    trial(cells, row) {
      const index = trials.index(text(cells, 'trial'))
      if (index < MAX_TRIALS) return index
      const msg = `Row ${row} begins trial ${MAX_TRIALS + 1}; ${MAX_TRIALS} are the most.`
      throw new InvalidInput([{ loc: ['body', 'file', row, name('trial')], msg, type: 'too_many_trials' }])
    },
    isRepeated(cells, row) {
      const key = fingerprint(cells)
      if (!seen.has(key)) {
        seen.add(key)
        return false
      }
      exclude(row, { code: 'duplicate_trade' })
      return true
    },
  }
}

/** The ledger of what was built. */
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

/** Indexes for names, in the order they were met. */
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
 * 1 for long or buy, -1 for short or sell, from a column of sides, a flag for shorts, a type that says buy or sell, or
 * the sign of the quantity; long where the file says nothing. Null and a finding where the side is not a side.
 */
export function readSide(builder: LedgerBuilder, cells: readonly string[], row: number, qty: number): 1 | -1 | null {
  const { header, has, text, exclude, name } = builder
  if (has('side')) {
    const cell = text(cells, 'side')
    // LEAN's own numbers for the direction of a trade.
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

/** Whether the quantity's own sign says the side, so that a negative one is no mistake. */
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
 * Makes quantities positive, in place. A negative one beside a side is a mistake and its row is left out, unless
 * everything that is sold, and nothing else, is written so.
 */
export function settleSigns({ exclude, name }: LedgerBuilder, items: Signed[]): void {
  const isConvention = items.every(({ qty, sign }) => !(qty * sign < 0))
  let kept = 0
  for (const item of items) {
    const isMistake = item.qty < 0 && !isConvention
    if (isMistake) exclude(item.row, { code: 'nonpositive_qty', field: name('qty') })
    else {
      items[kept] = item.qty < 0 ? { ...item, qty: -item.qty } : item
      kept += 1
    }
  }
  items.length = kept
}

export interface RowReader {
  row(cells: readonly string[], row: number): void
  /** After the last row. */
  end(): void
}

/** Fees written as negative amounts throughout are costs all the same; among positive ones a negative one is a rebate. */
export function settleFees({ has, trades }: LedgerBuilder): void {
  if (has('entryRate') || trades.some(({ fees }) => fees > 0)) return
  for (const [index, trade] of trades.entries()) if (trade.fees < 0) trades[index] = { ...trade, fees: -trade.fees }
}

/** Both executions of a round trip. */
export function addFills({ fills }: LedgerBuilder, trade: Trade): void {
  const { symbol, sign, qty } = trade
  const exit = -sign as 1 | -1
  fills.push({ row: trade.row, leg: 'entry', symbol, sign, time: trade.entryTime, price: trade.entryPrice, qty })
  fills.push({ row: trade.exitRow, leg: 'exit', symbol, sign: exit, time: trade.exitTime, price: trade.exitPrice, qty })
}
