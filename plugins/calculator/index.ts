/** The deflated-Sharpe calculator: a page that computes what its address asks. */
import { type Call, definePlugin, InvalidInput } from 'tollgate/plugin'
import { deflatedSharpeChart } from '../lib/quant/deflated-sharpe-chart.ts'
import { calculate, type Deflated, sampleOf, type Track } from './calculate.ts'

interface Query {
  readonly sharpe?: number
  readonly days?: number
  readonly trials?: number
  readonly skew: number
  readonly kurt: number
  readonly sr_variance?: number
  readonly periods_per_year: number
}

/** Bailey and López de Prado, "The deflated Sharpe ratio" (2014), section "A numerical example". */
const PAPER: Track = { sharpe: 2.5, days: 1250, trials: 100, skew: -3, kurt: 10, srVariance: 0.5, periodsPerYear: 250 }

export default definePlugin({
  name: 'calculator',
  setup: () => ({
    handlers: {
      getDeflatedSharpe({ input }: Call<{ query: Query }>) {
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

/** No sample has a kurtosis below skewness² + 1. */
function assertPossible({ skew, kurt }: Query): void {
  const least = skew * skew + 1
  if (kurt >= least) return
  const msg = `Must be at least skew² + 1, here ${Number(least.toPrecision(6))}: no sample has less.`
  throw new InvalidInput([{ loc: ['query', 'kurt'], msg, type: 'greater_than_equal', input: kurt, ctx: { ge: least } }])
}

function trackOf({ sharpe, days, trials, skew, kurt, sr_variance, periods_per_year }: Query): Track | null {
  if (sharpe === undefined || days === undefined || trials === undefined) return null
  const variance = sr_variance === undefined ? {} : { srVariance: sr_variance }
  return { sharpe, days, trials, skew, kurt, periodsPerYear: periods_per_year, ...variance }
}

/** The fields still to fill in, once one of the three is there. */
function missing({ sharpe, days, trials }: Query): string[] {
  const fields = Object.entries({ sharpe, days, trials })
  const empty = fields.filter(([, value]) => value === undefined).map(([name]) => name)
  return empty.length === fields.length ? [] : empty
}

const fixed = (value: number, decimals: number): string => (Number.isFinite(value) ? value.toFixed(decimals) : '–')
const count = new Intl.NumberFormat('en-US')

function shown(track: Track, { dsr, psr, sr0, minTrackDays, minTrackYears, minBacktestYears }: Deflated) {
  const isNever = !Number.isFinite(minTrackDays)
  const never = 'never, for a Sharpe ratio that is not positive'
  const days = isNever
    ? never
    : `${count.format(Math.ceil(minTrackDays))} observations, ${minTrackYears.toFixed(2)} years`
  const length = Number.isFinite(minBacktestYears) ? `${minBacktestYears.toFixed(2)} years` : never
  return {
    tone: dsr >= 0.95 ? 'fair' : dsr >= 0.5 ? 'doubt' : 'bad',
    dsr: fixed(dsr, 4),
    chart: deflatedSharpeChart({ ...sampleOf(track), trials: track.trials, dsr }),
    sentence: sentence(track, dsr, sr0),
    figures: [
      { label: 'Probabilistic Sharpe ratio, against zero', figure: psr > 0.99995 ? '> 0.9999' : fixed(psr, 4) },
      { label: 'Best Sharpe ratio expected by luck, a year', figure: fixed(sr0, 4) },
      { label: 'Minimum track record at 95%', figure: days },
      { label: 'Minimum backtest length', figure: length },
    ],
  }
}

function sentence({ sharpe, trials }: Track, dsr: number, sr0: number): string {
  const chance = `${(dsr * 100).toFixed(1)}%`
  const tried =
    trials === 1
      ? 'One trial has nothing to deflate'
      : `The best of ${count.format(trials)} worthless trials is expected to show ${fixed(sr0, 2)} by luck`
  const verdict = dsr >= 0.95 ? 'At the usual 95% that is convincing.' : 'At the usual 95% that does not convince.'
  return `${tried}. That the true Sharpe ratio behind ${fixed(sharpe, 2)} is above it has a probability of ${chance}. ${verdict}`
}
