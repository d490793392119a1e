/**
 * Order books of the venues, polled every minute and stored for all processes. A book counts if the last agreed minute, or
 * the book of another venue, confirms its price. A venue that fails, or repeats one book, is left out for a while, and the
 * next one is read. Some of the books are kept for the calibration of impact.
 */
import { createHash } from 'node:crypto'
import { type Job, type PluginContext, timeoutSignal } from 'tollgate/plugin'
import { RequestError } from '../../lib/feeds/requests.ts'
import { SourceHealth, type SourceRecord } from '../../lib/feeds/source-health.ts'
import type { Book } from '../../lib/quant/order-book.ts'
import type { BarStore } from '../bar-store.ts'
import { type CoveredSymbol, DEFAULT_TOLERANCE_BPS, isInDollars, type Settings } from '../symbols.ts'
import { paceOf, type VenuePaces } from '../venue-pace.ts'
import { type VenueName, VENUES } from '../venues/bar-venues.ts'
import { KeptBooks, type MinuteRange } from './kept-books.ts'
import type { BookSnapshot, OrderBookSource } from './order-book-source.ts'

/** A symbol is polled this often, and tried again at the next tick if no book was found. */
const POLL_SECONDS = 60
/** The job runs this often, because the second book of a kept pair comes half a minute after the first. */
const TICK_SECONDS = 30
/** A tick may be this early. */
const EARLY_SECONDS = 5
/** How long books and quotes stay in the cache. */
const CACHED = { ttlSeconds: 3600 } as const
/** A request that takes longer counts as failed. */
const REQUEST_SECONDS = 8
/** A book this close to the last agreed minute (log ratio) needs no other venue. */
const NEAR_MINUTE = 0.01
/** An agreed minute confirms no book after this. */
const MINUTE_SECONDS = 300
/** Books of two venues confirm each other if their prices are this close (log ratio). */
const NEAR_BOOK = 0.003
/** A venue whose turn is further away than this is passed over. */
const MAX_WAIT_MS = 5_000
/** A venue that answers with the same book for this long is frozen. */
const FROZEN_SECONDS = 60
/** The stored note of how venues fail. */
const HEALTH = 'order books: venues'
/** A book is kept only if our clock and that of its venue differ by no more than this. */
const CLOCK_SECONDS = 30
/** How often kept books are compared with their minutes and old ones deleted, and how far back, seconds. */
const TIDY = { everySeconds: 600, backSeconds: 7200 } as const

type Quote = readonly [time: number, bid: number, ask: number]

/** The published minutes of a symbol. Times are epoch seconds. */
export interface PublishedMinutes {
  /** The close of the newest one, and when it closed; null if there is none. */
  last(symbol: string): Promise<{ readonly close: number; readonly closed: number } | null>
  /** What each one since `from` traded at, by its open. */
  since(symbol: string, from: number): Promise<ReadonlyMap<number, MinuteRange>>
}

/** What the books of the venues rest on. */
export interface OnlineBooksParts {
  readonly minutes: PublishedMinutes
  /** Requests for minutes take the same turns. */
  readonly paces: VenuePaces
  readonly notes: Pick<BarStore, 'note' | 'setNote'>
}

