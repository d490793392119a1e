import { expect } from 'chai'
import checkBarQuality from '../../../plugins/qc/bar-quality.ts'
import { randomWalk, type WalkBar } from './random-walk.ts'

type Change = { [Field in keyof WalkBar]?: number | null }

/** Returns the findings on a random walk whose row 50 is changed. */
function findings(change: (bar: WalkBar) => Change) {
  const bars = randomWalk({ count: 120 })
  const report = checkBarQuality({ bars: bars.map((bar, i) => (i === 50 ? { ...bar, ...change(bar) } : bar)) })
  return { found: report.findings.map(({ code, index, field, expected }) => ({ code, index, field, expected })), bars }
}

describe('impossible rows', () => {
  it('include rows without a price, whose expected value comes from the neighbours', () => {
    const { found, bars } = findings(() => ({ o: null }))
    expect(found).to.deep.equal([
      { code: 'missing_value', index: 50, field: 'open', expected: Number(bars[49]!.c.toPrecision(12)) },
    ])
    expect(findings(() => ({ h: null })).found[0]).to.include({ code: 'missing_value', field: 'high' })
  })

  it('include rows with a price at or below zero, whose expected value has the right sign', () => {
    expect(findings(() => ({ l: 0 })).found).to.have.length(1)
    const { found, bars } = findings((bar) => ({ c: -bar.c }))
    expect(found).to.deep.equal([
      { code: 'nonpositive_price', index: 50, field: 'close', expected: Number(bars[50]!.c.toPrecision(12)) },
    ])
  })

  it('include rows with high and low swapped, which are one finding', () => {
    const { found } = findings((bar) => ({ h: bar.l, l: bar.h }))
    expect(found.map(({ code }) => code)).to.deep.equal(['high_lt_low'])
  })

  it('include rows with an open or close outside the range', () => {
    expect(findings((bar) => ({ o: bar.h * 1.0001 })).found[0]).to.include({ code: 'open_outside_range', index: 50 })
    expect(findings((bar) => ({ c: bar.l * 0.9999 })).found[0]).to.include({ code: 'close_outside_range', index: 50 })
  })

  it('do not include rows that are off by a rounding of one part in a billion', () => {
    expect(findings((bar) => ({ o: bar.h * (1 + 5e-10), h: bar.h })).found).to.deep.equal([])
  })

  it('include rows with a negative volume, reported in addition to a bad price', () => {
    expect(findings(() => ({ v: -5 })).found).to.deep.equal([
      { code: 'negative_volume', index: 50, field: 'volume', expected: 5 },
    ])
    const both = findings((bar) => ({ v: -5, c: bar.l * 0.9999 })).found.map(({ code }) => code)
    expect(both).to.have.members(['negative_volume', 'close_outside_range'])
  })

  it('are not used by the statistical checks', () => {
    expect(findings((bar) => ({ h: bar.h * 2, c: null })).found.map(({ code }) => code)).to.deep.equal([
      'missing_value',
    ])
  })
})
