/** Order books and quotes in the form that the other products get. */
import type { Book } from '../../lib/quant/order-book.ts'

/** A book at one time: best levels first, quantities in base units. */
export interface BookSnapshot extends Book {
  readonly venue: string
  /** Epoch seconds. */
  readonly time: number
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
  /** Quotes of [from, to], both inclusive; null if quotes were never stored. */
  quotes(symbol: string, from: number, to: number): Promise<Quotes | null>
}
