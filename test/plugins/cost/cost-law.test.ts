import { expect } from 'chai'
import * as fc from 'fast-check'
import { estimate } from '../../../plugins/cost/estimate.ts'
import type { MarketInputs } from '../../../plugins/cost/market-inputs.ts'
import type { Level } from '../../../plugins/lib/quant/order-book.ts'
import type { CostRequest } from '../../../schemas/types.d.ts'
import { BOOK, ERRORS, estimateCost, marketInputsWith } from './cost-fixtures.ts'

const logOf = (min: number, max: number) =>
  fc.double({ min: Math.log(min), max: Math.log(max), noNaN: true }).map((x) => Math.exp(x))

/** A side of a book with mid price 100, best first, of one to forty levels. */
const sideOf = (sign: 1 | -1): fc.Arbitrary<Level[]> =>
  fc.array(fc.tuple(logOf(0.0001, 0.2), logOf(0.1, 1e5)), { minLength: 1, maxLength: 40 }).map((steps) => {
    let distance = 0
    return steps.map(([step, quantity]) => [100 + sign * (distance += step), quantity] as const)
  })
const anyBook = fc.record({ bids: sideOf(-1), asks: sideOf(1) })

/** A market of any class, with or without a book, from an illiquid one to the largest. */
const anyMarket: fc.Arbitrary<MarketInputs> = fc
  .record({
    className: fc.constantFrom('spot' as const, 'perpetual' as const, 'equity' as const),
    sides: fc.option(anyBook),
    advUsd: logOf(1e5, 1e11),
    sigmaDaily: logOf(0.002, 0.2),
    spreadBps: logOf(0.001, 50),
    errors: fc.constantFrom(null, ERRORS),
  })
  .map(({ className, sides, spreadBps, ...inputs }) => {
    if (className === 'equity' || sides === null)
      return {
        ...marketInputsWith(null, {
          ...inputs,
          spreadBps,
          dayMinutes: className === 'equity' ? 390 : 1440,
        }),
        className,
      }
    const book = { ...BOOK, ...sides }
    const [bid, ask] = [book.bids[0]![0], book.asks[0]![0]]
    const quoted = { ...inputs, spreadBps: (2e4 * (ask - bid)) / (ask + bid) }
    return { ...marketInputsWith(book, quoted), className, price: (bid + ask) / 2 }
  })

/** A market, and an order between 100 USD and what is refused there. */
const anyOrder = fc.tuple(anyMarket, fc.double({ min: 0, max: 1, noNaN: true })).map(([market, size]) => ({
  market,
  notional_usd: Math.min(market.inputs.advUsd, 100 * (market.inputs.advUsd / 100) ** size),
}))
const anySide = fc.constantFrom('buy' as const, 'sell' as const)
const SCHEDULES = ['twap', 'vwap', 'pov'] as const
const anyType = fc.constantFrom('market' as const, 'limit' as const, ...SCHEDULES)
const anyPace: fc.Arbitrary<Partial<CostRequest>> = fc.oneof(
  fc.constant({}),
  fc.record({ horizon_minutes: fc.integer({ min: 1, max: 1440 }) }),
  fc.record({ participation_rate: logOf(0.001, 0.5) }),
)
/** Half a hundredth of a basis point each way. */
const ROUNDING = 0.01 + 1e-9

