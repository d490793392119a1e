/** The deflated Sharpe ratio against trials, as the page of a report and of a calculator draw it. */
import { deflationCurve } from './deflation.ts'
import type { SharpeSample } from './psr.ts'

const CONVINCING = 0.95
/** The curve reaches at least so many trials. */
const LEAST_SHOWN = 10_000

export interface Deflation {
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
export function deflationChart({ sample, variance, trials, dsr }: Deflation) {
  const most = Math.max(LEAST_SHOWN, 10 ** (Math.ceil(Math.log10(trials)) + 1))
  const curve = deflationCurve(sample, variance, most)
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
