import { plainName } from '../../lib/tables/column-names.ts'
import type { ChosenHeader } from '../../lib/tables/csv-table.ts'
import type { SkippedRows } from '../reading.ts'
import type { ReadingOptions } from '../reading-options.ts'
import { type Header, recogniseHeader } from './ledger-header.ts'
import { namedByLeg } from './position-deals.ts'
import { isCancelled, isTotal, isTypeColumn, kindOfType, type RowKind } from './row-kinds.ts'

type Cells = readonly string[]
type Kind = SkippedRows['kind']

/** Where the rows of a statement name their section and what they are: "Trades,Data,…" or "DATA,TRNT,…". */
interface Prefix {
  readonly section: number
  readonly record: number
}

/** Sections of trades, in the languages of the statements of Interactive Brokers, and in Flex Queries. */
const TRADES =
  /^(?:trades|transaction history|trnt|transaktionen|transactions|operaciones|operazioni|negociações|сделки|交易|取引)$/i
/** A name of a column of times. Below a title, only a row with one is looked at closely. */
const TIME_NAME = /date|time|datum|zeit|fecha|hora|data|heure|opened|closed|дата|время|日期|时间|時間|日時/i
const MARKS = /^(?:BOF|BOA|BOS|EOS|EOA|EOF)$/
/** The levels of detail in which Interactive Brokers lists the same trades. */
const LEVEL_COLUMNS = ['datadiscriminator', 'levelofdetail']
const LEVELS = /^(?:order|execution|trade)s?$/i
const OTHER_LEVELS = /^(?:closed ?_?lots?|lots?|symbol_summary|asset_summary|wash_?sales?)$/i
/** Columns with the codes of Interactive Brokers, and the codes of options that expired, were assigned or exercised. */
const CODE_COLUMNS = ['code', 'notescodes']
const OPTION_CODE = /(?:^|;)\s*(?:Ep|A|Ex|AEx|GEA)\s*(?:;|$)/
/** The column of another section that says how many units a contract has. */
const MULTIPLIER = /^(?:mult|multiplier|multiplikator|multiplicateur|multiplicador|moltiplicatore)$/i
const COLUMN_WORD =
  /^(?:(?:open|close|entry|exit|order|trade|deal|market|filled) ?)?(?:time|date|date\/time|price|type|side|symbol|item|state|status|size|volume|qty|quantity|amount|balance|profit|swap|commission|fees?|taxes|comment|description|currency|action|order|deal|ticket|position|account)(?: \(?[A-Z]{3}\)?)?$/i
