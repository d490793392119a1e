/** How platforms dress a symbol, and what is left of it. */
const DRESSES: readonly (readonly [RegExp, string])[] = [
  // zipline: Equity(8554 [SPY])
  [/^.*\[(.+)\].*$/, '$1'],
  // freqtrade: BTC/USDT:USDT, a future by what it settles in
  [/^(.+\/.+):.+$/, '$1'],
  // TradingView: NASDAQ:AAPL
  [/^[A-Z_]+:(.+)$/, '$1'],
  // LEAN: SPY R735QTJ8XC9X
  [/^(\S+) [A-Z0-9]{10,}$/, '$1'],
]

/**
 * A symbol without case, punctuation and what a platform adds, so that a ledger and its bars need not spell alike.
 *
 * @example bare('btc/usdt:USDT') // 'BTCUSDT'
 */
export function bare(symbol: string): string {
  const plain = DRESSES.reduce((name, [dress, kept]) => name.replace(dress, kept), symbol.trim().toUpperCase())
  return plain.replace(/[^\p{L}\p{N}.^=]/gu, '')
}
