import { expect } from 'chai'
import fc from 'fast-check'
import { agreeOnBar, type BarReport, type PriceBar } from '../../../../plugins/lib/quant/agreeing-bars.ts'

const rules = { tolerance: 0.005, before: 100 }
const flat = (price: number, volume = 1): PriceBar => ({ open: price, high: price, low: price, close: price, volume })
const reports = (...bars: (PriceBar | null)[]): BarReport<string>[] =>
  bars.map((bar, i) => ({ venue: 'abcde'[i]!, bar, last: 100 }))
const agreed = (...bars: (PriceBar | null)[]) => {
  const found = agreeOnBar(reports(...bars), rules)
  if (found.outcome !== 'agreed') throw new Error(found.outcome)
  return found
}

describe('one bar from several venues', () => {
  it('is the median of those that agree, without the one that does not', () => {
    const { bar, venues, dissenting, spreadBps } = agreed(flat(100), flat(100.2), flat(100.1), flat(105))
    expect([bar.close, venues, dissenting]).to.deep.equal([100.1, ['a', 'b', 'c'], ['d']])
    expect(spreadBps).to.be.closeTo(19.98, 0.01)
  })

  it('is the middle of two', () => {
    expect(agreed(flat(100), flat(100.2)).bar.close).to.be.closeTo(100.1, 1e-9)
  })

  it('is not published if two venues contradict each other, two pairs do, or only one answers', () => {
    const outcome = (...bars: (PriceBar | null)[]) => agreeOnBar(reports(...bars), rules).outcome
    expect(outcome(flat(100), flat(105))).to.equal('disagreed')
    expect(outcome(flat(100), flat(100), flat(105), flat(105))).to.equal('disagreed')
    expect(outcome(flat(100))).to.equal('too_few')
  })

  it('is that of the venues closest to each other if two groups of the same size share a venue', () => {
    const found = (...prices: number[]) => agreed(...prices.map((price) => flat(price)))
    expect(found(100, 100.4, 100.6)).to.deep.include({ venues: ['b', 'c'], dissenting: ['a'] })
    expect(found(100, 100.2, 100.6)).to.deep.include({ venues: ['a', 'b'], dissenting: ['c'] })
    expect(found(100.6, 100, 100.4).bar.close).to.be.closeTo(100.5, 1e-9)
  })

  it('prefers neither high nor low prices: upside down, the same venues agree', () => {
    // No three prices in cents are at equal ratios here, so that rounding decides nothing.
    const close = fc.integer({ min: 9930, max: 10_070 }).map((cents) => cents / 100)
    fc.assert(
      fc.property(fc.tuple(close, close, close), (closes) => {
        const [found, turned] = [closes, closes.map((price) => 10_000 / price)].map((prices) =>
          agreeOnBar(reports(...prices.map((price) => flat(price))), rules),
        )
        expect(found).to.have.property('outcome', turned!.outcome)
        if (found!.outcome !== 'agreed' || turned!.outcome !== 'agreed') return
        expect(found!.venues).to.deep.equal(turned!.venues)
      }),
    )
  })

  it('counts a false open as a disagreement, and a false wick as none', () => {
    const low = { ...flat(100), open: 95, low: 95 }
    expect(agreed(low, flat(100), flat(100)).dissenting).to.deep.equal(['a'])
    const wick = { ...flat(100), high: 120, low: 80 }
    for (const bars of [
      [wick, flat(100)],
      [wick, flat(100), flat(100)],
      [wick, flat(100), flat(100), flat(100)],
    ])
      expect(agreed(...bars).bar).to.deep.equal(flat(100))
  })

  it('reaches as far as more than half of the venues did', () => {
    const reaching = (high: number): PriceBar => ({ ...flat(100), high })
    expect(agreed(reaching(103), reaching(102), reaching(101)).bar.high).to.equal(102)
    expect(agreed(reaching(103), reaching(102), reaching(101), reaching(101.5)).bar.high).to.equal(101.5)
  })

  it('may differ more among venues in a minute that moved far', () => {
    const fall = (close: number): PriceBar => ({ open: 100, high: 100, low: 96, close, volume: 1 })
    expect(agreed(fall(96.5), fall(98)).venues).to.deep.equal(['a', 'b'])
  })

  it('is flat at the close before if nothing traded anywhere', () => {
    const { bar, isQuiet } = agreed(flat(99, 0), null)
    expect([bar, isQuiet]).to.deep.equal([flat(100, 0), true])
  })

  it('is that of the only venue that traded, without its wicks, if a quiet one stands near its close', () => {
    const { bar, venues } = agreed({ ...flat(100.2), high: 130 }, null)
    expect([bar.close, bar.high, venues]).to.deep.equal([100.2, 100.2 * Math.exp(0.005), ['a', 'b']])
    expect(agreeOnBar(reports(flat(105), null), rules).outcome).to.equal('disagreed')
  })

  it('is valid, and within what honest venues state, whatever one of three or four venues states', () => {
    const price = fc.double({ min: 99.9, max: 100.1, noNaN: true })
    const honest = fc.tuple(price, price, price, price).map(([open, close, a, b]) => ({
      open,
      close,
      high: Math.max(open, close, a, b),
      low: Math.min(open, close, a, b),
      volume: 1,
    }))
    const any = fc.double({ min: 0.01, max: 1e6, noNaN: true })
    const liar = fc.tuple(any, any, any, any, any).map(([open, close, a, b, volume]) => ({
      open,
      close,
      high: Math.max(open, close, a, b),
      low: Math.min(open, close, a, b),
      volume,
    }))
    fc.assert(
      fc.property(fc.array(honest, { minLength: 2, maxLength: 3 }), liar, fc.nat(3), (good, bad, at) => {
        const { bar } = agreed(...good.toSpliced(at, 0, bad))
        for (const name of ['open', 'close'] as const) {
          const stated = good.map((one) => one[name])
          expect(bar[name]).to.be.within(Math.min(...stated) * 0.9945, Math.max(...stated) * 1.0055)
        }
        expect(bar.high).to.be.at.most(Math.max(...good.map(({ high }) => high)) * 1.0055)
        expect(bar.low).to.be.at.least(Math.min(...good.map(({ low }) => low)) * 0.9945)
        expect(bar.low).to.be.at.most(Math.min(bar.open, bar.close))
        expect(bar.high).to.be.at.least(Math.max(bar.open, bar.close))
      }),
    )
  })
})
