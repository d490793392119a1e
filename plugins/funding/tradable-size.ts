/** How much of a spread can be traded at once: what the order books of its two contracts hold within a bound of slippage. */
import type { FundingSpread } from '../../schemas/types.d.ts'
import { notionalWithin } from '../lib/quant/order-book.ts'
import type { PerpetualBook, PerpetualBooks } from './perpetual-books.ts'

/** Older books say nothing about what can be traded now. */
const BOOK_SECONDS = 900

type Tradable = FundingSpread['tradable']

/** The spread with its `tradable` size at `asOf`; null if one of the two contracts has no order book of the last 15 minutes. */
export async function withTradableSize(
  spread: FundingSpread,
  books: PerpetualBooks,
  { asOf, slippageBps }: { readonly asOf: number; readonly slippageBps: number },
): Promise<FundingSpread> {
  const [long, short] = await Promise.all([
    books(spread.long_venue, spread.long_instrument, asOf),
    books(spread.short_venue, spread.short_instrument, asOf),
  ])
  const isNew = (book: PerpetualBook | null): book is PerpetualBook => book !== null && asOf - book.time <= BOOK_SECONDS
  return isNew(long) && isNew(short) ? { ...spread, tradable: sizeOf(long, short, asOf, slippageBps) } : spread
}

function sizeOf(long: PerpetualBook, short: PerpetualBook, asOf: number, slippageBps: number): Tradable {
  const [bought, sold] = [
    notionalWithin(long.book, 'buy', slippageBps),
    notionalWithin(short.book, 'sell', slippageBps),
  ]
  const smaller = bought.notional <= sold.notional ? bought : sold
  return {
    slippage_bps: slippageBps,
    size_usd: Math.floor(smaller.notional),
    is_at_least: smaller.isWholeBook,
    long_usd: Math.floor(bought.notional),
    short_usd: Math.floor(sold.notional),
    books_age_seconds: Math.max(0, Math.floor(asOf - Math.min(long.time, short.time))),
  }
}
