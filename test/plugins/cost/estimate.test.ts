import { expect } from 'chai'
import * as fc from 'fast-check'
import type { CostEstimate } from '../../../schemas/types.d.ts'
import { estimateCost, BOOK, marketInputsWith } from './cost-fixtures.ts'

const TYPES = ['market', 'limit', 'twap', 'vwap', 'pov'] as const
const anyOrder = fc.record({
  side: fc.constantFrom('buy' as const, 'sell' as const),
  order_type: fc.constantFrom(...TYPES),
  notional_usd: fc.double({ min: 1, max: 1e10, noNaN: true }),
  fee_bps: fc.double({ min: 0, max: 100, noNaN: true }),
  horizon_minutes: fc.integer({ min: 1, max: 1440 }),
  participation_rate: fc.double({ min: 0.001, max: 0.5, noNaN: true }),
})
const anyMarket = fc.constantFrom(
  marketInputsWith(null),
  marketInputsWith(BOOK),
  marketInputsWith(null, { dayMinutes: 390, advUsd: 3e7 }),
)

describe('the cost of an order', () => {
  it('is half the spread plus the square-root law for a market order without a book', () => {
    const { components, total_bps, cost_usd, sources } = estimateCost({}, marketInputsWith(null))
    expect(components.half_spread_bps).to.equal(1)
    // 0.4 · 0.02 · √(1e6/1e9) · 1e4
    expect(components.impact_bps).to.be.closeTo(2.5298221281347, 1e-12)
    expect(total_bps).to.be.closeTo(13.5298221281347, 1e-12)
    expect(cost_usd).to.be.closeTo(1352.98221281347, 1e-9)
    expect(sources.impact).to.equal('square_root')
  })

  it('is what filling the order level by level costs if there is an order book', () => {
    const { components, inputs, sources } = estimateCost({ notional_usd: 3002.1 }, marketInputsWith(BOOK))
    // 10 at 100.01, then 20 at 100.1: the average is 3002.1/30 = 100.07.
    expect(components.half_spread_bps + components.impact_bps).to.be.closeTo(7, 1e-9)
    expect(inputs.book?.levels).to.deep.equal(BOOK.asks.slice(0, 2))
    expect(inputs.book_depth_used).to.equal(true)
    expect(sources.impact).to.equal('book_walk')
  })

  it('leads with what the market costs, before the fee', () => {
    const { market_bps, total_bps, components } = estimateCost({}, marketInputsWith(BOOK))
    expect(market_bps).to.equal(components.half_spread_bps + components.impact_bps)
    expect(total_bps).to.equal(market_bps + 10)
    expect(estimateCost({ fee_bps: 0 }, marketInputsWith(BOOK)).market_bps).to.equal(market_bps)
    const names = Object.keys(estimateCost({}, marketInputsWith(BOOK)))
    expect(names.indexOf('market_bps')).to.equal(names.indexOf('total_bps') - 1)
    const limit = estimateCost({ order_type: 'limit', notional_usd: 100 }, marketInputsWith(BOOK, { spreadBps: 0.2 }))
    expect(limit.market_bps).to.equal(limit.components.half_spread_bps + limit.components.impact_bps)
  })

  it('uses the bids for a sale', () => {
    const { components, inputs } = estimateCost({ notional_usd: 999.9, side: 'sell' }, marketInputsWith(BOOK))
    expect(components.half_spread_bps + components.impact_bps).to.be.closeTo(1, 1e-9)
    expect(inputs.book?.levels).to.deep.equal([BOOK.bids[0]])
  })

  it('continues with the square-root law beyond the depth of the book, without a jump', () => {
    const market = marketInputsWith(BOOK)
    const depth = 1000.1 + 4004 + 5050
    const impact = (notional_usd: number): number => estimateCost({ notional_usd }, market).components.impact_bps
    expect(impact(depth * (1 + 1e-9))).to.be.closeTo(impact(depth * (1 - 1e-9)), 1e-6)
    const law = (x: number): number => 0.4 * 0.02 * Math.sqrt(x / 1e9) * 1e4
    expect(impact(1e6)).to.be.closeTo(impact(depth) + law(1e6) - law(depth), 1e-9)
    expect(estimateCost({}, market).warnings).to.deep.equal(['beyond_book_depth'])
    expect(estimateCost({}, market).inputs.book?.levels).to.deep.equal(BOOK.asks)
  })

  it('weighs a filled and a missed limit order by the probability of a fill', () => {
    const { components } = estimateCost({ order_type: 'limit' }, marketInputsWith(null))
    const impact = estimateCost({}, marketInputsWith(null)).components.impact_bps
    const expected = 0.65 * (-1 + 0.8) + 0.35 * (1 + impact)
    expect(components.half_spread_bps + components.impact_bps).to.be.closeTo(expected, 1e-12)
  })

  it('is half of the half spread plus the published impact model of Almgren et al. for a scheduled order', () => {
    const twap = estimateCost({ order_type: 'twap', horizon_minutes: 144 }, marketInputsWith(null))
    // X/V = 0.001, T = 0.1: 0.157 · 0.02 · 0.001 · 4 + 0.142 · 0.02 · 0.01^0.6
    expect(twap.components.half_spread_bps).to.equal(0.5)
    expect(twap.components.impact_bps).to.be.closeTo(1e4 * (0.00001256 + 0.00284 * 0.01 ** 0.6), 1e-9)
    const vwap = estimateCost({ order_type: 'vwap', horizon_minutes: 144 }, marketInputsWith(null))
    expect(vwap.components.impact_bps).to.be.closeTo(1e4 * (0.00001256 + 0.95 * 0.00284 * 0.01 ** 0.6), 1e-9)
    const pov = estimateCost({ order_type: 'pov', participation_rate: 0.01 }, marketInputsWith(null))
    expect(pov.inputs.horizon_days).to.be.closeTo(0.1, 1e-12)
    expect(pov.components.impact_bps).to.be.closeTo(vwap.components.impact_bps, 1e-9)
  })

  it('assumes by default that a scheduled order takes an hour and that a pov order takes a tenth of the volume', () => {
    expect(estimateCost({ order_type: 'twap' }, marketInputsWith(null)).inputs.horizon_days).to.equal(60 / 1440)
    expect(estimateCost({ order_type: 'pov' }, marketInputsWith(null)).inputs.participation_rate).to.equal(0.1)
    expect(estimateCost({ order_type: 'limit' }, marketInputsWith(null)).inputs.horizon_days).to.equal(5 / 1440)
    expect(estimateCost({}, marketInputsWith(null)).inputs.horizon_days).to.equal(null)
  })

  it('reports the timing risk separately', () => {
    const risk = (order: object): number => estimateCost(order, marketInputsWith(null)).timing_risk_bps
    expect(risk({})).to.be.closeTo(200 * Math.sqrt(3 / 86_400), 1e-9)
    expect(risk({ order_type: 'twap', horizon_minutes: 480 })).to.be.closeTo(200 * Math.sqrt(1 / 9), 1e-9)
    expect(risk({ order_type: 'limit', horizon_minutes: 1440 })).to.be.closeTo(200 * Math.sqrt(0.35), 1e-9)
  })

  it('uses the fee of the request instead of the fee of the class', () => {
    const { components, sources } = estimateCost({ fee_bps: 0 }, marketInputsWith(null))
    expect(components.fee_bps).to.equal(0)
    expect(sources.fee).to.equal('request')
    expect(estimateCost({}, marketInputsWith(null)).sources.fee).to.equal('class')
  })

  it('widens the range above a tenth of the daily volume, with a warning', () => {
    const { range_bps, components, warnings } = estimateCost({ notional_usd: 2e8 }, marketInputsWith(null))
    expect(warnings).to.deep.equal(['above_10pct_adv'])
    expect(range_bps.p10).to.be.closeTo(10 + 0.6 + 0.5 * components.impact_bps, 1e-9)
    expect(range_bps.p90).to.be.closeTo(10 + 1.4 + 2.5 * components.impact_bps, 1e-9)
    const crowded = estimateCost({ notional_usd: 5e7, order_type: 'twap', horizon_minutes: 5 }, marketInputsWith(null))
    expect(crowded.warnings).to.deep.equal(['above_market_volume'])
  })

  it('widens the range of a walk through a book that is older than two minutes, and of nothing else', () => {
    const factors = (bookAgeSeconds: number, order: object = { notional_usd: 3000 }): unknown[] => {
      const { assumptions } = estimateCost(order, marketInputsWith(BOOK, { bookAgeSeconds }))
      return [assumptions.impact_low_factor, assumptions.impact_high_factor]
    }
    expect(factors(120)).to.deep.equal([0.65, 1.7])
    expect(factors(121)).to.deep.equal([0.5, 2.5])
    expect(factors(121, { order_type: 'twap' })).to.deep.equal(factors(0, { order_type: 'twap' }))
  })

  it('names the contract of the book of a perpetual, and marks what rests on its spot market instead', () => {
    const spot = { ...marketInputsWith(BOOK), className: 'perpetual' as const }
    const own = { ...spot, book: { ...BOOK, instrument: 'BTCUSDT' } }
    const marked = (order: object, market: typeof spot) => {
      const { inputs, warnings, confidence } = estimateCost(order, market)
      return [inputs.book?.instrument ?? null, warnings.includes('spot_proxy'), confidence]
    }
    expect(marked({ notional_usd: 3000 }, own)).to.deep.equal(['BTCUSDT', false, 'high'])
    expect(marked({ notional_usd: 3000, order_type: 'limit' }, own)).to.deep.equal(['BTCUSDT', false, 'high'])
    expect(marked({ notional_usd: 3000 }, spot)).to.deep.equal([null, true, 'medium'])
    expect(marked({ notional_usd: 1e6 }, own), 'beyond its depth').to.deep.equal(['BTCUSDT', true, 'medium'])
    expect(marked({ order_type: 'twap' }, own), 'an impact of turnover').to.deep.equal([null, true, 'medium'])
  })

  it('has a confidence that depends on its sources', () => {
    const confidence = (market: object): string => estimateCost({}, { ...marketInputsWith(null), ...market }).confidence
    const { sources } = marketInputsWith(null)
    expect(confidence({ sources: { ...sources, spread: 'book' } })).to.equal('high')
    expect(confidence({ sources: { ...sources, spread: 'quotes' } })).to.equal('high')
    expect(confidence({ sources: { ...sources, spread: 'quotes' }, isStale: true })).to.equal('medium')
    expect(confidence({})).to.equal('medium')
    expect(confidence({ isStale: true })).to.equal('low')
    expect(confidence({ sources: { ...sources, volume: 'class' } })).to.equal('low')
    expect(confidence({ sources: { ...sources, spread: 'book' }, className: 'perpetual' })).to.equal('medium')
  })

  it('never falls with size and lies within its range', () => {
    fc.assert(
      fc.property(anyOrder, anyMarket, fc.double({ min: 1, max: 1000, noNaN: true }), (order, market, times) => {
        const small = estimateCost(order, market)
        expect(small.total_bps).to.be.within(small.range_bps.p10 - 1e-9, small.range_bps.p90 + 1e-9)
        const large = estimateCost({ ...order, notional_usd: order.notional_usd * times }, market)
        expect(large.total_bps).to.be.at.least(small.total_bps - 1e-9)
      }),
    )
  })

  it('can be recalculated from the answer', () => {
    fc.assert(
      fc.property(anyOrder, anyMarket, (order, market) => {
        // The answer as clients receive it.
        const received = JSON.parse(JSON.stringify(estimateCost(order, market))) as CostEstimate
        const { half, impact, risk } = recalculate(received)
        expect(received.components.half_spread_bps).to.be.closeTo(half, 1e-6)
        expect(received.components.impact_bps).to.be.closeTo(impact, 1e-6 * Math.max(1, impact))
        expect(received.timing_risk_bps).to.be.closeTo(risk, 1e-6 * Math.max(1, risk))
        const { half_spread_bps, impact_bps, fee_bps } = received.components
        expect(received.total_bps).to.be.closeTo(half_spread_bps + impact_bps + fee_bps, 1e-6)
        const { assumptions: a } = received
        const error = a.spread_share * a.half_spread_error_bps
        const low = fee_bps + Math.max(0, half_spread_bps - error) + a.impact_low_factor * impact_bps
        expect(received.range_bps.p10).to.be.closeTo(low, 1e-6)
        expect(received.range_bps.p90).to.be.closeTo(
          fee_bps + half_spread_bps + error + a.impact_high_factor * impact_bps,
          1e-6,
        )
      }),
    )
  })
})

