/** Books and quotes, as the products are handed them. */
import type { Level } from '../../lib/quant/order-book.ts'

export interface BookSnapshot {
  readonly venue: string
  /** When it was so, epoch seconds. */
  readonly time: number
  /** Best first; quantities in base units. */
  readonly bids: readonly Level[]
  readonly asks: readonly Level[]
}

/** Best bid and offer at moments, oldest first; epoch seconds. */
export interface Quotes {
  readonly venue: string
  readonly time: Float64Array
  readonly bid: Float64Array
  readonly ask: Float64Array
}

/** Where books and quotes come from; sample, replay and online look the same from here. */
export interface Depth {
  /** The last book known at `asOf` (epoch seconds), however old; null where none is held. */
  book(symbol: string, asOf: number): Promise<BookSnapshot | null>
  /** Quotes of [from, to], both included; null where none was ever held. */
  quotes(symbol: string, from: number, to: number): Promise<Quotes | null>
}

/** Two-sided, in order, positive and not crossed: what a walk may be made on. */
export function isSound({ bids, asks }: Pick<BookSnapshot, 'bids' | 'asks'>): boolean {
  const [bid, ask] = [bids[0]?.[0], asks[0]?.[0]]
  if (bid === undefined || ask === undefined || !(bid < ask)) return false
  const ordered = (levels: readonly Level[], sign: 1 | -1): boolean =>
    levels.every(
      ([price, quantity], i) => price > 0 && quantity > 0 && (i === 0 || sign * (price - levels[i - 1]![0]) > 0),
    )
  return ordered(bids, -1) && ordered(asks, 1)
}
