import { costAnswer } from '../../../plugins/cost/cost-answer.ts'
import { estimate, type EstimateInputs } from '../../../plugins/cost/estimate.ts'
import type { MarketInputs } from '../../../plugins/cost/market-inputs.ts'
import { squareRootImpact } from '../../../plugins/lib/quant/market-impact.ts'
import { type Book, walkBook } from '../../../plugins/lib/quant/order-book.ts'
import type { BookSnapshot } from '../../../plugins/market/order-books/order-book-source.ts'
import { parseBooks } from '../../../plugins/market/order-books/recorded-books.ts'
import { atMost, claiming, type Measure, shown } from '../../support/measure.ts'
import { readRecorded, recordedNames } from '../../support/recorded-data.ts'

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
/** The recorded costs are written to six decimals. */
const WRITTEN = 1e-6
const CALLS = 20_000

/** Measures the product's estimates on recorded books: with the book, and with the law alone. */
export function measureCost(): Measure[] {
  const walks: number[] = []
  const factors: number[] = []
  for (const name of recordedNames('l2', '.json.gz')) {
    const text = readRecorded(`l2/${name}`)
    const { meta, snapshots } = JSON.parse(text) as Recording
    const books = parseBooks(text, 'recorded')
    for (const [at, book] of books.entries())
      for (const side of SIDES)
        for (const [index, notional] of meta.notionals_usd.entries()) {
          const truth = snapshots[at]?.expected.walk_bps[side][index]
          if (typeof truth !== 'number') continue
          walks.push(Math.abs(market(inputsOf(meta, book, true), side, notional) - truth))
          if (notional < LARGE) continue
          factors.push(Math.exp(Math.abs(Math.log(market(inputsOf(meta, book, false), side, notional) / truth))))
        }
  }
  const typical = factors.sort((a, b) => a - b)[factors.length >> 1] ?? NaN
  return [
    atMost(
      COST,
      `market orders walked on ${walks.length} recorded books, largest error in bps`,
      Math.max(...walks),
      WRITTEN,
      7,
    ),
    atMost(COST, 'market orders by the law alone, 250k to 5M, median factor to the walk', typical, 2, 2),
    shown(COST, 'estimates per second with a book, one core', Math.round(speed()).toLocaleString('en')),
  ]
}

const SCHEDULES = ['twap', 'vwap', 'pov'] as const
/** Half of what costs are rounded to, bps. */
const ROUNDING = 0.005

/** Compares schedules with the market order that they split, on recorded books and by the law alone, from 100 USD on. */
export function measureSchedules(): Measure[] {
  let [orders, dearer, pairs] = [0, 0, 0]
  const times: number[] = []
  for (const name of recordedNames('l2', '.json.gz')) {
    const text = readRecorded(`l2/${name}`)
    const { meta } = JSON.parse(text) as Recording
    pairs += 1
    for (const book of parseBooks(text, 'recorded')) {
      times.push(book.time)
      for (const isWalked of [true, false])
        for (const side of SIDES)
          for (let notional = 100; notional <= meta.traded_usd_per_minute * 1440; notional *= 10) {
            const inputs = inputsOf(meta, book, isWalked)
            const atOnce = market(inputs, side, notional)
            const split = SCHEDULES.map((type) => scheduled(inputs, { side, notional, type }))
            orders += split.length
            dearer += split.filter((cost) => cost > atOnce + ROUNDING).length
          }
    }
  }
  const time = (seconds: number): string => new Date(seconds * 1000).toISOString()
  return claiming(
    [atMost(COST, `schedules dearer than the market order that they split, of ${orders}`, dearer, 0, 0)],
    {
      claimed: 'No schedule (twap, vwap, pov) costs more than the market order that it splits',
      measured: `${dearer} cost more`,
      on: `Books of ${pairs} recorded ${pairs === 1 ? 'market' : 'markets'}, and the law without them`,
      start: time(Math.min(...times)),
      end: time(Math.max(...times)),
      cases: orders,
      data_mode: 'replay',
    },
  )
}

/** Cost of a schedule with the default horizon, before fees, bps. */
function scheduled(
  inputs: EstimateInputs,
  { side, notional, type }: { side: 'buy' | 'sell'; notional: number; type: (typeof SCHEDULES)[number] },
): number {
  const order = { side, type, notionalUsd: notional, horizonMinutes: null, participationRate: null } as const
  return estimate(order, inputs).totalBps
}

/** Cost of a market order before fees, bps. */
function market(inputs: EstimateInputs, side: 'buy' | 'sell', notional: number): number {
  const order = { side, type: 'market', notionalUsd: notional, horizonMinutes: null, participationRate: null } as const
  return estimate(order, inputs).totalBps
}

/** Inputs scaled from the minute of the recording to a day, with the spread of the book. `walked` includes the book. */
function inputsOf(meta: Recording['meta'], book: BookSnapshot, walked: boolean): EstimateInputs {
  const [bid, ask] = [book.bids[0]![0], book.asks[0]![0]]
  return {
    spreadBps: (2e4 * (ask - bid)) / (ask + bid),
    sigmaDaily: (meta.sigma_1min_bps / 1e4) * Math.sqrt(1440),
    advUsd: meta.traded_usd_per_minute * 1440,
    dayMinutes: 1440,
    takerFeeBps: 0,
    makerFeeBps: 0,
    book: walked ? book : null,
    errors: null,
  }
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
    costAnswer(
      { symbol: 'X', side: 'buy', notional_usd: 1e6, order_type: 'market', include_book: false },
      known,
      { fee_bps: 10 },
      'replay',
    )
  return (1000 * CALLS) / (performance.now() - begun)
}
