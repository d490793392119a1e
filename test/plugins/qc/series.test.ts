import { expect } from 'chai'
import checkBarQuality from '../../../plugins/qc/bar-quality.ts'
import { chanceLength } from '../../../plugins/qc/stale-runs.ts'
import { centredMedian, neighbourMedian } from '../../../plugins/lib/quant/rolling-median.ts'
import { fitTail } from '../../../plugins/qc/print-checks.ts'
import { findTickSize } from '../../../plugins/lib/quant/tick-size.ts'
import { seededRandom } from '../../../plugins/lib/quant/seeded-random.ts'
import { randomWalk, type WalkBar } from './random-walk.ts'

const clean = randomWalk({ count: 2000 })
const flat = (bar: WalkBar, level: number): WalkBar => ({ ...bar, o: level, h: level, l: level, c: level })

describe('stale runs', () => {
  it('are reported once, at the first flat bar', () => {
    const bars = clean.map((bar, i) => (i >= 700 && i < 712 ? flat(bar, clean[699]!.c) : bar))
    const found = checkBarQuality({ bars }).findings
    expect(found).to.have.length(1)
    expect(found[0]).to.include({ code: 'stale_run', index: 700, observed: 12 })
  })

  it('must be longer than usual for a market that often stands still', () => {
    const random = seededRandom(3)
    const quiet = clean.map((bar) => ({ ...bar }))
    for (let i = 1; i < quiet.length; i += 1) if (random() < 0.5) quiet[i] = flat(quiet[i]!, quiet[i - 1]!.c)
    const report = checkBarQuality({ bars: quiet })
    expect(report.by_code['stale_run']).to.equal(undefined)
    expect(report.thresholds.stale_run_bars).to.be.above(8)
  })
})

describe('the volume check', () => {
  it('reports an outlier on an ordinary range', () => {
    const found = checkBarQuality({ bars: clean.with(700, { ...clean[700]!, v: 200_000 }) }).findings
    expect(found.map(({ code, index }) => [code, index])).to.deep.equal([['volume_outlier', 700]])
  })

  it('accepts any volume on a bar that moves', () => {
    const bar = clean[700]!
    const moved = { ...bar, v: 200_000, c: bar.c * 1.02, h: bar.h * 1.02 }
    const bars = clean.map((other, i) =>
      i < 700
        ? other
        : i === 700
          ? moved
          : { ...other, o: other.o * 1.02, h: other.h * 1.02, l: other.l * 1.02, c: other.c * 1.02 },
    )
    expect(checkBarQuality({ bars }).by_code['volume_outlier']).to.equal(undefined)
  })

  it('reports a move without volume if zero volume is rare', () => {
    expect(checkBarQuality({ bars: clean.with(700, { ...clean[700]!, v: 0 }) }).by_code).to.deep.equal({
      zero_volume_move: 1,
    })
    expect(
      checkBarQuality({ bars: clean.map((bar, i) => ({ ...bar, v: i % 2 === 0 ? 0 : bar.v })) }).by_code[
        'zero_volume_move'
      ],
    ).to.equal(undefined)
  })

  it('is skipped for bars without volume, and the report says so', () => {
    expect(checkBarQuality({ bars: clean.map(({ t, o, h, l, c }) => ({ t, o, h, l, c })) }).not_checked).to.deep.equal({
      volume: 'the request has no volume',
    })
  })
})

describe('the tick size', () => {
  const ticked = clean.map((bar) => {
    const [o, h, l, c] = [bar.o, bar.h, bar.l, bar.c].map((price) =>
      Number((Math.round(price / 0.05) * 0.05).toFixed(2)),
    )
    return { t: bar.t, o: o!, h: h!, l: l!, c: c!, v: bar.v }
  })

  it('is the largest common step of which nearly all prices are multiples', () => {
    expect(findTickSize(ticked.flatMap(({ o, h, l, c }) => [o, h, l, c]))).to.equal(0.05)
    expect(findTickSize([1, 2, 3])).to.equal(null)
  })

  it('is found for very cheap coins and is never larger than the price', () => {
    const cents = ticked.flatMap(({ o, h, l, c }) => [o, h, l, c])
    expect(findTickSize(cents.map((price) => Number((price * 1e-8).toFixed(10))))).to.equal(5e-10)
    expect(findTickSize(clean.map(({ c }) => c * 1e-15))).to.equal(null)
  })

  it('is null if prices have too many digits', () => {
    expect(findTickSize(clean.map(({ c }) => c * 1e9))).to.equal(null)
  })

  it('gives an info for a row that is off it', () => {
    const report = checkBarQuality({ bars: ticked.with(700, { ...ticked[700]!, h: ticked[700]!.h + 0.01 }) })
    expect(report.findings.map(({ code, index, severity }) => [code, index, severity])).to.deep.equal([
      ['off_tick', 700, 'info'],
    ])
    expect(report.score).to.equal(1)
  })
})

describe('rolling medians, run lengths and tails', () => {
  it('use centred medians that are shorter at the ends and skip missing values', () => {
    expect([...centredMedian([1, 9, 2, 3, 8], 3)]).to.deep.equal([5, 2, 3, 3, 5.5])
    expect([...centredMedian([1, NaN, 3], 3)]).to.deep.equal([1, 2, 3])
    expect([...neighbourMedian([1, 9, 2, 3, 8], 1)]).to.deep.equal([9, 1.5, 6, 5, 3])
  })

  it('expect longer runs if runs are common', () => {
    const rule = { short: 8, chance: 0.001 }
    const manyRuns = Array.from({ length: 400 }, (_, i) => 1 + (i % 3))
    expect(chanceLength([1, 1, 20], rule)).to.be.below(chanceLength([...manyRuns, 20], rule))
    expect(chanceLength([1, 1, 1, 2, 1, 1, 20], { short: 3, chance: 0.001 })).to.equal(7)
  })

  it('fit an exponential tail to its quantiles', () => {
    const random = seededRandom(9)
    const scores = Float64Array.from({ length: 20_000 }, () => -Math.log(1 - random()))
    const tail = fitTail(scores)
    expect(tail.one).to.be.closeTo(Math.log(20_000), 0.6)
    expect(tail.expected(tail.one)).to.be.closeTo(1, 1e-9)
  })
})
