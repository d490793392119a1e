import { expect } from 'chai'
import { existsSync, readFileSync } from 'node:fs'
import {
  abdiRanaldoSpread,
  corwinSchultzSpread,
  edgeSpread,
  rollSpread,
} from '../../../../plugins/lib/quant/spread-estimators.ts'
import { type Ohlc, yangZhangVariance } from '../../../../plugins/lib/quant/volatility-estimators.ts'

const AUTHORS = '../shared/data/spread/edge_authors_'

/** The authors' simulated bars, published beside their code (data CC BY 4.0). */
function authorsBars(name: string, rows?: number): Ohlc {
  const lines = readFileSync(`${AUTHORS}${name}.csv`, 'utf8')
    .trim()
    .split('\n')
    .slice(1, rows && rows + 1)
  const cells = lines.map((line) => line.split(',').map((cell) => (cell === '' ? Number.NaN : Number(cell))))
  const column = (index: number): number[] => cells.map((row) => row[index]!)
  return { open: column(0), high: column(1), low: column(2), close: column(3) }
}

const BARS: Ohlc = {
  open: [100, 101, 100, 101, 99.5, 100.2],
  high: [102, 101.5, 101, 102, 101, 101.1],
  low: [99, 99, 99, 100, 99, 99.8],
  close: [101, 100, 100.5, 100.2, 100.9, 100],
}
const hole = (values: ArrayLike<number>): number[] => [...Array.from(values), Number.NaN]
const withHole: Ohlc = {
  open: hole(BARS.open),
  high: hole(BARS.high),
  low: hole(BARS.low),
  close: hole(BARS.close),
}

describe('the EDGE spread estimator', () => {
  it('matches the published values of its authors to 1e-12, with and without missing prices', function () {
    if (!existsSync(`${AUTHORS}ohlc.csv`)) this.skip()
    expect(edgeSpread(authorsBars('ohlc'))).to.be.closeTo(0.0101849034905478, 1e-12)
    expect(edgeSpread(authorsBars('ohlc-miss'))).to.be.closeTo(0.01013284969780197, 1e-12)
    expect(edgeSpread(authorsBars('ohlc', 10))).to.be.closeTo(-0.016889917516422, 1e-12)
  })

  it('matches an independent calculation on six bars', () => {
    expect(edgeSpread(BARS)).to.be.closeTo(0.005018232093106288, 1e-14)
  })

  it('skips returns that involve a missing bar', () => {
    expect(edgeSpread(withHole)).to.be.closeTo(edgeSpread(BARS)!, 1e-12)
  })

  it('treats a price of zero as missing', () => {
    const zero = (values: ArrayLike<number>): number[] => [...Array.from(values), 0]
    const { open, high, low, close } = BARS
    const withZero = { open: zero(open), high: zero(high), low: zero(low), close: zero(close) }
    expect(edgeSpread(withZero)).to.be.closeTo(edgeSpread(BARS)!, 1e-12)
    expect(rollSpread(withZero.close)).to.equal(rollSpread(close))
  })

  it('is null for two bars, for bars that never trade, and if every open is at both extremes', () => {
    const flat = [1, 1, 1, 1]
    expect(edgeSpread({ open: [1, 2], high: [1, 2], low: [1, 2], close: [1, 2] })).to.equal(null)
    expect(edgeSpread({ open: flat, high: flat, low: flat, close: flat })).to.equal(null)
    expect(edgeSpread({ open: [1, 2, 3], high: [1, 2, 3], low: [1, 2, 3], close: [1, 2, 3] })).to.equal(null)
  })
})

describe('the spread estimators of Roll, Corwin and Schultz, and Abdi and Ranaldo', () => {
  it('match an independent calculation on six bars', () => {
    expect(abdiRanaldoSpread(BARS)).to.be.closeTo(0.005485621117807483, 1e-14)
    expect(corwinSchultzSpread(BARS)).to.be.closeTo(0.007480547057927091, 1e-14)
    expect(rollSpread(BARS.close)).to.be.closeTo(0.014034524285136716, 1e-14)
  })

  it('recover the spread of a pure bounce between bid and ask', () => {
    const bounce = Array.from({ length: 1000 }, (_, i) => (((i * 7919) >> 3) % 2 === 0 ? 99.5 : 100.5))
    const flat = { high: bounce.map(() => 100.5), low: bounce.map(() => 99.5), close: bounce }
    expect(abdiRanaldoSpread(flat)).to.be.closeTo(0.01, 1e-4)
    expect(corwinSchultzSpread(flat)).to.be.closeTo(0.01, 1e-4)
  })

  it('return a negative spread if prices trend', () => {
    expect(rollSpread([100, 101, 103, 106, 110])).to.be.below(0)
  })

  it('skip returns that involve a missing bar and are null without any complete pair', () => {
    expect(abdiRanaldoSpread(withHole)).to.equal(abdiRanaldoSpread(BARS))
    expect(corwinSchultzSpread(withHole)).to.equal(corwinSchultzSpread(BARS))
    expect(rollSpread(withHole.close)).to.equal(rollSpread(BARS.close))
    expect(abdiRanaldoSpread({ high: [1], low: [1], close: [1] })).to.equal(null)
    expect(corwinSchultzSpread({ high: [], low: [], close: [] })).to.equal(null)
    expect(rollSpread([100, 101, 100])).to.equal(null)
  })
})

describe('the Yang-Zhang variance', () => {
  it('matches an independent calculation on six bars', () => {
    expect(yangZhangVariance(BARS)).to.be.closeTo(0.00019418225659471807, 1e-17)
  })

  it('is null for fewer than three bars and 0 for constant bars', () => {
    const flat = [1, 1, 1, 1]
    expect(yangZhangVariance({ open: flat, high: flat, low: flat, close: flat })).to.equal(0)
    expect(yangZhangVariance({ open: [1, 1], high: [1, 1], low: [1, 1], close: [1, 1] })).to.equal(null)
  })
})
