/** What would be left of a track record had it been the best of more trials, or of fewer. */
import type { Chart } from '#gateway'
import { deflationCurve } from '../quant/deflation.ts'
import { sampleOf, type Track } from './calculate.ts'

const CONVINCING = 0.95
const LEAST_SHOWN = 10_000

/** The deflated Sharpe ratio against trials, to ten times those asked about, with the caller's own point on it. */
export function curveOf(track: Track, dsr: number): Chart {
  const { sample, variance } = sampleOf(track)
  const most = Math.max(LEAST_SHOWN, 10 ** (Math.ceil(Math.log10(track.trials)) + 1))
  const curve = deflationCurve(sample, variance, most)
  const written = (share: number): string => `${(share * 100).toFixed(1)}%`
  return {
    id: 'curve',
    title: 'Deflated Sharpe ratio, by how many were tried',
    description: `A line that falls as trials are counted, from ${written(curve[0]?.[1] ?? dsr)} for one trial to ${written(curve.at(-1)?.[1] ?? dsr)} for ${most}; yours is ${written(dsr)} at ${track.trials}.`,
    x: { label: 'Trials', scale: 'log', domain: [1, most] },
    y: { label: 'Probability that it is more than luck', unit: 'percent', domain: [0, 1] },
    series: [
      { name: 'Deflated Sharpe ratio', tone: 'main', points: curve },
      {
        name: 'Convincing: 95%',
        tone: 'muted',
        kind: 'dashed',
        points: [
          [1, CONVINCING],
          [most, CONVINCING],
        ],
      },
    ],
    marks: [{ at: [track.trials, dsr], label: `yours: ${written(dsr)}` }],
    table: {
      columns: ['Trials', 'Deflated Sharpe ratio'],
      rows: curve
        .filter(([trials]) => /^[125]0*$/.test(String(trials)))
        .map(([trials, left]) => [trials.toLocaleString('en-US'), left.toFixed(4)]),
    },
  }
}
