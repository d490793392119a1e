import { InvalidInput } from 'tollgate/plugin'
import { isMissing, readNumber, type CellFormat } from '../read/cell-values.ts'
import { readCsv } from '../read/csv-table.ts'
import { assertDistinctNames, plainName } from '../read/ledger-header.ts'
import { createTimeReader } from '../read/ledger-times.ts'
import { DAY } from '../trade-ledger.ts'
import { calendarOf, type ReferenceSeries, stepOf } from './bar-series.ts'

const MAX_BARS = 1_000_000

const NAMES = {
  symbol: ['symbol', 'ticker', 'pair', 'instrument'],
  time: ['date', 'time', 'datetime', 'timestamp', 'opentime', 'gmttime', 'ts', 't'],
  open: ['open', 'o'],
  high: ['high', 'h'],
  low: ['low', 'l'],
  close: ['close', 'c'],
  volume: ['volume', 'v', 'vol'],
  split: ['splitcoefficient', 'splitfactor', 'stocksplits', 'split'],
} as const
type Field = keyof typeof NAMES
const NEEDED = ['time', 'open', 'high', 'low', 'close'] as const

export interface UploadedBars {
  /** Series by plain symbol. One entry with an empty name if the file has no symbol column. */
  readonly series: ReadonlyMap<string, ReferenceSeries>
  readonly zoned: boolean
}

/**
 * Reads reference bars with the columns symbol, date, open, high, low, close and volume in any order, and optionally a
 * split column (7 on the day of a 7:1 split). Of bars without four prices above zero, and of those whose high is below their
 * low, only the day counts. Throws InvalidInput for missing columns and unreadable times.
 */
export async function readUploadedBars(bytes: Buffer): Promise<UploadedBars> {
  let times = createTimeReader(null)
  const columns = new Map<Field, number>()
  const groups = new Map<string, number[]>()
  const blankDays = new Map<string, Set<number>>()
  const symbols = new Map<string, string>()
  let names: readonly string[] = []
  let decimal: CellFormat['decimal'] = 'point'
  await readCsv(
    bytes,
    { file: 'bars', maxRows: MAX_BARS },
    {
      header(cells, format) {
        assertDistinctNames(cells, 'bars')
        names = cells
        decimal = format.decimal
        times = createTimeReader(format.dayFirst)
        for (const [field, known] of Object.entries(NAMES) as [Field, readonly string[]][]) {
          const index = cells.findIndex((cell) => known.includes(plainName(cell)))
          if (index >= 0) columns.set(field, index)
        }
        const missing = NEEDED.filter((field) => !columns.has(field))
        if (missing.length === 0) return
        const msg = `Reference bars need symbol, date, open, high, low, close and volume; missing: ${missing.join(', ')}.`
        throw new InvalidInput([{ loc: ['body', 'bars', 'header'], msg, type: 'unknown_layout' }])
      },
      row(cells, row) {
        const text = (field: Field): string => cells[columns.get(field) ?? -1] ?? ''
        const place = (field: Field) =>
          ({ file: 'bars', row, column: names[columns.get(field) ?? -1] ?? field }) as const
        const number = (field: Field): number => readNumber(text(field), place(field), decimal)
        const time = isMissing(text('time')) ? null : times.read(text('time'), place('time'))
        if (time === null) {
          const msg = `Row ${row} has no readable time.`
          throw new InvalidInput([{ loc: ['body', 'bars', row, place('time').column], msg, type: 'unparseable_time' }])
        }
        const prices = [number('open'), number('high'), number('low'), number('close')]
        const written = text('symbol')
        const symbol = symbols.get(written) ?? plainSymbol(written)
        symbols.set(written, symbol)
        const [, high, low] = prices as [number, number, number, number]
        if (!prices.every((price) => price > 0) || high < low) {
          blankDays.set(symbol, (blankDays.get(symbol) ?? new Set()).add(Math.floor(time / DAY)))
          return
        }
        const numbers = groups.get(symbol) ?? []
        groups.set(symbol, numbers)
        numbers.push(time, ...prices, number('volume'), columns.has('split') ? number('split') : 1)
      },
    },
  )
  const hasSplits = columns.has('split')
  return {
    series: new Map(
      [...groups].map(([symbol, numbers]) => [
        symbol,
        { ...seriesOf(numbers, hasSplits), blankDays: blankDays.get(symbol) ?? new Set() },
      ]),
    ),
    zoned: times.hasZone(),
  }
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
