import { expect } from 'chai'
import { barFigures } from '../../../plugins/cost/bar-figures.ts'
import { edgeSpread } from '../../../plugins/lib/quant/spread-estimators.ts'
import { normalQuantile } from '../../../plugins/lib/quant/normal-distribution.ts'
import { seededRandom } from '../../../plugins/lib/quant/seeded-random.ts'
import type { Bars } from '../../../schemas/types.d.ts'

const DAY = 86_400
const START = Date.UTC(2026, 10, 2) / 1000

/** Minute bars from trades that bounce between bid and ask of a random walk. */
function bars(options: {
  days: number
  perDay: number
  interval?: number
  spread?: number
  sigma?: number
  from?: number
}): Bars {
  const { days, perDay, interval = 60, spread = 0, sigma = 0.0005, from = START } = options
  const random = seededRandom(7)
  const rows: number[][] = []
  let price = Math.log(100)
  for (let day = 0; day < days; day += 1)
    for (let i = 0; i < perDay; i += 1) {
      const trades = Array.from({ length: 20 }, () => {
        price += (sigma / Math.sqrt(20)) * normalQuantile(0.0001 + 0.9998 * random())
        return Math.exp(price) * (1 + (random() < 0.5 ? spread : -spread) / 2)
      })
      rows.push([
        from + day * DAY + i * interval,
        trades[0]!,
        Math.max(...trades),
        Math.min(...trades),
        trades.at(-1)!,
        50,
      ])
    }
  const column = (k: number): Float64Array => Float64Array.from(rows, (row) => row[k]!)
  return {
    symbol: 'X',
    venue: 'test',
    interval_seconds: interval,
    count: rows.length,
    time: column(0),
    open: column(1),
    high: column(2),
    low: column(3),
    close: column(4),
    volume: column(5),
    state: new Uint8Array(rows.length),
  }
}

describe('the market figures measured from bars', () => {
  it('include spread, volatility and turnover', () => {
    const figures = barFigures(bars({ days: 10, perDay: 1440, spread: 0.001 }), 1440)!
    expect(figures.spreadBps).to.be.closeTo(10, 0.7)
    // A day has 288 five-minute returns. Each bounces at both ends, which adds 2 · (spread/2)² to its variance.
    expect(figures.sigmaDaily).to.be.closeTo(Math.sqrt(288 * (5 * 0.0005 ** 2 + 2 * 0.0005 ** 2)), 0.001)
    expect(figures.advUsd).to.be.closeTo(50 * 1440 * 100, 50 * 1440 * 12)
    expect(figures).to.include({ count: 14_400, intervalSeconds: 60, from: START, to: START + 10 * DAY })
  })

  it('average the hourly spreads with their sign and clip the average at zero', () => {
    for (const spread of [0, 0.0004]) {
      const quiet = bars({ days: 4, perDay: 390, spread })
      // A session has six hours of 65 minutes.
      const spreads = Array.from({ length: 24 }, (_, hour) => {
        const part = (column: Float64Array): Float64Array => column.subarray(hour * 65, (hour + 1) * 65)
        const { open, high, low, close } = quiet
        return edgeSpread({ open: part(open), high: part(high), low: part(low), close: part(close) }) ?? NaN
      })
      const mean = spreads.reduce((sum, one) => sum + one, 0) / 24
      if (spread === 0) expect(spreads.some((one) => one < 0) && spreads.some((one) => one > 0)).to.equal(true)
      expect(mean > 0, String(spread)).to.equal(spread > 0)
      expect(barFigures(quiet, 390)?.spreadBps).to.be.closeTo(1e4 * Math.max(0, mean), 1e-12)
    }
  })

  it('scale a half day to a whole day of turnover', () => {
    const whole = barFigures(bars({ days: 10, perDay: 390 }), 390)!
    const half = barFigures(bars({ days: 10, perDay: 195 }), 390)!
    expect(whole.advUsd).to.be.closeTo(50 * 390 * 100, 50 * 390 * 10)
    expect(half.advUsd! / whole.advUsd!).to.be.closeTo(1, 0.1)
    expect(half.sigmaDaily! / whole.sigmaDaily!).to.be.closeTo(1, 0.1)
  })

  it('use the range of daily bars for volatility, so that splits do not matter', () => {
    const daily = bars({ days: 30, perDay: 1, interval: DAY, sigma: 0.02 })
    const sigma = barFigures(daily, 390)?.sigmaDaily
    expect(sigma).to.be.closeTo(0.02, 0.006)
    const columns = ['open', 'high', 'low', 'close'] as const
    for (const name of columns) daily[name].forEach((price, i) => (daily[name][i] = i < 15 ? price * 7 : price))
    expect(barFigures(daily, 390)?.sigmaDaily).to.be.closeTo(sigma!, 1e-12)
  })

  it('include a spread from daily bars only if it is significant', () => {
    const spread = (width: number) =>
      barFigures(bars({ days: 252, perDay: 1, interval: DAY, sigma: 0.02, spread: width }), 390)?.spreadBps
    expect(spread(0.0005)).to.equal(null)
    expect(spread(0.04)).to.be.within(300, 500)
  })

  it('limit the effect of one misprint on volatility', () => {
    const daily = bars({ days: 30, perDay: 1, interval: DAY, sigma: 0.02 })
    const { sigmaDaily } = barFigures(daily, 390)!
    daily.high[11] = daily.high[11]! * 1.5
    expect(barFigures(daily, 390)?.sigmaDaily).to.be.within(sigmaDaily!, 1.2 * sigmaDaily!)
  })

  it('are null for too few bars and for a market without moves or trades', () => {
    expect(barFigures(bars({ days: 1, perDay: 59 }), 1440)).to.equal(null)
    expect(barFigures(bars({ days: 4, perDay: 1, interval: DAY }), 1440)).to.equal(null)
    const flat = bars({ days: 1, perDay: 100, sigma: 0 })
    flat.volume.fill(0)
    const figures = barFigures(flat, 1440)!
    expect(figures).to.include({ spreadBps: null, sigmaDaily: null, advUsd: null })
    expect(figures.lastClose).to.be.closeTo(100, 1e-9)
  })
})
