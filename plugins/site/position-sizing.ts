/**
 * Compares a long position of constant size with one that is resized by the position scalar. The size changes only when
 * the label changes, because every trade costs.
 */
import type { Chart } from '../lib/charts.ts'
import { percent } from './page-data.ts'
import { DAY, HOUR, type MarketHistory } from './regime-history.ts'

const HOURS_PER_YEAR = 8760

interface Line {
  /** Value of one unit at each hour. */
  readonly points: readonly (readonly [number, number])[]
  readonly returns: readonly number[]
  readonly changes: number
  readonly turnover: number
}

/** Returns both positions as a chart and a table, or null if there are fewer than three hours. */
export function sizing(history: MarketHistory, costBps: number) {
  const closes = closesOf(history)
  if (closes.length < 3) return null
  const plain = run(closes, () => 1, costBps)
  const scaled = run(closes, scalarsOf(history), costBps)
  return {
    chart: chartOf(history, plain, scaled),
    rows: rowsOf(plain, scaled, costBps),
    costBps,
    symbol: history.symbol,
  }
}

/** Returns the price at each full hour. */
function closesOf({ returns: { at, closes } }: MarketHistory): readonly (readonly [number, number])[] {
  return at.flatMap((moment, index) => (moment % HOUR === 0 ? [[moment, closes[index] as number] as const] : []))
}

/** Returns the exposure at each hour: the scalar of the hour in which the label last changed. */
function scalarsOf({ hours }: MarketHistory): (at: number) => number | undefined {
  let [label, held] = [hours[0]?.volatile, hours[0]?.scalar]
  const sizes = new Map<number, number | undefined>()
  for (const { at, volatile, scalar } of hours) {
    if (volatile !== label) [label, held] = [volatile, scalar]
    sizes.set(at, held)
  }
  return (at) => sizes.get(at)
}

/**
 * Returns the value of a position over time. `wanted` gives the exposure from each hour on, and each change of exposure
 * costs `costBps`: at 10 bps, going from 1 to 0.5 costs 0.0005 of the value.
 */
function run(
  closes: readonly (readonly [number, number])[],
  wanted: (at: number) => number | undefined,
  costBps: number,
): Line {
  const points: [number, number][] = []
  const returns: number[] = []
  let [value, exposure, changes, turnover] = [1, 0, 0, 0]
  for (const [index, [at, close]] of closes.entries()) {
    const before = closes[index - 1]
    if (before) {
      const earned = exposure * (close / before[1] - 1)
      returns.push(earned)
      value *= 1 + earned
    }
    points.push([at, value])
    const next = wanted(at) ?? exposure
    const change = Math.abs(next - exposure)
    if (change === 0) continue
    value *= 1 - (change * costBps) / 1e4
    turnover += change
    changes += 1
    exposure = next
  }
  return { points, returns, changes, turnover }
}

function chartOf({ symbol }: MarketHistory, plain: Line, scaled: Line): Chart {
  return {
    id: 'sizing',
    title: `One unit of ${symbol}, at full size and resized`,
    description:
      'Two lines over the same hours, both after costs: the value of one unit at constant size, and of one unit resized by the position scalar at each change of the label.',
    x: { label: 'UTC', scale: 'time' },
    y: { label: 'Value of one unit' },
    series: [
      { name: 'Full size', tone: 'muted', kind: 'dashed', points: plain.points },
      { name: 'Resized', tone: 'main', points: scaled.points },
    ],
    table: {
      columns: ['Day', 'Full size', 'Resized'],
      rows: plain.points.flatMap(([at, value], index) =>
        at % DAY === 0
          ? [[new Date(at).toISOString().slice(0, 10), value.toFixed(4), (scaled.points[index]?.[1] ?? 1).toFixed(4)]]
          : [],
      ),
    },
  }
}

function rowsOf(plain: Line, scaled: Line, costBps: number) {
  const row = (label: string, of: (line: Line) => string) => ({ label, plain: of(plain), scaled: of(scaled) })
  return [
    row('Annualised volatility', ({ returns }) => percent(deviation(returns) * Math.sqrt(HOURS_PER_YEAR))),
    row('Most volatile day, as a multiple of the median day', ({ returns }) => `${unevenness(returns).toFixed(1)}×`),
    row('Maximum drawdown', ({ points }) => percent(maximumDrawdown(points))),
    row('Return', ({ points }) => percent((points.at(-1)?.[1] ?? 1) - 1)),
    row('Resizes', ({ changes }) => String(changes)),
    row('Cost of the resizes', ({ turnover }) => `${(turnover * costBps).toFixed(1)}\u00a0bps`),
  ]
}

/** The root mean square. The mean of hourly returns is close enough to zero to be left out. */
const deviation = (values: readonly number[]): number =>
  Math.sqrt(values.reduce((sum, value) => sum + value * value, 0) / Math.max(1, values.length))

/** Returns the largest daily volatility divided by the median one. */
function unevenness(returns: readonly number[]): number {
  const days = Array.from({ length: Math.floor(returns.length / 24) }, (_, day) =>
    deviation(returns.slice(day * 24, day * 24 + 24)),
  )
  const sorted = days.toSorted((one, other) => one - other)
  return (sorted.at(-1) ?? 0) / (sorted[sorted.length >> 1] || 1)
}

/** Returns the largest fall from a peak: 1, 1.2, 0.9 gives -0.25. */
function maximumDrawdown(points: readonly (readonly [number, number])[]): number {
  let [peak, fall] = [0, 0]
  for (const [, value] of points) {
    peak = Math.max(peak, value)
    fall = Math.min(fall, value / peak - 1)
  }
  return fall
}
