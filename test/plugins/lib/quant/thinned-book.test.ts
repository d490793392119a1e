import { expect } from 'chai'
import { type Book, type Level, walkBook } from '../../../../plugins/lib/quant/order-book.ts'
import { seededRandom } from '../../../../plugins/lib/quant/seeded-random.ts'
import {
  decodeBook,
  encodeBook,
  thinBook,
  TOLERANCE,
  TOLERANCE_BPS,
} from '../../../../plugins/lib/quant/thinned-book.ts'
import { isRecorded, readRecorded } from '../../../support/recorded-data.ts'

/** A book with clustered sizes and gaps, at a price and with a spread of any size. */
function randomBook(random: () => number): Book {
  const price = 10 ** (random() * 8 - 3)
  const step = price * 10 ** (-random() * 3 - 3)
  const side = (sign: 1 | -1): Level[] => {
    let at = price + (sign * step) / 2
    return Array.from({ length: 1 + Math.floor(random() * 400) }, (): Level => {
      at += sign * step * (random() < 0.05 ? 20 * random() : 0.1 + random())
      return [at, ((10 ** (random() * 5) + 1) * (random() < 0.02 ? 50 : 1)) / price]
    }).filter(([level]) => level > 0)
  }
  return { bids: side(-1), asks: side(1) }
}

const half = ({ bids, asks }: Book): number => ((asks[0]![0] - bids[0]![0]) / (asks[0]![0] + bids[0]![0])) * 1e4
const depth = (levels: readonly Level[]): number => levels.reduce((sum, [price, size]) => sum + price * size, 0)

/** The largest error of a walk of the kept book, in tolerances, over sizes from 1,000 to what both books hold. */
function worstError(full: Book, kept: Book): number {
  let worst = 0
  for (const side of ['buy', 'sell'] as const)
    for (let notional = 1000; notional < 1e9; notional *= 1.07) {
      const [truth, walk] = [walkBook(full, side, notional), walkBook(kept, side, notional)]
      if (!truth || !walk) break
      const allowed = Math.max(TOLERANCE_BPS, TOLERANCE * (truth.costBps - half(full)))
      worst = Math.max(worst, Math.abs(walk.costBps - truth.costBps) / allowed)
    }
  return worst
}

describe('a thinned order book', () => {
  it('costs the same to walk as the full one, within the tolerance, for any book and size', () => {
    const random = seededRandom(14)
    for (let n = 0; n < 400; n += 1) {
      const full = randomBook(random)
      const kept = decodeBook(encodeBook(thinBook(full)))
      expect(worstError(full, kept), `book ${n}`).to.be.at.most(1)
      for (const side of ['bids', 'asks'] as const)
        if (thinBook(full)[side].length < 100)
          expect(depth(kept[side]) / depth(full[side]), `book ${n}`).to.be.closeTo(1, 1e-3)
    }
  })

  it('keeps the best prices and the spread exactly', () => {
    const full: Book = { bids: [[0.1 + 0.2, 7], [0.29, 1]], asks: [[1 / 3, 5], [0.4, 1]] } // prettier-ignore
    const kept = decodeBook(encodeBook(thinBook(full)))
    expect([kept.bids[0]![0], kept.asks[0]![0]]).to.deep.equal([0.1 + 0.2, 1 / 3])
  })

  it('never grows beyond 100 levels and 1,300 bytes a book', () => {
    const step = (sign: 1 | -1): Level[] =>
      Array.from({ length: 1000 }, (_, i): Level => [100 + sign * 0.03 * (i + 1) ** 1.5 * (i % 2 ? 1 : 0.9999), 1 + (i % 7) * 40]) // prettier-ignore
    const kept = thinBook({ bids: step(-1).filter(([price]) => price > 0), asks: step(1) })
    expect(kept.asks.length).to.be.within(2, 100)
    expect(encodeBook(kept).length).to.be.below(1300)
  })

  it('refuses bytes of another version, and bytes that are cut off', () => {
    const bytes = encodeBook({ bids: [[99, 1]], asks: [[101, 1]] })
    expect(() => decodeBook(Uint8Array.from([9, ...bytes.subarray(1)]))).to.throw(RangeError, 'cannot read')
    for (const length of [0, 16, 17, bytes.length - 1])
      expect(() => decodeBook(bytes.subarray(0, length)), String(length)).to.throw(RangeError)
  })

  it('is within the tolerance on every recorded book, in 340 bytes on average', function () {
    if (!isRecorded) this.skip()
    const { snapshots } = JSON.parse(readRecorded('l2/binance_spot_ethusdt_20240808.json.gz')) as { snapshots: Book[] }
    const bytes = snapshots.map((full) => {
      const encoded = encodeBook(thinBook(full))
      expect(worstError(full, decodeBook(encoded))).to.be.at.most(1)
      return encoded.length
    })
    expect(bytes.reduce((sum, one) => sum + one) / bytes.length).to.be.at.most(340)
  })
})
