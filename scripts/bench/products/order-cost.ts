import { costAnswer } from '../../../plugins/cost/cost-answer.ts'
import { estimate, type EstimateInputs, orderFrom } from '../../../plugins/cost/estimate.ts'
import type { MarketInputs } from '../../../plugins/cost/market-inputs.ts'
import { squareRootImpact } from '../../../plugins/lib/quant/market-impact.ts'
import { type Book, walkBook } from '../../../plugins/lib/quant/order-book.ts'
import type { BookSnapshot } from '../../../plugins/market/order-books/order-book-source.ts'
import { parseBooks } from '../../../plugins/market/order-books/recorded-books.ts'
import { atMost, type Measure, atLeast, shown } from './measure.ts'
import { readRecorded, recordedNames } from './recorded-data.ts'

const BOOKS = 'books'
const MODEL_RANGE = { from: 250_000, to: 5_000_000 }

interface Recording {
  readonly meta: {
    readonly notionals_usd: readonly number[]
    readonly traded_usd_per_minute: number
    readonly sigma_1min_bps: number
  }
  readonly snapshots: readonly (Book & {
    readonly expected: { readonly walk_bps: Readonly<Record<'buy' | 'sell', readonly (number | null)[]>> }
  })[]
}

/** Compares the walk with the recorded costs, and the square-root law with the walk. */
export function measureBooks(): Measure[] {
  const recordings = recordedNames('l2', '.json.gz').map((name) => JSON.parse(readRecorded(`l2/${name}`)) as Recording)
  const errors: number[] = []
  const factors: number[] = []
  let mismatches = 0
  for (const { meta, snapshots } of recordings) {
    for (const snapshot of snapshots) {
      for (const [index, notional] of meta.notionals_usd.entries()) {
        const costs = (['buy', 'sell'] as const).map((side) => {
          const [walk, expected] = [walkBook(snapshot, side, notional), snapshot.expected.walk_bps[side][index] ?? null]
          if ((walk === null) !== (expected === null)) mismatches += 1
          if (walk && expected !== null) errors.push(Math.abs(walk.costBps - expected))
          return walk?.costBps ?? NaN
        })
        const cost = (costs[0]! + costs[1]!) / 2
        if (notional < MODEL_RANGE.from || notional > MODEL_RANGE.to || Number.isNaN(cost)) continue
        const order = { quantity: notional, dailyVolume: meta.traded_usd_per_minute }
        const law = squareRootImpact({ ...order, dailyVolatility: meta.sigma_1min_bps })
        factors.push(Math.abs(Math.log(law / cost)))
      }
    }
  }
  const typical = Math.exp(factors.sort((a, b) => a - b)[factors.length >> 1] ?? NaN)
  return [
    // The recorded costs are written to six decimals.
    atMost(BOOKS, `walk of ${errors.length} orders, largest error in bps`, Math.max(...errors), 1e-6, 7),
    atMost(BOOKS, 'books that are too thin on one side of the comparison only', mismatches, 0, 0),
    atMost(BOOKS, 'square-root law against the walk, 250k to 5M, median factor', typical, 2, 2),
  ]
}

const COST = 'cost'
const SIDES = ['buy', 'sell'] as const
const LARGE = 250_000
const CALLS = 20_000

/** Measures the product's estimates on recorded books: with the book, with the law alone, and how often the range holds. */
export function measureCost(): Measure[] {
  const walks: number[] = []
  const factors: number[] = []
  const later: boolean[] = []
  const law: boolean[] = []
  for (const name of recordedNames('l2', '.json.gz')) {
    const text = readRecorded(`l2/${name}`)
    const { meta, snapshots } = JSON.parse(text) as Recording
    const books = parseBooks(text, 'recorded')
    for (const [at, book] of books.entries())
      for (const side of SIDES)
        for (const [index, notional] of meta.notionals_usd.entries()) {
          const truth = snapshots[at]?.expected.walk_bps[side][index]
          if (typeof truth !== 'number') continue
          const walked = market(inputsOf(meta, book, true), side, notional)
          walks.push(Math.abs(walked.cost - truth))
          if (notional < LARGE) continue
          const guessed = market(inputsOf(meta, book, false), side, notional)
          factors.push(Math.exp(Math.abs(Math.log(guessed.cost / truth))))
          law.push(truth >= guessed.low && truth <= guessed.high)
          const next = snapshots[at + 1]?.expected.walk_bps[side][index]
          if (typeof next === 'number') later.push(next >= walked.low && next <= walked.high)
        }
  }
  const typical = factors.sort((a, b) => a - b)[factors.length >> 1] ?? NaN
  return [
    // The recorded costs are written to six decimals.
    atMost(
      COST,
      `market orders walked on ${walks.length} recorded books, largest error in bps`,
      Math.max(...walks),
      1e-6,
      7,
    ),
    atMost(COST, 'market orders by the law alone, 250k to 5M, median factor to the walk', typical, 2, 2),
    atLeast(COST, 'range of a walked order holds the same walk 30 seconds later (0.80 intended)', share(later), 0.7, 2),
    atLeast(COST, 'range of the law holds the walk (0.80 intended)', share(law), 0.7, 2),
    shown(COST, 'estimates per second with a book, one core', Math.round(speed()).toLocaleString('en')),
  ]
}

/** Cost and range of a market order before fees, bps. */
function market(inputs: EstimateInputs, side: 'buy' | 'sell', notional: number) {
  const { halfSpreadBps, impactBps, low, high } = estimate(
    orderFrom({ symbol: 'X', side, notional_usd: notional, order_type: 'market' }),
    inputs,
  )
  return {
    cost: halfSpreadBps + impactBps,
    low: halfSpreadBps + low * impactBps,
    high: halfSpreadBps + high * impactBps,
  }
}

/** Inputs scaled from the minute of the recording to a day, with the spread of the book. `walked` includes the book. */
function inputsOf(meta: Recording['meta'], book: BookSnapshot, walked: boolean): EstimateInputs {
  const [bid, ask] = [book.bids[0]![0], book.asks[0]![0]]
  return {
    spreadBps: (2e4 * (ask - bid)) / (ask + bid),
    sigmaDaily: (meta.sigma_1min_bps / 1e4) * Math.sqrt(1440),
    advUsd: meta.traded_usd_per_minute * 1440,
    dayMinutes: 1440,
    halfSpreadErrorBps: 0,
    book: walked ? book : null,
    bookAgeSeconds: 0,
  }
}

function share(held: readonly boolean[]): number {
  return held.filter(Boolean).length / held.length
}

function speed(): number {
  const [name = ''] = recordedNames('l2', '.json.gz')
  const text = readRecorded(`l2/${name}`)
  const [book] = parseBooks(text, 'recorded')
  const inputs = inputsOf((JSON.parse(text) as Recording).meta, book!, true)
  const session = { symbol: 'X', session: '24x7', is_open: true, opened: null, closes: null, next_open: null } as const
  const known: MarketInputs = {
    symbol: 'X',
    className: 'spot',
    session,
    inputs,
    price: 1,
    tickBps: null,
    sources: { price: 'book', spread: 'book', volatility: 'bars_1m', volume: 'bars_1m' },
    book: book!,
    bars: null,
    newest: book!.time,
    age: 0,
    isStale: false,
  }
  const begun = performance.now()
  for (let i = 0; i < CALLS; i += 1)
    costAnswer({ symbol: 'X', side: 'buy', notional_usd: 1e6, order_type: 'market' }, known, 10, 'replay')
  return (1000 * CALLS) / (performance.now() - begun)
}
