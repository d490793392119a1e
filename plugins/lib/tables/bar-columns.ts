/** The columns of tables of bars: the names that vendors and languages give them, and what they are by their values. */
import { once } from 'tollgate/plugin'
import { isMissing, isUnset, readNumber, type CellFormat } from './cell-values.ts'
import { MAX_NAME, quoted } from './column-names.ts'
import { createTimeReader } from './time-cells.ts'
import { findPrices, findVolume, fitOf, type Numbers, type OrderFit, type PriceOrder } from './price-order.ts'

/** What a column of bars is used as. `clock` is a time of day in a column of its own. */
export type BarField = 'symbol' | 'time' | 'clock' | 'open' | 'high' | 'low' | 'close' | 'volume' | 'split'

export const PRICE_FIELDS = ['open', 'high', 'low', 'close'] as const

const words = (text: string): readonly string[] => text.trim().split(/\s+/)

/** Plain names of each field: the first that a table has counts. */
export const BAR_NAMES: Readonly<Record<BarField, readonly string[]>> = {
  symbol: words('symbol ticker pair instrument sym code isin cusip wkn conid coin contract'),
  time: words(`
    t timestamp time date datetime ts start starttime startedat opentime gmttime utctime dateutc datetimeutc timeutc localtime
    unix unixtime unixtimestamp epoch mts bartime begin startat candletime tradedate tradingday day period datum fecha data`),
  clock: words('time clock hour timeofday hhmm hhmmss uhrzeit zeit hora heure czas ora'),
  open: words(`
    o open openprice openingprice opening priceopen bidopen first eröffnung eröffnungskurs erster ouverture ouv apertura
    otwarcie abertura`),
  high: words(`
    h high highprice max pricehigh bidhigh dayhigh hoch tageshoch haut plushaut máximo maximo massimo najwyższy najwyzszy
    máxima`),
  low: words(
    'l low lowprice min pricelow bidlow daylow tief tagestief bas plusbas mínimo minimo najniższy najnizszy mínima',
  ),
  close: words(`
    c close closeprice closingprice priceclose bidclose closelast last lastprice schluss schlusskurs clôture cloture clot
    dernier cierre último ultimo chiusura zamknięcie zamkniecie fechamento settle settlement price`),
  volume: words(`
    v volume vol basevolume basetokenvolume totalvolume shares volumen wolumen quantity stück stücke realvolume tickvol
    tickvolume`),
  split: words('splitcoefficient splitfactor splitratio stocksplits splits split'),
}

/** "Volume BTC" of CryptoDataDownload, "Volume_(BTC)". */
const VOLUME_OF = /^vol(?:ume)?[a-z]{3,5}$/
/** "1. open", "4a. close (USD)": Alpha Vantage numbers its columns. */
const NUMBERED = /^\s*\d+[a-z]?\.\s+/i
/** "open (USD)": a price and its currency. */
const IN_CURRENCY = /^(.+?)\s*\([A-Z]{3,5}\)$/
const ADJUSTED = /^adj|^close(?:adj|unadj)|adjusted/
const UTC_NAME = /utc|gmt/

/** A name of a column of bars without case, punctuation, number and currency. It keeps its zone: "gmttime". */
export const barName = (name: string): string =>
  name
    .slice(0, MAX_NAME)
    .replace(NUMBERED, '')
    .replace(IN_CURRENCY, '$1')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, '')

/** The columns that have a name of a field, the best name first. A name that is spelt exactly comes before others. */
export function columnsNamed(
  field: BarField,
  names: readonly string[],
  plain: readonly string[] = names.map(barName),
): number[] {
  const found: number[] = []
  for (const known of BAR_NAMES[field]) {
    if (!plain.includes(known)) continue
    const exact = names.indexOf(known)
    if (exact >= 0) found.push(exact)
    for (const [index, name] of plain.entries()) if (name === known && index !== exact) found.push(index)
  }
  if (field === 'volume')
    for (const [index, name] of plain.entries()) if (VOLUME_OF.test(name) && !found.includes(index)) found.push(index)
  return found
}

/** A column of a table of bars, as a report shows it. */
export interface ReadColumn {
  readonly name: string
  /** Null if it is not used. */
  readonly used_as: BarField | null
  /** Why it is not used, or how it was recognised if not by its name. */
  readonly why: string | null
}

/** The column of each field. */
export type BarPlaces = Readonly<Record<BarField, number | undefined>>