/** The latest books and the best prices of the last hour. The setting `books: false` switches the polling off. */
export function openOnlineBooks(
  context: PluginContext,
  settings: Settings,
  parts: OnlineBooksParts,
): OrderBookSource & { readonly jobs: readonly Job[] } {
  const { kv, log } = context
  const now = (): number => context.now().getTime() / 1000
  const { minutes } = parts
  const poller = new BookPoller(context, settings, parts)
  const kept = new KeptBooks(context.db, {
    everySeconds: settings.keep_books_every_seconds,
    keepDays: settings.keep_books_days,
  })
  /** When a book of a symbol was last found. */
  const polled = new Map<string, number>()
  const booksOf = async (symbol: string): Promise<readonly BookSnapshot[]> => (await kv.get(`book:${symbol}`)) ?? []
  const quotesOf = async (symbol: string): Promise<readonly Quote[]> => (await kv.get(`quotes:${symbol}`)) ?? []

  /** Caches two books, so that a call that began before a poll still finds one that is not newer than the call. */
  async function cache(symbol: string, book: BookSnapshot): Promise<void> {
    const [before] = await booksOf(symbol)
    const quote: Quote = [book.time, book.bids[0]![0], book.asks[0]![0]]
    const recent = (await quotesOf(symbol)).filter(([time]) => time > book.time - CACHED.ttlSeconds)
    await kv.set(`book:${symbol}`, before ? [book, before] : [book], CACHED)
    await kv.set(`quotes:${symbol}`, [...recent, quote], CACHED)
  }

  /** True if a poll is due, also after the clock went back. */
  async function isDue(symbol: string): Promise<boolean> {
    const since = now() - (polled.get(symbol) ?? -Infinity)
    return since < 0 || since >= POLL_SECONDS - EARLY_SECONDS || kept.isLaterDue(symbol, now())
  }

  async function poll(symbol: CoveredSymbol, signal: AbortSignal): Promise<void> {
    if (Object.keys(symbol.venues ?? {}).length === 0 || !(await isDue(symbol.symbol))) return
    const found = await poller.read(symbol, signal)
    if (!found) return
    polled.set(symbol.symbol, found.snapshot.time)
    await cache(symbol.symbol, found.snapshot)
    if (found.isKeepable) await kept.keep(symbol.symbol, found.snapshot)
  }

  async function tidy(symbol: CoveredSymbol): Promise<void> {
    const from = Math.floor(now() / 60) * 60 - TIDY.backSeconds
    const tolerance = (symbol.tolerance_bps ?? DEFAULT_TOLERANCE_BPS) / 1e4
    const known = await minutes.since(symbol.symbol, from)
    const refuted = await kept.refute(symbol.symbol, { from, minutes: known, tolerance })
    if (refuted > 0)
      log.warn(
        { symbol: symbol.symbol, refuted },
        'deleted kept order books whose price lies outside the range of their minute',
      )
  }

  const depth: Job = {
    name: 'depth',
    everySeconds: TICK_SECONDS,
    async run({ signal }) {
      await poller.loadHealth()
      await Promise.all(settings.symbols.map((symbol) => poll(symbol, signal)))
    },
  }
  const keptBooks: Job = {
    name: 'kept-books',
    everySeconds: TIDY.everySeconds,
    async run({ signal }) {
      for (const symbol of settings.symbols) if (!signal.aborted) await tidy(symbol)
      await kept.prune(signal)
    },
  }
  return {
    book: async (symbol, asOf) => (await booksOf(symbol)).find(({ time }) => time <= asOf) ?? null,
    pairs: (symbol, query, asOf) => kept.pairs(symbol, query, asOf),
    async quotes(symbol, from, to) {
      const found = (await quotesOf(symbol)).filter(([time]) => time >= from && time <= to)
      const column = (k: 0 | 1 | 2): Float64Array => Float64Array.from(found, (quote) => quote[k])
      const venue = (await booksOf(symbol))[0]?.venue ?? ''
      return found.length > 0 ? { venue, time: column(0), bid: column(1), ask: column(2) } : null
    },
    jobs: settings.books ? [depth, keptBooks] : [keptBooks],
  }
}

/** A book that counts. */
interface FoundBook {
  readonly snapshot: BookSnapshot
  /** False if it may not be kept: nothing confirms it, the venue repeats itself, or its clock and ours differ. */
  readonly isKeepable: boolean
}

/** Reads the book of a symbol from the first venue whose price is confirmed. */
class BookPoller {
  readonly #context: PluginContext
  readonly #settings: Settings
  readonly #parts: OnlineBooksParts
  readonly #health: SourceHealth
  /** The book that a venue answered last, by venue and symbol, and since when it answers that. */
  readonly #repeated = new Map<string, { readonly print: string; readonly since: number }>()

