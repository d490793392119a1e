/** Price and quantity (base units) of one level of an order book. */
export type Level = readonly [price: number, quantity: number]

export interface Book {
  /** Best (highest) first. */
  readonly bids: readonly Level[]
  /** Best (lowest) first. */
  readonly asks: readonly Level[]
}

export interface Walk {
  /** Quantity-weighted average price of the fill. */
  readonly averagePrice: number
  /** Base units bought or sold. */
  readonly quantity: number
  /** Average price against the middle of the book, positive when it costs, in basis points. */
  readonly costBps: number
  /** Levels touched. */
  readonly levels: number
}

/**
 * Walks a book with an immediate order of `notional` in quote currency: a buyer spends it on the asks, a seller raises it
 * from the bids. Null where the book is too thin, or has no bid or no ask.
 *
 * Source: definition; the average price is notional / Σ quantity taken.
 *
 * @example walkBook({ bids: [[99, 10]], asks: [[101, 1], [102, 10]] }, 'buy', 203) // quantity 2, average 101.5, 150 bps
 */
export function walkBook(book: Book, side: 'buy' | 'sell', notional: number): Walk | null {
  const [bid, ask] = [book.bids[0]?.[0], book.asks[0]?.[0]]
  if (bid === undefined || ask === undefined) return null
  const mid = (bid + ask) / 2
  let left = notional
  let quantity = 0
  let levels = 0
  for (const [price, size] of side === 'buy' ? book.asks : book.bids) {
    levels += 1
    const worth = price * size
    if (worth >= left) {
      quantity += left / price
      const averagePrice = notional / quantity
      const cost = side === 'buy' ? averagePrice / mid - 1 : 1 - averagePrice / mid
      return { averagePrice, quantity, costBps: cost * 1e4, levels }
    }
    quantity += size
    left -= worth
  }
  return null
}