/** What the columns of a table are used as. */
export interface BarPlan {
  readonly places: BarPlaces
  readonly columns: readonly ReadColumn[]
  /** Whether the name of the time says that it is UTC. */
  readonly isUtc: boolean
  /** Rows at the start that go on with the header, as yfinance writes them. */
  readonly headerRows: number
}

/** A table whose columns cannot be told. `msg` says what is missing, or what was seen. */
export interface NoPlan {
  readonly type: 'unknown_layout' | 'column_order' | 'number_parsing'
  readonly msg: string
}

type Rows = readonly (readonly string[])[]

/**
 * Decides from the names and the first rows what the columns are. Prices are recognised by their names, otherwise by their
 * values; the time by its name and its values. A day and a time of day in two columns belong together.
 *
 * @param names null if the table has no header
 */
export function planBars(names: readonly string[] | null, first: Rows, { decimal }: CellFormat): BarPlan | NoPlan {
  const headerRows = first.findIndex((cells) => cells.some((cell) => isNumber(cell, decimal) || kindOf(cell) !== null))
  const rows = headerRows > 0 ? first.slice(headerRows) : first
  const width = names?.length ?? rows[0]?.length ?? 0
  const table: Table = {
    names: names ?? Array.from({ length: width }, (_, index) => `column ${index + 1}`),
    plain: names ? names.map(barName) : Array.from({ length: width }, () => ''),
    isNamed: names !== null,
    rows,
    numbers: once(() => numbersOf(rows, width, decimal)),
  }
  const when = findTimes(table)
  const prices = findPriceColumns(table, when)
  if ('msg' in prices) return prices
  if (when.time === undefined) return unknownLayout(table, ['time'])
  const { order } = prices
  const taken = [when.time, when.clock, order.open, order.high, order.low, order.close]
  const volume = volumeOf(table, taken, prices)
  const split = columnsNamed('split', table.names, table.plain)[0]
  const symbol = symbolOf(table, when, [...taken, volume, split])
  const places = { ...when, ...order, volume, split, symbol: symbol.index }
  return {
    places,
    columns: describe(table, places, { prices: prices.isByValue, symbol: symbol.isByValue }),
    isUtc: UTC_NAME.test(table.plain[when.time] ?? ''),
    headerRows: Math.max(0, headerRows),
  }
}

interface Table {
  readonly names: readonly string[]
  readonly plain: readonly string[]
  readonly isNamed: boolean
  readonly rows: Rows
  /** The cells as numbers, NaN for others. */
  readonly numbers: () => Numbers
}

function numbersOf(rows: Rows, width: number, decimal: CellFormat['decimal']): Numbers {
  return Array.from({ length: width }, (_, index) =>
    Float64Array.from(rows, (cells) => numberOf(cells[index] ?? '', decimal)),
  )
}

/** A cell as a number; NaN for what is none. */
function numberOf(text: string, decimal: CellFormat['decimal']): number {
  try {
    return readNumber(text, { file: 'bars', row: 0, column: '' }, decimal)
  } catch {
    return Number.NaN
  }
}

const isNumber = (text: string, decimal: CellFormat['decimal']): boolean => !Number.isNaN(numberOf(text, decimal))

/** Whether a line is a row of bars, and not a header: at least five of its cells are numbers or times. */
export function isBarRow(cells: readonly string[]): boolean {
  return cells.filter((cell) => isNumber(cell, 'either') || kindOf(cell) !== null).length >= 5
}

type TimeKind = 'full' | 'day' | 'clock'

