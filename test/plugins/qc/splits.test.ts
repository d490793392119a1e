import { expect } from 'chai'
import checkBarQuality from '../../../plugins/qc/bar-quality.ts'
import { RATIOS } from '../../../plugins/qc/unadjusted-splits.ts'
import { randomWalk, weekdays, type WalkBar } from './random-walk.ts'

const daily = randomWalk({ count: 400, times: weekdays('2022-01-03', 400), volatility: 0.012 })

/** A factor has twelve digits, as the numbers of a file have. */
const published = (factor: number): number => Number(factor.toPrecision(12))

/** Returns the bars with an unadjusted split at a row. */
function unadjusted(bars: readonly WalkBar[], at: number, factor: number): WalkBar[] {
  const before = ({ t, o, h, l, c, v }: WalkBar) => ({
    t,
    o: o * factor,
    h: h * factor,
    l: l * factor,
    c: c * factor,
    v: v / factor,
  })
  return bars.map((bar, i) => (i < at ? before(bar) : bar))
}

/** Returns the bars with a lasting jump that has the turnover and range of a crash. */
function crash(bars: readonly WalkBar[], at: number, factor: number): WalkBar[] {
  return bars.map((bar, i) => {
    if (i < at) return bar
    const [o, h, l, c] = [bar.o * factor, bar.h * factor, bar.l * factor, bar.c * factor]
    return i === at
      ? { ...bar, o, h: h * 1.04, l: l * 0.94, c, v: (bar.v * 8) / factor }
      : { ...bar, o, h, l, c, v: bar.v * 1.3 }
  })
}

const splitsOf = (bars: readonly WalkBar[]) => checkBarQuality({ bars }).splits

