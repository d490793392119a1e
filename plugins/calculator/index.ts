/** The deflated Sharpe calculator: a page that computes the result for the parameters in its URL. */
import { definePlugin, InvalidInput, type Plugins, once } from 'tollgate/plugin'
import { deflatedSharpeChart } from '../lib/quant/deflated-sharpe-chart.ts'
import { calculate, type Deflated, sampleOf, type Track } from './track-record.ts'

type Query = Plugins['calculator']['getDeflatedSharpe']['input']['query']

/** Bailey and López de Prado, "The deflated Sharpe ratio" (2014), section "A numerical example". */
const PAPER: Track = { sharpe: 2.5, days: 1250, trials: 100, skew: -3, kurt: 10, srVariance: 0.5, periodsPerYear: 250 }

export default definePlugin({
  name: 'calculator',
  setup: () => ({
    handlers: {
      getDeflatedSharpe({ input }) {
        const { query } = input
        assertPossible(query)
        const track = trackOf(query)
        return {
          query,
          result: track ? shown(track, calculate(track)) : null,
          example: track ? null : shown(PAPER, calculate(PAPER)),
          missing: track ? [] : missing(query),
        }
      },
    },
  }),
})

/** Throws InvalidInput for an impossible kurtosis: every sample has at least skewness² + 1. */
function assertPossible({ skew, kurt }: Query): void {
  const least = skew * skew + 1
  if (kurt >= least) return
  const msg = `Must be at least skew² + 1, here ${Number(least.toPrecision(6))}. No sample has a lower kurtosis.`
  throw new InvalidInput([{ loc: ['query', 'kurt'], msg, type: 'greater_than_equal', input: kurt, ctx: { ge: least } }])
}

function trackOf({ sharpe, days, trials, skew, kurt, sr_variance, periods_per_year }: Query): Track | null {
  if (sharpe === undefined || days === undefined || trials === undefined) return null
  const variance = sr_variance === undefined ? {} : { srVariance: sr_variance }
  return { sharpe, days, trials, skew, kurt, periodsPerYear: periods_per_year, ...variance }
}

/** Returns the required fields that are missing, or nothing if all three are empty. */
function missing({ sharpe, days, trials }: Query): string[] {
  const fields = Object.entries({ sharpe, days, trials })
  const empty = fields.filter(([, value]) => value === undefined).map(([name]) => name)
  return empty.length === fields.length ? [] : empty
}

const fixed = (value: number, decimals: number): string => (Number.isFinite(value) ? value.toFixed(decimals) : '–')
const count = once(() => new Intl.NumberFormat('en-US'))

function shown(track: Track, { dsr, psr, sr0, minTrackDays, minTrackYears, minBacktestYears }: Deflated) {
  const isNever = !Number.isFinite(minTrackDays)
  const never = 'never: the Sharpe ratio is not positive'
  const days = isNever
    ? never
    : `${count().format(Math.ceil(minTrackDays))} observations, ${minTrackYears.toFixed(2)} years`
  const length = Number.isFinite(minBacktestYears) ? `${minBacktestYears.toFixed(2)} years` : never
  return {
    tone: dsr >= 0.95 ? 'fair' : dsr >= 0.5 ? 'doubt' : 'bad',
    dsr: fixed(dsr, 4),
    chart: deflatedSharpeChart({ ...sampleOf(track), trials: track.trials, dsr }),
    sentence: conclusion(track, dsr, sr0),
    figures: [
      { label: 'Probabilistic Sharpe ratio against zero', figure: psr > 0.99995 ? '> 0.9999' : fixed(psr, 4) },
      { label: 'Best annual Sharpe ratio expected by luck', figure: fixed(sr0, 4) },
      { label: 'Minimum track record at 95%', figure: days },
      { label: 'Minimum backtest length', figure: length },
    ],
  }
}

function conclusion({ sharpe, trials }: Track, dsr: number, sr0: number): string {
  const chance = `${(dsr * 100).toFixed(1)}%`
  const tried =
    trials === 1
      ? 'With one trial there is nothing to deflate'
      : `By luck alone, the best of ${count().format(trials)} trials is expected to have a Sharpe ratio of ${fixed(sr0, 2)}`
  const verdict =
    dsr >= 0.95 ? 'This is above the usual threshold of 95%.' : 'This is below the usual threshold of 95%.'
  return `${tried}. The probability that the true Sharpe ratio behind ${fixed(sharpe, 2)} is higher is ${chance}. ${verdict}`
}
