/**
 * Order books that are kept for the ranges of cost estimates and the calibration of impact: thinned, two of every five
 * minutes and symbol, half a minute apart. The second one tells how far the cost of a walk moves while an order is on its way.
 */
import type { Database, Migration } from 'tollgate/plugin'
import { type BookPair, isPair, pairsOf } from '../../lib/quant/order-book.ts'
import { decodeBook, encodeBook, thinBook } from '../../lib/quant/thinned-book.ts'
import type { BookSnapshot, PairsQuery } from './order-book-source.ts'

/** The table `market_kept_books`. */
export const keptBooksMigration: Migration = async (db) => {
  await db.schema.createTable('market_kept_books', (table) => {
    table.text('symbol').notNullable()
    // Epoch seconds.
    table.bigInteger('t').notNullable()
    table.text('venue').notNullable()
    // As encodeBook writes it.
    table.binary('book').notNullable()
    table.primary(['symbol', 't'])
    table.index(['t'], 'market_kept_books_by_time')
  })
}

export interface KeptBooksOptions {
  /** How often a book of a symbol is kept, seconds; default: 300. */
  readonly everySeconds?: number | undefined
  /** For how many days books are kept; default: 30. */
  readonly keepDays?: number | undefined
}

/** Rows that are deleted in one statement. */
const BATCH = 500
/** How far back pairs are read, and how many books at once: who learns from them holds the thread up for ten milliseconds. */
const PAIRS = { days: 7, books: 100 } as const
const DAY = 86_400

interface Row {
  readonly symbol: string
  readonly t: number
  readonly venue: string
  readonly book: Uint8Array
}

/** What a minute traded at, at least and at most. */
export interface MinuteRange {
  readonly low: number
  readonly high: number
}

/** Books of all symbols in the database. What is due is read from there, so a restart neither loses nor repeats one. */
export class KeptBooks {
  readonly #db: Database
  readonly #everySeconds: number
  readonly #keepDays: number

  constructor(db: Database, { everySeconds = 300, keepDays = 30 }: KeptBooksOptions = {}) {
    this.#db = db
    this.#everySeconds = everySeconds
    this.#keepDays = keepDays
  }

  /** True if the first book of a pair is kept and the second is not. */
  async isLaterDue(symbol: string, at: number): Promise<boolean> {
    return (await this.#due(symbol, at)).role === 'later'
  }

  /** Keeps a book if one is due. Returns whether it did. A book that is not later than the newest kept one is not. */
  async keep(symbol: string, { venue, time, bids, asks }: BookSnapshot): Promise<boolean> {
    const t = Math.floor(time)
    const { role, first } = await this.#due(symbol, t)
    // The depth of two venues says nothing about what changed in half a minute.
    if (role === null || (role === 'later' && venue !== first?.venue)) return false
    const row = { symbol, t, venue, book: encodeBook(thinBook({ bids, asks })) }
    await this.#db('market_kept_books').insert(row).onConflict(['symbol', 't']).ignore()
    return true
  }

  async #due(symbol: string, at: number) {
    const [last, before] = (await this.#db<Row>('market_kept_books')
      .where({ symbol })
      .orderBy('t', 'desc')
      .limit(2)
      .select('t', 'venue')) as Pick<Row, 't' | 'venue'>[]
    const slotOf = (t: number): number => Math.floor(t / this.#everySeconds)
    if (!last) return { role: 'first', first: null } as const
    if (at <= last.t) return { role: null, first: null } as const
    if (slotOf(at) > slotOf(last.t)) return { role: 'first', first: null } as const
    const isAlone = !before || slotOf(before.t) < slotOf(last.t)
    return isAlone && isPair(last.t, at)
      ? ({ role: 'later', first: last } as const)
      : ({ role: null, first: null } as const)
  }

  /** Up to `limit` books of a symbol in [from, to), oldest first; epoch seconds. */
  async read(
    symbol: string,
    { from, to, limit }: { from: number; to: number; limit: number },
  ): Promise<BookSnapshot[]> {
    const rows = await this.#db<Row>('market_kept_books')
      .where({ symbol })
      .where('t', '>=', from)
      .where('t', '<', to)
      .orderBy('t')
      .limit(limit)
      .select('t', 'venue', 'book')
    return rows.map(({ t, venue, book }) => ({ venue, time: t, ...decodeBook(book) }))
  }

  /** See OrderBookSource. */
  async pairs(symbol: string, { venue, after }: PairsQuery, asOf: number): Promise<readonly BookPair[]> {
    for (let from = Math.max(Math.floor(after) + 1, Math.floor(asOf) - PAIRS.days * DAY); ;) {
      const books = await this.read(symbol, { from, to: Math.floor(asOf) + 1, limit: PAIRS.books })
      const pairs = pairsOf(books, venue)
      if (pairs.length > 0 || books.length < PAIRS.books) return pairs
      from = books.at(-1)!.time
    }
  }

  /**
   * Deletes the books since `from` whose own minute, once it is known, never came within `tolerance` (a fraction) of their
   * price. `minutes` has what each minute traded at, by its open. Returns how many were deleted.
   */
  async refute(
    symbol: string,
    { from, minutes, tolerance }: { from: number; minutes: ReadonlyMap<number, MinuteRange>; tolerance: number },
  ): Promise<number> {
    const books = await this.read(symbol, { from, to: Number.MAX_SAFE_INTEGER, limit: BATCH })
    const refuted = books.filter(({ time, bids, asks }) => {
      const minute = minutes.get(Math.floor(time / 60) * 60)
      const middle = (bids[0]![0] + asks[0]![0]) / 2
      return minute && (middle < minute.low * (1 - tolerance) || middle > minute.high * (1 + tolerance))
    })
    for (const { time } of refuted) await this.#db('market_kept_books').where({ symbol, t: time }).delete()
    return refuted.length
  }

  /**
   * Deletes what is older than `keepDays`, in batches. The newest book is the measure, not the clock: a clock that jumps
   * ahead deletes nothing. Returns how many rows were deleted.
   */
  async prune(signal: AbortSignal): Promise<number> {
    const rows = () => this.#db<Row>('market_kept_books')
    const newest = await rows().orderBy('t', 'desc').first('t')
    if (!newest) return 0
    const cutoff = newest.t - this.#keepDays * DAY
    for (let deleted = 0; ;) {
      const old = await rows().where('t', '<', cutoff).orderBy('t').limit(BATCH).select('t')
      const last = old.at(-1)
      if (!last || signal.aborted) return deleted
      deleted += await rows().where('t', '<=', last.t).delete()
    }
  }
}