describe('the law of cost', () => {
  it('never has a schedule cost more than the market order that it splits', () => {
    fc.assert(
      fc.property(anyOrder, anySide, fc.constantFrom(...SCHEDULES), anyPace, (order, side, order_type, pace) => {
        const { market, notional_usd } = order
        const atOnce = estimateCost({ side, notional_usd }, market)
        const split = estimateCost({ side, notional_usd, order_type, ...pace }, market)
        expect(split.total_bps).to.be.at.most(atOnce.total_bps)
        expect(split.range_bps === null).to.equal(atOnce.range_bps === null)
        if (split.range_bps) expect(split.range_bps.p90).to.be.at.most(atOnce.range_bps!.p90)
      }),
    )
  })

  it('never falls with size', () => {
    fc.assert(
      fc.property(
        anyOrder,
        anySide,
        anyType,
        anyPace,
        fc.double({ min: 0, max: 1, noNaN: true }),
        (order, side, type, pace, by) => {
          const { market, notional_usd } = order
          const cost = (usd: number) => estimateCost({ side, notional_usd: usd, order_type: type, ...pace }, market)
          const [small, large] = [
            cost(notional_usd),
            cost(Math.min(market.inputs.advUsd, notional_usd * (market.inputs.advUsd / notional_usd) ** by)),
          ]
          expect(large.total_bps).to.be.at.least(small.total_bps)
          if (large.range_bps) expect(large.range_bps.p90).to.be.at.least(small.range_bps!.p90)
        },
      ),
    )
  })

  it('has no jump, where the book ends, where a default horizon changes, or anywhere else', () => {
    fc.assert(
      fc.property(anyOrder, anySide, anyType, anyPace, ({ market, notional_usd }, side, order_type, pace) => {
        const { book, inputs } = market
        const depth = (side === 'buy' ? book?.asks : book?.bids)?.reduce((sum, [p, q]) => sum + p * q, 0) ?? 1000
        // A default horizon is at least five minutes and at most a day, at a tenth of the volume.
        const edges = [notional_usd, depth, inputs.advUsd / 10, (inputs.advUsd * 5) / inputs.dayMinutes / 10]
        for (const edge of edges.filter((usd) => usd * 1.000001 <= inputs.advUsd)) {
          const cost = (usd: number) => estimateCost({ side, notional_usd: usd, order_type, ...pace }, market).total_bps
          expect(cost(edge * (1 + 1e-9))).to.be.closeTo(cost(edge * (1 - 1e-9)), ROUNDING)
        }
      }),
    )
  })

  it('is within the book exactly what filling the order costs', () => {
    const anySize = fc.double({ min: 1e-6, max: 1, noNaN: true })
    fc.assert(
      fc.property(anyBook, anySide, anySize, (sides, side, share) => {
        const [bid, ask] = [sides.bids[0]![0], sides.asks[0]![0]]
        const middle = (bid + ask) / 2
        const levels = side === 'buy' ? sides.asks : sides.bids
        const notionalUsd = share * levels.reduce((sum, [price, quantity]) => sum + price * quantity, 0)
        let [left, paid] = [notionalUsd, 0]
        for (const [price, quantity] of levels) {
          const taken = Math.min(left / price, quantity)
          paid += taken * Math.abs(price - middle)
          left -= taken * price
        }
        const { inputs } = marketInputsWith({ ...BOOK, ...sides }, { spreadBps: (1e4 * (ask - bid)) / middle })
        const { totalBps, immediate } = estimate(
          { side, type: 'market', notionalUsd, horizonMinutes: null, participationRate: null },
          { ...inputs, advUsd: 1e12, takerFeeBps: 0, makerFeeBps: 0 },
        )
        // Paid against the middle, by the quantity that was filled.
        const quantity = (side === 'buy' ? notionalUsd - paid : notionalUsd + paid) / middle
        expect(totalBps).to.be.closeTo((1e4 * paid) / quantity / middle, 1e-6)
        expect(immediate.source).to.equal('book_walk')
      }),
    )
  })

  it('has an inverse: the largest size within a limit', () => {
    const anyLimit = logOf(0.1, 200)
    fc.assert(
      fc.property(anyOrder, anySide, anyType, anyPace, anyLimit, ({ market }, side, order_type, pace, limit) => {
        const cost = (notional_usd: number, more: object = {}) =>
          estimateCost({ side, order_type, notional_usd, ...pace, ...more }, market)
        const { limit_bps, notional_usd, p90_notional_usd } = cost(100, {
          largest_within_bps: limit,
        }).largest_within_bps!
        expect(limit_bps).to.equal(limit)
        const largest = Math.floor(market.inputs.advUsd * 100) / 100
        for (const [usd, bpsOf] of [
          [notional_usd, (usd: number) => cost(usd).total_bps],
          [p90_notional_usd, (usd: number) => cost(usd).range_bps?.p90 ?? cost(usd).total_bps],
        ] as const) {
          if (usd > 0) expect(bpsOf(usd)).to.be.at.most(limit)
          // Where the ranges end, the expected cost of a larger order may be below the ninetieth percentile of a smaller one.
          const isEndOfRanges = () => cost(usd || 0.01).range_bps !== null && cost(usd + 0.01).range_bps === null
          if (usd < largest && !(usd === p90_notional_usd && isEndOfRanges()))
            expect(bpsOf(usd + 0.01)).to.be.greaterThan(limit)
          expect(usd).to.be.within(0, largest)
        }
        expect(p90_notional_usd).to.be.at.most(notional_usd)
      }),
    )
  })
})