/** Applies the published formulas to the values in the answer, and to nothing else. */
function recalculate({ inputs: i, assumptions: a, order_type, side, notional_usd, sources }: CostEstimate) {
  const law = (x: number): number => 1e4 * (a.impact_coefficient ?? NaN) * i.sigma_daily * Math.sqrt(x / i.adv_usd)
  const walk = (notional: number): number => {
    let [left, quantity] = [notional, 0]
    for (const [price, size] of i.book?.levels ?? []) {
      const taken = Math.min(size, left / price)
      quantity += taken
      left -= taken * price
    }
    const average = (notional - left) / quantity
    return 1e4 * (side === 'buy' ? average / 100 - 1 : 1 - average / 100) - i.spread_bps / 2
  }
  const depth = i.book?.depth_usd ?? 0
  const impact = {
    book_walk: () => walk(notional_usd),
    book_walk_and_square_root: () => walk(depth) + law(notional_usd) - law(depth),
    square_root: () => law(notional_usd),
    almgren_2005: () =>
      1e4 *
      i.sigma_daily *
      (0.157 * i.participation_of_adv * a.turnover_factor! +
        a.temporary_factor! * 0.142 * (i.participation_rate ?? NaN) ** 0.6),
  }[sources.impact]()
  const days = i.horizon_days ?? NaN
  const risk = {
    market: () => Math.sqrt(a.latency_seconds! / 60 / i.day_minutes),
    limit: () => Math.sqrt((1 - a.fill_probability!) * days),
    twap: () => Math.sqrt(days / 3),
    vwap: () => Math.sqrt(days / 3),
    pov: () => Math.sqrt(days / 3),
  }[order_type]()
  return {
    half: (a.spread_share * i.spread_bps) / 2,
    impact: order_type === 'limit' ? (1 - a.fill_probability!) * impact : impact,
    risk: 1e4 * i.sigma_daily * risk,
  }
}
