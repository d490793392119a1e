/** Reads recorded order books and quotes from REPLAY_DIR. */
import Papa from 'papaparse'
import type { Database, PluginContext, ReplayShift } from 'tollgate/plugin'
import { dataSettings, loopShift } from '../../lib/feeds/data-settings.ts'
import { findRecordings, readRecordedText } from '../../lib/feeds/recordings.ts'
import { pairName, parseRecording, recordingFormat, recordedTime } from '../bar-recordings.ts'
import type { BarRow } from '../../lib/feeds/bar-rows.ts'
import type { BarStore, Series } from '../bar-store.ts'
import type { Columns } from '../bars.ts'
import { type BookSnapshot, type OrderBookSource, type Quotes } from './order-book-source.ts'
import { type BookPair, isSound, pairsOf } from '../../lib/quant/order-book.ts'

/** venue_spot_pair_yyyymmdd.json. Books of derivatives have other units and prices and are not read. */
const BOOKS = /^(binance|bitfinex|coinbase|kraken)_spot_([a-z0-9-]+)_\d{8}\.json(\.gz)?$/i
const QUOTES = /quotes\.csv(\.gz)?$/
/** Pause between the last book of a looping recording and its first. */
const LOOP_PAUSE_SECONDS = 30

interface BookFile {
  readonly meta?: { readonly quantity_unit?: string }
  readonly snapshots?: readonly {
    readonly ts_ms: number
    readonly bids: BookSnapshot['bids']
    readonly asks: BookSnapshot['asks']
  }[]
}

/** Reads every recorded book and quote into memory. Load the bars first: quotes move in time as their bars did. */
export async function openRecordedBooks(context: PluginContext, store: BarStore): Promise<OrderBookSource> {
  const { log } = context
  const { replayDir = '', replayShift } = dataSettings(context)
  const books = new Map<string, BookSnapshot[]>()
  const quotes = new Map<string, Quotes>()
  for (const { name, path } of await findRecordings(replayDir, (name) => BOOKS.test(name) || QUOTES.test(name))) {
    const text = await readRecordedText(path)
    const [, venue, pair] = BOOKS.exec(name) ?? []
    if (venue && pair) {
      books.set(pairName(pair), parseBooks(text, venue.toLowerCase()))
      continue
    }
    const found = await readQuotes(name, text, context.db, store)
    if (found) quotes.set(found.symbol, joinQuotes(quotes.get(found.symbol), found))
  }
  for (const [symbol, list] of books) log.info({ symbol, books: list.length }, 'recorded books read')
  for (const [symbol, { time }] of quotes) log.info({ symbol, quotes: time.length }, 'recorded quotes read')

  return {
    book: async (symbol, asOf) => bookAt(books.get(symbol) ?? [], asOf, replayShift),
    pairs: async (symbol, { venue, after }, asOf) =>
      recordedPairs(books.get(symbol) ?? [], venue, asOf, replayShift).filter(({ first }) => first.time > after),
    async quotes(symbol, from, to) {
      const all = quotes.get(symbol)
      if (!all) return null
      const keep = (_: number, i: number): boolean => all.time[i]! >= from && all.time[i]! <= to
      return { venue: all.venue, time: all.time.filter(keep), bid: all.bid.filter(keep), ask: all.ask.filter(keep) }
    },
  }
}

/** The valid books of a recording, oldest first. */
export function parseBooks(json: string, venue: string): BookSnapshot[] {
  const { meta, snapshots = [] } = JSON.parse(json) as BookFile
  if ((meta?.quantity_unit ?? 'base units') !== 'base units') return []
  return snapshots
    .map(({ ts_ms, bids, asks }) => ({ venue, time: ts_ms / 1000, bids, asks }))
    .filter(isSound)
    .toSorted((a, b) => a.time - b.time)
}

/**
 * The newest book at `asOf`, or null. With REPLAY_SHIFT=auto a recording of minutes loops, so that there is a book at any
 * time; otherwise its times stay as recorded, plus the configured seconds.
 */
