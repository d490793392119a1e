import type { AddFinding } from './finding-codes.ts'
import { DAY, formatBarTime } from './bar-times.ts'
import { longBreak } from './bar-interval.ts'
import { median } from '../lib/quant/rolling-median.ts'
import type { Scales, Series } from './clean-series.ts'
import { levelChange } from './unadjusted-splits.ts'

const LEVEL_CHANGE = Math.log(1.17)
const DIVIDEND = { least: -Math.log(1 - 0.01), most: -Math.log(1 - 0.12) }

/**
 * Reports a new price level after a long break: the ticker may now belong to another company. Returns the places of the new
 * levels. `interval` is the length of a bar in seconds.
 */
export function checkDiscontinuity(series: Series, interval: number, add: AddFinding): number[] {
  const found: number[] = []
  const least = longBreak(interval)
  for (let at = 1; at < series.count; at += 1) {
    const days = (series.time[at]! - series.time[at - 1]!) / DAY
    const change = levelChange(series, at)
    if (days * DAY <= least || Math.abs(change) < LEVEL_CHANGE) continue
    found.push(at)
    add({
      code: 'series_discontinuity',
      severity: 'error',
      index: series.rows[at]!,
      field: 'open',
      observed: series.open[at]!,
      expected: series.close[at - 1]!,
      score: change,
      confidence: 0.95,
      explanation:
        `the price level changes by a factor of ${Math.exp(change).toPrecision(3)} after ${Math.round(days)} days without bars ` +
        `since ${formatBarTime(series.time[at - 1]!)}; it may be another instrument`,
    })
  }
  return found
}

/**
 * For daily bars of stocks, reports falls of 1% to 12% between close and open that look like an ex-dividend date: more
 * than five times the usual gap, the only such gap within ten bars, with an ordinary range and ordinary turnover, and
 * without recovery on that day.
 */
export function checkDividends(series: Series, scales: Scales, add: AddFinding): void {
  const { count, open, close } = series
  const gaps = open.map((value, i) => Math.log(value / (close[i - 1] ?? value)))
  for (let i = 30; i < count - 1; i += 1) {
    const gap = -gaps[i]!
    if (gap < DIVIDEND.least || gap > DIVIDEND.most) continue
    const around = gaps.subarray(i - 30, Math.min(count, i + 31)).map(Math.abs)
    const usual = median(around)
    const near = [...gaps.subarray(i - 10, i), ...gaps.subarray(i + 1, i + 11)]
    const quiet = scales.activity[i]! < 1.5 && scales.range[i]! < 1.25 * scales.local[i]!
    const stays = Math.log(close[i]! / open[i]!) < gap / 2
    if (gap < 5 * usual || near.some((other) => Math.abs(other) > gap / 2) || !quiet || !stays) continue
    add({
      code: 'possible_dividend',
      severity: 'info',
      index: series.rows[i]!,
      field: 'open',
      observed: open[i]! * series.factor[i]!,
      expected: null,
      score: gap / usual,
      confidence: 0.5,
      explanation: `opens ${(100 * (1 - Math.exp(-gap))).toPrecision(2)}% lower on an ordinary day, as on an ex-dividend date`,
    })
  }
}
