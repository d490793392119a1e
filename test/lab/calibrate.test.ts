import { expect } from 'chai'
import { migrate } from '../../gateway/stores/migrations.ts'
import { barFigures } from '../../plugins/cost/bar-figures.ts'
import { calibrateImpact, type ImpactCalibration } from './calibrate/impact-calibration.ts'
import { type Level, pairsOf, type TimedBook } from '../../plugins/lib/quant/order-book.ts'
import { WalkErrors } from '../../plugins/cost/walk-errors.ts'
import { seededRandom } from '../../plugins/lib/quant/seeded-random.ts'
import { decodeBook, encodeBook, thinBook, TOLERANCE } from '../../plugins/lib/quant/thinned-book.ts'
import { createBarStore, migrations } from '../../plugins/market/bar-store.ts'
import { createColumns } from '../../plugins/market/bars.ts'
import { KeptBooks } from '../../plugins/market/order-books/kept-books.ts'
import { parseBooks } from '../../plugins/market/order-books/recorded-books.ts'
import { isRecorded, readRecorded, recordedNames } from '../support/recorded-data.ts'
import { calibrateKeptBooks } from './calibrate/kept-book-calibrations.ts'
import { DATABASES } from '../contracts/databases.ts'

const SCALE = { sigmaDaily: 0.03, advUsd: 2e9 }
const START = Date.UTC(2026, 2, 2) / 1000

/** A book whose walks cost the square-root law with coefficient `y`, and some noise of each level. */
function lawBook(time: number, y: number, random: () => number): TimedBook {
  const price = 90_000 + 1000 * random()
  const half = 0.01 * price * 1e-4
  const side = (sign: 1 | -1): Level[] => {
    // The depth within x of the best price is ADV (x / 1.5 Y σ)², because the marginal price is 1.5 times the average.
    const within = (x: number): number => SCALE.advUsd * (x / (1.5 * y * SCALE.sigmaDaily)) ** 2
    return Array.from({ length: 600 }, (_, i): Level => {
      const [near, far] = [(i / 600) * 0.006, ((i + 1) / 600) * 0.006]
      const level = price + sign * (half + price * ((near + far) / 2))
      return [level, ((within(far) - within(near)) / level) * (0.5 + random())]
    })
  }
  return { venue: 'coinbase', time, bids: side(-1), asks: side(1) }
}

/** Pairs of books, half a minute apart, every five minutes. */
function lawBooks(count: number, y: (n: number) => number): TimedBook[] {
  const random = seededRandom(7)
  return Array.from({ length: count }, (_, n) => lawBook(START + 300 * (n >> 1) + 30 * (n & 1), y(n), random))
}

const kept = (book: TimedBook): TimedBook => ({ ...book, ...decodeBook(encodeBook(thinBook(book))) })

/** Every figure of two calibrations, compared. */
function expectClose(found: ImpactCalibration | null, direct: ImpactCalibration | null): void {
  expect(found!.books).to.equal(direct!.books)
  expect(found!.coefficient / direct!.coefficient).to.be.closeTo(1, TOLERANCE)
  // A factor is a quotient of two figures, each within the tolerance.
  expect(found!.law.low / direct!.law.low).to.be.closeTo(1, 2 * TOLERANCE)
  expect(found!.law.high / direct!.law.high).to.be.closeTo(1, 2 * TOLERANCE)
}

