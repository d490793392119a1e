/**
 * Computes the geometry of charts. A handler describes a chart, views/chart.pug writes the SVG. Every view gets these
 * functions as `chart`. All positions are percentages of the plot, so that a chart fits a phone, a desktop screen and a
 * sheet of paper while its text keeps its size.
 */
import { scaleLinear, scaleLog, scaleUtc } from 'd3-scale'
import { area, curveLinear, curveStepAfter, line } from 'd3-shape'
import type { Chart, ChartAxis, ChartSeries, ChartTable, WaterfallStep } from '../plugin/chart.ts'

const grouped = (digits: number): Intl.NumberFormat =>
  new Intl.NumberFormat('en-US', { maximumFractionDigits: digits, minimumFractionDigits: digits })

/** Formats the label of a tick. `decimals` is how many decimals distinguish it from its neighbours. */
const UNITS = {
  number: (value: number, decimals: number) => grouped(decimals).format(value),
  percent: (value: number, decimals: number) => `${grouped(Math.max(0, decimals - 2)).format(value * 100)}%`,
  bps: (value: number, decimals: number) => `${grouped(decimals).format(value)} bps`,
  times: (value: number, decimals: number) => `${grouped(decimals).format(value)}×`,
} as const satisfies Readonly<Record<NonNullable<ChartAxis['unit']>, unknown>>

const Y_TICKS = 4
const X_TICKS = 5
const LOG_TICKS = 5
const DAY = 86_400_000
/** Percentage of the plot within which a label is aligned to the edge. */
const EDGE = 7

type Scale = (value: number) => number

/** Returns the geometry of a chart. Throws if it has no points. */
export function draw(chart: Chart) {
  const points = chart.series.flatMap((series) => series.points)
  if (points.length === 0) throw new Error(`The chart "${chart.title}" has nothing to show.`)
  const marks = chart.marks ?? []
  const xs = [...points.map(([x]) => x), ...marks.map(({ at }) => at[0]), ...(chart.x.domain ?? [])]
  const ys = [...points.map(([, y]) => y), ...marks.map(({ at }) => at[1]), ...(chart.y.domain ?? [])]
  const x = horizontal(chart.x, extent(xs))
  const y = vertical(chart.y, extent(ys))
  return {
    id: chart.id,
    title: chart.title,
    description: chart.description,
    xLabel: chart.x.label,
    yLabel: chart.y.label,
    legend: [
      ...chart.series.map(({ name, tone, kind = 'line' }) => ({ name, tone, kind })),
      ...(chart.bandNames ?? []).map((band) => ({ ...band, kind: 'band' })),
    ],
    bands: (chart.bands ?? []).map(({ from, to, tone }) => ({
      tone,
      x: x.at(from),
      width: round(x.at(to) - x.at(from)),
    })),
    paths: chart.series.flatMap(({ kind = 'line', tone, points }) =>
      kind === 'points' ? [] : [{ kind, tone, d: path(kind, points, x.at, y.at) }],
    ),
    dots: chart.series.flatMap(({ kind, tone, points }) =>
      kind === 'points' ? points.map(([px, py]) => ({ tone, x: x.at(px), y: y.at(py) })) : [],
    ),
    marks: marks.map(({ at, label }) => ({
      label,
      x: x.at(at[0]),
      y: y.at(at[1]),
      anchor: x.at(at[0]) > 60 ? 'end' : 'start',
    })),
    xTicks: x.ticks.map((tick) => ({
      ...tick,
      anchor: tick.at < EDGE ? 'start' : tick.at > 100 - EDGE ? 'end' : 'middle',
    })),
    yTicks: y.ticks,
    table: chart.table ?? tableOf(chart),
  }
}

function horizontal(axis: ChartAxis, [least, most]: readonly [number, number]) {
  if (axis.scale === 'time') {
    const scale = scaleUtc([new Date(least), new Date(most)], [0, 100])
    const dateFormat = new Intl.DateTimeFormat('en-US', { timeZone: 'UTC', ...datePrecision(most - least) })
    return {
      at: (value: number) => round(scale(new Date(value))),
      ticks: scale.ticks(X_TICKS).map((date) => ({ at: round(scale(date)), label: dateFormat.format(date) })),
    }
  }
  return axis.scale === 'log'
    ? logarithmic(axis, [least, most], [0, 100])
    : linear(axis, [least, most], [0, 100], X_TICKS)
}

function vertical(axis: ChartAxis, domain: readonly [number, number]) {
  return axis.scale === 'log' ? logarithmic(axis, domain, [100, 0]) : linear(axis, domain, [100, 0], Y_TICKS)
}

