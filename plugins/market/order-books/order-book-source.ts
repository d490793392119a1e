/** Order books and quotes in the form that the other products get. */
import type { BookPair, TimedBook } from '../../lib/quant/order-book.ts'

/** A book at one time: best levels first, quantities in base units. */
export type BookSnapshot = TimedBook

/** Which pairs of books are wanted; epoch seconds. */
export interface PairsQuery {
  readonly venue: string
  /** Only pairs whose first book is later than this. */
  readonly after: number
}

/** Best bid and best offer over time, oldest first; times in epoch seconds. */
export interface Quotes {
  readonly venue: string
  readonly time: Float64Array
  readonly bid: Float64Array
  readonly ask: Float64Array
}

/** Where order books and quotes come from. Sample, replay and online implement it alike. */
export interface OrderBookSource {
  /** The last book known at `asOf` (epoch seconds), however old; null if there is none. */
  book(symbol: string, asOf: number): Promise<BookSnapshot | null>
  /**
   * Pairs of books of one venue that were known at `asOf`, oldest first: the next ones after `after`, some at a time; none if
   * that was the last.
   */
  pairs(symbol: string, query: PairsQuery, asOf: number): Promise<readonly BookPair[]>
  /** Quotes of [from, to], both inclusive; null if quotes were never stored. */
  quotes(symbol: string, from: number, to: number): Promise<Quotes | null>
}
