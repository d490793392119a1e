import { expect } from 'chai'
import fc from 'fast-check'
import { type Book, isPair, type Level, notionalWithin, walkBook } from '../../../../plugins/lib/quant/order-book.ts'

const BOOK: Book = { bids: [[99, 10], [98, 10]], asks: [[101, 1], [102, 10]] } // prettier-ignore

/** Any sound book around 100. */
const books = fc
  .tuple(
    ...[-1, 1].map(() =>
      fc.array(fc.tuple(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 1000 })), {
        minLength: 1,
        maxLength: 30,
      }),
    ),
  ) // prettier-ignore
  .map(([bids, asks]): Book => {
    const side = (steps: readonly (readonly [number, number])[], sign: 1 | -1): Level[] => {
      let price = 100
      return steps.map(([step, size]) => [(price += (sign * step) / 100), size] as const)
    }
    return { bids: side(bids!, -1), asks: side(asks!, 1) }
  })

describe('two books of one venue', () => {
  it('are a pair if the second one is 20 to 60 seconds later', () => {
    expect([19, 20, 60, 61, -30].map((apart) => isPair(1000, 1000 + apart))).to.deep.equal([
      false,
      true,
      true,
      false,
      false,
    ])
  })
})

describe('the largest order within a bound of slippage', () => {
  it('takes what costs no more on average, part of a level included', () => {
    // One at 101 and one at 102 average 101.5, which is 150 bps above the middle.
    expect(notionalWithin(BOOK, 'buy', 150).notional).to.be.closeTo(203, 1e-9)
    // 10 at 99 and x at 98 average 98.75 for x = 10 / 3.
    expect(notionalWithin(BOOK, 'sell', 125).notional).to.be.closeTo(990 + 98 * (10 / 3), 1e-9)
  })

  it('is nothing if half the spread costs more, and the whole book if nothing in it does', () => {
    expect(notionalWithin(BOOK, 'buy', 99)).to.deep.equal({ notional: 0, isWholeBook: false })
    expect(notionalWithin(BOOK, 'sell', 1000)).to.deep.equal({ notional: 1970, isWholeBook: true })
    expect(notionalWithin({ bids: [], asks: [[1, 1]] }, 'buy', 10).notional).to.equal(0)
  })

  it('costs the bound when it is walked, and a larger one costs more, for any book', () => {
    fc.assert(
      fc.property(books, fc.constantFrom('buy', 'sell'), fc.double({ min: 1, max: 500, noNaN: true }), (book, side, bps) => {
        const { notional, isWholeBook } = notionalWithin(book, side, bps)
        const walk = walkBook(book, side, notional * (1 - 1e-9))
        if (notional > 0) expect(walk!.costBps).to.be.at.most(bps + 1e-4)
        const larger = walkBook(book, side, notional * 1.01 + 1)
        if (!isWholeBook && larger) expect(larger.costBps).to.be.greaterThan(bps)
      }),
    ) // prettier-ignore
  })
})
