import { normalCdf } from '../../lib/quant/normal-distribution.ts'
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

/**
 * Detects look-ahead bias from where fills lie in their bars. An honest strategy knows neither the extremes nor the
 * direction of a bar in advance.
 */
export function createBiasDetector(): BiasDetector {
  const buys = createMean()
  const sells = createMean()
  const agreeing = createMean()
  const touching = createMean()
  return {
    get observed() {
      return touching.count()
    },
    observe({ sign, price, leg }, { open, high, low, close }, bar) {
      const [o, h, l, c] = [open[bar]!, high[bar]!, low[bar]!, close[bar]!]
      if (!(h > l)) return
      ;(sign === 1 ? buys : sells).add((price - l) / (h - l))
      // A fill at the open or close does not count as a touch, even if that price is an extreme.
      const isTouch = (isAt(price, h) || isAt(price, l)) && !isAt(price, o) && !isAt(price, c)
      touching.add(isTouch ? 1 : 0)
      if (leg === 'entry' && Math.abs(price / o - 1) <= SAME_PRICE && c !== o)
        agreeing.add(Math.sign(c - o) === sign ? 1 : 0)
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
      if (agreeing.count() >= MIN_FILLS && agreeing.mean() > 0.9)
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

/**
 * The upper tail of Student's t, by Wallace's transformation to a normal deviate.
 *
 * Source: D. L. Wallace, "Bounds on normal approximations to Student's and the chi-square distributions", Annals of
 * Mathematical Statistics 30 (1959) 1121-1130.
 *
 * @example studentTail(2.0423, 30) // 0.0250, the tables' 2.5% point
 */
export function studentTail(t: number, degrees: number): number {
  const deviate = ((8 * degrees + 1) / (8 * degrees + 3)) * Math.sqrt(degrees * Math.log1p((t * t) / degrees))
  return normalCdf(-deviate)
}
