import { InvalidInput } from 'tollgate/plugin'
import { isRow, type Row } from '../lib/feeds/payloads.ts'
import { parseBarTime, type Zone } from './bar-times.ts'

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
export const PRICES = ['open', 'high', 'low', 'close'] as const
const MIN_BARS = 3
/** The largest number of bars in a request. */
export const MAX_BARS = 50_000

/** No price or volume is larger or smaller, and the ratio of any two of them, and its square, is a number. */
const [SMALLEST, LARGEST] = [1e-100, 1e100]

const NAMES = ['time', ...PRICES, 'volume'] as const
type Name = (typeof NAMES)[number]

const ALIASES: Readonly<Record<Name, readonly string[]>> = {
  time: [
    't',
    'timestamp',
    'time',
    'date',
    'datetime',
    'ts',
    'start',
    'starttime',
    'startedat',
    'open_time',
    'opentime',
  ],
  open: ['o', 'open'],
  high: ['h', 'high'],
  low: ['l', 'low'],
  close: ['c', 'close'],
  volume: ['v', 'volume', 'vol', 'basevolume', 'basetokenvolume'],
}

type Loc = readonly (string | number)[]
/** Where a row holds each column: the key of an object or the index of an array. */
type Places = Readonly<Record<Name, string | number | undefined>>

/** The order in which exchanges send arrays: [t, o, h, l, c, v]. Further values are ignored. */
const ARRAY_PLACES: Places = { time: 0, open: 1, high: 2, low: 3, close: 4, volume: 5 }

/**
 * Reads the bars of a request body: `{ bars: [...] }`, a bare array, or `{ columns, rows }`, also inside `bars`. A bar is
 * an object with short or long names, or an array [t, o, h, l, c, v]. Prices may be text. Times without an offset are read
 * in `zone`. Throws InvalidInput that names the row.
 */
export function readBars(body: unknown, zone: Zone): Bars {
  const { rows, loc, places } = find(body)
  if (rows.length < MIN_BARS || rows.length > MAX_BARS)
    throw invalid(loc, `Has ${rows.length} bars; send ${MIN_BARS} to ${MAX_BARS}.`, 'bar_count')
  const columns = Object.fromEntries(NAMES.map((name) => [name, new Float64Array(rows.length)])) as Record<
    Name,
    Float64Array
  >
  const placesIn = places ? tableRow(places) : freeRow()
  for (const [index, row] of rows.entries()) {
    const at = [...loc, index]
    const keys = placesIn(row, at)
    for (const name of NAMES) {
      const place = keys[name]
      const value = place === undefined ? undefined : (row as Record<string | number, unknown>)[place]
      columns[name][index] = name === 'time' ? time(value, zone, at, place) : number(value, at, place)
    }
  }
  const { volume, ...rest } = columns
  return { count: rows.length, ...rest, volume: volume.some((value) => !Number.isNaN(value)) ? volume : null }
}

/** How many bars a request body holds, in any of its forms. 0 if it has none of them. */
export function countBars(body: unknown): number {
  if (Array.isArray(body)) return body.length
  if (!isRow(body)) return 0
  if (Array.isArray(body['bars'])) return body['bars'].length
  const { rows } = isRow(body['bars']) ? body['bars'] : body
  return Array.isArray(rows) ? rows.length : 0
}

function find(body: unknown): { rows: readonly unknown[]; loc: Loc; places: Places | null } {
  if (Array.isArray(body)) return { rows: body, loc: ['body'], places: null }
  if (!isRow(body)) throw invalid(['body'], 'Must be an object with bars, or an array of bars.', 'bars_type')
  if (Array.isArray(body['bars'])) return { rows: body['bars'], loc: ['body', 'bars'], places: null }
  const [table, loc]: [Row, Loc] = isRow(body['bars']) ? [body['bars'], ['body', 'bars']] : [body, ['body']]
  const { columns, rows } = table
  if (!Array.isArray(columns) && !Array.isArray(rows))
    throw invalid(['body', 'bars'], 'Is missing. Send bars as an array, or columns and rows.', 'missing')
  if (!Array.isArray(columns)) throw invalid([...loc, 'columns'], 'Must be an array of column names.', 'columns_type')
  if (!Array.isArray(rows)) throw invalid([...loc, 'rows'], 'Must be an array of rows.', 'rows_type')
  return { rows, loc: [...loc, 'rows'], places: tablePlaces(columns, [...loc, 'columns']) }
}

