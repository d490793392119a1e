import type { BarReading } from '../../schemas/types.d.ts'
import { isRow, type Row } from '../lib/feeds/payloads.ts'
import {
  type BarField,
  barName,
  columnsNamed,
  isNoOrder,
  misfitText,
  PRICE_FIELDS,
  timeText,
} from '../lib/tables/bar-columns.ts'
import { findPrices, findVolume, fitOf, type Numbers, type PriceOrder } from '../lib/tables/price-order.ts'
import { UTC, type Zone } from '../lib/time/time-zones.ts'
import { separateRepeatedHour } from '../lib/time/wall-clock.ts'
import { invalid, type Key, type Loc, type NumberField, NUMBERS, type Places } from './bar-places.ts'
import { isDay, isWallTime, parseBarTime } from './bar-times.ts'
import { readingOf } from './bar-reading.ts'
import { readNumberTexts, type TextCell } from './number-texts.ts'

/** Bars as columns, in the order of the request. A missing price or volume is NaN. */
export interface Bars {
  readonly count: number
  /** When each bar opens, epoch seconds. */
  readonly time: Float64Array
  readonly open: Float64Array
  readonly high: Float64Array
  readonly low: Float64Array
  readonly close: Float64Array
  /** Null if no row has a volume. */
  readonly volume: Float64Array | null
}

/** The prices of a bar, in the order in which rules check them. */
export const PRICES = PRICE_FIELDS
/** The smallest number of bars in a request. */
export const MIN_BARS = 3
/** The largest number of bars in a request. */
export const MAX_BARS = 50_000

/** No price or volume is larger or smaller, and the ratio of any two of them, and its square, is a number. */
const [SMALLEST, LARGEST] = [1e-100, 1e100]

type Columns = Record<'time' | NumberField, Float64Array>

/** The order in which exchanges send arrays: [t, o, h, l, c, v]. Further values are not used. */
const ARRAY_PLACES: Places = { time: 0, clock: undefined, open: 1, high: 2, low: 3, close: 4, volume: 5 }

/** Bars, and how they were read. */
export interface ReadBars {
  readonly bars: Bars
  readonly reading: BarReading
  /** Whether the times are those of a wall clock, without a zone. */
  readonly isWall: boolean
}

/** The bars of a request body, as `readRequest` reads them. */
export function readBars(body: unknown, zone: Zone): Bars {
  return readRequest(body, zone).bars
}

/**
 * Reads the bars of a request body: `{ bars: [...] }`, a bare array, or `{ columns, rows }`, also inside `bars`. A bar is
 * an object with names of any vendor, or an array [t, o, h, l, c, v]; arrays in another order are recognised by their values.
 * Prices may be text. Times without an offset are read in `zone`. Throws InvalidInput that names the row, or the column.
 */
export function readRequest(body: unknown, zone: Zone): ReadBars {
  const request = find(body)
  const { rows, loc } = request
  if (rows.length < MIN_BARS || rows.length > MAX_BARS)
    throw invalid(loc, `Has ${rows.length} bars; send ${MIN_BARS} to ${MAX_BARS}.`, 'bar_count')
  const first = readRows(request, request.columns ? tableRow(request) : freeRow(ARRAY_PLACES), zone)
  const found = otherOrder(request, first)
  const read = found ? readRows(request, freeRow(found), zone) : first
  const notes = readNumberTexts(read.columns, read.texts, {
    loc,
    rows,
    placeOf: (index) => read.placesIn(rows[index], loc),
  })
  const { volume, ...rest } = read.columns
  const bars = { count: rows.length, ...rest, volume: volume.some((value) => !Number.isNaN(value)) ? volume : null }
  const places = read.placesIn(rows[0], loc)
  return {
    bars,
    isWall: isWallTime(timeIn(rows[0] as Row, places)),
    reading: readingOf({ first: rows[0], columns: request.columns, places, isByValue: found !== null, notes }),
  }
}

/** How many bars a request body holds, in any of its forms. 0 if it has none of them. */
export function countBars(body: unknown): number {
  if (Array.isArray(body)) return body.length
  if (!isRow(body)) return 0
  if (Array.isArray(body['bars'])) return body['bars'].length
  const { rows } = isRow(body['bars']) ? body['bars'] : body
  return Array.isArray(rows) ? rows.length : 0
}

/** The rows of a request, where they are in it, and the names of their columns if it is a table. */
interface Request {
  readonly rows: readonly unknown[]
  readonly loc: Loc
  readonly columns: readonly unknown[] | null
}