describe('unadjusted splits', () => {
  for (const { name, factor, popularity } of RATIOS) {
    // The report finds smaller and rarer ratios often, but not always, because a real jump is more likely.
    if (popularity < 0.002 || Math.abs(Math.log(factor)) < Math.log(1.4)) continue
    it(`of ${name} are found at their row`, () => {
      const [split, ...others] = splitsOf(unadjusted(daily, 200, factor))
      expect(others).to.deep.equal([])
      expect(split).to.include({ index: 200, ratio: name, factor: published(factor), adjust_before: true })
      expect(split?.log_odds).to.be.above(0)
    })
  }

  it('are found between two minute bars', () => {
    const minutes = randomWalk({ count: 1500 })
    for (const factor of [2, 1.5, 7, 0.25, 0.05])
      expect(
        splitsOf(unadjusted(minutes, 700, factor)).map(({ index, factor: found }) => [index, found]),
      ).to.deep.equal([[700, factor]])
  })

  it('are found for every ratio between two minute bars, and between two daily bars of a 24x7 market', () => {
    const [minutes, roundTheClock] = [
      randomWalk({ count: 1500 }),
      randomWalk({ count: 400, interval: 86_400, volatility: 0.01 }),
    ]
    for (const factor of [2, 1.5, 5 / 4, 4 / 3, 6 / 5, 5 / 3])
      for (const bars of [minutes, roundTheClock]) {
        const found = splitsOf(unadjusted(bars, 300, factor)).map(({ index, factor: foundFactor }) => [
          index,
          foundFactor,
        ])
        expect(found, String(factor)).to.deep.equal([[300, published(factor)]])
      }
  })

  it('are found over a night between minute bars, in spite of the busy first minutes', () => {
    const times = weekdays('2024-01-02', 12).flatMap((day) =>
      Array.from({ length: 390 }, (_, minute) => day + (870 + minute) * 60),
    )
    const nights = randomWalk({ count: times.length, times }).map((bar, i) =>
      i % 390 < 5 ? { ...bar, v: bar.v * 20 } : bar,
    )
    for (const factor of [2, 1.5, 7, 0.1])
      expect(
        splitsOf(unadjusted(nights, 6 * 390, factor)).map(({ index, factor: foundFactor }) => [index, foundFactor]),
        String(factor),
      ).to.deep.equal([[6 * 390, factor]])
  })

  it('are found separately if there are two', () => {
    const twice = unadjusted(unadjusted(daily, 300, 2), 120, 3)
    expect(splitsOf(twice).map(({ index, ratio }) => [index, ratio])).to.deep.equal([
      [120, '3:1'],
      [300, '2:1'],
    ])
  })

  it('are found quickly in a hostile file with very many gaps', () => {
    const hostile = randomWalk({
      count: 50_000,
      interval: 86_400,
      times: Array.from({ length: 50_000 }, (_, i) => i * 86_400),
    })
    const bars = hostile.map((bar, i) =>
      i % 2 === 0 ? bar : { ...bar, o: bar.o / 10, h: bar.h / 10, l: bar.l / 10, c: bar.c / 10 },
    )
    const before = process.cpuUsage()
    checkBarQuality({ bars })
    const { user } = process.cpuUsage(before)
    expect(user / 1e6).to.be.below(8)
  })

  it('are undone before the other checks, which report prices as sent', () => {
    const bars = unadjusted(daily, 200, 10)
    const wick = Math.max(bars[100]!.o, bars[100]!.c) * 1.2
    const report = checkBarQuality({ bars: bars.with(100, { ...bars[100]!, h: wick }) })
    expect(report.by_code).to.include({ unadjusted_split: 1, bad_print_high: 1 })
    expect(report.findings.find(({ code }) => code === 'bad_print_high')?.observed).to.be.closeTo(wick, 1e-6)
    expect(report.usable).to.equal(false)
  })

  it('do not include crashes, even if they match a ratio exactly', () => {
    for (const factor of [1 / 2, 2 / 3, 3 / 4, 4 / 5, 1 / 10])
      expect(splitsOf(crash(daily, 200, factor)), String(factor)).to.deep.equal([])
  })

  it('do not include jumps after a stale run', () => {
    const { c } = daily[199]!
    const level = (0.8 * c) / daily[215]!.o
    const lower = ({ t, o, h, l, c: close, v }: WalkBar) => ({
      t,
      o: o * level,
      h: h * level,
      l: l * level,
      c: close * level,
      v,
    })
    const bars = daily.map((bar, i) => (i < 200 ? bar : i < 215 ? { ...bar, o: c, h: c, l: c, c } : lower(bar)))
    const report = checkBarQuality({ bars })
    expect(report.splits).to.deep.equal([])
    expect(report.by_code).to.include({ stale_run: 1 })
  })

  it('do not include spikes, because the level must last', () => {
    const bars = daily.map((bar, i) => (i === 200 ? { ...bar, o: bar.o / 2, l: bar.l / 2 } : bar))
    expect(splitsOf(bars)).to.deep.equal([])
  })

  it('do not include a new instrument after weeks without bars', () => {
    const later = unadjusted(daily, 200, 2).map((bar, i) => (i < 200 ? bar : { ...bar, t: bar.t + 100 * 86_400 }))
    const report = checkBarQuality({ bars: later })
    expect(report.splits).to.deep.equal([])
    expect(report.by_code['series_discontinuity']).to.equal(1)
    expect(report.usable).to.equal(false)
  })

  it('are found between bars of a month and of a quarter, which are no weeks without bars', () => {
    for (const months of [1, 3]) {
      const times = Array.from({ length: 160 }, (_, i) => Date.UTC(1990, months * i, 1) / 1000)
      const bars = randomWalk({ count: 160, times, volatility: 0.08 })
      expect(checkBarQuality({ bars })).to.deep.include({ by_code: {}, usable: true })
      const found = splitsOf(unadjusted(bars, 80, 4))
      expect(found.map(({ index, ratio }) => [index, ratio])).to.deep.equal([[80, '4:1']])
    }
  })
})

describe('possible dividends', () => {
  it('are single falls between close and open on an ordinary day', () => {
    const quiet = randomWalk({ count: 300, times: weekdays('2022-01-03', 300), volatility: 0.005 })
    const at = quiet.findIndex(({ o, h, l, c, v }, i) => i > 150 && h / l < 1.006 && v < 1000 && c <= o)
    const lower = (bar: WalkBar) => ({
      t: bar.t,
      o: bar.o * 0.96,
      h: bar.h * 0.96,
      l: bar.l * 0.96,
      c: bar.c * 0.96,
      v: bar.v,
    })
    const fallen = quiet.map((bar, i) => (i < at ? bar : lower(bar)))
    const found = checkBarQuality({ bars: fallen, session: 'us_equity' }).findings.filter(
      ({ code }) => code === 'possible_dividend',
    )
    expect(found.map(({ index, severity }) => [index, severity])).to.deep.equal([[at, 'info']])
  })
})
