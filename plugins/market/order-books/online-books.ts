/**
 * Order books of the venues, polled every fifteen seconds and stored for all processes. A book counts if the last agreed
 * minute, or the book of another venue, confirms its price. A venue that fails, or repeats one book, is left out for a
 * while, and the next one is read.
 */
import { createHash } from 'node:crypto'
import type { Job, PluginContext } from 'tollgate/plugin'
import { RequestError } from '../../lib/feeds/requests.ts'
import { SourceHealth } from '../../lib/feeds/source-health.ts'
import type { Book } from '../../lib/quant/order-book.ts'
import type { CoveredSymbol, Settings } from '../symbols.ts'
import { type VenueName, VENUES } from '../venues/bar-venues.ts'
import type { BookSnapshot, OrderBookSource } from './order-book-source.ts'

const EVERY_SECONDS = 15
/** How long books and quotes are kept. */
const KEPT_SECONDS = 3600
/** A request that takes longer counts as failed. */
const REQUEST_SECONDS = 8
/** A book this close to the last agreed minute (log ratio) needs no other venue. */
const NEAR_MINUTE = 0.01
/** An agreed minute confirms no book after this. */
const MINUTE_SECONDS = 300
/** Books of two venues confirm each other if their prices are this close (log ratio). */
const NEAR_BOOK = 0.003
/** A venue that answers with the same book for this long is frozen. */
const FROZEN_SECONDS = 60

type Quote = readonly [time: number, bid: number, ask: number]

/** The close of the newest published minute of a symbol, and when it closed, epoch seconds; null if there is none. */
export type LastMinute = (symbol: string) => Promise<{ readonly close: number; readonly closed: number } | null>

/** The latest books and the best prices of the last hour. The setting `books: false` switches the polling off. */
export function openOnlineBooks(
  context: PluginContext,
  settings: Settings,
  lastMinute: LastMinute,
): OrderBookSource & { readonly jobs: readonly Job[] } {
  const { kv } = context
  const poller = new BookPoller(context, settings, lastMinute)
  const booksOf = async (symbol: string): Promise<readonly BookSnapshot[]> => (await kv.get(`book:${symbol}`)) ?? []
  const quotesOf = async (symbol: string): Promise<readonly Quote[]> => (await kv.get(`quotes:${symbol}`)) ?? []

  /** Keeps two books, so that a call that began before a poll still finds one that is not newer than the call. */
  async function keep(symbol: string, book: BookSnapshot): Promise<void> {
    const [before] = await booksOf(symbol)
    const quote: Quote = [book.time, book.bids[0]![0], book.asks[0]![0]]
    const recent = (await quotesOf(symbol)).filter(([time]) => time > book.time - KEPT_SECONDS)
    await kv.set(`book:${symbol}`, before ? [book, before] : [book], KEPT_SECONDS * 1000)
    await kv.set(`quotes:${symbol}`, [...recent, quote], KEPT_SECONDS * 1000)
  }

  async function poll(symbol: CoveredSymbol, signal: AbortSignal): Promise<void> {
    const book = await poller.read(symbol, signal)
    if (book) await keep(symbol.symbol, book)
  }

  const depth: Job = {
    name: 'depth',
    everySeconds: EVERY_SECONDS,
    run: async ({ signal }) => void (await Promise.all(settings.symbols.map((symbol) => poll(symbol, signal)))),
  }
  return {
    book: async (symbol, asOf) => (await booksOf(symbol)).find(({ time }) => time <= asOf) ?? null,
    async quotes(symbol, from, to) {
      const found = (await quotesOf(symbol)).filter(([time]) => time >= from && time <= to)
      const column = (k: 0 | 1 | 2): Float64Array => Float64Array.from(found, (quote) => quote[k])
      const venue = (await booksOf(symbol))[0]?.venue ?? ''
      return found.length > 0 ? { venue, time: column(0), bid: column(1), ask: column(2) } : null
    },
    jobs: settings.books === false ? [] : [depth],
  }
}

