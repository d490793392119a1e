/** The chart of the deflated Sharpe ratio against the number of trials, for the audit report and the calculator. */
import type { Chart } from 'tollgate/plugin'
import { deflatedSharpe, type SharpeSample } from './sharpe-ratio.ts'

const CONVINCING = 0.95
/** The curve covers at least this many trials. */
const MIN_TRIALS_SHOWN = 10_000

interface Deflation {
  readonly sample: SharpeSample
  /** Variance of the trials' Sharpe ratios, per observation like the ratio of the sample. */
  readonly variance: number
  /** The stated number of trials and the deflated ratio (0 to 1) at that number. The chart marks this point. */
  readonly trials: number
  readonly dsr: number
}

/**
 * Draws the curve to at least ten times the stated trials, a dashed line at 95%, and a mark at the stated trials. The
 * result is a chart for views.
 */
export function deflatedSharpeChart({ sample, variance, trials, dsr }: Deflation) {
  const most = Math.max(MIN_TRIALS_SHOWN, 10 ** (Math.ceil(Math.log10(trials)) + 1))
  const curve = deflatedSharpeCurve(sample, variance, most)
  const marked = `${trials.toLocaleString('en-US')} ${trials === 1 ? 'trial' : 'trials'}: ${percent(dsr)}`
  const [first = dsr, last = dsr] = [curve[0]?.[1], curve.at(-1)?.[1]]
  return {
    id: 'deflation',
    title: 'Deflated Sharpe ratio by number of trials',
    description: `A line that falls as the number of trials grows: ${percent(first)} for one trial, ${percent(last)} for ${most.toLocaleString('en-US')}. It is marked at ${marked}.`,
    x: { label: 'Trials', scale: 'log', domain: [1, most] },
    y: { label: 'Probability that it is more than luck', unit: 'percent', domain: [0, 1] },
    series: [
      { name: 'Deflated Sharpe ratio', tone: 'main', points: curve },
      {
        name: 'Convincing: 95%',
        tone: 'muted',
        kind: 'dashed',
        points: [1, most].map((at) => [at, CONVINCING] as const),
      },
    ],
    marks: [{ at: [trials, dsr], label: marked }],
    table: {
      columns: ['Trials', 'Deflated Sharpe ratio'],
      rows: curve
        .filter(([count]) => /^[125]0*$/.test(String(count)))
        .map(([count, ratio]) => [count.toLocaleString('en-US'), ratio.toFixed(4)]),
    },
  } as const satisfies Chart
}

/** A computed probability is never shown as 100%. */
const percent = (share: number): string => (share > 0.9995 ? '> 99.9%' : `${(share * 100).toFixed(1)}%`)

/** About ten points per decade, including 1, 2 and 5. */
const STEPS = [1.3, 1.6, 2, 2.5, 3, 4, 5, 6.5, 8, 10]

/**
 * The deflated Sharpe ratio that a sample has as the best of 1, 2, 3, … up to `most` trials. Returns pairs of trials and
 * probability, spaced for a logarithmic axis. `variance` is that of `deflatedSharpe`.
 *
 * Source: Bailey and López de Prado, "The deflated Sharpe ratio", J. Portfolio Management 40 (2014).
 *
 * @example for the sample in `deflatedSharpe`, the point at 100 trials is [100, 0.90039…]
 */
export function deflatedSharpeCurve(
  sample: SharpeSample,
  variance: number,
  most: number,
): [trials: number, dsr: number][] {
  const counts = new Set([1])
  for (let decade = 1; decade < most; decade *= 10) for (const step of STEPS) counts.add(Math.round(decade * step))
  return [...counts]
    .filter((count) => count <= most)
    .map((count) => [count, deflatedSharpe(sample, count, variance).dsr])
}
