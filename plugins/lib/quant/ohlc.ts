/** Bars as columns of one length, oldest first. A missing price is NaN; one at or below zero counts as missing. */
export interface Ohlc {
  readonly open: ArrayLike<number>
  readonly high: ArrayLike<number>
  readonly low: ArrayLike<number>
  readonly close: ArrayLike<number>
}

/** Natural logarithms of prices; NaN where there is none. */
export function logPrices(prices: ArrayLike<number>): Float64Array {
  return Float64Array.from(prices, (price) => (price > 0 ? Math.log(price) : NaN))
}
