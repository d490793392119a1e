import { expect } from 'chai'
import * as fc from 'fast-check'
import {
  type Check,
  checksOf,
  decide,
  fundingOf,
  type FundingView,
  type RegimeView,
} from '../../../plugins/preflight/trade-checks.ts'
import type { CostEstimate, PreflightRequest, Snapshot } from '../../../schemas/types.d.ts'
import { DEEP_BOOK, estimateCost, marketInputsWith } from '../cost/cost-fixtures.ts'

const REQUEST: PreflightRequest = {
  symbol: 'BTC-USD',
  side: 'buy',
  notional_usd: 1e6,
  order_type: 'market',
  max_cost_bps: 25,
  max_position_pct: 10,
}
const STABLE: Snapshot = {
  as_of: '2026-11-20T09:41:00Z',
  symbol: 'BTC-USD',
  regime: 'STABLE',
  confidence: 0.8,
  position_scalar: 1.2,
  forecast_vol: 0.3,
  boundary_vol: 0.4,
  realized_vol_1h: 0.3,
  horizon_minutes: 60,
  since: '2026-11-20T01:00:00Z',
  annualisation: 365,
  bars_used: 259_200,
  data_age_seconds: 20,
  data_mode: 'sample',
  model: 'har-schmitt/1',
}
const VOLATILE: Snapshot = { ...STABLE, regime: 'VOLATILE', position_scalar: 0.5 }

const SPOT: FundingView = { missing: 'BTC-USD is not a perpetual; no funding is paid.' }

function checkOrder(
  request: Partial<PreflightRequest> = {},
  regime: RegimeView = STABLE,
  more: Partial<CostEstimate> = {},
  funding: FundingView = SPOT,
  market = marketInputsWith(null),
) {
  const order = { ...REQUEST, ...request }
  const { notional_usd, order_type, max_cost_bps: largest_within_bps } = order
  const cost = { ...estimateCost({ notional_usd, order_type, largest_within_bps }, market), ...more }
  const checks = checksOf(order, regime, cost, funding)
  return { ...decide(order, regime, cost, checks), checks, cost }
}
/** The same in a market with an order book of ten million USD a side, whose ranges are known. */
const checkInBook = (request: Partial<PreflightRequest>, regime: RegimeView = STABLE) =>
  checkOrder(request, regime, {}, SPOT, marketInputsWith(DEEP_BOOK))
const rankOf = (decision: string): number => ['deny', 'reduce', 'allow'].indexOf(decision)
const statusOf = (checks: readonly Check[], name: Check['check']) => checks.find(({ check }) => check === name)?.status