/** A vertical scale is extended to round numbers; a horizontal one ends with the data. */
function linear(axis: ChartAxis, domain: readonly [number, number], range: readonly [number, number], count: number) {
  const scale = scaleLinear(domain, range)
  if (range[0] > range[1]) scale.nice(count)
  const ticks = scale.ticks(count)
  const [first = 0, second] = ticks
  // Data of one value have one tick, with up to four decimals.
  const decimals = second === undefined ? decimalDigitsOf(first) : decimalsOf(Math.abs(second - first))
  const unit = UNITS[axis.unit ?? 'number']
  return { at: rounded(scale), ticks: ticks.map((tick) => ({ at: round(scale(tick)), label: unit(tick, decimals) })) }
}

function logarithmic(axis: ChartAxis, domain: readonly [number, number], range: readonly [number, number]) {
  const scale = scaleLog(domain, range)
  const powers = scale.ticks().filter((tick) => Number.isInteger(Math.log10(tick)))
  const unit = UNITS[axis.unit ?? 'number']
  const every = Math.ceil(powers.length / LOG_TICKS)
  const shown = powers.length > 1 ? powers.filter((_, index) => index % every === 0) : scale.ticks(2)
  const ticks = shown.map((tick) => ({
    at: round(scale(tick)),
    label: unit(tick, decimalsOf(tick)),
  }))
  return { at: rounded(scale), ticks }
}

function path(kind: string, points: ChartSeries['points'], x: Scale, y: Scale): string {
  const curve = kind === 'step' ? curveStepAfter : curveLinear
  const toX = (point: readonly [number, number]): number => x(point[0])
  const toY = (point: readonly [number, number]): number => y(point[1])
  const shape =
    kind === 'area'
      ? area<readonly [number, number]>(toX, 100, toY).digits(2).curve(curve)
      : line<readonly [number, number]>(toX, toY).digits(2).curve(curve)
  return shape(points) ?? ''
}

/** Lists every point in a table, sorted by x. */
function tableOf({ x, series }: Chart): ChartTable {
  const rows = new Map<number, (number | null)[]>()
  for (const [index, { points }] of series.entries())
    for (const [at, value] of points) {
      const row = rows.get(at) ?? series.map(() => null)
      row[index] = Number(value.toPrecision(4))
      rows.set(at, row)
    }
  const formatX = (at: number): string | number =>
    x.scale === 'time' ? new Date(at).toISOString().slice(0, 16).replace('T', ' ') : Number(at.toPrecision(6))
  return {
    columns: [x.label, ...series.map(({ name }) => name)],
    rows: [...rows].sort(([one], [other]) => one - other).map(([at, values]) => [formatX(at), ...values]),
  }
}

function datePrecision(span: number): Intl.DateTimeFormatOptions {
  if (span > 900 * DAY) return { year: 'numeric' }
  if (span > 120 * DAY) return { year: 'numeric', month: 'short' }
  return span > 2 * DAY ? { month: 'short', day: 'numeric' } : { hour: '2-digit', minute: '2-digit', hour12: false }
}

function extent(values: readonly number[]): readonly [number, number] {
  let [least, most] = [Infinity, -Infinity]
  for (const value of values) {
    least = Math.min(least, value)
    most = Math.max(most, value)
  }
  return [least, most]
}

/** Returns how many decimals a step needs: 0.05 needs two, 20 none. */
const decimalsOf = (step: number): number => Math.max(0, -Math.floor(Math.log10(step) + 1e-9))

/** Returns how many of its first four decimals a number has: 0.25 has two. */
const decimalDigitsOf = (value: number): number => String(Number(value.toFixed(4))).split('.')[1]?.length ?? 0

const round = (value: number): number => Math.round(value * 100) / 100

const rounded =
  (scale: Scale): Scale =>
  (value) =>
    round(scale(value))

/**
 * Returns the bars of a waterfall as percentages of their row. Each amount starts where the previous one ended; a total
 * starts at zero.
 *
 * @example 10, -4, total 6 are spans 0 to 10, 6 to 10 and 0 to 6 of 10: x 0, 60, 0 and width 100, 40, 60
 */
export function waterfall(steps: readonly WaterfallStep[]) {
  let level = 0
  const spans = steps.map(({ label, amount, total = false }) => {
    const from = total ? 0 : level
    level = from + amount
    return { label, amount, total, from, to: level }
  })
  const levels = [0, ...spans.flatMap(({ from, to }) => [from, to])]
  const scale = scaleLinear([Math.min(...levels), Math.max(...levels)], [0, 100])
  return {
    zero: round(scale(0)),
    spans: spans.map(({ from, to, ...rest }) => ({
      ...rest,
      x: round(scale(Math.min(from, to))),
      width: round(Math.abs(scale(to) - scale(from))),
    })),
  }
}
