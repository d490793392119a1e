import { expect } from 'chai'
import * as fc from 'fast-check'
import { scheduledImpact, squareRootImpact } from '../../../../plugins/lib/quant/market-impact.ts'
import { type Book, type Level, walkBook } from '../../../../plugins/lib/quant/order-book.ts'

describe('the square-root law of impact', () => {
  it('is Y·σ·√(Q/V)', () => {
    const order = { quantity: 1e6, dailyVolume: 1e8, dailyVolatility: 0.02 }
    expect(squareRootImpact({ ...order, coefficient: 1 })).to.be.closeTo(0.002, 1e-18)
    expect(squareRootImpact(order)).to.be.closeTo(0.0008, 1e-18)
  })
})

describe('the impact model of Almgren, Thum, Hauptmann and Li', () => {
  // Their table of worked costs: a tenth of a day's volume over a tenth, a fifth and half a day.
  const ibm = { quantity: 656_100, dailyVolume: 6_561_000, dailyVolatility: 0.0157, outstanding: 1.728e9 }
  const dri = { quantity: 192_900, dailyVolume: 1_929_000, dailyVolatility: 0.0226, outstanding: 1.68e8 }
  const bps = (order: typeof ibm, days: number): number => scheduledImpact({ ...order, days }).cost * 1e4

  it('matches the published table for IBM and DRI', () => {
    expect([0.1, 0.2, 0.5].map((days) => bps(ibm, days).toFixed(1))).to.deep.equal(['32.2', '24.6', '18.4'])
    expect([0.1, 0.2, 0.5].map((days) => bps(dri, days).toFixed(1))).to.deep.equal(['42.9', '32.0', '23.1'])
    expect(scheduledImpact({ ...ibm, days: 0.1 }).permanent * 1e4).to.be.closeTo(20, 0.5)
  })

  it('uses 4 as the turnover factor for unknown shares outstanding', () => {
    const { outstanding: _, ...order } = ibm
    expect(scheduledImpact({ ...order, days: 0.1 }).permanent).to.be.closeTo(0.314 * 0.0157 * 0.1 * 4, 1e-18)
  })
})

describe('walking an order book', () => {
  const asks: Level[] = [
    [101, 1],
    [102, 10],
  ]
  const book: Book = { bids: [[99, 10]], asks }

  it('spends the notional level by level', () => {
    const walk = walkBook(book, 'buy', 203)
    expect(walk).to.include({ quantity: 2, averagePrice: 101.5, levels: 2 })
    expect(walk?.costBps).to.be.closeTo(150, 1e-9)
  })

  it('raises the notional from the bids', () => {
    const walk = walkBook(book, 'sell', 198)
    expect(walk).to.include({ quantity: 2, averagePrice: 99, levels: 1 })
    expect(walk?.costBps).to.be.closeTo(100, 1e-9)
  })

  it('fills an order of exactly the depth, and is null beyond it and for a one-sided book', () => {
    expect(walkBook(book, 'sell', 990)?.quantity).to.equal(10)
    expect(walkBook(book, 'sell', 990.01)).to.equal(null)
    expect(walkBook({ bids: [], asks }, 'buy', 1)).to.equal(null)
  })

  it('never gets cheaper as the order grows', () => {
    const side = fc.array(fc.tuple(fc.double({ min: 0.01, max: 5, noNaN: true }), fc.integer({ min: 1, max: 50 })), {
      minLength: 1,
      maxLength: 30,
    })
    fc.assert(
      fc.property(side, (steps) => {
        let price = 100
        const asks = steps.map(([step, size]): Level => [(price += step), size])
        const depth = asks.reduce((sum, [p, q]) => sum + p * q, 0)
        const costs = [0.1, 0.3, 0.6, 0.99].map(
          (part) => walkBook({ bids: [[100, 1]], asks }, 'buy', depth * part)!.costBps,
        )
        for (const [i, cost] of costs.entries()) expect(cost).to.be.at.least((costs[i - 1] ?? 0) - 1e-6)
      }),
    )
  })
})
