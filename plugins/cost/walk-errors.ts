/** How far the cost of a market order moves while it is on its way, learnt from pairs of order books. */
import { AdaptiveInterval } from '../lib/quant/conformal-interval.ts'
import { type BookPair, walkBook } from '../lib/quant/order-book.ts'

type Side = 'buy' | 'sell'

/** The range of the error at one size: the cost of filling the order in a later book, less that in the book of the estimate. */
export interface ErrorRange {
  /** Basis points; never above 0. */
  readonly low: number
  /** Basis points; never below 0. */
  readonly high: number
  /** Orders that it was learnt from, and when they were measured, epoch seconds. */
  readonly cases: number
  readonly from: number
  readonly to: number
  /** Of the orders that came later than the range they are judged by: all, and those within it. */
  readonly judged: number
  readonly held: number
}

/** Orders of these sizes are walked. Ranges of sizes between them lie between theirs. */
export const SIZES_USD = [1e3, 1e4, 5e4, 1e5, 2.5e5, 5e5, 1e6, 2e6, 5e6, 1e7, 2e7, 5e7] as const
/** The share of orders that a range is meant to hold. */
export const LEVEL = 0.8
/** Each tail leaves out half of the rest. */
const TAIL = (1 - LEVEL) / 2
/** From this many cases on, what a range holds is within .1 of the level, a standard deviation: √(.8 · .2 / (n + 2)). */
const FEWEST = 14
/** With fewer cases of its own, a side has those of both. */
const FEWEST_OF_SIDE = 100
/** A week of pairs, five minutes apart. */
const WINDOW = 2016
/**
 * How fast ranges follow a drift. At 0.005, the rate of Gibbs and Candès, ranges of made-up books whose errors are whole ticks
 * hold .85 of small orders; at 0.01 .82; at this rate, and at 0.04, .80 to .81.
 */
const RATE = 0.02
const SIDES: readonly Side[] = ['buy', 'sell']

/** The errors of one asset at one venue. Pairs are learnt in order of time; each is judged by the range before it. */
export class WalkErrors {
  readonly #cells = SIZES_USD.map((usd) => new Cell(usd))
  #from = NaN
  #to = NaN
  #ranges: Readonly<Record<Side, readonly ErrorRange[]>> = { buy: [], sell: [] }

  learn({ first, later }: BookPair): void {
    for (const [i, cell] of this.#cells.entries()) {
      const errors = SIDES.map((side) => errorBetween(first, later, side, cell.usd))
      cell.learn(errors, { buy: this.#ranges.buy[i], sell: this.#ranges.sell[i] })
    }
    if (Number.isNaN(this.#from)) this.#from = first.time
    this.#to = later.time
    this.#ranges = { buy: this.#rangesOf('buy'), sell: this.#rangesOf('sell') }
  }

  /** The range at a size. Null above the largest size with enough cases. */
  at(side: Side, notionalUsd: number): ErrorRange | null {
    const ranges = this.#ranges[side]
    const next = SIZES_USD.findIndex((usd) => usd >= notionalUsd)
    const above = ranges[next]
    if (!above) return null
    const below = ranges[next - 1]
    if (!below) return above
    const share = Math.log(notionalUsd / SIZES_USD[next - 1]!) / Math.log(SIZES_USD[next]! / SIZES_USD[next - 1]!)
    const between = (a: number, b: number): number => a + share * (b - a)
    // A size between two has the cases of the larger one, which are the fewer.
    return { ...above, low: between(below.low, above.low), high: between(below.high, above.high) }
  }

  /** The ranges of a side by size, up to the last size with enough cases. Their upper ends never fall with size. */
  #rangesOf(side: Side): ErrorRange[] {
    const ranges: ErrorRange[] = []
    for (const cell of this.#cells) {
      const { intervals, judged, held } = cell
      const learnt = [intervals[side], intervals.both].find((one, i) => one.cases >= [FEWEST_OF_SIDE, FEWEST][i]!)
      const found = learnt?.interval()
      if (!learnt || !found || found.high === Infinity) break
      const high = Math.max(0, found.high, ranges.at(-1)?.high ?? 0)
      const { cases } = learnt
      const [from, to] = [this.#from, this.#to]
      ranges.push({ low: Math.min(0, found.low), high, cases, from, to, judged: judged[side], held: held[side] })
    }
    return ranges
  }
}

/** The errors at one size. */
class Cell {
  readonly usd: number
  readonly intervals = { buy: intervalOf(), sell: intervalOf(), both: intervalOf() }
  readonly judged = { buy: 0, sell: 0 }
  readonly held = { buy: 0, sell: 0 }

  constructor(usd: number) {
    this.usd = usd
  }

  learn(errors: readonly (number | null)[], before: Readonly<Record<Side, ErrorRange | undefined>>): void {
    const known: number[] = []
    for (const [i, side] of SIDES.entries()) {
      const error = errors[i]
      if (error == null) continue
      known.push(error)
      const range = before[side]
      if (range) {
        this.judged[side] += 1
        if (error >= range.low && error <= range.high) this.held[side] += 1
      }
      const own = this.intervals[side]
      own.learn([error], own.cases >= FEWEST)
    }
    this.intervals.both.learn(known, this.intervals.both.cases >= FEWEST)
  }
}

const intervalOf = (): AdaptiveInterval => new AdaptiveInterval({ tail: TAIL, window: WINDOW, rate: RATE })

/** Null if the first book cannot fill the order; infinite if only the later one cannot. */
function errorBetween(first: BookPair['first'], later: BookPair['later'], side: Side, usd: number): number | null {
  const estimated = walkBook(first, side, usd)
  if (!estimated) return null
  return (walkBook(later, side, usd)?.costBps ?? Infinity) - estimated.costBps
}
