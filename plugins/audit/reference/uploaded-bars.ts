import { InvalidInput } from 'tollgate/plugin'
import { type BarTable, readBarTable, readInZone, zoneToRead } from '../../lib/tables/bar-table.ts'
import { utcOf } from '../../lib/time/wall-clock.ts'
import type { Zone } from '../../lib/time/time-zones.ts'
import { DAY } from '../trade-ledger.ts'
import { calendarOf, type ReferenceSeries, stepOf } from './bar-series.ts'

const MAX_BARS = 1_000_000

export interface UploadedBars {
  /** Series by plain symbol. One entry with an empty name if the file has no symbol column. */
  readonly series: ReadonlyMap<string, ReferenceSeries>
  readonly zoned: boolean
  /** How the file was read: what each column is used as. */
  readonly table: BarTable
}

/** The rows of one symbol. */
interface Rows {
  /** Time, four prices, volume and split of each bar. */
  readonly numbers: number[]
  /** Times of rows whose prices cannot be used. */
  readonly blank: number[]
}

/**
 * Reads reference bars as any vendor writes them, in any order of columns and with or without a header. Of bars without four
 * prices above zero, and of those whose high is below their low, only the day counts. Throws InvalidInput for columns that
 * cannot be told, unreadable times, and times that repeat in most rows.
 *
 * @param zone the zone of times that name none; null to read them as UTC
 */
export async function readUploadedBars(bytes: Buffer, zone: Zone | null = null): Promise<UploadedBars> {
  const groups = new Map<string, Rows>()
  const symbols = new Map<string, string>()
  const table = await readBarTable(bytes, { file: 'bars', maxRows: MAX_BARS }, (bar) => {
    const { time, open, high, low, close, volume, split } = bar
    const symbol = symbols.get(bar.symbol) ?? plainSymbol(bar.symbol)
    symbols.set(bar.symbol, symbol)
    const rows = groups.get(symbol) ?? { numbers: [], blank: [] }
    groups.set(symbol, rows)
    const isUsable = open > 0 && high > 0 && low > 0 && close > 0 && high >= low
    if (isUsable) rows.numbers.push(time, open, high, low, close, volume, split)
    else rows.blank.push(time)
  })
  const wall = zoneToRead(table, 'bars', zone)
  if (wall) for (const rows of groups.values()) moveToZone(rows, wall)
  const series = new Map<string, ReferenceSeries>()
  for (const [symbol, { numbers, blank }] of groups) {
    if (numbers.length === 0) continue
    const blankDays = new Set(blank.map((time) => Math.floor(time / DAY)))
    const read = { ...seriesOf(numbers, table.has('split')), blankDays }
    assertTimesDiffer(read.time, table)
    series.set(symbol, read)
  }
  return { series, zoned: table.zoned || wall !== null || zone !== null, table }
}

function moveToZone({ numbers, blank }: Rows, zone: Zone): void {
  const times = Float64Array.from({ length: numbers.length / WIDTH }, (_, row) => numbers[row * WIDTH]!)
  readInZone(times, zone)
  for (let row = 0; row < times.length; row += 1) numbers[row * WIDTH] = times[row]!
  for (let row = 0; row < blank.length; row += 1) blank[row] = utcOf(blank[row]! / 1000, zone) * 1000
}

/** With fewer bars, repeated times may be chance. */
const MIN_JUDGED = 10

/** Throws InvalidInput if most bars of a symbol share their time with another: then an hour or a symbol was not read. */
function assertTimesDiffer(time: Float64Array, { columns, has }: BarTable): void {
  let repeated = 0
  for (let i = 1; i < time.length; i += 1) if (time[i] === time[i - 1]) repeated += 1
  if (time.length < MIN_JUDGED || repeated < time.length / 2) return
  const unused = columns.flatMap(({ name, used_as }) => (used_as === null ? [JSON.stringify(name)] : []))
  const needed = [
    ...(has('clock') ? [] : ['the time of day "time"']),
    ...(has('symbol') ? [] : ['the symbol "symbol"']),
  ]
  const msg =
    `${repeated} of ${time.length} bars have the time of another bar. ` +
    (needed.length === 0 ? 'Send one bar for each time.' : `Name the column of ${needed.join(' and of ')}.`) +
    (unused.length === 0 ? '' : ` Not used: ${unused.join(', ')}.`)
  throw new InvalidInput([{ loc: ['body', 'bars', 'header'], msg, type: 'repeated_times' }])
}

const WIDTH = 7

function seriesOf(numbers: readonly number[], hasSplits: boolean): Omit<ReferenceSeries, 'blankDays'> {
  const count = numbers.length / WIDTH
  const order = Array.from({ length: count }, (_, index) => index).sort(
    (one, other) => numbers[one * WIDTH]! - numbers[other * WIDTH]!,
  )
  const column = (k: number): Float64Array => Float64Array.from(order, (index) => numbers[index * WIDTH + k]!)
  const written = column(0)
  const step = stepOf(written)
  const hasEveryDay = step <= DAY
  const interval = Math.min(step, DAY)
  // Daily bars count by date, because providers stamp them with different hours.
  const time = interval >= DAY ? written.map((open) => Math.floor(open / DAY) * DAY) : written
  return {
    time,
    open: column(1),
    high: column(2),
    low: column(3),
    close: column(4),
    volume: column(5),
    idle: null,
    split: hasSplits ? column(6).map((factor) => (factor > 0 ? factor : 1)) : null,
    interval,
    hasEveryDay,
    // The first bar of weeks or months may begin before the day that it is labelled with, and the last ends after it.
    isWhole: hasEveryDay,
    isMedian: false,
    ...calendarOf(time, hasEveryDay),
  }
}

/** What platforms add to a symbol, and the part to keep. */
const PLATFORM_FORMS: readonly (readonly [RegExp, string])[] = [
  // zipline: Equity(8554 [SPY])
  [/^.*\[(.+)\].*$/, '$1'],
  // freqtrade: BTC/USDT:USDT, a future that settles in USDT
  [/^(.+\/.+):.+$/, '$1'],
  // TradingView: NASDAQ:AAPL
  [/^[A-Z_]+:(.+)$/, '$1'],
  // TradingView: BTCUSDT.P, a perpetual contract
  [/^(.*USD[TC]?)\.P$/, '$1'],
  // LEAN: SPY R735QTJ8XC9X
  [/^(\S+) [A-Z0-9]{10,}$/, '$1'],
]

/**
 * A symbol without case, punctuation and platform additions, so that a ledger and its bars may spell it differently.
 *
 * @example plainSymbol('btc/usdt:USDT') // 'BTCUSDT'
 */
export function plainSymbol(symbol: string): string {
  const plain = PLATFORM_FORMS.reduce((name, [form, kept]) => name.replace(form, kept), symbol.trim().toUpperCase())
  return plain.replace(/[^\p{L}\p{N}.^=]/gu, '')
}
