/** Invented market inputs for the tests of order cost. */
import type { CostRequest } from '../../../schemas/types.d.ts'
import { costAnswer } from '../../../plugins/cost/cost-answer.ts'
import type { MarketInputs } from '../../../plugins/cost/market-inputs.ts'
import { WalkErrors } from '../../../plugins/cost/walk-errors.ts'
import { pairsOf, type TimedBook } from '../../../plugins/lib/quant/order-book.ts'
import { makeBook } from '../../../plugins/market/order-books/sample-books.ts'
import type { SampleSymbol } from '../../../plugins/market/sample-bars.ts'

/** A book with mid price 100, one cent to each side, and 10,100 USD on the ask. */
export const BOOK: TimedBook = {
  venue: 'test',
  time: 1_795_000_000,
  bids: [
    [99.99, 10],
    [99.9, 40],
    [99, 50],
  ],
  asks: [
    [100.01, 10],
    [100.1, 40],
    [101, 50],
  ],
}

const SYMBOL: SampleSymbol = { symbol: 'BTC-USD', price: 98_000, volatility: 0.5, turnover: 2e9, tick: 0.01, session: '24x7' } // prettier-ignore
const books = Array.from({ length: 41 }, (_, minute) => makeBook(SYMBOL, BOOK.time + 60 * (minute - 40), 98_000))
/** What is learnt from forty pairs of sample books, for orders of up to ten million USD, and the last of those books. */
export const ERRORS = new WalkErrors()
export const DEEP_BOOK = books[40]!
for (const pair of pairsOf(books, 'sample')) ERRORS.learn(pair)

const INPUTS: MarketInputs['inputs'] = {
  spreadBps: 2,
  sigmaDaily: 0.02,
  advUsd: 1e9,
  dayMinutes: 1440,
  book: null,
  errors: null,
}

/** Returns the inputs of an estimate, with BOOK or without a book. */
export function marketInputsWith(book: TimedBook | null, inputs: Partial<MarketInputs['inputs']> = {}): MarketInputs {
  return {
    symbol: 'BTC-USD',
    className: 'spot',
    session: { symbol: 'BTC-USD', session: '24x7', is_open: true, opened: null, closes: null, next_open: null },
    inputs: { ...INPUTS, ...(book ? { book, errors: ERRORS } : {}), ...inputs },
    price: 100,
    tickBps: 1,
    sources: { price: 'bars_1m', spread: book ? 'book' : 'bars_1m', volatility: 'bars_1m', volume: 'bars_1m' },
    book,
    bars: null,
    newest: BOOK.time,
    age: 12,
    isStale: false,
  }
}

/** The answer to a market order, changed by `request`, in a market with a taker fee of 10 and a maker fee of 4 bps. */
export function estimateCost(request: Partial<CostRequest>, market: MarketInputs) {
  return costAnswer(
    { symbol: 'BTC-USD', side: 'buy', notional_usd: 1e6, order_type: 'market', include_book: true, ...request },
    market,
    { fee_bps: 10, maker_fee_bps: 4 },
    'sample',
  )
}