function tablePlaces(columns: readonly unknown[], loc: Loc): Places {
  const words = columns.map((column) => (typeof column === 'string' ? column.trim().toLowerCase() : ''))
  const places = Object.fromEntries(
    NAMES.map((name): [Name, number | undefined] => {
      const found = words.flatMap((word, index) => (ALIASES[name].includes(word) ? [index] : []))
      if (found.length > 1) throw invalid(loc, `Names ${name} twice: ${ALIASES[name].join(', ')}.`, 'columns_twice')
      return [name, found[0]]
    }),
  ) as Places
  assertComplete(places, loc)
  return places
}

type PlacesIn = (row: unknown, loc: Loc) => Places

function tableRow(places: Places): PlacesIn {
  const width = Math.max(...Object.values(places).map((place) => Number(place ?? 0))) + 1
  return (row, loc) => {
    if (!Array.isArray(row)) throw invalid(loc, 'Must be an array.', 'row_type')
    if (row.length < width) throw invalid(loc, `Has ${row.length} values; needs ${width}.`, 'row_length')
    return places
  }
}

/** Most objects have the same keys in the same order, so the lookup result is reused until the keys change. */
function freeRow(): PlacesIn {
  let signature = ''
  let places: Places = ARRAY_PLACES
  return (row, loc) => {
    if (Array.isArray(row)) {
      if (row.length < 5) throw invalid(loc, `Has ${row.length} values; needs at least 5: t, o, h, l, c.`, 'row_length')
      return ARRAY_PLACES
    }
    if (!isRow(row)) throw invalid(loc, 'Must be an object or an array.', 'row_type')
    const names = Object.keys(row)
    const found = names.join()
    if (found === signature) return places
    const words = new Map(names.map((name) => [name.toLowerCase(), name]))
    // If a bar has both t and T, t is the time of the open.
    for (const name of names) words.set(name, name)
    places = Object.fromEntries(
      NAMES.map((name) => [name, words.get(ALIASES[name].find((alias) => words.has(alias)) ?? '')]),
    ) as Places
    signature = found
    if (places.time === undefined || PRICES.every((name) => places[name] === undefined)) assertComplete(places, loc)
    return places
  }
}

function assertComplete(places: Places, loc: Loc): void {
  const missing = NAMES.filter((name) => name !== 'volume' && places[name] === undefined)
  if (missing.length > 0)
    throw invalid(loc, `Lacks ${missing.join(', ')}. Use t, o, h, l, c, v or the full names.`, 'columns_missing')
}

function time(value: unknown, zone: Zone, loc: Loc, place: string | number | undefined): number {
  const moment = parseBarTime(value, zone)
  if (moment !== null) return moment
  const msg =
    'Is not a time. Send epoch seconds, milliseconds, microseconds or nanoseconds, or ISO 8601, between 1800 and 2200.'
  throw invalid([...loc, place ?? 't'], msg, 'time')
}

/** Reads text as a number. A value that is not a number counts as missing. Throws InvalidInput for infinity and for what no price is. */
function number(value: unknown, loc: Loc, place: string | number | undefined): number {
  const read =
    typeof value === 'number' ? value : typeof value === 'string' && value.trim() !== '' ? Number(value) : NaN
  if (read === Infinity || read === -Infinity)
    throw invalid([...loc, place ?? ''], 'Is too large to be represented; send a finite number.', 'finite_number')
  const size = Math.abs(read)
  if (size > LARGEST || (size < SMALLEST && size > 0))
    throw invalid([...loc, place ?? ''], `Is outside ${SMALLEST} to ${LARGEST}; use another unit.`, 'number_range')
  return read
}

function invalid(loc: Loc, msg: string, type: string): InvalidInput {
  return new InvalidInput([{ loc, msg, type }])
}