  constructor(context: PluginContext, settings: Settings, parts: OnlineBooksParts) {
    this.#context = context
    this.#settings = settings
    this.#parts = parts
    // One process polls at a time.
    const save = () => parts.notes.setNote(HEALTH, JSON.stringify(this.#health.failing()))
    this.#health = new SourceHealth({ now: this.#now, save })
  }

  /** Reads what another process, or an earlier start, knows of the venues. */
  async loadHealth(): Promise<void> {
    this.#health.load(JSON.parse((await this.#parts.notes.note(HEALTH)) ?? '[]') as SourceRecord[])
  }

  readonly #now = (): number => this.#context.now().getTime() / 1000

  /** Null if no venue answers with a book whose price is confirmed. */
  async read(symbol: CoveredSymbol, signal: AbortSignal): Promise<FoundBook | null> {
    const venues = this.#venuesOf(symbol)
    const minute = await this.#parts.minutes.last(symbol.symbol)
    const price = minute && Math.abs(this.#now() - minute.closed) <= MINUTE_SECONDS ? minute.close : null
    const unconfirmed: ReadBook[] = []
    for (const [venue, code] of venues) {
      const read = await this.#request(venue, code, symbol.symbol, signal)
      if (!read) continue
      const middle = middleOf(read.snapshot)
      if (price !== null && isNear(middle, price, NEAR_MINUTE)) return foundBook(read, true)
      // The market may have moved since the minute, or there is none.
      const confirmed = unconfirmed.find(({ snapshot }) => isNear(middle, middleOf(snapshot), NEAR_BOOK))
      if (confirmed) return foundBook(confirmed, confirmed.clockError !== null)
      unconfirmed.push(read)
    }
    const [only] = unconfirmed
    if (only && price === null && venues.length === 1) return foundBook(only, false)
    if (only)
      this.#context.log.warn(
        { symbol: symbol.symbol, venues: unconfirmed.map(({ snapshot }) => snapshot.venue), minute: price },
        'no minute and no second venue confirms the order books; none is used',
      )
    return null
  }

  /** Of a pair in a token no book is read: estimates of cost would state its prices as dollars. */
  #venuesOf({ venues }: CoveredSymbol): readonly (readonly [venue: VenueName, code: string])[] {
    return (Object.entries(venues ?? {}) as [VenueName, string][]).filter(([venue, code]) => {
      const found = this.#settings.venues?.[venue]
      return found?.enabled === true && isInDollars(code)
    })
  }

  async #request(venue: VenueName, code: string, symbol: string, signal: AbortSignal): Promise<ReadBook | null> {
    if (!this.#health.isUsable(venue, symbol)) return null
    if (!(await this.#parts.paces.turn(venue, paceOf(venue, this.#settings), MAX_WAIT_MS, signal))) return null
    const seconds = this.#settings.request_seconds ?? REQUEST_SECONDS
    const limit = timeoutSignal(seconds * 1000)
    const { fetch, log } = this.#context
    try {
      const { url, book_url: bookUrl } = this.#settings.venues![venue]!
      const bases = { url: url.replace(/\/$/, ''), bookUrl: bookUrl?.replace(/\/$/, '') }
      const { book, date } = await VENUES[venue]
        .create({ ...bases, fetch, now: this.#now })
        .book(code, AbortSignal.any([signal, limit]))
      const isRepeated = this.#checkRepetition(venue, symbol, book)
      await this.#health.answered(venue, symbol)
      const time = this.#now()
      return { snapshot: { venue, time, ...book }, isRepeated, clockError: date === null ? null : time - date }
    } catch (error) {
      if (signal.aborted) throw error
      const failure = limit.aborted ? new RequestError(`${venue} did not answer within ${seconds} seconds`, 0) : error
      if (!(failure instanceof RequestError)) throw error
      log.warn({ venue, symbol: code, status: failure.status }, `the order book was not read: ${failure.message}`)
      await this.#health.failed(venue, symbol, failure)
      return null
    }
  }

  /** True if the venue's last answer was the same. Throws RequestError if it has been for FROZEN_SECONDS. */
  #checkRepetition(venue: VenueName, symbol: string, book: Book): boolean {
    const key = `${venue} ${symbol}`
    const print = createHash('sha1').update(JSON.stringify(book)).digest('base64')
    const before = this.#repeated.get(key)
    if (before?.print !== print) {
      this.#repeated.set(key, { print, since: this.#now() })
      return false
    }
    const age = this.#now() - before.since
    if (age >= FROZEN_SECONDS) throw new RequestError(`${venue} repeats one book for ${Math.floor(age)} seconds`, 200)
    return true
  }
}

/** A book as one venue answered it. */
interface ReadBook {
  readonly snapshot: BookSnapshot
  readonly isRepeated: boolean
  /** By how much our clock is ahead of the venue's, seconds; null if it does not state its time. */
  readonly clockError: number | null
}

/** A read book; `isConfirmed` says whether something confirms its price and, without a clock of the venue, its time. */
function foundBook({ snapshot, isRepeated, clockError }: ReadBook, isConfirmed: boolean): FoundBook {
  const isOnTime = Math.abs(clockError ?? 0) <= CLOCK_SECONDS
  return { snapshot, isKeepable: isConfirmed && !isRepeated && isOnTime }
}

const middleOf = ({ bids, asks }: Book): number => (bids[0]![0] + asks[0]![0]) / 2

const isNear = (a: number, b: number, tolerance: number): boolean => Math.abs(Math.log(a / b)) <= tolerance
