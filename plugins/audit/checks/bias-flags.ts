import { studentTail } from '../../lib/quant/student-t.ts'
import type { Fill } from '../trade-ledger.ts'
import type { ReferenceSeries } from '../reference/bar-series.ts'

export interface Flag {
  readonly code: 'lookahead_extremes' | 'lookahead_same_bar' | 'touch_fill' | 'survivorship'
  /** An `error` rejects the ledger. An `info` names something that cannot be tested. */
  readonly severity: 'error' | 'info'
  readonly fills: number
  readonly value: number
  readonly limit: number
  readonly explanation: string
}

export interface BiasDetector {
  /** Records a fill that lies within its bar. */
  observe(fill: Fill, series: ReferenceSeries, bar: number): void
  flags(): Flag[]
  /** Number of fills recorded so far. */
  readonly observed: number
}

/** Fewer fills are not enough to show a pattern. */
export const MIN_FILLS = 30
/** Prices closer than half a basis point count as equal. */
const SAME_PRICE = 0.5e-4
/** So many deviations above what chance gives: once in 30,000 ledgers. */
const MIN_Z = 4

/**
 * Detects look-ahead bias from where fills lie in their bars. An honest strategy knows neither the extremes nor the
 * direction of a bar in advance.
 */
export function createBiasDetector(): BiasDetector {
  const upShareOf = createUpShares()
  const buys = createMean()
  const sells = createMean()
  const agreeing = createMean()
  // What entries of the same sides would match on average in the bars of their symbols.
  const expected = { sum: 0, variance: 0 }
  const touching = createMean()
  return {
    get observed() {
      return touching.count()
    },
    observe({ sign, price, leg }, series, bar) {
      const { open, high, low, close } = series
      const [o, h, l, c] = [open[bar]!, high[bar]!, low[bar]!, close[bar]!]
      if (!(h > l)) return
      // An order at the open or the close knows that price, even if it is an extreme: after a fall, a close is near the low.
      const isAtEnd = isAt(price, o) || isAt(price, c)
      if (!isAtEnd) (sign === 1 ? buys : sells).add((price - l) / (h - l))
      touching.add(!isAtEnd && (isAt(price, h) || isAt(price, l)) ? 1 : 0)
      if (leg === 'entry' && Math.abs(price / o - 1) <= SAME_PRICE && c !== o) {
        agreeing.add(Math.sign(c - o) === sign ? 1 : 0)
        const up = upShareOf(series)
        expected.sum += sign === 1 ? up : 1 - up
        expected.variance += up * (1 - up)
      }
    },
    flags() {
      const flags: Flag[] = []
      const extremes = (place: ReturnType<typeof createMean>, isBuy: boolean): void => {
        const mean = place.mean()
        const isExtreme = isBuy ? mean < 0.1 : mean > 0.9
        if (place.count() < MIN_FILLS || !isExtreme || place.tail(0.5) > 1e-6) return
        flags.push({
          code: 'lookahead_extremes',
          severity: 'error',
          fills: place.count(),
          value: mean,
          limit: isBuy ? 0.1 : 0.9,
          explanation: `${isBuy ? 'Buys lie at the bottom' : 'Sales lie at the top'} of their bars. Honest fills lie at 0.5 on average.`,
        })
      }
      extremes(buys, true)
      extremes(sells, false)
      const surplus = agreeing.mean() * agreeing.count() - expected.sum
      if (agreeing.count() >= MIN_FILLS && agreeing.mean() > 0.9 && surplus > MIN_Z * Math.sqrt(expected.variance))
        flags.push({
          code: 'lookahead_same_bar',
          severity: 'error',
          fills: agreeing.count(),
          value: agreeing.mean(),
          limit: 0.9,
          explanation: 'Trades entered at the open nearly always match the direction in which the same bar closes.',
        })
      if (touching.count() >= MIN_FILLS && touching.mean() > 0.3)
        flags.push({
          code: 'touch_fill',
          severity: 'error',
          fills: touching.count(),
          value: touching.mean(),
          limit: 0.3,
          explanation: 'Too many fills lie exactly at the high or low of their bars, where few orders are filled.',
        })
      return flags
    },
  }
}

/** The share of the bars of a symbol that close above their open, among those that move: its long trades gain so often. */
function createUpShares(): (series: ReferenceSeries) => number {
  const known = new Map<ReferenceSeries, number>()
  return (series) => {
    const share = known.get(series)
    if (share !== undefined) return share
    let [up, moves] = [0, 0]
    for (let bar = 0; bar < series.open.length; bar += 1) {
      const move = series.close[bar]! - series.open[bar]!
      if (move > 0) up += 1
      if (move !== 0) moves += 1
    }
    known.set(series, up / moves)
    return up / moves
  }
}

/** Whether a price equals a level, exactly or after rounding the level to the decimals of the price. */
function isAt(price: number, level: number): boolean {
  if (price === level) return true
  if (Math.abs(price / level - 1) > SAME_PRICE) return false
  const decimals = Math.max(2, String(price).split('.')[1]?.length ?? 0)
  return decimals <= 15 && Number(level.toFixed(decimals)) === price
}

function createMean() {
  let [n, sum, squares] = [0, 0, 0]
  return {
    add(value: number): void {
      n += 1
      sum += value
      squares += value * value
    },
    count: () => n,
    mean: () => sum / n,
    /** One-sided p value of Student's t against `expected`. */
    tail(expected: number): number {
      const variance = (squares - (sum * sum) / n) / (n - 1)
      if (!(variance > 0)) return 0
      return studentTail(Math.abs(sum / n - expected) / Math.sqrt(variance / n), n - 1)
    },
  }
}
