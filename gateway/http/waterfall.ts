/** Bars that follow from one another, as geometry in percent of their row. */
import { scaleLinear } from 'd3-scale'

const round = (value: number): number => Math.round(value * 100) / 100

export interface Step {
  readonly label: string
  readonly amount: number
  /** Starts at zero again: a sum of what went before. */
  readonly total?: boolean
}

/**
 * Each amount starts where the one before ended; a total starts at zero.
 * @example 10, -4, total 6 are spans 0 to 10, 6 to 10 and 0 to 6 of 10: x 0, 60, 0 and width 100, 40, 60
 */
export function waterfall(steps: readonly Step[]) {
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
