/** How often the ranges of market orders hold what the same order costs half a minute later, in books that were left out. */
import { LEVEL, SIZES_USD, WalkErrors } from '../../../plugins/cost/walk-errors.ts'
import { centralInterval, stationaryBootstrap } from '../../../plugins/lib/quant/bootstrap.ts'
import { type BookPair, type Level, pairsOf, type TimedBook, walkBook } from '../../../plugins/lib/quant/order-book.ts'
import { seededRandom } from '../../../plugins/lib/quant/seeded-random.ts'
import { makeBook } from '../../../plugins/market/order-books/sample-books.ts'
import type { SampleSymbol } from '../../../plugins/market/sample-bars.ts'
import { parseBooks } from '../../../plugins/market/order-books/recorded-books.ts'
import { atMost, claiming, type Measure, shown, within } from '../../support/measure.ts'
import { readRecorded, recordedNames } from '../../support/recorded-data.ts'

const RECORDED = 'ranges'
const SIMULATED = 'simulated books'
const compactUsd = new Intl.NumberFormat('en', { notation: 'compact' })
const SIDES = ['buy', 'sell'] as const
const JUDGED_USD = SIZES_USD.filter((usd) => usd >= 1e3 && usd <= 5e6)
/** The walks of two books that are the same differ by less, bps. */
const NOISE = 1e-9
/** The factors of the impact that the range had before, cost/2. */
const FORMER = { low: 0.65, high: 1.7 }

/** An order whose later cost is known, with its range. */
interface Case {
  readonly time: number
  readonly usd: number
  readonly held: boolean
  readonly width: number
  readonly estimate: number
  readonly half: number
  readonly later: number
}

/** The cases of a pair by what was learnt before, or elsewhere. Orders that one of the books cannot fill are left out. */
function casesOf({ first, later }: BookPair, errors: WalkErrors): Case[] {
  const half = 1e4 * ((first.asks[0]![0] - first.bids[0]![0]) / (first.asks[0]![0] + first.bids[0]![0]))
  return JUDGED_USD.flatMap((usd) =>
    SIDES.flatMap((side) => {
      const range = errors.at(side, usd)
      const [before, after] = [walkBook(first, side, usd), walkBook(later, side, usd)]
      if (!range || !before || !after) return []
      const error = after.costBps - before.costBps
      const held = error >= range.low - NOISE && error <= range.high + NOISE
      // A cost is never below zero, so that is where the range ends.
      const width = before.costBps + range.high - Math.max(0, before.costBps + range.low)
      return [{ time: first.time, usd, held, width, estimate: before.costBps, half, later: after.costBps }]
    }),
  )
}

function learnt(pairs: readonly BookPair[]): WalkErrors {
  const errors = new WalkErrors()
  for (const pair of pairs) errors.learn(pair)
  return errors
}

/** Each pair by all others of its recording, without those that share a book with it. */
const leaveOut = (pairs: readonly BookPair[]): Case[] =>
  pairs.flatMap((pair, i) => casesOf(pair, learnt(pairs.filter((_, j) => Math.abs(i - j) > 1))))

