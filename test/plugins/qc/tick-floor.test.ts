import { expect } from 'chai'
import * as fc from 'fast-check'
import checkBarQuality from '../../../plugins/qc/bar-quality.ts'
import { seededRandom } from '../../../plugins/lib/quant/seeded-random.ts'
import { weekdays } from './random-walk.ts'

interface Options {
  readonly count: number
  readonly tick: number
  /** Prices in ticks. */
  readonly from: number
  readonly to: number
  readonly interval: number
  readonly seed: number
  /** Chance that a bar has a wick of one tick. */
  readonly wick?: number
  /** Chance that the close of a bar is not its open. */
  readonly move?: number
}

/** Bars of a market whose prices are a few ticks, with volume. */
function tickBars({ count, tick, from, to, interval, seed, wick = 0.02, move = 0.6 }: Options) {
  const random = seededRandom(seed)
  const start = Date.UTC(2024, 0, 1) / 1000
  const days = weekdays('2001-01-01', count)
  const price = (ticks: number): number => Number((ticks * tick).toPrecision(12))
  let close = from + Math.floor(random() * (to - from + 1))
  return Array.from({ length: count }, (_, i) => {
    const open = close
    if (random() < move) close = Math.max(from, Math.min(to, close + (random() < 0.5 ? 1 : -1)))
    const high = Math.max(open, close) + (random() < wick ? 1 : 0)
    const low = Math.max(1, Math.min(open, close) - (random() < wick ? 1 : 0))
    const [o, h, l, c] = [open, high, low, close].map(price) as [number, number, number, number]
    const t = interval === 86_400 ? days[i]! : start + i * interval
    return { t, o, h, l, c, v: Math.round(1000 * Math.exp(random())) }
  })
}

const wrong = (bars: ReturnType<typeof tickBars>): string[] =>
  checkBarQuality({ bars }).findings.flatMap(({ code, family }) =>
    family === 'bad_print' || family === 'split' ? [code] : [],
  )

describe('prices of a few ticks', () => {
  it('have no bad print where a wick is one tick long', () => {
    // Row 15 of the ledgers that people have: opens and closes of 2 to 3 ticks of 0.0001, and one low one tick lower.
    for (const count of [30, 60, 400]) {
      const bars = tickBars({ count, tick: 0.0001, from: 2, to: 3, interval: 86_400, seed: 3, wick: 0, move: 1 }).map(
        (bar) => ({ ...bar, v: 5000 }),
      )
      const at = Math.floor(count / 2)
      const report = checkBarQuality({ bars: bars.map((bar, i) => (i === at ? { ...bar, l: 0.0001 } : bar)) })
      expect(report.findings.filter(({ family }) => family === 'bad_print')).to.deep.equal([])
      expect(report.counts.error).to.equal(0)
    }
  })

  it('have no bad prints and no splits, whatever the tick, the interval and the number of bars', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(1e-8, 0.0001, 0.0005, 0.01, 0.05, 0.25, 1),
        fc.constantFrom(60, 3600, 86_400),
        fc.integer({ min: 20, max: 600 }),
        fc.integer({ min: 2, max: 20 }),
        fc.integer({ min: 1, max: 10 }),
        fc.constantFrom(0.1, 0.6),
        fc.integer(),
        (tick, interval, count, from, width, move, seed) => {
          expect(wrong(tickBars({ count, tick, from, to: from + width, interval, move, seed }))).to.deep.equal([])
        },
      ),
      { numRuns: 150 },
    )
  })

  it('of two to twelve cents have hardly a split in 8,000 bars, and none that is false of a few ticks', () => {
    const found = [1, 2, 3].flatMap((seed) =>
      wrong(tickBars({ count: 8000, tick: 0.01, from: 2, to: 12, interval: 86_400, seed })),
    )
    expect(found).to.deep.equal([])
  })

  it('still have bad prints and splits that are many ticks', () => {
    const bars = tickBars({ count: 400, tick: 0.01, from: 4, to: 6, interval: 86_400, seed: 5, wick: 0 })
    expect(wrong(bars.map((bar, i) => (i === 200 ? { ...bar, h: 0.6 } : bar)))).to.deep.equal(['bad_print_high'])
    const scaled = bars.map((bar, i) => {
      const factor = i < 200 ? 1 : 20
      const [o, h, l, c] = [bar.o, bar.h, bar.l, bar.c].map((price) => Number((price * factor).toFixed(2)))
      return { ...bar, o: o!, h: h!, l: l!, c: c!, v: Math.round(bar.v / factor) }
    })
    expect(wrong(scaled)).to.deep.equal(['unadjusted_split'])
  })
})
