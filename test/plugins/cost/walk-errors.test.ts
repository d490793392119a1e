import { expect } from 'chai'
import * as fc from 'fast-check'
import { SIZES_USD, WalkErrors } from '../../../plugins/cost/walk-errors.ts'
import { type BookPair, type Level, pairsOf, type TimedBook } from '../../../plugins/lib/quant/order-book.ts'
import { seededRandom } from '../../../plugins/lib/quant/seeded-random.ts'

const SIDES = ['buy', 'sell'] as const

/** A book with mid price 100, a spread of 2 bps and `usd` at each cent. */
const bookOf = (time: number, usd: number, levels = 40): TimedBook => {
  const side = (sign: 1 | -1): Level[] =>
    Array.from({ length: levels }, (_, i) => {
      const price = 100 + sign * 0.01 * (i + 1)
      return [price, usd / price]
    })
  return { venue: 'test', time, bids: side(-1), asks: side(1) }
}

/** Pairs five minutes apart, of books whose depth is anew for each. */
function pairs(count: number, depth: (random: () => number) => number, levels = 40): BookPair[] {
  const random = seededRandom(5)
  return Array.from({ length: count }, (_, i) => ({
    first: bookOf(300 * i, depth(random), levels),
    later: bookOf(300 * i + 30, depth(random), levels),
  }))
}

function learn(all: readonly BookPair[]): WalkErrors {
  const errors = new WalkErrors()
  for (const pair of all) errors.learn(pair)
  return errors
}

describe('the errors of earlier orders', () => {
  const wide = (random: () => number): number => 20_000 * (1 + 4 * random())

  it('have a range that holds four in five of the orders after it, by size and side', () => {
    const errors = learn(pairs(1500, wide))
    for (const side of SIDES)
      for (const usd of SIZES_USD.slice(2, 5)) {
        const { held, judged, cases } = errors.at(side, usd)!
        expect(judged, `${side} ${usd}`).to.be.at.least(1400)
        expect(cases).to.equal(1500)
        expect(held / judged).to.be.within(0.77, 0.83)
      }
  })

  it('have no range before fourteen cases, nor at sizes that the books do not fill', () => {
    expect(learn(pairs(6, wide)).at('buy', 1e4)).to.equal(null)
    // Both sides together.
    const few = learn(pairs(7, wide))
    expect(few.at('buy', 1e4)).to.include({ cases: 14, judged: 0, from: 0, to: 1830 })
    expect(few.at('buy', 1e7)).to.equal(null)
    expect(few.at('buy', 1e9)).to.equal(null)
    expect(new WalkErrors().at('sell', 1)).to.equal(null)
  })

  it('have no range at a size that too many of the later books cannot fill', () => {
    const alternating = pairs(400, (random) => (random() < 0.3 ? 2000 : 60_000))
    const { first } = alternating[0]!
    const errors = learn(alternating)
    expect(first.asks).to.have.length(40)
    expect(errors.at('buy', 5e4)).to.not.equal(null)
    expect(errors.at('buy', 1e5), '80,000 USD in three of ten').to.equal(null)
  })

  it('end higher for a larger order, and hold the estimate itself', () => {
    const errors = learn(pairs(200, wide))
    const size = fc.double({ min: 1, max: 14, noNaN: true }).map(Math.exp)
    fc.assert(
      fc.property(fc.constantFrom(...SIDES), size, size, (side, a, b) => {
        const [small, large] = [errors.at(side, Math.min(a, b)), errors.at(side, Math.max(a, b))]
        if (!large) return
        expect(large.high).to.be.at.least(small!.high)
        expect(large.low).to.be.at.most(0)
        expect(small!.high).to.be.at.least(0)
      }),
    )
  })

  it('follow a market that becomes less steady', () => {
    const calm = pairs(800, (random) => 40_000 * (1 + 0.2 * random()))
    const restless = pairs(800, wide).map(({ first, later }) => ({
      first: { ...first, time: first.time + 300 * 800 },
      later: { ...later, time: later.time + 300 * 800 },
    }))
    const errors = learn([...calm, ...restless])
    const { held, judged } = errors.at('buy', 2.5e5)!
    expect(held / judged).to.be.within(0.77, 0.83)
  })

  it('are those of pairs of one venue, half a minute apart', () => {
    const at = (time: number, venue: string): TimedBook => ({ ...bookOf(time, 1e4), venue })
    const books = [at(0, 'a'), at(10, 'b'), at(30, 'a'), at(60, 'a'), at(130, 'a'), at(140, 'b')]
    const times = pairsOf(books, 'a').map(({ first, later }) => [first.time, later.time])
    expect(times).to.deep.equal([[0, 30], [30, 60]]) // prettier-ignore
  })
})