describe('the calibration of impact', () => {
  it('finds the coefficient of books that follow the law, and factors near one', () => {
    const { coefficient, law, books } = calibrateImpact(lawBooks(60, () => 0.4), () => SCALE)! // prettier-ignore
    expect(coefficient).to.be.closeTo(0.4, 0.02)
    expect([law.low, law.high].every((factor) => Math.abs(factor - 1) < 0.15)).to.equal(true)
    expect([books, law.orders]).to.deep.equal([60, 60 * 12])
  })

  it('finds how far books are from the law', () => {
    // Depth changes from pair to pair by a factor of 1.5 either way, and within a pair not at all.
    const steady = calibrateImpact(
      lawBooks(200, (n) => 0.4 * [1 / 1.5, 1, 1.5][(n >> 1) % 3]!),
      () => SCALE,
    )!
    expect([steady.law.low * 1.5, steady.law.high / 1.5].map((one) => Math.abs(one - 1) < 0.15)).to.deep.equal([true, true]) // prettier-ignore
  })

  it('has no result without the scale of the market, with too few orders, or with books that are too thin', () => {
    const books = lawBooks(60, () => 0.4)
    expect(calibrateImpact(books, () => null)).to.equal(null)
    expect(calibrateImpact(books.slice(0, 2), () => SCALE)).to.equal(null)
    expect(calibrateImpact(books, () => ({ ...SCALE, advUsd: 1e15 }))).to.equal(null)
  })

  it('is the same from kept books as from the full ones, to 1% and for factors to 2%', () => {
    const full = lawBooks(120, (n) => 0.2 + 0.1 * ((n >> 1) % 5) + 0.03 * (n & 1))
    expectClose(calibrateImpact(full.map(kept), () => SCALE), calibrateImpact(full, () => SCALE)) // prettier-ignore
  })

  it('is the same from kept books as from the full ones on the recordings', function () {
    if (!isRecorded) this.skip()
    for (const name of recordedNames('l2', '.json.gz')) {
      const text = readRecorded(`l2/${name}`)
      const { meta } = JSON.parse(text) as { meta: { traded_usd_per_minute: number; sigma_1min_bps: number } }
      const scale = {
        sigmaDaily: (meta.sigma_1min_bps / 1e4) * Math.sqrt(1440),
        advUsd: meta.traded_usd_per_minute * 1440,
      }
      const full = parseBooks(text, 'binance')
      const direct = calibrateImpact(full, () => scale)
      expectClose(calibrateImpact(full.map(kept), () => scale), direct) // prettier-ignore
      // The reference measured Y = 0.39 on six books, of which this is one.
      expect(direct!.coefficient).to.be.within(0.25, 0.6)
    }
  })
})

for (const [name, open] of Object.entries(DATABASES))
  describe(`the calibration of what a gateway kept in ${name}`, () => {
    it('equals that of the same full books, for each symbol', async function () {
      const database = await open()
      if (!database) this.skip()
      try {
        const { db } = database
        await migrate(db, 'market', migrations)
        const store = createBarStore(db)
        const books = new KeptBooks(db)
        const full = lawBooks(80, (n) => 0.3 + 0.1 * ((n >> 1) % 3))
        let scale = SCALE
        for (const symbol of ['BTC-USD', 'ETH-USD']) {
          const bars = createColumns()
          const random = seededRandom(3)
          for (let time = START - 10 * 86_400; time < START; time += 60) {
            const close = 90_000 * (1 + 0.002 * (random() - 0.5))
            bars.add(time, close, close, close, close, SCALE.advUsd / 1440 / 90_000, 0)
          }
          const columns = bars.end()
          await store.add(await store.series('median', symbol, 60), columns)
          const figures = barFigures({ symbol, venue: 'median', interval_seconds: 60, ...columns }, 1440)!
          scale = { sigmaDaily: figures.sigmaDaily!, advUsd: figures.advUsd! }
          for (const book of full) expect(await books.keep(symbol, book)).to.equal(true)
        }
        const found = await calibrateKeptBooks(db)
        expect(found.map(({ symbol, kept: count }) => [symbol, count])).to.deep.equal([
          ['BTC-USD', 80],
          ['ETH-USD', 80],
        ])
        const direct = calibrateImpact(full, () => scale)
        const errors = new WalkErrors()
        for (const pair of pairsOf(full, 'coinbase')) errors.learn(pair)
        for (const { calibration, ranges } of found) {
          expectClose(calibration, direct)
          const { low, high, ...counts } = ranges.find(({ side, usd }) => side === 'sell' && usd === 1e6)!
          const exact = errors.at('sell', 1e6)!
          expect(counts).to.include({ venue: 'coinbase', cases: 80, judged: exact.judged, from: START })
          // The difference of two walks, each within the tolerance of a few basis points.
          expect([low - exact.low, high - exact.high].every((off) => Math.abs(off) < 0.2)).to.equal(true)
        }
      } finally {
        await database.drop()
      }
    })
  })
