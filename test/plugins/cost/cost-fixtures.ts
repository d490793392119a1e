/** Invented market inputs for the tests of order cost. */
import type { CostRequest } from '../../../schemas/types.d.ts'
import { costAnswer } from '../../../plugins/cost/cost-answer.ts'
import type { MarketInputs } from '../../../plugins/cost/market-inputs.ts'
import type { EstimateInputs } from '../../../plugins/cost/estimate.ts'
import type { Book } from '../../../plugins/lib/quant/order-book.ts'

/** A book with mid price 100, one cent to each side, and 10,100 USD on the ask. */
export const BOOK: Book & { readonly venue: string; readonly time: number } = {
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

const INPUTS: EstimateInputs = {
  spreadBps: 2,
  sigmaDaily: 0.02,
  advUsd: 1e9,
  dayMinutes: 1440,
  halfSpreadErrorBps: 0.4,
  book: null,
  bookAgeSeconds: 0,
}

/** Returns the inputs of an estimate, with BOOK or without a book. */
export function marketInputsWith(book: typeof BOOK | null, inputs: Partial<EstimateInputs> = {}): MarketInputs {
  return {
    symbol: 'BTC-USD',
    className: 'spot',
    session: { symbol: 'BTC-USD', session: '24x7', is_open: true, opened: null, closes: null, next_open: null },
    inputs: { ...INPUTS, ...(book ? { book, halfSpreadErrorBps: 0 } : {}), ...inputs },
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

export function estimateCost(request: Partial<CostRequest>, market: MarketInputs) {
  return costAnswer(
    { symbol: 'BTC-USD', side: 'buy', notional_usd: 1e6, order_type: 'market', ...request },
    market,
    10,
    'sample',
  )
}