/** Each pair by those before it. */
function inOrder(pairs: readonly BookPair[]): Case[] {
  const errors = new WalkErrors()
  return pairs.flatMap((pair) => {
    const cases = casesOf(pair, errors)
    errors.learn(pair)
    return cases
  })
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length
const coverage = (cases: readonly Case[]): number => mean(cases.map(({ held }) => Number(held)))

/** The coverage with its 95% interval by the stationary bootstrap: blocks of times, whose orders stay together. */
function coverageInterval(cases: readonly Case[]): readonly [low: number, high: number] {
  const times = [...new Set(cases.map(({ time }) => time))]
  const byTime = new Map(times.map((time) => [time, cases.filter((one) => one.time === time)]))
  const held = times.map((time) => coverage(byTime.get(time)!))
  return centralInterval(stationaryBootstrap(held, { meanBlock: Math.max(2, Math.cbrt(times.length)) }).mean)
}

const bySize = (cases: readonly Case[]) =>
  JUDGED_USD.map((usd) => ({ usd, own: cases.filter((one) => one.usd === usd) })).filter(({ own }) => own.length > 0)

const sizes = (cases: readonly Case[]): string =>
  bySize(cases)
    .map(({ usd, own }) => {
      const [low, high] = coverageInterval(own)
      return `${compactUsd.format(usd)}: ${coverage(own).toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)}, n ${own.length})`
    })
    .join(', ')

/** Sizes from 10,000 USD on whose interval does not hold the level. */
const missed = (cases: readonly Case[]): number =>
  bySize(cases).filter(({ usd, own }) => {
    const [low, high] = coverageInterval(own)
    return usd >= 1e4 && (LEVEL < low || LEVEL > high)
  }).length

/** Coverage and mean width of the former range, with its factors to the power `stretch`. */
function former(cases: readonly Case[], stretch = 1): { readonly coverage: number; readonly width: number } {
  const ranges = cases.map(({ estimate, half, later }) => {
    const impact = Math.max(0, estimate - half)
    const [low, high] = [half + impact * FORMER.low ** stretch, half + impact * FORMER.high ** stretch]
    return { held: later >= low - 1e-6 && later <= high + 1e-6, width: high - low }
  })
  return { coverage: mean(ranges.map(({ held }) => Number(held))), width: mean(ranges.map(({ width }) => width)) }
}

/** The width of the former range once it is stretched to the same coverage; infinite if it never has it. */
function formerWidth(cases: readonly Case[]): number {
  let [low, high] = [0, 16]
  if (former(cases, high).coverage < coverage(cases)) return Infinity
  for (let i = 0; i < 40; i += 1) {
    const middle = (low + high) / 2
    if (former(cases, middle).coverage < coverage(cases)) low = middle
    else high = middle
  }
  return former(cases, high).width
}

function figuresOf(part: string, what: string, cases: readonly Case[]): Measure[] {
  const width = mean(cases.map((one) => one.width))
  const before = former(cases)
  const stretched = formerWidth(cases)
  const times = new Set(cases.map(({ time }) => time)).size
  return [
    within(part, `${what}: share of ${cases.length} orders at ${times} times within the range, 0.80 intended`, coverage(cases), 0.77, 0.83), // prettier-ignore
    shown(part, `${what}: by size in USD, with 95% block-bootstrap intervals`, sizes(cases)),
    atMost(part, `${what}: sizes from 10K on whose interval does not hold 0.80`, missed(cases), 0, 0),
    atMost(part, `${what}: mean width, divided by that of cost/2`, width / before.width, 1.1, 2),
    shown(part, `${what}: mean width, and that of cost/2 (its share)`, `${width.toFixed(2)}, ${before.width.toFixed(2)} bps (${before.coverage.toFixed(2)})`), // prettier-ignore
    shown(part, `${what}: mean width of cost/2 once it holds as many orders`, Number.isFinite(stretched) ? `${stretched.toFixed(2)} bps` : 'it never does'), // prettier-ignore
  ]
}

/** On the recordings: each block left out, and in order of time. */
export function measureRecordedRanges(): Measure[] {
  return recordedNames('l2', '.json.gz').flatMap((name) => {
    const books = parseBooks(readRecorded(`l2/${name}`), name)
    const pairs = pairsOf(books, name)
    const [first, last] = [books[0]!, books.at(-1)!].map(({ time }) => new Date(time * 1000).toISOString())
    const [, venue, pair] = /^([a-z_]+)_([a-z]+)_\d{8}/.exec(name) ?? []
    const what = `${venue} ${pair} ${first!.slice(0, 16)} to ${last!.slice(11, 16)}`
    const [cases, ordered] = [leaveOut(pairs), inOrder(pairs)]
    const claim = {
      claimed: 'Ranges of cost hold 77 to 83% of orders half a minute later',
      measured: `${(100 * coverage(cases)).toFixed(1)}%, at ${new Set(cases.map(({ time }) => time)).size} times`,
      on: `Books of ${venue} ${pair} that were left out, 1K to 2M USD`,
      start: first!,
      end: last!,
      cases: cases.length,
      data_mode: 'replay',
    } as const
    return [
      ...claiming(figuresOf(RECORDED, what, cases), claim, (name) => name.includes('intended')),
      shown(RECORDED, `${what}: learnt on earlier books only, ${ordered.length} orders`, ordered.length > 0 ? coverage(ordered).toFixed(2) : 'too few books'), // prettier-ignore
    ]
  })
}

/** The pairs of a run of books: each book once, so that pairs are independent where the books are. */
const everyOther = (books: readonly TimedBook[]): BookPair[] => pairsOf(books, 'sample').filter((_, i) => i % 2 === 0)
const COUNT = 1200
const BTC: SampleSymbol = { symbol: 'BTC-USD', price: 98_000, volatility: 0.5, turnover: 2e9, tick: 0.01, session: '24x7' } // prettier-ignore
const ETH: SampleSymbol = { symbol: 'ETH-USD', price: 3600, volatility: 0.68, turnover: 1.1e9, tick: 0.01, session: '24x7' } // prettier-ignore
const sampleBooks = (symbol: SampleSymbol): TimedBook[] =>
  Array.from({ length: COUNT }, (_, minute) => makeBook(symbol, 60 * (minute + 1), symbol.price))

/** Sample books whose depth also wanders, and halves in the middle of the run. */
function wanderingBooks(symbol: SampleSymbol): TimedBook[] {
  const random = seededRandom(11)
  let depth = 0
  return sampleBooks(symbol).map((book, i) => {
    depth = 0.97 * depth + 0.3 * (random() + random() - 1)
    const factor = Math.exp(depth) * (i < COUNT / 2 ? 1 : 0.5)
    const scaled = (side: readonly Level[]): Level[] => side.map(([price, quantity]) => [price, quantity * factor])
    return { ...book, bids: scaled(book.bids), asks: scaled(book.asks) }
  })
}

/** On books that are made up, learnt on earlier ones only. They show that the method holds, and nothing of a market. */
export function measureSimulatedRanges(): Measure[] {
  return [
    ...figuresOf(SIMULATED, 'BTC-USD, books anew each minute', inOrder(everyOther(sampleBooks(BTC)))),
    ...figuresOf(SIMULATED, 'ETH-USD, books anew each minute', inOrder(everyOther(sampleBooks(ETH)))),
    ...figuresOf(SIMULATED, 'ETH-USD, depth that wanders and then halves', inOrder(everyOther(wanderingBooks(ETH)))),
  ]
}