function find(body: unknown): Request {
  if (Array.isArray(body)) return { rows: body, loc: ['body'], columns: null }
  if (!isRow(body)) throw invalid(['body'], 'Must be an object with bars, or an array of bars.', 'bars_type')
  if (Array.isArray(body['bars'])) return { rows: body['bars'], loc: ['body', 'bars'], columns: null }
  const [table, loc]: [Row, Loc] = isRow(body['bars']) ? [body['bars'], ['body', 'bars']] : [body, ['body']]
  const { columns, rows } = table
  if (!Array.isArray(columns) && !Array.isArray(rows))
    throw invalid(['body', 'bars'], 'Is missing. Send bars as an array, columns and rows, or a file.', 'missing')
  if (!Array.isArray(columns)) throw invalid([...loc, 'columns'], 'Must be an array of column names.', 'columns_type')
  if (!Array.isArray(rows)) throw invalid([...loc, 'rows'], 'Must be an array of rows.', 'rows_type')
  return { rows, loc: [...loc, 'rows'], columns }
}

interface Reading {
  readonly columns: Columns
  /** Texts that are no plain numbers. */
  readonly texts: readonly TextCell[]
  readonly placesIn: PlacesIn
}

function readRows({ rows, loc }: Request, placesIn: PlacesIn, zone: Zone): Reading {
  const empty = (): Float64Array => new Float64Array(rows.length)
  const columns: Columns = {
    time: empty(),
    open: empty(),
    high: empty(),
    low: empty(),
    close: empty(),
    volume: empty(),
  }
  const texts: TextCell[] = []
  const times: unknown[] | null = zone === UTC ? null : []
  for (const [index, row] of rows.entries()) {
    const at = [...loc, index]
    const keys = placesIn(row, at)
    const written = timeIn(row as Row, keys)
    columns.time[index] = time(written, zone, at, keys.time)
    times?.push(written)
    for (const name of NUMBERS) {
      const place = keys[name]
      const value = place === undefined ? undefined : (row as Record<Key, unknown>)[place]
      const read = number(value, at, place)
      columns[name][index] = read
      if (Number.isNaN(read) && typeof value === 'string' && value !== '') texts.push({ name, index, text: value })
    }
  }
  if (times) separateRepeatedHour(columns.time, (row) => isWallTime(times[row]), zone)
  return { columns, texts, placesIn }
}

function timeIn(row: Row, { time: day, clock }: Places): unknown {
  if (day === undefined) return undefined
  return clock === undefined ? row[day] : timeText(String(row[day]), String(row[clock]))
}

type PlacesIn = (row: unknown, loc: Loc) => Places

function tableRow({ rows, columns, loc }: Request): PlacesIn {
  const at = [...loc.slice(0, -1), 'columns']
  const names = (columns ?? []).map((column) => (typeof column === 'string' ? column.trim() : ''))
  const [first] = rows
  const placed = placesOf(names, (index) => (Array.isArray(first) ? (first[index] as unknown) : undefined), at)
  assertComplete(placed, at)
  const width = Math.max(...Object.values(placed).map((place) => place ?? 0)) + 1
  return (row, where) => {
    if (!Array.isArray(row)) throw invalid(where, 'Must be an array.', 'row_type')
    if (row.length < width) throw invalid(where, `Has ${row.length} values; needs ${width}.`, 'row_length')
    return placed
  }
}

/** Objects differ in few ways, so what was found for their keys is kept. */
const MAX_KEPT = 100

function freeRow(arrayPlaces: Places): PlacesIn {
  const known = new Map<string, Places>()
  let signature = ''
  let places = arrayPlaces
  return (row, loc) => {
    if (Array.isArray(row)) {
      if (row.length < 5) throw invalid(loc, `Has ${row.length} values; needs at least 5: t, o, h, l, c.`, 'row_length')
      return arrayPlaces
    }
    if (!isRow(row)) throw invalid(loc, 'Must be an object or an array.', 'row_type')
    const names = Object.keys(row)
    const found = names.join()
    if (found === signature) return places
    places = known.get(found) ?? objectPlaces(row, names, loc)
    signature = found
    if (known.size < MAX_KEPT) known.set(found, places)
    return places
  }
}

function objectPlaces(row: Row, names: readonly string[], loc: Loc): Places {
  const placed = placesOf(names, (index) => row[names[index]!], null)
  if (placed.time === undefined || PRICES.every((name) => placed[name] === undefined)) assertComplete(placed, loc)
  const key = (index: number | undefined): string | undefined => (index === undefined ? undefined : names[index])
  const { time: when, clock, open, high, low, close, volume } = placed
  // Literals have one shape, which keeps the reading of rows fast.
  const [o, h, l, c] = [key(open), key(high), key(low), key(close)]
  return { time: key(when), clock: key(clock), open: o, high: h, low: l, close: c, volume: key(volume) }
}

/**
 * The columns by their names. Throws InvalidInput at `loc` if two have the name of one price.
 *
 * @param valueOf the value of a column in the first row, which tells a day from a time
 */
