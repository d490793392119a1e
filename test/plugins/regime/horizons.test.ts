import { expect } from 'chai'
import fc from 'fast-check'
import {
  FIT_SECONDS,
  fitHorizon,
  forecastHorizon,
  type HourRow,
  noTradeBand,
  outcomesOf,
  TARGET_VOL,
  WEEK,
} from '../../../plugins/regime/volatility-horizons.ts'
import { LONG_HORIZONS } from './model-horizons.ts'

const HOUR = 3600
const rowsOf = (vols: readonly (number | null)[], from = 0): HourRow[] =>
  vols.map((vol, i) => {
    const asOf = from + (i + 1) * HOUR
    return { as_of: asOf, known_at: asOf, forecast_vol: vol ?? 0.5, realized_vol_1h: vol }
  })
const steady = (vol: number, hours: number): number[] => Array.from({ length: hours }, () => vol)
/** Volatilities of some weeks; 1 in 40 hours is unknown. */
const vols = fc.array(
  fc.oneof(
    { weight: 39, arbitrary: fc.double({ min: 0.01, max: 4, noNaN: true }) },
    { weight: 1, arbitrary: fc.constant(null) },
  ),
  { minLength: 200, maxLength: 700 },
)

describe('the forecasts of longer horizons', () => {
  it('know the volatility of a steady market, and size a position to the target by it', () => {
    for (const horizon of LONG_HORIZONS)
      for (const vol of [0.2, 0.5, 1]) {
        const fit = fitHorizon(rowsOf(steady(vol, 4000)), horizon)
        const found = forecastHorizon(fit, rowsOf(steady(vol, 5), 4000 * HOUR))!
        // The pooled errors count as twenty horizons: of a week that is nearly half.
        const near = horizon === '1w' ? 0.25 : 0.12
        expect(found.forecast_vol_median / vol, `${horizon} at ${vol}`).to.be.within(1 - near, 1 + near)
        expect(found.position_scalar).to.be.closeTo(TARGET_VOL / found.forecast_vol, 1e-12)
        expect(found.as_of).to.equal(4005 * HOUR)
      }
  })

  it('rest on the mean square of the hours that follow, once they are over and three quarters of them known', () => {
    const outcomes = outcomesOf(rowsOf([1, 1, 2, 3, null, 4, null, null, 5]), '4h')
    expect(Math.exp(outcomes[0]!)).to.be.closeTo(Math.sqrt((1 + 4 + 9) / 3), 1e-5)
    expect(Math.exp(outcomes[1]!)).to.be.closeTo(Math.sqrt((4 + 9 + 16) / 3), 1e-5)
    // Two of four hours are known; then the hours after the last row are not over.
    for (const at of [2, 3, 4, 5, 6, 7, 8]) expect(outcomes[at], `row ${at}`).to.be.NaN
  })

  it('are ordered, within bounds, and do not count what became known later', () => {
    fc.assert(
      fc.property(vols, fc.constantFrom(...LONG_HORIZONS), fc.nat(150), (known, horizon, late) => {
        const rows = rowsOf(known)
        const fit = fitHorizon(
          rows.filter(({ as_of: asOf }) => asOf <= WEEK),
          horizon,
        )
        const week = rows.filter(({ as_of: asOf }) => asOf > WEEK && asOf <= 2 * WEEK)
        if (week.length === 0) return
        const found = forecastHorizon(fit, week)!
        const { forecast_vol_p10: p10, forecast_vol_median: median, forecast_vol_p90: p90 } = found
        expect(p10).to.be.at.most(median)
        expect(median).to.be.at.most(p90)
        expect(found.position_scalar).to.be.within(0.05, 5)
        const place = late % week.length
        const after = week.map((row, i) => (i === place ? { ...row, known_at: found.as_of + 1 } : row))
        const without = week.map((row, i) => (i === place ? { ...row, realized_vol_1h: null } : row))
        expect(forecastHorizon(fit, after)).to.deep.equal(forecastHorizon(fit, without))
      }),
      { numRuns: 60 },
    )
  })

  it('need a day of hours, and no more than half a year of them', () => {
    const nothing = fitHorizon([], '1d')
    expect(forecastHorizon(nothing, rowsOf(steady(0.5, 23)))).to.equal(null)
    expect(forecastHorizon(nothing, rowsOf(steady(0.5, 24)))).not.to.equal(null)
    expect(FIT_SECONDS).to.equal(187 * 86_400)
  })

  it('leave a position alone within the band around its scalar', () => {
    const { low, high } = noTradeBand('1d', 1)
    expect([low, high]).to.deep.equal([Math.exp(-0.2), Math.exp(0.2)])
  })
})