const NUMBER = /^[-+(]?\s*\p{Sc}?\s*[\d.]/u
const ZERO = /^0*(?:\.0*)?$/
const MAX_TYPES = 1000
const NOTHING = /^[-–—]*$/

/**
 * Finds the list of trades in a statement, and the rows in it that are no trades: titles, totals, other tables, money that
 * comes and goes. A row is only left out for what it says: its section, its type, a word like "Total" together with a
 * missing time or price, or that it has neither time nor price nor quantity.
 */
export class StatementSections {
  /** Counts a row that is left out. */
  readonly #skip: (kind: Kind, row: number) => void
  /** What the caller says that columns are. */
  readonly #stated: ReadingOptions['columns']
  #prefix: Prefix | null = null
  #section = ''
  #header: Cells = []
  #firstWidth = 0
  #names: Cells = []
  readonly #above: Kind[] = []
  #used: UsedColumns | null = null
  /** Where the present section has the columns of the header; null if in the same places. */
  #places: readonly number[] | null = null
  /** The contract sizes of symbols, as other sections of a statement give them. */
  readonly contractSizes = new Map<string, number>()
  /** Where the present section has them. */
  #sizes: { readonly section: string; readonly symbol: number; readonly size: number } | null = null
  readonly #kinds = new Map<string, RowKind | null>()
  #level = ''
  /** The rows belong to another table. */
  #isOther = false
  /** The rows are trades that are still open. */
  #isOpen = false

  constructor(skip: (kind: Kind, row: number) => void, stated: ReadingOptions['columns'] = new Map()) {
    this.#skip = skip
    this.#stated = stated
  }

  /** Chooses the header: the first row with the columns of round trips, or else of fills, or else the widest one. */
  readonly choose = (rows: readonly Cells[], isAll: boolean): ChosenHeader | null => {
    const ranked = rows.map((cells) => ({
      cells,
      rank: isAll && !mayHaveTimes(cells) ? 0 : rankOf(cells, this.#stated),
    }))
    const best = ranked.reduce((one, other) => (other.rank > one.rank ? other : one), { cells: [] as Cells, rank: 0 })
    if (best.rank === 0) return isAll ? this.#widest(rows) : this.#noteFirst(rows)
    return isAll || !prefixOf(best.cells) ? this.#chosen(best.cells, rows) : null
  }

  /** The rows of a sample of the file that belong to the trades, in the order of the header. It tells what columns hold. */
  readonly own = (names: Cells, sample: readonly Cells[]): readonly Cells[] => {
    const types = names.flatMap((name, index) => (isTypeColumn(plainName(name)) ? [index] : []))
    let isOther = !this.#prefix && this.#above.length > 0 && sample.some((cells) => this.#isHeader(cells))
    let places: readonly number[] | null = null
    const own: Cells[] = []
    for (const written of sample) {
      const record = this.#recordOf(written)
      if (record === 'repeated_header') places = placesOf(names, written)
      if (record !== null) continue
      const isHeader = this.#isHeader(written)
      if (isHeader || isHeaderOfAnother(written.filter((cell) => cell !== ''))) isOther = !isHeader
      else if (!isOther) own.push(placed(written, places))
    }
    // A trade that is called a dividend is as full as other trades.
    const most = Math.max(...own.map(filled))
    const isTrade = (cells: Cells): boolean =>
      filled(cells) === most || !(isTotal(cells) || types.some((column) => kindOfType(cells[column] ?? '')))
    return own.filter(isTrade)
  }

  /** Counts a row above the header. */
  readonly above = (cells: Cells): void => {
    const isOther = this.#prefix !== null && !MARKS.test(cells[0] ?? '')
    if (this.#prefix) this.#noteSizes(cells, cells[this.#prefix.section] ?? '', cells[this.#prefix.record] ?? '')
    this.#above.push(isOther ? 'other_section' : 'preamble')
  }

  /** Starts the rows below the header. */
  begin(header: Header): void {
    for (const kind of this.#above) this.#skip(kind, 0)
    this.#used = usedColumns(header)
    if (this.#header.length === 0) this.#header = this.#names = header.names
  }

  /** The cells of a row in the order of the header; null if the row is no trade. */
  readonly arrange = (written: Cells, row: number): Cells | null => {
    const used = this.#used
    if (!used) return written
    const cells = this.#inSection(written, row)
    if (!cells) return null
    const kind = this.#kindOf(cells, used)
    if (kind) {
      this.#skip(kind, row)
      return null
    }
    return this.#isOpen && used.exitPrice >= 0 ? cells.with(used.exitPrice, '') : cells
  }

  /** Notes how wide the first row is, and chooses none. */
  #noteFirst([first = []]: readonly Cells[]): null {
    this.#firstWidth = filled(first)
    return null
  }

  /** The widest row that could be a header, if it is wider than the first row, which is then a title. */
  #widest(rows: readonly Cells[]): ChosenHeader | null {
    const texts = rows.filter((cells) => !cells.some((cell) => NUMBER.test(cell)))
    const widest = texts.reduce((one, other) => (filled(other) > filled(one) ? other : one), [] as Cells)
    return filled(widest) > this.#firstWidth ? this.#chosen(widest, rows) : null
  }

  #chosen(cells: Cells, rows: readonly Cells[]): ChosenHeader {
    this.#header = cells
    this.#prefix = prefixOf(cells)
    const names = [...cells]
    if (this.#prefix) {
      const { section, record } = this.#prefix
      this.#section = cells[section] ?? ''
      const others = rows.filter((row) => row[section] === this.#section && row[record] === cells[record])
      for (const name of others.flat()) if (name !== '' && !names.includes(name)) names.push(name)
    }
    this.#names = names
    return { cells, names }
  }

  /** The cells of a row of the section of trades; null if it belongs to another section, or is a header. */
  #inSection(cells: Cells, row: number): Cells | null {
    if (!this.#prefix) return this.#isOther ? this.#afterOther(cells, row) : placed(cells, this.#places)
    const kind = this.#recordOf(cells)
    if (kind === null) return placed(cells, this.#places)
    const { section, record } = this.#prefix
    if (kind === 'other_section') this.#noteSizes(cells, cells[section] ?? '', cells[record] ?? '')
    if (kind === 'repeated_header') this.#places = placesOf(this.#names, cells)
    this.#skip(kind, row)
    return null
  }

  /** The kind of a row by its section and its record; null if it is data of the trades, or if the file has no records. */
  #recordOf(cells: Cells): Kind | null {
    if (!this.#prefix) return null
    const word = cells[this.#prefix.record] ?? ''
    if (cells[this.#prefix.section] !== this.#section || MARKS.test(cells[0] ?? '')) return 'other_section'
    if (/^header$/i.test(word)) return 'repeated_header'
    if (/total$/i.test(word)) return 'total'
    return /^notes?$/i.test(word) ? 'summary' : null
  }

  /** Notes the contract sizes in a row of another section, such as "Financial Instrument Information". */
  #noteSizes(cells: Cells, section: string, word: string): void {
    if (/^header$/i.test(word)) {
      const [symbol, size] = [cells.indexOf('Symbol'), cells.findIndex((cell) => MULTIPLIER.test(cell))]
      this.#sizes = symbol >= 0 && size >= 0 ? { section, symbol, size } : null
    } else if (this.#sizes?.section === section) {
      const size = Number(cells[this.#sizes.size]?.replaceAll(',', ''))
      for (const symbol of (cells[this.#sizes.symbol] ?? '').split(/, */))
        if (size > 0) this.contractSizes.set(symbol, size)
    }
  }

  /** The rows of another table are left out until the header of the trades comes again. */
  #afterOther(cells: Cells, row: number): null {
    const isBack = this.#isHeader(cells)
    if (isBack) [this.#isOther, this.#isOpen, this.#places] = [false, false, null]
    this.#skip(isBack ? 'repeated_header' : 'other_section', row)
    return null
  }

  #kindOf(cells: Cells, used: UsedColumns): Kind | null {
    const isWhole =
      isDigit(cells[used.time]) && isFilled(cells[used.price]) && (used.qty < 0 || isAmount(cells[used.qty]))
    const part = isWhole ? null : this.#kindOfPart(cells, used)
    if (part) return part
    for (const column of used.types) {
      const found = this.#kindOfType(cells[column] ?? '')
      if (found === null) continue
      const { kind, certainty } = found
      if (certainty === 'if_cancelled' ? cells.some(isCancelled) : !isWhole || (certainty === 'sure' && !used.isTrips))
        return kind
    }
    if (used.level >= 0 && this.#isOtherLevel(cells[used.level] ?? '')) return 'other_section'
    if (used.code < 0) return null
    return ZERO.test(cells[used.price] ?? '') && OPTION_CODE.test(cells[used.code] ?? '') ? 'option_event' : null
  }

  /** The kind of a row without a readable time, a price or a quantity. */
  #kindOfPart(cells: Cells, used: UsedColumns): Kind | null {
    const texts = cells.filter((cell) => cell !== '')
    if (texts.length === 0) return 'empty'
    if (this.#isHeader(cells)) {
      ;[this.#isOpen, this.#places] = [false, null]
      return 'repeated_header'
    }
    if (isHeaderOfAnother(texts)) return this.#takeHeader(cells, used)
    const [first = ''] = texts
    const hasTime = isDigit(cells[used.time])
    if (isTotal(cells)) return 'total'
    if (MARKS.test(first)) return 'other_section'
    if (texts.length === 1 && !hasTime && /^\p{L}/u.test(first)) {
      this.#isOpen = /^open (?:trades|positions)\b/i.test(first)
      return first.endsWith(':') ? 'summary' : 'other_section'
    }
    if (first.endsWith(':') && !hasTime) return 'summary'
    const isBare = [used.time, used.price, used.qty].every((column) => !isFilled(cells[column]))
    return isBare && !used.types.some((column) => this.#kindOfType(cells[column] ?? '')) ? 'summary' : null
  }

  /** Takes over the places of a header with the same columns, or leaves out the table below it. */
  #takeHeader(cells: Cells, { needed, entry }: UsedColumns): Kind {
    const places = placesOf(this.#names, cells)
    const hasAll = (columns: readonly number[]): boolean => columns.every((column) => places?.[column] !== -1)
    if (places === null || hasAll(needed) || (this.#isOpen && hasAll(entry))) {
      this.#places = places
      return 'repeated_header'
    }
    this.#isOther = true
    return 'other_section'
  }

  /** The same types come again and again, so each is looked up once. */
  #kindOfType(type: string): RowKind | null {
    const known = this.#kinds.get(type)
    if (known !== undefined) return known
    const kind = kindOfType(type)
    if (this.#kinds.size < MAX_TYPES) this.#kinds.set(type, kind)
    return kind
  }

  #isHeader(cells: Cells): boolean {
    const header = this.#header
    const first = header.findIndex((cell) => cell !== '')
    if (first < 0 || cells[first] !== header[first]) return false
    return header.every((cell, index) => cell === (cells[index] ?? ''))
  }

  /** Whether a row repeats trades in another level of detail than the first one. */
  #isOtherLevel(level: string): boolean {
    if (OTHER_LEVELS.test(level)) return true
    if (!LEVELS.test(level)) return false
    this.#level ||= level
    return level !== this.#level
  }
}

/** The columns that tell whether a row is a trade, by index; -1 for a column that the file does not have. */
interface UsedColumns {
  readonly time: number
  readonly price: number
  readonly qty: number
  readonly exitPrice: number
  readonly level: number
  readonly code: number
  /** Columns whose words say what a row is. */
  readonly types: readonly number[]
  /** Columns that a trade is read from, and those of its entry. */
  readonly needed: readonly number[]
  readonly entry: readonly number[]
  /** Each row is a round trip. */
  readonly isTrips: boolean
}

function usedColumns({ names, columns, layout }: Header): UsedColumns {
  const plain = names.map(plainName)
  const find = (known: readonly string[]): number => plain.findIndex((name) => known.includes(name))
  const at = (column: number | undefined): number => column ?? -1
  const isTrips = columns.entryTime !== undefined && columns.entryPrice !== undefined
  const entry = [columns.entryTime ?? columns.time, columns.entryPrice ?? columns.price].filter(
    (one) => one !== undefined,
  )
  const types = names.flatMap((_, index) =>
    layout !== 'tradingview' && (isTypeColumn(plain[index] ?? '') || index === columns.side) ? [index] : [],
  )
  return {
    time: at(columns.entryTime ?? columns.time),
    price: at(columns.entryPrice ?? columns.price),
    qty: at(columns.qty),
    exitPrice: at(columns.exitPrice),
    level: find(LEVEL_COLUMNS),
    code: find(CODE_COLUMNS),
    types,
    needed: [...entry, columns.exitTime, columns.exitPrice, columns.qty, columns.symbol, columns.side].filter(
      (one) => one !== undefined,
    ),
    entry,
    isTrips,
  }
}

/** How well a row would do as the header: 0 if it is none, more for round trips than for fills, most in a section of trades. */
function rankOf(cells: Cells, columns: ReadingOptions['columns']): number {
  const prefix = prefixOf(cells)
  const section = prefix !== null && TRADES.test(cells[prefix.section] ?? '') ? 3 : 0
  try {
    // A table of one instrument need not name it.
    const stated = { columns, symbol: '' }
    const { layout } = recogniseHeader(namedByLeg(cells), { decimal: 'either', dayFirst: null }, [], stated)
    return section + (layout === 'fills' || layout === 'lean_orders' ? 1 : 2)
  } catch {
    return section
  }
}

/** Whether a row of texts could name a column of times. */
const mayHaveTimes = (cells: Cells): boolean =>
  cells.every((cell) => cell.length <= 60) && cells.some((cell) => TIME_NAME.test(cell) && cell.split(' ').length < 5)

function prefixOf([first = '', second = '']: Cells): Prefix | null {
  if (/^header$/i.test(second)) return { section: 0, record: 1 }
  return /^header$/i.test(first) ? { section: 1, record: 0 } : null
}

/**
 * Where another header has each of the names: -1 if nowhere; null if it has all of them in the same places. Of two columns
 * with one name, the first belongs to the first.
 */
function placesOf(names: Cells, cells: Cells): readonly number[] | null {
  const taken = new Set<number>()
  const places = names.map((name) => {
    const place = cells.findIndex((cell, index) => cell === name && name !== '' && !taken.has(index))
    if (place >= 0) taken.add(place)
    return place
  })
  return places.every((place, index) => place === index || names[index] === '') ? null : places
}

const placed = (cells: Cells, places: readonly number[] | null): Cells =>
  places ? places.map((place) => cells[place] ?? '') : cells

/** Whether a row of texts names columns. A trade has at least one number. */
const isHeaderOfAnother = (texts: Cells): boolean =>
  texts.length > 2 &&
  !texts.some((cell) => NUMBER.test(cell)) &&
  texts.filter((cell) => COLUMN_WORD.test(cell)).length > 1

/** Whether a quantity is there: a row of funding can have a price and a quantity of 0. */
const isAmount = (cell: string | undefined): boolean => cell !== '0' && isFilled(cell)

const filled = (cells: Cells): number => cells.filter((cell) => cell !== '').length

/** Whether a cell begins with a digit, as most times and numbers do. */
const isDigit = (cell: string | undefined): boolean => {
  const code = cell?.charCodeAt(0) ?? 0
  return code >= 48 && code <= 57
}

/** Whether a cell is more than dashes. */
const isFilled = (cell: string | undefined): boolean => isDigit(cell) || !NOTHING.test(cell ?? '')