function placesOf(names: readonly string[], valueOf: (index: number) => unknown, loc: Loc | null) {
  const plain = names.map(barName)
  const found = (name: BarField): readonly number[] => columnsNamed(name, names, plain)
  for (const name of loc ? PRICES : []) {
    const twice = found(name).filter((index) => plain[index] === name || plain[index] === name[0])
    const spelt = twice.map((index) => names[index]).join(', ')
    if (twice.length > 1) throw invalid(loc!, `Names ${name} twice: ${spelt}.`, 'columns_twice')
  }
  const times = found('time')
  const day = times.length === 1 ? times[0] : (times.find((index) => parseBarTime(valueOf(index)) !== null) ?? times[0])
  const isClock = (index: number): boolean => index !== day && /^\d{1,2}:\d\d/.test(String(valueOf(index)))
  const clock = isDay(valueOf(day ?? -1)) ? [...found('clock'), ...times].find(isClock) : undefined
  const [open, high, low, close, volume] = NUMBERS.map((name) => found(name).find((index) => index !== day))
  return { time: day, clock, open, high, low, close, volume }
}

function assertComplete(places: Readonly<Record<'time' | NumberField, Key | undefined>>, loc: Loc): void {
  const missing = (['time', ...PRICES] as const).filter((name) => places[name] === undefined)
  if (missing.length > 0)
    throw invalid(loc, `Lacks ${missing.join(', ')}. Use t, o, h, l, c, v or the full names.`, 'columns_missing')
}

/** Rows that show the order of arrays, and how many must at least. */
const SAMPLE = 1000
const MIN_ROWS = 10

/**
 * The places of arrays that are in another order than the usual one, by their values; null if the order is right. Throws
 * InvalidInput that says what was seen if no order is right, or if named columns are in none.
 */
function otherOrder({ rows, loc, columns: names }: Request, { columns, placesIn }: Reading): Places | null {
  const prices = PRICES.map((name) => columns[name])
  const usual = { open: 0, high: 1, low: 2, close: 3 }
  const fit = fitOf(prices, usual)
  const isArrays = names === null && Array.isArray(rows[0])
  if (fit.fitting >= fit.rows / 2) return isArrays && hasMeanPrice(rows) ? { ...ARRAY_PLACES, volume: 6 } : null
  const arrays = rows.slice(0, SAMPLE).filter((row): row is unknown[] => Array.isArray(row))
  const found = isArrays && fit.rows >= MIN_ROWS ? arrayOrder(arrays, columns.time) : null
  if (found ?? !isNoOrder(fit)) return found
  const places = placesIn(rows[0], loc)
  const spelt = PRICES.map((name) => String(names === null ? places[name] : names[Number(places[name])]))
  throw invalid(loc, misfitText(fit, prices, usual, spelt), 'column_order')
}

/** Whether the sixth value is a mean price, as Kraken sends it before the volume: it lies between low and high in every bar. */
function hasMeanPrice(rows: readonly unknown[]): boolean {
  const first = rows.slice(0, 100)
  return (
    first.length >= MIN_ROWS &&
    first.every((row) => {
      if (!Array.isArray(row) || row.length < 7) return false
      const [mean, high, low] = [plainNumber(row[5]), plainNumber(row[2]), plainNumber(row[3])]
      // Kraken sends a mean of 0 for bars without trades.
      return (mean >= low && mean <= high) || (mean === 0 && plainNumber(row[6]) === 0)
    })
  )
}

function arrayOrder(arrays: readonly (readonly unknown[])[], times: Float64Array): Places | null {
  const width = Math.min(...arrays.map(({ length }) => length))
  const numbers: Numbers = Array.from({ length: width }, (_, place) =>
    Float64Array.from(arrays, (row) => plainNumber(row[place])),
  )
  const candidates = Array.from({ length: width - 1 }, (_, place) => place + 1)
  const order: PriceOrder | null = findPrices(numbers, candidates, times[1]! < times[0]!)
  return order && { time: 0, clock: undefined, ...order, volume: findVolume(numbers, candidates, order) ?? undefined }
}

function time(value: unknown, zone: Zone, loc: Loc, place: Key | undefined): number {
  const moment = parseBarTime(value, zone)
  if (moment !== null) return moment
  const msg =
    'Is not a time. Send epoch seconds, milliseconds, microseconds or nanoseconds, or ISO 8601, between 1800 and 2200.'
  throw invalid([...loc, place ?? 't'], msg, 'time')
}

/** A number, or text that is one; NaN for all else. */
const plainNumber = (value: unknown): number =>
  typeof value === 'number' ? value : typeof value === 'string' && value.trim() !== '' ? Number(value) : NaN

/** Reads text as a number. A value that is not a number counts as missing. Throws InvalidInput for infinity and for what no price is. */
function number(value: unknown, loc: Loc, place: Key | undefined): number {
  const read = plainNumber(value)
  if (read === Infinity || read === -Infinity)
    throw invalid([...loc, place ?? ''], 'Is too large to be represented; send a finite number.', 'finite_number')
  const size = Math.abs(read)
  if (size > LARGEST || (size < SMALLEST && size > 0))
    throw invalid([...loc, place ?? ''], `Is outside ${SMALLEST} to ${LARGEST}; use another unit.`, 'number_range')
  return read
}