describe('the checks of a preflight', () => {
  it('allow an ordinary order unchanged, and always list all eight checks', () => {
    const { decision, recommended, checks } = checkOrder()
    expect({ decision, recommended }).to.deep.equal({ decision: 'allow', recommended: 1e6 })
    expect(checks.map(({ check, status }) => `${check} ${status}`)).to.deep.equal([
      'regime pass',
      'cost pass',
      'size_vs_adv pass',
      'size_vs_equity not_checked',
      'limit_distance not_checked',
      'data_freshness pass',
      'session pass',
      'funding not_checked',
    ])
  })

  it('reduce the size by the position scalar of a volatile regime, and never raise it', () => {
    const { decision, recommended, checks } = checkOrder({}, VOLATILE)
    expect({ decision, recommended }).to.deep.equal({ decision: 'reduce', recommended: 5e5 })
    expect(statusOf(checks, 'regime')).to.equal('warn')
    expect(checkOrder({}, { ...STABLE, position_scalar: 0.9 })).to.include({ decision: 'reduce', recommended: 9e5 })
    expect(checkOrder({}, { ...STABLE, position_scalar: 1.5 }).recommended).to.equal(1e6)
  })

  it('name the market whose regime stands for that of the order', () => {
    const detailOf = (symbol: string): string => checkOrder({}, STABLE, { symbol }).checks[0]!.detail
    const own = 'BTC-USD is STABLE with confidence 0.8; the position scalar is 1.2.'
    expect(detailOf('BTC-USD')).to.equal(own)
    expect(detailOf('BTC-USD-PERP')).to.equal(own)
    expect(detailOf('ETH-USD-PERP')).to.equal(
      `The regime of ETH-USD is not collected here, so that of BTC-USD is used. ${own}`,
    )
  })

  it('do not pass a regime that is missing', () => {
    const { decision, checks } = checkOrder({}, { missing: 'Nothing is known of it.' })
    expect(decision).to.equal('allow')
    expect(checks[0]).to.deep.equal({
      check: 'regime',
      status: 'not_checked',
      value: null,
      limit: null,
      detail: 'Nothing is known of it.',
    })
  })

  it('compare the ninetieth percentile of the cost with the limit, and reduce an order above it to the largest below', () => {
    const { range_bps: range, total_bps, components } = checkInBook({}).cost
    const p90 = range!.p90
    const limit = (total_bps + p90) / 2
    expect(checkInBook({ max_cost_bps: p90 })).to.include({ decision: 'allow', recommended: 1e6 })
    const { decision, recommended, checks } = checkInBook({ max_cost_bps: limit })
    expect(decision).to.equal('reduce')
    expect(checks[1]).to.deep.equal({
      check: 'cost',
      status: 'fail',
      value: p90,
      limit,
      detail: `Expected are ${total_bps} bps (spread ${components.half_spread_bps}, impact ${components.impact_bps} and fee 10), with high confidence; the ninetieth percentile is ${p90} bps. Price moves meanwhile have a standard deviation of 1.18 bps. The largest such order within the limit is ${recommended} USD.`,
    })
    expect(recommended).to.be.within(1000, 999_999)
    expect(checkInBook({ max_cost_bps: limit, notional_usd: recommended })).to.include({
      decision: 'allow',
      recommended,
    })
    expect(checkInBook({ max_cost_bps: p90 }, VOLATILE).recommended).to.equal(5e5)
  })

  it('compare the expected cost with the limit where there is no range, and say why', () => {
    // 10 + 1 + 2.53 bps
    expect(checkOrder({ max_cost_bps: 13.53 })).to.include({ decision: 'allow', recommended: 1e6 })
    const { decision, recommended, checks } = checkOrder({ max_cost_bps: 13 })
    expect(decision).to.equal('reduce')
    expect(checks[1]).to.deep.equal({
      check: 'cost',
      status: 'fail',
      value: 13.53,
      limit: 13,
      detail: `Expected are 13.53 bps (spread 1, impact 2.53 and fee 10), with medium confidence; there is no range, because no order book was walked, so the limit is compared with the expected cost. Price moves meanwhile have a standard deviation of 1.18 bps. The largest such order within the limit is ${recommended} USD.`,
    })
    // 80 √(Q/ADV) = 2 bps, to the rounding of the cost
    expect(recommended).to.be.closeTo(1e9 * (2 / 80) ** 2, 5000)
  })

  it('never allow an order without a range if a smaller one fails at the ninetieth percentile', () => {
    const size = fc.double({ min: 3, max: 8.9, noNaN: true }).map((exponent) => 10 ** exponent)
    fc.assert(
      fc.property(size, size, fc.double({ min: 10, max: 40, noNaN: true }), (a, b, max_cost_bps) => {
        const of = (notional_usd: number) => statusOf(checkInBook({ notional_usd, max_cost_bps }).checks, 'cost')
        if (of(Math.max(a, b)) === 'pass') expect(of(Math.min(a, b))).to.equal('pass')
      }),
    )
    expect(checkInBook({ notional_usd: 5.1e7 }).cost.range_basis.reason).to.equal('beyond_book_depth')
  })

  it('deny an order that costs too much at any size', () => {
    expect(checkOrder({ max_cost_bps: 10.9 })).to.include({ decision: 'deny', recommended: 0 })
    expect(checkInBook({ max_cost_bps: 10 })).to.include({ decision: 'deny', recommended: 0 })
  })

  it('never forbid as a schedule what they allow at once', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 2, max: 8.9, noNaN: true }),
        fc.double({ min: 10.01, max: 60, noNaN: true }),
        fc.constantFrom('twap' as const, 'vwap' as const, 'pov' as const),
        fc.constantFrom(checkOrder, checkInBook),
        (size, max_cost_bps, order_type, check) => {
          const order = { notional_usd: 10 ** size, max_cost_bps }
          const [atOnce, split] = [check(order), check({ ...order, order_type })]
          expect(split.recommended).to.be.at.least(atOnce.recommended)
          expect(rankOf(split.decision)).to.be.at.least(rankOf(atOnce.decision))
        },
      ),
    )
  })

  it('warn above 1% of a day’s turnover, fail above 10%, and reduce to 1% from both', () => {
    const large = checkOrder({ notional_usd: 2e7, max_cost_bps: 100 })
    expect(statusOf(large.checks, 'size_vs_adv')).to.equal('warn')
    expect(large).to.include({ decision: 'reduce', recommended: 1e7 })
    expect(statusOf(checkOrder({ notional_usd: 1e7 }).checks, 'size_vs_adv')).to.equal('pass')
    const huge = checkOrder({ notional_usd: 1.01e8, max_cost_bps: 1000 })
    expect(statusOf(huge.checks, 'size_vs_adv')).to.equal('fail')
    expect(huge).to.include({ decision: 'reduce', recommended: 1e7 })
  })

  it('limit the order to a share of the account', () => {
    expect(statusOf(checkOrder({ account_equity_usd: 1e7 }).checks, 'size_vs_equity')).to.equal('pass')
    const { checks, decision, recommended } = checkOrder({ account_equity_usd: 9.9e6 })
    expect(checks[3]).to.include({ status: 'fail', limit: 10 })
    expect(checks[3]?.value).to.equal(10.101)
    expect({ decision, recommended }).to.deep.equal({ decision: 'reduce', recommended: 9.9e5 })
    expect(checkOrder({ account_equity_usd: 9.9e6, max_position_pct: 11 }).decision).to.equal('allow')
  })

  it('deny a limit more than five hourly standard deviations away, on either side', () => {
    // An hour of 2% a day around the clock is 0.408%, five of them 2.04%.
    const status = (limit_price: number) => statusOf(checkOrder({ limit_price }).checks, 'limit_distance')
    expect([97.9, 98, 102, 102.1].map(status)).to.deep.equal(['fail', 'pass', 'pass', 'fail'])
    expect(checkOrder({ limit_price: 101 }).checks[4]?.value).to.be.closeTo(0.01 / (0.02 / Math.sqrt(24)), 1e-5)
  })

  it('warn if a perpetual position pays more than 5 bps in eight hours', () => {
    const funding = (side: 'buy' | 'sell', rate8h: number) =>
      checkOrder({ side }, STABLE, {}, { rate8h, venues: 3 }).checks[7]
    expect(funding('buy', 0.0006)).to.include({ check: 'funding', status: 'warn', limit: 5 })
    expect(funding('buy', 0.0006)?.value).to.be.closeTo(6, 1e-9)
    expect(funding('sell', 0.0006)).to.include({ status: 'pass' })
    expect(funding('sell', 0.0006)?.value).to.be.closeTo(-6, 1e-9)
    expect(funding('sell', -0.0006)).to.include({ status: 'warn' })
    expect(checkOrder({}, STABLE, {}, { rate8h: 0.0006, venues: 3 }).decision).to.equal('reduce')
  })

  it('take a venue with several contracts for one venue', () => {
    const rates = [1, 2, 3].map((rate_8h) => ({ venue: 'binance' as const, rate_8h }))
    expect(fundingOf([...rates, { venue: 'bybit', rate_8h: 6 }], 'BTC')).to.deep.equal({ rate8h: 4, venues: 2 })
    expect(fundingOf([], 'BTC')).to.deep.equal({ missing: 'No venue publishes a funding rate of BTC.' })
  })

  it('deny on data older than five minutes and in a closed market', () => {
    expect(checkOrder({}, STABLE, { data_age_seconds: 300 }).decision).to.equal('allow')
    expect(statusOf(checkOrder({}, STABLE, { data_age_seconds: 301 }).checks, 'data_freshness')).to.equal('fail')
    expect(checkOrder({}, { ...STABLE, data_age_seconds: 301 }).decision).to.equal('deny')
    const closed = checkOrder({}, STABLE, { session: { is_open: false, next_open: '2026-11-23T14:30:00Z' } })
    expect(closed.checks[6]).to.include({ status: 'fail', value: 'closed' })
    expect(closed.decision).to.equal('deny')
  })
})
