import { expect } from 'chai'
import * as fc from 'fast-check'
import { InvalidInput } from 'tollgate/plugin'
import type { MarketInputs } from '../../../plugins/cost/market-inputs.ts'
import { WalkErrors } from '../../../plugins/cost/walk-errors.ts'
import { scheduledImpact } from '../../../plugins/lib/quant/market-impact.ts'
import type { CostEstimate, CostRequest } from '../../../schemas/types.d.ts'
import { BOOK, ERRORS, estimateCost, marketInputsWith } from './cost-fixtures.ts'

const TYPES = ['market', 'limit', 'twap', 'vwap', 'pov'] as const
const anyOrder = fc.record({
  side: fc.constantFrom('buy' as const, 'sell' as const),
  order_type: fc.constantFrom(...TYPES),
  /** Up to the turnover of a day in the smallest of the markets below. */
  notional_usd: fc.double({ min: 1, max: 3e7, noNaN: true }),
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
    expect(components.impact_bps).to.equal(2.53)
    expect(total_bps).to.equal(13.53)
    expect(cost_usd).to.equal(1353)
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
    expect(impact(1e6)).to.be.closeTo(impact(depth) + law(1e6) - law(depth), 0.01)
    expect(estimateCost({}, market).warnings).to.deep.equal(['beyond_book_depth'])
    expect(estimateCost({}, market).inputs.book?.levels).to.deep.equal(BOOK.asks)
  })

  it('weighs a filled and a missed limit order by the probability of a fill', () => {
    const { components } = estimateCost({ order_type: 'limit' }, marketInputsWith(null))
    const impact = estimateCost({}, marketInputsWith(null)).components.impact_bps
    const expected = 0.65 * (-1 + 0.8) + 0.35 * (1 + impact)
    expect(components.half_spread_bps + components.impact_bps).to.be.closeTo(expected, 0.01)
  })

  it('is half of the half spread, and for a schedule less impact the longer it takes', () => {
    const schedule = (order: object) =>
      estimateCost({ order_type: 'twap', horizon_minutes: 144, ...order }, marketInputsWith(null))
    const twap = schedule({})
    expect(twap.components.half_spread_bps).to.equal(0.5)
    // X/V = 0.001, T = 0.1: 0.157 · 4 / 0.4 · √0.001 of 2.53 bps lasts, and 1 / (1 + 0.1/0.08) of the order meets the book.
    const [lasting, whole] = [1.57 * Math.sqrt(0.001), 80 * Math.sqrt(0.001)]
    const recovering = 80 * Math.sqrt(0.001 / 2.25)
    expect(twap.assumptions.lasting_share).to.be.closeTo(lasting, 1e-6)
    expect(twap.components.impact_bps).to.be.closeTo(lasting * whole + (1 - lasting) * recovering, 0.005)
    const vwap = schedule({ order_type: 'vwap' })
    expect(vwap.components.impact_bps).to.be.closeTo(lasting * whole + (1 - lasting) * 0.95 * recovering, 0.005)
    const pov = schedule({ order_type: 'pov', participation_rate: 0.01 })
    expect(pov.inputs.horizon_days).to.equal(0.1)
    expect(pov.components).to.deep.equal(vwap.components)
    const costs = [1, 10, 60, 240, 1440].map((horizon_minutes) => schedule({ horizon_minutes }).total_bps)
    expect(costs).to.deep.equal(costs.toSorted((a, b) => b - a))
    expect(new Set(costs).size).to.equal(costs.length)
  })

  it('is within a fifth of that of Almgren et al. for a tenth of the volume of a day', () => {
    const tenth = { notional_usd: 1e8, order_type: 'twap', horizon_minutes: 1440 } as const
    const theirs = scheduledImpact({ quantity: 0.1, dailyVolume: 1, dailyVolatility: 0.02, days: 1 }).cost * 1e4
    expect(estimateCost(tenth, marketInputsWith(null)).components.impact_bps / theirs).to.be.within(0.8, 1)
  })

  it('assumes a horizon that grows with size, from five minutes to a trading day', () => {
    const days = (notional_usd: number, order: object = { order_type: 'twap' }) =>
      estimateCost({ notional_usd, ...order }, marketInputsWith(null)).inputs.horizon_days
    expect(days(1000)).to.equal(0.00347222)
    expect(days(1e6)).to.equal(0.01)
    expect(days(1e6, { order_type: 'vwap' })).to.equal(0.01)
    expect(days(5e8)).to.equal(1)
    expect(days(1e6, { order_type: 'twap', horizon_minutes: 60 })).to.equal(0.0416667)
    expect(estimateCost({ order_type: 'pov' }, marketInputsWith(null)).inputs.participation_rate).to.equal(0.1)
    expect(days(1e6, { order_type: 'limit' })).to.equal(0.00347222)
    expect(days(1e6, {})).to.equal(null)
  })

  it('is capped at the impact of one trading day, and says so', () => {
    const pov = (participation_rate: number) =>
      estimateCost({ notional_usd: 5e7, order_type: 'pov', participation_rate }, marketInputsWith(null))
    const [day, days] = [pov(0.05), pov(0.01)]
    expect(days.inputs.horizon_days).to.equal(5)
    expect(days.components).to.deep.equal(day.components)
    expect(days.timing_risk_bps).to.be.greaterThan(day.timing_risk_bps)
    expect([day.warnings, days.warnings]).to.deep.equal([[], ['horizon_capped']])
  })

  it('is refused for more than a day of turnover', () => {
    expect(estimateCost({ notional_usd: 1e9 }, marketInputsWith(null)).confidence).to.equal('low')
    const refused = () => estimateCost({ notional_usd: 1.001e9 }, marketInputsWith(null))
    expect(refused).to.throw(InvalidInput, "body.notional_usd: More than a day's turnover of BTC-USD, 1000000000 USD.")
  })

  it('reports the timing risk separately', () => {
    const risk = (order: object): number => estimateCost(order, marketInputsWith(null)).timing_risk_bps
    expect(risk({})).to.equal(1.18)
    expect(risk({ order_type: 'twap', horizon_minutes: 480 })).to.equal(66.67)
    expect(risk({ order_type: 'limit', horizon_minutes: 1440 })).to.equal(118.32)
  })

  it('uses the fee of the request instead of the fee of the class', () => {
    const { components, sources } = estimateCost({ fee_bps: 0 }, marketInputsWith(null))
    expect(components.fee_bps).to.equal(0)
    expect(sources.fee).to.equal('request')
    expect(estimateCost({}, marketInputsWith(null)).sources.fee).to.equal('class')
  })

  it('has the maker fee where a posted order fills, and the taker fee elsewhere', () => {
    const fee = (order: object): number => estimateCost(order, marketInputsWith(null)).components.fee_bps
    expect(fee({ order_type: 'limit' })).to.equal(0.65 * 4 + 0.35 * 10)
    expect(fee({ order_type: 'limit', fee_bps: 6 })).to.equal(6)
    expect(fee({ order_type: 'limit', fee_bps: 6, maker_fee_bps: 0 })).to.equal(2.1)
    expect(fee({ order_type: 'limit', maker_fee_bps: 0 })).to.equal(3.5)
    for (const order_type of ['market', 'twap', 'vwap', 'pov']) expect(fee({ order_type })).to.equal(10)
  })

  it('is that of a market order for a limit order that crosses the book', () => {
    const costs = (order: object) => {
      const { total_bps, components, range_bps, timing_risk_bps } = estimateCost(order, marketInputsWith(BOOK))
      return { total_bps, components, range_bps, timing_risk_bps }
    }
    for (const [side, through, short] of [
      ['buy', 100.01, 100],
      ['sell', 99.99, 100],
    ] as const) {
      const limit = { side, notional_usd: 3000, order_type: 'limit' }
      expect(costs({ ...limit, limit_price: through })).to.deep.equal(costs({ side, notional_usd: 3000 }))
      expect(costs({ ...limit, limit_price: short })).to.deep.equal(costs(limit))
    }
    const crossing = estimateCost({ order_type: 'limit', limit_price: 101, notional_usd: 3000 }, marketInputsWith(BOOK))
    expect(crossing).to.deep.include({ order_type: 'limit', warnings: ['marketable_limit'] })
    const withoutBook = estimateCost({ order_type: 'limit', limit_price: 100.01 }, marketInputsWith(null))
    expect(withoutBook.warnings, 'half the spread above the price').to.deep.equal(['marketable_limit'])
  })

  it('has the levels of the book only if they are asked for', () => {
    const { book } = estimateCost({ include_book: false }, marketInputsWith(BOOK)).inputs
    expect(book).to.deep.equal({ venue: 'test', as_of: '2026-11-18T11:06:40Z', depth_usd: 10_054.1 })
  })

  it('warns above a tenth of the daily volume, and of a schedule above the volume of the market', () => {
    expect(estimateCost({ notional_usd: 2e8 }, marketInputsWith(null)).warnings).to.deep.equal(['above_10pct_adv'])
    const crowded = estimateCost({ notional_usd: 5e7, order_type: 'twap', horizon_minutes: 5 }, marketInputsWith(null))
    expect(crowded.warnings).to.deep.equal(['above_market_volume'])
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
    expect(marked({ notional_usd: 1e6 }, own), 'beyond its depth').to.deep.equal(['BTCUSDT', true, 'low'])
    const schedule = { notional_usd: 3000, order_type: 'twap' }
    expect(marked(schedule, own), 'an impact of turnover too').to.deep.equal(['BTCUSDT', true, 'medium'])
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
    const book = { ...marketInputsWith(BOOK), sources: { ...sources, spread: 'book' } }
    const of = (notional_usd: number, market: MarketInputs) => estimateCost({ notional_usd }, market).confidence
    expect([of(10_000, book), of(11_000, book)], 'beyond the book').to.deep.equal(['high', 'low'])
    const quoted = { ...book, ...marketInputsWith(null), sources: book.sources }
    expect([of(1e8, quoted), of(1.01e8, quoted)], 'beyond 10% of a day').to.deep.equal(['high', 'low'])
  })

  it('lies within its range, which has the errors of earlier orders of its size', () => {
    fc.assert(
      fc.property(anyOrder, anyMarket, (order, market) => {
        const { total_bps, market_bps, range_bps, market_range_bps, range_basis } = estimateCost(order, market)
        expect([range_bps, market_range_bps].map((range) => range !== null)).to.deep.equal(
          Array(2).fill(range_basis.reason === null),
        )
        if (!range_bps || !market_range_bps) return
        expect(total_bps).to.be.within(range_bps.p10, range_bps.p90)
        expect(market_bps).to.be.within(market_range_bps.p10 - 0.01, market_range_bps.p90 + 0.01)
      }),
    )
    const { range_bps, range_basis } = estimateCost({ notional_usd: 1000, fee_bps: 0 }, marketInputsWith(BOOK))
    const { low, high } = ERRORS.at('buy', 1000)!
    expect(range_bps!.p10).to.be.closeTo(1 + low, 0.01)
    expect(range_bps!.p90).to.be.closeTo(1 + high, 0.01)
    expect(range_basis).to.include({ method: 'conformal', reason: null, level: 0.8, cases: 80 })
    expect(Date.parse(range_basis.end!) - Date.parse(range_basis.start!)).to.equal(40 * 60_000)
    expect(range_basis.coverage_cases).to.be.within(1, 40)
    expect(range_basis.coverage).to.be.within(0, 1)
  })

  it('has, as a limit order or a schedule, the errors of the market orders that it is made of, and no coverage', () => {
    const of = (order_type: CostRequest['order_type']) =>
      estimateCost({ notional_usd: 5000, order_type, fee_bps: 0 }, marketInputsWith(BOOK)).range_basis
    expect(of('limit')).to.include({ method: 'market_orders', coverage: null, coverage_cases: 0 })
    expect(of('limit').high_error_bps).to.be.closeTo(0.35 * ERRORS.at('buy', 5000)!.high, 1e-4)
    for (const order_type of ['twap', 'vwap', 'pov'] as const)
      expect(of(order_type).high_error_bps).to.be.within(0, of('market').high_error_bps!)
  })

  it('has no range where no error was measured, and says why', () => {
    const reason = (order: object, market: MarketInputs) => {
      const { range_bps, market_range_bps, range_basis } = estimateCost(order, market)
      expect([range_bps, market_range_bps, range_basis.method]).to.deep.equal([null, null, null])
      return range_basis.reason
    }
    const walked = { notional_usd: 5000 }
    expect(reason({}, marketInputsWith(null))).to.equal('no_book')
    expect(reason({}, marketInputsWith(BOOK))).to.equal('beyond_book_depth')
    expect(reason(walked, marketInputsWith(BOOK, { errors: null }))).to.equal('too_few_cases')
    expect(reason(walked, marketInputsWith(BOOK, { errors: new WalkErrors() }))).to.equal('too_few_cases')
    const proxy = { ...marketInputsWith(BOOK, { errors: null }), className: 'perpetual' as const }
    expect(reason(walked, proxy)).to.equal('spot_proxy')
    expect(reason(walked, { ...proxy, book: { ...BOOK, instrument: 'BTCUSDT' } })).to.equal('too_few_cases')
  })

  it('can be recalculated from the answer', () => {
    fc.assert(
      fc.property(anyOrder, anyMarket, (order, market) => {
        // The answer as clients receive it.
        const received = JSON.parse(JSON.stringify(estimateCost(order, market))) as CostEstimate
        const { half, impact, risk } = recalculate(received)
        // Half a hundredth of each of the numbers it is computed from.
        const rounding = (value: number): number => 0.02 + 1e-5 * value
        expect(received.components.half_spread_bps).to.be.closeTo(half, rounding(half))
        expect(received.components.impact_bps).to.be.closeTo(impact, rounding(impact))
        expect(received.timing_risk_bps).to.be.closeTo(risk, rounding(risk))
        const { half_spread_bps, impact_bps, fee_bps } = received.components
        expect(received.total_bps).to.be.closeTo(half_spread_bps + impact_bps + fee_bps, 1e-9)
        const { range_bps, range_basis, total_bps } = received
        if (!range_bps) return
        const low = Math.max(order.order_type === 'limit' ? -Infinity : fee_bps, total_bps + range_basis.low_error_bps!)
        const high = total_bps + range_basis.high_error_bps!
        expect(range_bps.p10).to.be.closeTo(low, rounding(low))
        expect(range_bps.p90).to.be.closeTo(high, rounding(high))
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
  const atOnce = {
    book_walk: walk,
    book_walk_and_square_root: (x: number) => (x <= depth ? walk(x) : walk(depth) + law(x) - law(depth)),
    square_root: law,
  }[sources.impact]
  const whole = atOnce(notional_usd)
  const schedule = () => {
    const met = notional_usd / (1 + Math.min(1, i.horizon_days!) / a.recovery_days!)
    const lasting = Math.min(
      1,
      (0.157 * a.turnover_factor! * Math.sqrt(i.participation_of_adv)) / a.impact_coefficient!,
    )
    return lasting * whole + (1 - lasting) * a.temporary_factor! * atOnce(met)
  }
  const impact = {
    market: () => whole,
    limit: () => (1 - a.fill_probability!) * whole,
    twap: schedule,
    vwap: schedule,
    pov: schedule,
  }[order_type]()
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
    impact,
    risk: 1e4 * i.sigma_daily * risk,
  }
}
