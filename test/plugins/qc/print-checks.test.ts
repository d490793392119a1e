import { expect } from 'chai'
import checkBarQuality from '../../../plugins/qc/bar-quality.ts'
import { seededRandom } from '../../../plugins/lib/quant/seeded-random.ts'
import { randomWalk, type WalkBar } from './random-walk.ts'

const clean = randomWalk({ count: 2000 })
/** The range of an ordinary bar of the random walk. */
const RANGE = 0.0016

function found(at: number, change: (bar: WalkBar) => Partial<WalkBar>, bars = clean) {
  const changed = bars.map((bar, i) => (i === at ? { ...bar, ...change(bar) } : bar))
  return checkBarQuality({ bars: changed }).findings.filter(({ family }) => family === 'bad_print')
}

describe('bad prints', () => {
  it('are not reported in a clean market', () => {
    expect(checkBarQuality({ bars: clean }).findings).to.deep.equal([])
  })

  it('include lone wicks, whose expected value is the level that the body and the neighbours confirm', () => {
    const [print, ...others] = found(700, (bar) => ({ h: Math.max(bar.o, bar.c) * (1 + 8 * RANGE) }))
    const confirmedLevel = Math.max(clean[700]!.o, clean[700]!.c, clean[699]!.h, clean[701]!.h)
    expect(others).to.deep.equal([])
    expect(print).to.include({ code: 'bad_print_high', index: 700, field: 'high', severity: 'error' })
    expect(print?.expected).to.be.closeTo(confirmedLevel, 1e-9)
    expect(found(700, (bar) => ({ l: bar.l * (1 - 8 * RANGE) }))[0]).to.include({ code: 'bad_print_low', index: 700 })
  })

  it('are explained by the usual move, and by the volume only if the bars have one', () => {
    const wick = (bar: WalkBar) => ({ h: Math.max(bar.o, bar.c) * (1 + 8 * RANGE) })
    expect(found(700, wick)[0]?.explanation).to.match(
      /^high is [\d.]+% beyond its body and both neighbours: [\d.]+ times the usual move at this volume \([\d.]+%\); the volume is [\d.]+ times the usual$/,
    )
    const withoutVolume = clean.map(({ v: _, ...bar }) => bar as WalkBar)
    expect(found(700, wick, withoutVolume)[0]?.explanation).to.match(/[\d.]+ times the usual move \([\d.]+%\)$/)
  })

  it('do not include wicks that the next bar also reaches', () => {
    const bars = clean.map((bar, i) => (i === 701 ? { ...bar, h: bar.h * (1 + 8 * RANGE) } : bar))
    expect(found(700, (bar) => ({ h: bar.h * (1 + 8 * RANGE) }), bars)).to.deep.equal([])
  })

  it('are excused by high volume, because real extremes trade', () => {
    const wick = (bar: WalkBar) => ({ h: Math.max(bar.o, bar.c) * (1 + 5 * RANGE) })
    expect(found(700, wick)).to.have.length(1)
    expect(found(700, (bar) => ({ ...wick(bar), v: 20_000 }))).to.deep.equal([])
  })

  it('are not excused by volume if the price is off the tick size', () => {
    const cents = (price: number): number => Math.round(price * 100) / 100
    const grid = clean.map((bar) => ({ ...bar, o: cents(bar.o), h: cents(bar.h), l: cents(bar.l), c: cents(bar.c) }))
    const wick = (bar: WalkBar) => cents(Math.max(bar.o, bar.c) * (1 + 5 * RANGE))
    expect(found(700, (bar) => ({ h: wick(bar), v: 20_000 }), grid)).to.deep.equal([])
    expect(found(700, (bar) => ({ h: wick(bar) + 0.004, v: 20_000 }), grid)).to.have.length(1)
  })

  it('do not include steps across the spread of a thin market', () => {
    const random = seededRandom(5)
    const thin = clean.map((bar, i) => {
      const bid = 100 + 0.0001 * (i % 50)
      const price = random() < 0.3 ? bid * 1.004 : bid
      const isBoth = i % 200 === 100
      return { ...bar, o: price, h: isBoth ? bid * 1.006 : price, l: price, c: price }
    })
    expect(found(0, () => ({}), thin)).to.deep.equal([])
    expect(found(750, (bar) => ({ h: bar.h * 1.05 }), thin)).to.have.length(1)
  })

  it('include closes that the next bar does not confirm', () => {
    const [print, ...others] = found(700, (bar) => ({ c: bar.h * (1 + 7 * RANGE), h: bar.h * (1 + 7 * RANGE) }))
    expect(others).to.deep.equal([])
    expect(print).to.include({ code: 'bad_print_close', index: 700 })
    expect(print?.expected).to.be.closeTo(clean[701]!.o, 1e-9)
  })

  it('include closes at which the next bar opens before it reverts', () => {
    const spike = clean[700]!.c * 1.05
    const bars = clean.map((bar, i) => (i === 701 ? { ...bar, o: spike, h: spike } : bar))
    expect(found(700, () => ({ c: spike, h: spike }), bars)[0]).to.include({ code: 'bad_print_close', index: 700 })
  })

  it('do not include levels that last', () => {
    const bars = clean.map((bar, i) =>
      i >= 700 ? { ...bar, o: bar.o * 1.05, h: bar.h * 1.05, l: bar.l * 1.05, c: bar.c * 1.05 } : bar,
    )
    expect(found(0, () => ({}), bars)).to.deep.equal([])
  })

  for (const factor of [0.01, 0.1, 10, 100])
    it(`include whole bars displaced by a factor of ${factor}`, () => {
      const shift = ({ o, h, l, c }: WalkBar) => ({ o: o * factor, h: h * factor, l: l * factor, c: c * factor })
      const [print, ...others] = found(700, shift)
      expect(others).to.deep.equal([])
      expect(print).to.include({ code: 'decimal_shift', index: 700, severity: 'error' })
      expect(print?.expected).to.be.closeTo(clean[700]!.c, 1e-9)
    })

  it('have a higher threshold in a market with long tails', () => {
    const longTailed = randomWalk({ count: 2000, seed: 4 }).map((bar, i) =>
      i % 40 === 0 ? { ...bar, h: bar.h * (1 + 4 * RANGE) } : bar,
    )
    expect(checkBarQuality({ bars: longTailed }).thresholds.wick).to.be.above(
      checkBarQuality({ bars: clean }).thresholds.wick!,
    )
  })

  it('are judged by fixed thresholds on daily bars, which are higher without volume', () => {
    const daily = randomWalk({ count: 600, interval: 86_400, volatility: 0.01 })
    expect(checkBarQuality({ bars: daily }).thresholds).to.include({ wick: 1.5, close: 2 })
    expect(checkBarQuality({ bars: daily.map(({ t, o, h, l, c }) => ({ t, o, h, l, c })) }).thresholds.wick).to.equal(2)
  })
})