const CLOCK = /^(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?\s*([AP]M)?$/i
/** A price or a volume: dates in digits have eight of them, and epochs nine or more. */
const SMALL_NUMBER = /^[+-]?\d{0,7}(?:[.,]\d+)?$/
const DIGIT_CLOCK = /^\d{1,6}$/
/** Midnight at the end of a day: "2024-01-02 00:00:00", perhaps with a zone. */
const MIDNIGHT = /[T ]+0?0:00(?::00(?:\.0+)?)?(?:\s*(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?$/i
const EPOCH = /^\d{9,}(?:\.\d+)?$/
const HAS_CLOCK = /\d:\d\d|^\d{9,}(?:\.\d+)?$|^\d{8}[T; -]\d{4}/

/** What a cell says of a time; null if it is none. A number of less than eight digits is none. */
function kindOf(text: string): TimeKind | null {
  if (CLOCK.test(text)) return 'clock'
  if (text.length < 6 || SMALL_NUMBER.test(text) || !/\d/.test(text)) return null
  try {
    if (createTimeReader(null).read(timeText(text, null), { file: 'bars', row: 0, column: '' }) === null) return null
  } catch {
    // A day that is read with the month first, such as 31/1/2024.
  }
  return HAS_CLOCK.test(text) ? 'full' : 'day'
}

/** Enough rows to tell what a column holds. */
const SEEN = 100
/** This share of the cells must be of one kind. */
const MOST = 0.9

/** What nearly all cells of a column say of a time. `midnight` are full times that are all midnight. */
function columnKind({ rows }: Table, index: number): TimeKind | 'midnight' | null {
  const cells = rows.slice(0, SEEN).flatMap((row) => (isMissing(row[index] ?? '') ? [] : [row[index]!]))
  const kinds = cells.map(kindOf)
  const kind = (['full', 'day', 'clock'] as const).find(
    (each) => cells.length > 0 && kinds.filter((one) => one === each).length >= MOST * cells.length,
  )
  const isMidnight = kind === 'full' && cells.every((cell) => MIDNIGHT.test(cell))
  return isMidnight ? 'midnight' : (kind ?? null)
}

function isDigitClock({ rows }: Table, index: number): boolean {
  return rows.slice(0, SEEN).every((row) => clockText(row[index] ?? '') !== null)
}

interface TimeColumns {
  readonly time: number | undefined
  readonly clock: number | undefined
}

/** The column of the time, and that of the time of day if it has its own. */
function findTimes(table: Table): TimeColumns {
  const named = columnsNamed('time', table.names, table.plain)
  const all = table.names.map((_, index) => index)
  const kinds = new Map(all.map((index) => [index, columnKind(table, index)]))
  const isTime = (kind: TimeKind | 'midnight' | null | undefined): boolean => kind === 'day' || kind === 'midnight'
  const fulls = named.filter((index) => kinds.get(index) === 'full')
  // An epoch is exact; the same time beside it may lack its zone.
  const full = fulls.find((index) => table.rows.some((cells) => EPOCH.test(cells[index] ?? ''))) ?? fulls[0]
  if (full !== undefined) return { time: full, clock: undefined }
  const others = table.isNamed ? all.filter((index) => !isPriceName(table, index)) : all
  const day = [...named, ...others].find((index) => isTime(kinds.get(index)))
  if (day !== undefined) {
    const clocks = columnsNamed('clock', table.names, table.plain).filter((index) => index !== day)
    const clock =
      [...clocks, ...all].find((index) => kinds.get(index) === 'clock') ??
      (table.isNamed ? clocks : [day + 1].filter((next) => leavesPrices(table, next))).find((index) =>
        isDigitClock(table, index),
      )
    return { time: day, clock }
  }
  return { time: others.find((index) => kinds.get(index) === 'full') ?? named[0], clock: undefined }
}

/** "Price" is a price, or the time in tables of yfinance. */
const isPriceName = (table: Table, index: number): boolean =>
  table.plain[index] !== 'price' &&
  [...PRICE_FIELDS, 'volume' as const].some((field) => BAR_NAMES[field].includes(table.plain[index]!))

/** Without a header, a time of day in digits is written with four or six, and five numbers follow at least. */
const leavesPrices = ({ rows, names }: Table, index: number): boolean =>
  names.length - index > 4 && rows.every((row) => /^(?:\d{4}|\d{6})$/.test(row[index] ?? ''))

/** "9:30", "0930", "93000" or "9:30 PM" as "09:30:00"; null if it is no time of day. */
function clockText(text: string): string | null {
  const digits = DIGIT_CLOCK.test(text) ? text.padStart(text.length > 4 ? 6 : 4, '0') : null
  const [, hour = '', minute = '', second = '00', half] =
    digits === null ? (CLOCK.exec(text) ?? []) : [text, digits.slice(0, 2), digits.slice(2, 4), digits.slice(4) || '00']
  if (hour === '') return null
  const hours = half === undefined ? Number(hour) : (Number(hour) % 12) + (/^p/i.test(half) ? 12 : 0)
  if (hours > 24 || Number(minute) > 59 || Number(second) > 59) return null
  return `${String(hours).padStart(2, '0')}:${minute}:${second}`
}

/** Dukascopy: "01.02.2024 00:00:00.000 GMT+0100". */
const DAY_FIRST_ZONED = /^(\d{2})\.(\d{2})\.(\d{4}) (\d\d:\d\d:\d\d(?:\.\d+)?) GMT([+-]\d{4})$/
/** Interactive Brokers: "20240102 09:30:00 US/Eastern". */
const ZONE_NAMED = /^(.*\d) ([A-Z][A-Za-z]+(?:\/[A-Za-z_]+)+)$/

/** The name of the zone at the end of a time; null if there is none. */
export const zoneNameIn = (text: string): string | null => ZONE_NAMED.exec(text)?.[2] ?? null

/** The text of a time from its cell, and from that of the time of day if it has its own. */
export function timeText(day: string, clock: string | null): string {
  if (clock !== null) return `${day.replace(MIDNIGHT, '')} ${clockText(clock) ?? clock}`
  if (day.includes(' GMT')) return day.replace(DAY_FIRST_ZONED, '$3-$2-$1T$4$5')
  return day.includes('/') ? day.replace(ZONE_NAMED, '$1') : day
}

interface PriceColumns {
  readonly order: PriceOrder
  readonly isByValue: boolean
}

function findPriceColumns(table: Table, { time, clock }: TimeColumns): PriceColumns | NoPlan {
  const [open, high, low, close] = PRICE_FIELDS.map((field) =>
    columnsNamed(field, table.names, table.plain).find((index) => index !== time && index !== clock),
  )
  const named = { open, high, low, close }
  if (open !== undefined && high !== undefined && low !== undefined && close !== undefined) {
    const order = { open, high, low, close }
    const unreadable = unreadableColumn(table, order)
    if (unreadable) return unreadable
    const fit = fitOf(table.numbers(), order)
    if (isNoOrder(fit)) return { type: 'column_order', msg: misfitText(fit, table.numbers(), order, table.names) }
    return { order, isByValue: false }
  }
  const isPrice = (index: number): boolean =>
    index !== time && index !== clock && isMostlyNumbers(table.numbers()[index]!)
  const candidates = table.names.flatMap((_, index) => (isPrice(index) ? [index] : []))
  const order = findPrices(table.numbers(), candidates, isBackwards(table, { time, clock }))
  const agrees = order && PRICE_FIELDS.every((field) => named[field] === undefined || named[field] === order[field])
  if (agrees) return { order, isByValue: true }
  const missing = PRICE_FIELDS.filter((field) => named[field] === undefined)
  if (table.isNamed) return unknownLayout(table, missing)
  const msg =
    `The file has no header, and no four of its ${table.names.length} columns in a row are prices, of which one is the largest ` +
    'and one the smallest in nearly all rows. Add a header that names the columns.'
  return { type: 'column_order', msg }
}

/** A column of prices most of whose cells are neither numbers nor missing. */
function unreadableColumn({ rows, names, numbers }: Table, order: PriceOrder): NoPlan | null {
  for (const field of PRICE_FIELDS) {
    const index = order[field]
    const wrong = rows.flatMap((cells, row) => {
      const cell = cells[index] ?? ''
      return Number.isNaN(numbers()[index]![row]!) && !isUnset(cell) ? [cell] : []
    })
    if (wrong.length <= rows.length / 2) continue
    const msg = `${quoted(wrong[0]!)} of the column ${quoted(names[index]!)} is no number, and most of its cells are none. Send numbers such as 67000.5.`
    return { type: 'number_parsing', msg }
  }
  return null
}

const isMostlyNumbers = (column: Float64Array): boolean =>
  column.length > 0 && column.filter((value) => !Number.isNaN(value)).length >= MOST * column.length

/** With fewer rows, an order is not judged. */
const MIN_JUDGED = 20
/** Bars may be bad, but hardly half of them. */
const LEAST_FITTING = 0.5

/** Whether the prices can hardly be in this order. */
export const isNoOrder = ({ rows, fitting }: OrderFit): boolean => rows >= MIN_JUDGED && fitting < LEAST_FITTING * rows

/** What was seen of prices that are in another order, in words. */
export function misfitText(
  { rows, fitting }: OrderFit,
  columns: Numbers,
  order: PriceOrder,
  names: readonly string[],
): string {
  const [most, least] = [extremeOf(columns, order, Math.max), extremeOf(columns, order, Math.min)]
  return (
    `High is the largest and low the smallest price in only ${fitting} of ${rows} rows. ${quoted(names[most.index]!)} is the ` +
    `largest in ${most.rows} and ${quoted(names[least.index]!)} the smallest in ${least.rows}. Name the columns, or send ` +
    'them as time, open, high, low, close, volume.'
  )
}

/** The column that is most often the largest, or the smallest, of a row. */
function extremeOf(columns: Numbers, order: PriceOrder, of: (...values: number[]) => number) {
  const places = PRICE_FIELDS.map((field) => order[field])
  const counts = places.map((index) => {
    let rows = 0
    for (let i = 0; i < columns[index]!.length; i += 1) {
      const values = places.map((place) => columns[place]![i]!)
      if (columns[index]![i] === of(...values) && new Set(values).size > 1) rows += 1
    }
    return { index, rows }
  })
  return counts.reduce((a, b) => (b.rows > a.rows ? b : a))
}

/** Whether the newest row is first. */
function isBackwards({ rows }: Table, { time, clock }: TimeColumns): boolean {
  if (time === undefined) return false
  const reader = createTimeReader(null)
  const moments = rows.slice(0, SEEN).map((cells, row) => {
    try {
      const text = timeText(cells[time] ?? '', clock === undefined ? null : (cells[clock] ?? ''))
      return reader.read(text, { file: 'bars', row, column: '' }) ?? Number.NaN
    } catch {
      return Number.NaN
    }
  })
  const back = moments.filter((moment, index) => moment < moments[index - 1]!).length
  return back > moments.length / 2
}

function unknownLayout({ names, isNamed }: Table, missing: readonly string[]): NoPlan {
  const seen = isNamed ? ` The columns are ${names.slice(0, 20).map(quoted).join(', ')}.` : ''
  const msg = `Bars need a time, open, high, low and close; missing: ${missing.join(', ')}.${seen} Name them so.`
  return { type: 'unknown_layout', msg }
}

/** The first column of volumes that is not zero everywhere: some exports have one of trades and one of ticks. */
function volumeOf(
  table: Table,
  taken: readonly (number | undefined)[],
  { order, isByValue }: PriceColumns,
): number | undefined {
  const numbers = table.numbers()
  const named = columnsNamed('volume', table.names, table.plain).filter((index) => !taken.includes(index))
  if (named.length > 0 || !isByValue)
    return named.find((index) => numbers[index]!.some((value) => value > 0)) ?? named[0]
  const candidates = numbers.flatMap((column, index) => (isMostlyNumbers(column) ? [index] : []))
  return findVolume(numbers, candidates, order) ?? undefined
}

interface SymbolColumn {
  readonly index: number | undefined
  readonly isByValue: boolean
}

/** The column that tells instruments apart: by its name, or one of differing texts if times repeat. */
function symbolOf(table: Table, { time, clock }: TimeColumns, taken: readonly (number | undefined)[]): SymbolColumn {
  const { rows } = table
  const named = columnsNamed('symbol', table.names, table.plain).find((index) => !taken.includes(index))
  if (named !== undefined) return { index: named, isByValue: false }
  const times = new Set(rows.map((cells) => `${cells[time ?? -1]} ${cells[clock ?? -1]}`))
  if (times.size === rows.length) return { index: undefined, isByValue: false }
  const distinct = (index: number): number => new Set(rows.map((cells) => cells[index])).size
  const isText = (index: number): boolean =>
    !taken.includes(index) && rows.every((cells) => /\p{L}/u.test(cells[index] ?? '') && kindOf(cells[index]!) === null)
  const texts = table.names.flatMap((_, index) => (isText(index) && distinct(index) > 1 ? [index] : []))
  const index = texts.toSorted((a, b) => distinct(b) - distinct(a))[0]
  return { index, isByValue: index !== undefined }
}

function describe(
  { names, plain, isNamed }: Table,
  places: BarPlaces,
  isByValue: { readonly prices: boolean; readonly symbol: boolean },
): ReadColumn[] {
  const used = new Map(Object.entries(places).map(([field, index]) => [index, field as BarField]))
  return names.map((name, index) => {
    const field = used.get(index)
    if (field === undefined) return { name, used_as: null, why: whyUnused(plain[index]!, places) }
    const isRecognised = !isNamed || (field === 'symbol' ? isByValue.symbol : isByValue.prices && isPriceField(field))
    return { name, used_as: field, why: isRecognised ? 'by its values' : null }
  })
}

const isPriceField = (field: BarField): boolean => (PRICE_FIELDS as readonly string[]).includes(field)

function whyUnused(plain: string, { volume, time }: BarPlaces): string {
  if (ADJUSTED.test(plain)) return 'the close as traded is used'
  if (BAR_NAMES.time.includes(plain) && time !== undefined) return 'another column has the time'
  if ((BAR_NAMES.volume.includes(plain) || VOLUME_OF.test(plain)) && volume !== undefined)
    return 'another column has the volume'
  return 'not part of a bar'
}
