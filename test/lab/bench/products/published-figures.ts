import {
  abdiRanaldoSpread,
  corwinSchultzSpread,
  edgeSpread,
  rollSpread,
} from '../../../../plugins/lib/quant/spread-estimators.ts'
import { deflatedSharpe } from '../../../../plugins/lib/quant/sharpe-ratio.ts'
import type { Ohlc } from '../../../../plugins/lib/quant/volatility-estimators.ts'
import { scheduledImpact } from '../../../../plugins/lib/quant/market-impact.ts'
import { atMost, type Measure, shown } from '../../../support/measure.ts'
import { readRecorded } from '../../../support/recorded-data.ts'

const PART = 'statistics'

/** Compares our formulas with published figures, and lists the older estimators on the same bars. */
export function measureStatistics(): Measure[] {
  const published = JSON.parse(readRecorded('spread/edge_expected.json')) as Record<string, number>
  const [bars, holed] = [authorsBars('ohlc'), authorsBars('ohlc-miss')]
  const off = (value: number | null, expected: number | undefined): number =>
    Math.abs((value ?? NaN) - (expected ?? NaN))
  return [
    atMost(PART, "EDGE against the authors' value", off(edgeSpread(bars), published['edge']), 1e-12, 15),
    atMost(PART, 'EDGE with missing values', off(edgeSpread(holed), published['edge_missing_values']), 1e-12, 15),
    shown(PART, 'EDGE, Abdi-Ranaldo, Corwin-Schultz, Roll on those bars', others(bars)),
    ...paperExamples(),
    atMost(PART, 'Almgren et al., table of six costs, largest error in bps', almgrenError(), 0.05, 4),
  ]
}

function authorsBars(name: string): Ohlc {
  const rows = readRecorded(`spread/edge_authors_${name}.csv`)
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => line.split(',').map((cell) => (cell === '' ? NaN : Number(cell))))
  const column = (index: number): number[] => rows.map((row) => row[index]!)
  return { open: column(0), high: column(1), low: column(2), close: column(3) }
}

function others(bars: Ohlc): string {
  const values = [edgeSpread(bars), abdiRanaldoSpread(bars), corwinSchultzSpread(bars), rollSpread(bars.close)]
  return values.map((value) => (value === null ? 'null' : value.toFixed(5))).join('  ')
}

/** The example of Bailey and López de Prado (2014). */
function paperExamples(): Measure[] {
  const sharpe = 2.5 / Math.sqrt(250)
  const skewed = { sharpe, observations: 1250, skewness: -3, kurtosis: 10 }
  const cases = [
    { name: 'DSR at 100 trials against 0.9004', sample: skewed, trials: 100, expected: 0.9004 },
    { name: 'DSR at 46 trials against 0.9505', sample: skewed, trials: 46, expected: 0.9505 },
    {
      name: 'DSR at 88 trials, normal, against 0.9505',
      sample: { sharpe, observations: 1250 },
      trials: 88,
      expected: 0.9505,
    },
  ]
  return cases.map(({ name, sample, trials, expected }) =>
    atMost(PART, name, Math.abs(deflatedSharpe(sample, trials, 0.5 / 250).dsr - expected), 5e-5, 6),
  )
}

function almgrenError(): number {
  const ibm = { quantity: 656_100, dailyVolume: 6_561_000, dailyVolatility: 0.0157, outstanding: 1.728e9 }
  const dri = { quantity: 192_900, dailyVolume: 1_929_000, dailyVolatility: 0.0226, outstanding: 1.68e8 }
  const table = [
    { order: ibm, costs: [32.2, 24.6, 18.4] },
    { order: dri, costs: [42.9, 32.0, 23.1] },
  ]
  const errors = table.flatMap(({ order, costs }) =>
    [0.1, 0.2, 0.5].map((days, index) => Math.abs(scheduledImpact({ ...order, days }).cost * 1e4 - costs[index]!)),
  )
  return Math.max(...errors)
}
