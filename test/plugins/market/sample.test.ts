import { expect } from 'chai'
import fc from 'fast-check'
import {
  createSampleBars,
  SAMPLE_START,
  type SampleBars,
  type SampleSymbol,
} from '../../../plugins/market/sample-bars.ts'

const BTC: SampleSymbol = {
  symbol: 'BTC-USD',
  price: 98_000,
  volatility: 0.5,
  turnover: 2e9,
  tick: 0.01,
  session: '24x7',
}
const SPY: SampleSymbol = {
  symbol: 'SPY',
  price: 630,
  volatility: 0.15,
  turnover: 3e10,
  tick: 0.01,
  session: 'us_equity',
}
const DAY = 86_400

function createSampleBarsUpTo(days: number, symbol: SampleSymbol = BTC): SampleBars {
  const bars = createSampleBars(symbol)
  bars.read(SAMPLE_START, SAMPLE_START + days * DAY)
  return bars
}

function withLastByteChanged(bytes: Buffer): Buffer {
  const changed = Buffer.from(bytes)
  changed[changed.length - 1]! ^= 1
  return changed
}

describe('the sample bars', () => {
  const whole = createSampleBars(BTC).read(SAMPLE_START, SAMPLE_START + 90 * DAY)

  it('depend only on symbol and minute, in whatever order they are read', () => {
    const other = createSampleBars(BTC)
    const minute = fc.integer({ min: 0, max: 90 * 1440 - 1 })
    fc.assert(
      fc.property(minute, fc.integer({ min: 1, max: 3000 }), (start, length) => {
        const end = Math.min(start + length, whole.count)
        const piece = other.read(SAMPLE_START + start * 60, SAMPLE_START + end * 60)
        expect(piece.close).to.deep.equal(whole.close.slice(start, end))
        expect(piece.volume).to.deep.equal(whole.volume.slice(start, end))
      }),
      { numRuns: 30 },
    )
  })

  it('are the same in a process that continues from the midnights of another', () => {
    const continued = createSampleBars(BTC, createSampleBarsUpTo(60).midnights())
    const from = SAMPLE_START + 89 * DAY
    expect(continued.read(from, from + DAY).close).to.deep.equal(whole.close.slice(89 * 1440, 90 * 1440))
    expect(createSampleBars(BTC, continued.midnights()).midnights()).to.deep.equal(continued.midnights())
  })

  for (const [what, midnights] of [
    ['of another symbol', () => createSampleBarsUpTo(3, { ...BTC, symbol: 'ETH-USD' }).midnights()],
    ['of other parameters', () => createSampleBarsUpTo(3, { ...BTC, volatility: 0.6 }).midnights()],
    ['that were cut off', () => createSampleBarsUpTo(3).midnights().subarray(0, 40)],
    ['that were changed', () => withLastByteChanged(createSampleBarsUpTo(3).midnights())],
  ] as const)
    it(`ignore midnights ${what}`, () => {
      const bars = createSampleBars(BTC, midnights()).read(SAMPLE_START, SAMPLE_START + 5 * DAY)
      expect(bars.close).to.deep.equal(whole.close.slice(0, 5 * 1440))
    })

  it('have a valid bar for every minute that opens where the last one closed', () => {
    expect(whole.count).to.equal(90 * 1440)
    for (let i = 0; i < whole.count; i += 1) {
      const [open, high, low, close] = [whole.open[i]!, whole.high[i]!, whole.low[i]!, whole.close[i]!]
      if (high < Math.max(open, close) || low > Math.min(open, close) || low <= 0 || whole.volume[i]! <= 0)
        expect.fail(`bar ${i} is impossible: ${open} ${high} ${low} ${close}`)
      if (i > 0 && open !== whole.close[i - 1]) expect.fail(`bar ${i} does not open at the close before it`)
    }
  })

  it('have the configured volatility, heavy tails and volatility clusters', () => {
    const returns = Array.from({ length: whole.count - 1 }, (_, i) => Math.log(whole.close[i + 1]! / whole.close[i]!))
    const mean = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length
    const variance = mean(returns.map((value) => value ** 2))
    expect(Math.sqrt(variance * 525_600)).to.be.within(0.3, 0.9)
    expect(mean(returns.map((value) => value ** 4)) / variance ** 2).to.be.above(10)
    const hours = Array.from({ length: 90 * 24 }, (_, h) =>
      Math.log(mean(returns.slice(h * 60, h * 60 + 60).map((value) => value ** 2))),
    )
    const centre = mean(hours)
    const spread = mean(hours.map((value) => (value - centre) ** 2))
    expect(mean(hours.slice(1).map((value, i) => (value - centre) * (hours[i]! - centre))) / spread).to.be.within(
      0.4,
      0.9,
    )
    expect(mean(returns.slice(1).map((value, i) => value * returns[i]!)) / variance).to.be.within(-0.05, 0.05)
  })

  it('differ between symbols', () => {
    const other = createSampleBars({ ...BTC, symbol: 'ETH-USD' }).read(SAMPLE_START, SAMPLE_START + 3600)
    expect(other.close).not.to.deep.equal(whole.close.slice(0, 60))
  })

  it('follow the hours of New York for a US stock: daylight saving, holidays, half days', () => {
    const sample = createSampleBars(SPY)
    const session = (day: string): [number, string | undefined] => {
      const from = Date.parse(`${day}T00:00:00Z`) / 1000
      const { count, time } = sample.read(from, from + DAY)
      return [count, count > 0 ? new Date(time[0]! * 1000).toISOString().slice(11, 16) : undefined]
    }
    expect(session('2025-08-05')).to.deep.equal([390, '13:30'])
    expect(session('2025-12-02')).to.deep.equal([390, '14:30'])
    expect(session('2025-12-25')).to.deep.equal([0, undefined])
    expect(session('2025-11-28')).to.deep.equal([210, '14:30'])
    expect(session('2025-08-09')).to.deep.equal([0, undefined])
  })
})
