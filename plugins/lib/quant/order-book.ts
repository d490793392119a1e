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
