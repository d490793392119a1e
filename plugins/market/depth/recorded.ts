/** Recorded books and quotes of REPLAY_DIR. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { PluginContext } from 'tollgate/plugin'
import { dataSettings } from '../../lib/deployment.ts'
import { pairName } from '../recording.ts'
import type { Store } from '../store.ts'
import { isSound, type BookSnapshot, type Depth, type Quotes } from './depth.ts'
import { joinQuotes, readQuotes } from './quoted.ts'

/** venue_spot_pair_yyyymmdd.json: books of derivatives are in other units and prices, and are left alone. */
const BOOKS = /^(binance|bitfinex|coinbase|kraken)_spot_([a-z0-9-]+)_\d{8}\.json(\.gz)?$/i
/** What follows the last book of a recording that is played again and again. */
const PAUSE_SECONDS = 30

interface BookFile {
  readonly meta?: { readonly quantity_unit?: string }
  readonly snapshots?: readonly {
    readonly ts_ms: number
    readonly bids: BookSnapshot['bids']
    readonly asks: BookSnapshot['asks']
  }[]
}

/** Reads every recorded book and quote into memory. Bars must have been ingested: quotes follow their shift. */
export async function openRecorded(context: PluginContext, store: Store): Promise<Depth> {
  const { log } = context
  const { replayDir = '', replayShift } = dataSettings(context)
  const books = new Map<string, BookSnapshot[]>()
  const quotes = new Map<string, Quotes>()
  for (const entry of await readdir(replayDir, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    const [, venue, pair] = BOOKS.exec(entry.name) ?? []
    if (venue && pair) books.set(pairName(pair), parseBooks(await text(path), venue.toLowerCase()))
    else if (/quotes\.csv(\.gz)?$/.test(entry.name)) {
      const found = await readQuotes(entry.name, await text(path), context.db, store)
      if (found) quotes.set(found.symbol, joinQuotes(quotes.get(found.symbol), found))
    }
  }
  for (const [symbol, list] of books) log.info({ symbol, books: list.length }, 'recorded books read')
  for (const [symbol, { time }] of quotes) log.info({ symbol, quotes: time.length }, 'recorded quotes read')

  return {
    book: async (symbol, asOf) => bookAt(books.get(symbol) ?? [], asOf, replayShift),
    async quotes(symbol, from, to) {
      const all = quotes.get(symbol)
      if (!all) return null
      const keep = (_: number, i: number): boolean => all.time[i]! >= from && all.time[i]! <= to
      return { venue: all.venue, time: all.time.filter(keep), bid: all.bid.filter(keep), ask: all.ask.filter(keep) }
    },
  }
}

async function text(path: string): Promise<string> {
  const bytes = await readFile(path)
  return (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8')
}

/** The sound books of a recording, oldest first. */
export function parseBooks(json: string, venue: string): BookSnapshot[] {
  const { meta, snapshots = [] } = JSON.parse(json) as BookFile
  if ((meta?.quantity_unit ?? 'base units') !== 'base units') return []
  return snapshots
    .map(({ ts_ms, bids, asks }) => ({ venue, time: ts_ms / 1000, bids, asks }))
    .filter(isSound)
    .toSorted((a, b) => a.time - b.time)
}

/**
 * The book of a moment. REPLAY_SHIFT `auto` plays a recording of minutes round and round, so that there is a book at any
 * time; otherwise the recorded times hold, moved by the seconds that were set.
 */
export function bookAt(books: readonly BookSnapshot[], asOf: number, shift: string): BookSnapshot | null {
  const [first, last] = [books[0], books.at(-1)]
  if (!first || !last) return null
  const length = last.time - first.time + PAUSE_SECONDS
  const moved = /^-?\d+$/.test(shift) ? Number(shift) : 0
  const added = shift === 'auto' ? Math.floor((asOf - first.time) / length) * length : moved
  const found = books.findLast(({ time }) => time + added <= asOf)
  return found ? { ...found, time: found.time + added } : null
}
