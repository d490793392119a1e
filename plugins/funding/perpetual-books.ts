/** Order books of perpetual contracts, thinned and with the time at which they were read. */
import type { Database, Migration } from 'tollgate/plugin'
import type { Book } from '../lib/quant/order-book.ts'
import { decodeBook, encodeBook, thinBook } from '../lib/quant/thinned-book.ts'
import type { VenueName } from './funding-rate.ts'

/** Rows that are deleted in one statement. */
const BATCH = 500

/** The table `funding_books`. */
export const perpetualBooksMigration: Migration = async (db) => {
  await db.schema.createTable('funding_books', (table) => {
    table.text('venue').notNullable()
    table.text('instrument').notNullable()
    // Epoch seconds.
    table.bigInteger('known_at').notNullable()
    // As encodeBook writes it.
    table.binary('book').notNullable()
    table.primary(['venue', 'instrument', 'known_at'])
    table.index(['known_at'], 'funding_books_by_time')
  })
}

/** A book, and when it was read, epoch seconds. */
export interface PerpetualBook {
  readonly book: Book
  readonly time: number
}

/** The last book of a contract known at `asOf`, however old; null if there is none. */
export type PerpetualBooks = (venue: VenueName, instrument: string, asOf: number) => Promise<PerpetualBook | null>

interface Row {
  readonly venue: VenueName
  readonly instrument: string
  readonly known_at: number
  readonly book: Uint8Array
}

/** Books in the database. */
export class PerpetualBookStore {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  async add(venue: VenueName, instrument: string, at: number, book: Book): Promise<void> {
    const row = { venue, instrument, known_at: Math.floor(at), book: encodeBook(thinBook(book)) }
    await this.#db('funding_books').insert(row).onConflict(['venue', 'instrument', 'known_at']).ignore()
  }

  readonly last: PerpetualBooks = async (venue, instrument, asOf) => {
    const row = await this.#db<Row>('funding_books')
      .where({ venue, instrument })
      .where('known_at', '<=', Math.floor(asOf))
      .orderBy('known_at', 'desc')
      .first('known_at', 'book')
    return row ? { time: row.known_at, book: decodeBook(row.book) } : null
  }

  /** Deletes the books from before a time, in batches. */
  async forget(before: number, signal: AbortSignal): Promise<void> {
    for (;;) {
      const rows = this.#db<Row>('funding_books').where('known_at', '<', Math.floor(before))
      const last = (await rows.orderBy('known_at').limit(BATCH).select('known_at')).at(-1)
      if (!last || signal.aborted) return
      await this.#db('funding_books').where('known_at', '<=', last.known_at).delete()
    }
  }
}
