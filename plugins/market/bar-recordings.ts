/** Reads recorded bars. The file name and the header determine the symbol and the interval. */
import Papa from 'papaparse'
import { type BarRow, numberOf, type RowFault, rowFault } from '../lib/feeds/bar-rows.ts'
import { readRecordedText } from '../lib/feeds/recordings.ts'
import { epochSeconds, FILE_RULES, QUERY_RULES } from '../lib/time/timestamps.ts'
import { CLOSED, createColumns, FILLED, type Columns } from './bars.ts'
import { newYorkLag } from './trading-session.ts'

export interface RecordingFormat {
  readonly venue: string
  /** Null if each row names its own symbol. */
  readonly symbol: string | null
  readonly interval_seconds: number
  /** Time zone of the times in the file. */
  readonly clock: 'UTC' | 'New York'
}

const INTERVALS: Readonly<Record<string, number>> = {
  '1m': 60,
  '5m': 300,
  '15m': 900,
  '1h': 3600,
  '1d': 86_400,
  minute: 60,
  daily: 86_400,
}
/** Daily bars reach back before 1970. */
const TIMES = { ...QUERY_RULES, earliest: FILE_RULES.earliest }
const CRYPTO = 'binance|bitfinex|coinbase|kraken'
const SPAN = '1m|5m|15m|1h|1d'

type Reader = (match: RegExpMatchArray) => RecordingFormat
const utc = (venue: string, symbol: string | null, span: string): RecordingFormat => ({
  venue,
  symbol,
  interval_seconds: INTERVALS[span.toLowerCase()]!,
  clock: 'UTC',
})

/** Known forms of file names. The first match decides. */
const NAMES: readonly (readonly [RegExp, Reader])[] = [
  [
    new RegExp(`^(${CRYPTO})_([a-z0-9-]+)_(${SPAN})[_.]`, 'i'),
    ([, venue, pair, span]) => utc(venue!, pairName(pair!), span!),
  ],
  // Public files of Binance have no header: BTCUSDT-1m-2026-02.csv.
  [new RegExp(`^([A-Z0-9]{5,})-(${SPAN})-\\d{4}`), ([, pair, span]) => utc('binance', pairName(pair!), span!)],
  [
    new RegExp(`^(${CRYPTO})_([a-z0-9]+)_\\d{8}_minute`, 'i'),
    ([, venue, pair]) => utc(venue!, pairName(pair!), 'minute'),
  ],
  [
    /^us_([a-z.]+)_\d{8}_minute/i,
    ([, symbol]) => ({ ...utc('us', symbol!.toUpperCase(), 'minute'), clock: 'New York' }),
  ],
  [/^daily_raw_([a-z.]+)_([a-z]+)/i, ([, symbol, venue]) => utc(venue!, symbol!.toUpperCase(), 'daily')],
  [/^([a-z.]+)_daily_([a-z]+)/i, ([, symbol, venue]) => utc(venue!, symbol!.toUpperCase(), 'daily')],
  [/^sp500_daily/i, () => utc('us', null, 'daily')],
]

/** The symbol, interval and format of a file by its name; null for an unknown name. */
export function recordingFormat(file: string): RecordingFormat | null {
  if (!/\.csv(\.gz)?$/.test(file)) return null
  for (const [pattern, read] of NAMES) {
    const match = file.match(pattern)
    if (match) return read(match)
  }
  return null
}

/**
 * The usual name of a pair. Tether counts as the dollar.
 *
 * @example pairName('btcusdt') // "BTC-USD"
 */
export function pairName(pair: string): string {
  const upper = pair.toUpperCase().replace('-', '')
  const match = upper.match(/^(.+?)(USDT|USDC|USD|EUR|BTC|ETH)$/)
  if (!match) return upper
  const quote = match[2]!.startsWith('USD') ? 'USD' : match[2]!
  return `${match[1]!}-${quote}`
}

const BINANCE_COLUMNS = ['time', 'open', 'high', 'low', 'close', 'volume']

/** Why a row of a recording is left out. */
export type DroppedRow = RowFault | 'repeated_time'

