/** One level of an order book. The quantity is in base units. */
export type Level = readonly [price: number, quantity: number]

export interface Book {
  /** Best (highest) first. */
  readonly bids: readonly Level[]
  /** Best (lowest) first. */
  readonly asks: readonly Level[]
}

export interface Walk {
  /** Average price of the fill, weighted by quantity. */
  readonly averagePrice: number
  /** Base units bought or sold. */
  readonly quantity: number
  /** Cost of the average price against the middle of the book, in basis points. Positive means the trader pays. */
  readonly costBps: number
  /** Number of levels that the order takes from, in full or in part. */
  readonly levels: number
}

/** How much later the second book of a pair is, seconds: half a minute, or a little less or more. */
const PAIR_SECONDS = { least: 20, most: 60 } as const

/** True if two books of one venue make a pair, whose difference shows what half a minute changes; times in seconds. */
export function isPair(first: number, second: number): boolean {
  const apart = second - first
  return apart >= PAIR_SECONDS.least && apart <= PAIR_SECONDS.most
}

/** A book at one time of a venue; epoch seconds. */
export interface TimedBook extends Book {
  readonly venue: string
  readonly time: number
}

/** Two books of one venue, about half a minute apart. */
export interface BookPair {
  readonly first: TimedBook
  readonly later: TimedBook
}

/** The pairs of books of `venue` among books in order of time. A book may be the later of one pair and the first of the next. */
export function pairsOf(books: readonly TimedBook[], venue: string): BookPair[] {
  const own = books.filter((book) => book.venue === venue)
  return own.flatMap((first, i) => {
    const later = own[i + 1]
    return later && isPair(first.time, later.time) ? [{ first, later }] : []
  })
}

/**
 * Walks a book with an immediate order of `notional` in the quote currency. A buyer spends it on the asks; a seller
 * raises it from the bids. Returns null if the book holds less than the order, or has no bid or no ask.
 *
 * The average price is notional / Σ quantity, by definition.
 *
 * @example walkBook({ bids: [[99, 10]], asks: [[101, 1], [102, 10]] }, 'buy', 203) // quantity 2, average 101.5, 150 bps
 */
export function walkBook(book: Book, side: 'buy' | 'sell', notional: number): Walk | null {
  const [bid, ask] = [book.bids[0]?.[0], book.asks[0]?.[0]]
  if (bid === undefined || ask === undefined) return null
  const mid = (bid + ask) / 2
  let remaining = notional
  let quantity = 0
  let levels = 0
  for (const [price, size] of side === 'buy' ? book.asks : book.bids) {
    levels += 1
    const worth = price * size
    if (worth >= remaining) {
      quantity += remaining / price
      const averagePrice = notional / quantity
      const cost = side === 'buy' ? averagePrice / mid - 1 : 1 - averagePrice / mid
      return { averagePrice, quantity, costBps: cost * 1e4, levels }
    }
    quantity += size
    remaining -= worth
  }
  return null
}

/** True for a book with two sides, each in order with positive prices and quantities, that do not cross. */
export function isSound({ bids, asks }: Book): boolean {
  const [bid, ask] = [bids[0]?.[0], asks[0]?.[0]]
  if (bid === undefined || ask === undefined || !(bid < ask)) return false
  const isOrdered = (levels: readonly Level[], sign: 1 | -1): boolean =>
    levels.every(
      ([price, quantity], i) => price > 0 && quantity > 0 && (i === 0 || sign * (price - levels[i - 1]![0]) > 0),
    )
  return isOrdered(bids, -1) && isOrdered(asks, 1)
}

/** The largest order that costs no more than a bound. */
export interface BoundedOrder {
  /** In the quote currency; 0 if half the spread alone costs more. */
  readonly notional: number
  /** True if the whole side of the book costs no more than the bound, so that more could be traded behind it. */
  readonly isWholeBook: boolean
}

/**
 * The largest order whose average price is no further from the middle of the book than `bps`. With W and Q the worth and
 * the quantity of the levels before, a level at p is taken up to (L Q − W) / (p − L), L being the worst average allowed.
 *
 * @example notionalWithin({ bids: [[99, 10]], asks: [[101, 1], [102, 10]] }, 'buy', 150) // 203: one at 101, one at 102
 */
export function notionalWithin(book: Book, side: 'buy' | 'sell', bps: number): BoundedOrder {
  const [bid, ask] = [book.bids[0]?.[0], book.asks[0]?.[0]]
  if (bid === undefined || ask === undefined) return { notional: 0, isWholeBook: false }
  const sign = side === 'buy' ? 1 : -1
  const limit = ((bid + ask) / 2) * (1 + (sign * bps) / 1e4)
  let worth = 0
  let quantity = 0
  for (const [price, size] of side === 'buy' ? book.asks : book.bids) {
    const taken = sign * (price - limit) <= 0 ? size : Math.min(size, (limit * quantity - worth) / (price - limit))
    worth += price * taken
    quantity += taken
    if (taken < size) return { notional: worth, isWholeBook: false }
  }
  return { notional: worth, isWholeBook: true }
}