function bookAt(books: readonly BookSnapshot[], asOf: number, shift: ReplayShift): BookSnapshot | null {
  const [first, last] = [books[0], books.at(-1)]
  if (!first || !last) return null
  const length = last.time - first.time + LOOP_PAUSE_SECONDS
  const added = loopShift(shift, { start: first.time, period: length }, asOf)
  const found = books.findLast(({ time }) => time + added <= asOf)
  return found ? { ...found, time: found.time + added } : null
}

/**
 * The pairs of a recording that were known at `asOf`. A loop has none that is new: its pairs count once, at the times at
 * which they were recorded.
 */
function recordedPairs(books: readonly BookSnapshot[], venue: string, asOf: number, shift: ReplayShift): BookPair[] {
  const added = shift.seconds ?? 0
  return pairsOf(
    books.map((book) => ({ ...book, time: book.time + added })).filter(({ time }) => time <= asOf),
    venue,
  )
}

/**
 * Reads best bid and best offer at the close of each minute from the columns bid_close and ask_close, moved in time as
 * the bars of the file were. Null if the columns are missing or the bars are not in the store.
 */
async function readQuotes(
  file: string,
  text: string,
  db: Database,
  store: BarStore,
): Promise<(Quotes & { symbol: string }) | null> {
  const name = recordingFormat(file)
  if (!name?.symbol) return null
  const { symbol, venue, interval_seconds } = name
  const series = (await store.allSeries()).find(
    (one) => one.venue === venue && one.symbol === symbol && one.interval_seconds === interval_seconds,
  )
  const bars = parseRecording(text, name).get(symbol)
  const shift = series && bars?.count ? await shiftOf(series, bars, db, store) : null
  if (shift === null) return null
  const [header = [], ...rows] = Papa.parse<string[]>(text, { skipEmptyLines: true }).data
  const [at, bid, ask] = ['timestamp', 'bid_close', 'ask_close'].map((column) => header.indexOf(column))
  if ([at, bid, ask].includes(-1)) return null
  const sound = rows
    .map((row) => ({
      time: recordedTime(row[at!] ?? '', name.clock) + interval_seconds + shift,
      bid: Number(row[bid!]),
      ask: Number(row[ask!]),
    }))
    .filter((quote) => quote.bid > 0 && quote.ask > quote.bid)
  const column = (name: 'time' | 'bid' | 'ask'): Float64Array => Float64Array.from(sound, (quote) => quote[name])
  return { symbol, venue, time: column('time'), bid: column('bid'), ask: column('ask') }
}

/** Finds how far the bars of a file were moved when they were stored, by its first and its last bar. */
async function shiftOf(series: Series, bars: Columns, db: Database, store: BarStore): Promise<number | null> {
  const [first, last] = [barOf(bars, 0), barOf(bars, bars.count - 1)]
  const { time, ...prices } = first
  const candidates = (await db('market_bars')
    .where({ series: series.id, ...prices })
    .select('t_open')) as { t_open: number }[]
  for (const { t_open } of candidates) {
    const shift = t_open - time
    if (await store.has(series, { ...last, time: last.time + shift })) return shift
  }
  return null
}

function barOf({ time, open, high, low, close, volume }: Columns, i: number): BarRow {
  return { time: time[i]!, open: open[i]!, high: high[i]!, low: low[i]!, close: close[i]!, volume: volume[i]! }
}

/** Joins the quotes of one symbol from two files, in order of time. */
export function joinQuotes(known: Quotes | undefined, { venue, time, bid, ask }: Quotes): Quotes {
  if (!known) return { venue, time, bid, ask }
  const [first, second] = known.time[0]! <= time[0]! ? [known, { time, bid, ask }] : [{ time, bid, ask }, known]
  const column = (name: 'time' | 'bid' | 'ask'): Float64Array => {
    const joined = new Float64Array(first.time.length + second.time.length)
    joined.set(first[name])
    joined.set(second[name], first.time.length)
    return joined
  }
  return { venue, time: column('time'), bid: column('bid'), ask: column('ask') }
}
