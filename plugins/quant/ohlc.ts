/** Bars as columns of one length, oldest first. A missing price is NaN. */
export interface Ohlc {
  readonly open: ArrayLike<number>
  readonly high: ArrayLike<number>
  readonly low: ArrayLike<number>
  readonly close: ArrayLike<number>
}