/**
 * Reads the bars of a file by symbol, in order of time. Of two rows with the same time the first counts. `onDropped` hears of
 * each row that is left out.
 */
export async function readBarFile(
  path: string,
  name: RecordingFormat,
  onDropped?: (reason: DroppedRow) => void,
): Promise<Map<string, Columns>> {
  return parseRecording(await readRecordedText(path), name, onDropped)
}

/** As `readBarFile`, from text. Rows are checked as those of venues are; a volume that is not stated is zero. */
export function parseRecording(
  text: string,
  name: RecordingFormat,
  onDropped: (reason: DroppedRow) => void = () => {},
): Map<string, Columns> {
  const rows = Papa.parse<string[]>(text, { skipEmptyLines: true, fastMode: !text.slice(0, 200).includes('"') }).data
  const headed = !/^\d/.test(rows[0]?.[0] ?? '0')
  const header = headed ? rows[0]!.map((cell) => cell.toLowerCase().replace(/^.*\./, '')) : BINANCE_COLUMNS
  const find = (...names: string[]): number => header.findIndex((cell) => names.includes(cell))
  const at = {
    time: Math.max(0, find('timestamp', 'time', 'date', 'open_time')),
    symbol: find('symbol'),
    numbers: ['open', 'high', 'low', 'close', 'volume'].map((column) => find(column)),
  }
  const bySymbol = new Map<string, BarRow[]>()
  for (let i = headed ? 1 : 0; i < rows.length; i += 1) {
    const row = rows[i]!
    const symbol = name.symbol ?? row[at.symbol] ?? ''
    const [open, high, low, close, volume] = at.numbers.map((column) => numberOf(row[column])) as FiveNumbers
    const time = recordedTime(row[at.time] ?? '', name.clock)
    const bar = { time, open, high, low, close, volume: Number.isNaN(volume) ? 0 : volume }
    const fault = rowFault(bar)
    if (fault) {
      onDropped(fault)
      continue
    }
    const list = bySymbol.get(symbol) ?? []
    if (list.length === 0) bySymbol.set(symbol, list)
    list.push(bar)
  }
  return new Map([...bySymbol].map(([symbol, list]) => [symbol, ordered(list, onDropped)]))
}

type FiveNumbers = [number, number, number, number, number]

function ordered(list: BarRow[], onDropped: (reason: DroppedRow) => void): Columns {
  if (list.some((row, i) => i > 0 && row.time < list[i - 1]!.time)) list.sort((a, b) => a.time - b.time)
  const out = createColumns(list.length)
  let last = -Infinity
  for (const { time, open, high, low, close, volume } of list) {
    if (time > last) out.add(time, open, high, low, close, volume, CLOSED)
    else onDropped('repeated_time')
    last = time
  }
  return out.end()
}

/**
 * Epoch seconds of a time in a recording; NaN if it cannot be read. An epoch number of a New York file counts the wall
 * clock of New York as if it were UTC, so the lag of New York is added. Dates written as text are read as UTC.
 */
export function recordedTime(text: string, clock: RecordingFormat['clock']): number {
  const time = Math.floor(epochSeconds(text, TIMES) ?? NaN)
  return clock !== 'UTC' && /^\d+(\.\d+)?$/.test(text) ? time + newYorkLag(time) : time
}

/**
 * Adds a flat bar (previous close, no volume) for every minute that a recording skips because nothing traded. Holes
 * longer than `longest` seconds stay holes.
 */
export function fillQuiet(bars: Columns, interval: number, longest: number): Columns {
  const out = createColumns(bars.count * 2)
  for (let i = 0; i < bars.count; i += 1) {
    const time = bars.time[i]!
    const last = i === 0 ? time : bars.time[i - 1]!
    if (time - last - interval <= longest) {
      const close = bars.close[i - 1]!
      for (let quiet = last + interval; quiet < time; quiet += interval)
        out.add(quiet, close, close, close, close, 0, FILLED)
    }
    const { open, high, low, close, volume, state } = bars
    out.add(time, open[i]!, high[i]!, low[i]!, close[i]!, volume[i]!, state[i]!)
  }
  return out.end()
}