/** Reads the book of a symbol from the first venue whose price is confirmed. */
class BookPoller {
  readonly #context: PluginContext
  readonly #settings: Settings
  readonly #lastMinute: LastMinute
  readonly #health: SourceHealth
  /** The book that a venue answered last, by venue and symbol, and since when it answers that. */
  readonly #repeated = new Map<string, { readonly print: string; readonly since: number }>()

  constructor(context: PluginContext, settings: Settings, lastMinute: LastMinute) {
    this.#context = context
    this.#settings = settings
    this.#lastMinute = lastMinute
    // One process polls at a time. What it knows is soon known again by another.
    this.#health = new SourceHealth({ now: this.#now, save: async () => {} })
  }

  readonly #now = (): number => this.#context.now().getTime() / 1000

  /** Null if no venue answers with a book whose price is confirmed. */
  async read(symbol: CoveredSymbol, signal: AbortSignal): Promise<BookSnapshot | null> {
    const venues = this.#venuesOf(symbol)
    const minute = await this.#lastMinute(symbol.symbol)
    const price = minute && this.#now() - minute.closed <= MINUTE_SECONDS ? minute.close : null
    const unconfirmed: BookSnapshot[] = []
    for (const [venue, code] of venues) {
      const book = await this.#request(venue, code, symbol.symbol, signal)
      if (!book) continue
      if (price !== null && isNear(middleOf(book), price, NEAR_MINUTE)) return book
      // The market may have moved since the minute, or there is none.
      const confirmed = unconfirmed.find((other) => isNear(middleOf(book), middleOf(other), NEAR_BOOK))
      if (confirmed) return confirmed
      unconfirmed.push(book)
    }
    const [only] = unconfirmed
    if (only && price === null && venues.length === 1) return only
    if (only)
      this.#context.log.warn(
        { symbol: symbol.symbol, venues: unconfirmed.map(({ venue }) => venue), minute: price },
        'no minute and no second venue confirms the order books; none is used',
      )
    return null
  }

  #venuesOf({ venues }: CoveredSymbol): readonly (readonly [venue: VenueName, code: string])[] {
    return (Object.entries(venues ?? {}) as [VenueName, string][]).filter(([venue]) => {
      const found = this.#settings.venues?.[venue]
      return found !== undefined && found.enabled !== false
    })
  }

  async #request(venue: VenueName, code: string, symbol: string, signal: AbortSignal): Promise<BookSnapshot | null> {
    if (!this.#health.isUsable(venue, symbol)) return null
    const seconds = this.#settings.request_seconds ?? REQUEST_SECONDS
    const limit = AbortSignal.timeout(seconds * 1000)
    const { fetch, log } = this.#context
    try {
      const url = this.#settings.venues![venue]!.url.replace(/\/$/, '')
      const source = VENUES[venue].create({ url, fetch, now: this.#now })
      const book = await source.book(code, AbortSignal.any([signal, limit]))
      this.#refuseFrozen(venue, symbol, book)
      await this.#health.answered(venue, symbol)
      return { venue, time: this.#now(), ...book }
    } catch (error) {
      if (signal.aborted) throw error
      const failure = limit.aborted ? new RequestError(`${venue} did not answer within ${seconds} seconds`, 0) : error
      if (!(failure instanceof RequestError)) throw error
      log.warn({ venue, symbol: code, status: failure.status }, `the order book was not read: ${failure.message}`)
      await this.#health.failed(venue, symbol, failure)
      return null
    }
  }

  /** Throws RequestError if the venue has answered with this book for longer than FROZEN_SECONDS. */
  #refuseFrozen(venue: VenueName, symbol: string, book: Book): void {
    const key = `${venue} ${symbol}`
    const print = createHash('sha1').update(JSON.stringify(book)).digest('base64')
    const before = this.#repeated.get(key)
    if (before?.print !== print) return void this.#repeated.set(key, { print, since: this.#now() })
    const age = this.#now() - before.since
    if (age > FROZEN_SECONDS) throw new RequestError(`${venue} repeats one book for ${Math.floor(age)} seconds`, 200)
  }
}

const middleOf = ({ bids, asks }: Book): number => (bids[0]![0] + asks[0]![0]) / 2

const isNear = (a: number, b: number, tolerance: number): boolean => Math.abs(Math.log(a / b)) <= tolerance
