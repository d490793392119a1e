import { type SharpeSample, deflatedSharpe } from './sharpe-ratio.ts'

/** The deflated Sharpe ratio against trials, as the page of a report and of a calculator draw it. */

const CONVINCING = 0.95
/** The curve reaches at least so many trials. */
const LEAST_SHOWN = 10_000

interface Deflation {
  readonly sample: SharpeSample
  /** Variance of the trials' ratios, in the unit of the sample's ratio. */
  readonly variance: number
  /** Trials that were stated, and the deflated ratio at them, 0..1: the point that is marked. */
  readonly trials: number
  readonly dsr: number
}

/**
 * A chart in the shape that views take: the curve to ten times the stated trials, the line above which it convinces, and
 * the stated trials marked on it. It names no type of the gateway: nothing in this folder does.
 */
export function deflatedSharpeChart({ sample, variance, trials, dsr }: Deflation) {
  const most = Math.max(LEAST_SHOWN, 10 ** (Math.ceil(Math.log10(trials)) + 1))
  const curve = deflatedSharpeCurve(sample, variance, most)
  const marked = `${trials.toLocaleString('en-US')} ${trials === 1 ? 'trial' : 'trials'}: ${percent(dsr)}`
  const [first = dsr, last = dsr] = [curve[0]?.[1], curve.at(-1)?.[1]]
  return {
    id: 'deflation',
    title: 'Deflated Sharpe ratio, by how many were tried',
    description: `A line that falls as trials are counted: ${percent(first)} for one trial, ${percent(last)} for ${most.toLocaleString('en-US')}. Marked on it are ${marked}.`,
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
        .map(([count, left]) => [count.toLocaleString('en-US'), left.toFixed(4)]),
    },
  } as const
}

/** No probability that was computed is a round 1. */
const percent = (share: number): string => (share > 0.9995 ? '> 99.9%' : `${(share * 100).toFixed(1)}%`)

/** About ten a decade, with 1, 2 and 5 of each among them. */
const STEPS = [1.3, 1.6, 2, 2.5, 3, 4, 5, 6.5, 8, 10]

/**
 * The deflated Sharpe ratio of one sample had it been the best of 1, 2, 3, … `most` trials: pairs of trials and
 * probability, for a logarithmic axis. `variance` as in deflatedSharpe.
 *
 * Source: Bailey and López de Prado, "The deflated Sharpe ratio", J. Portfolio Management 40 (2014).
 *
 * @example of their sample (see deflatedSharpe) the point at 100 trials is [100, 0.90039…]
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
