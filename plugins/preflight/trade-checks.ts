/** The checks of a preflight: pure functions of the request, the regime, the cost estimate and the funding rate. */
import type { CostEstimate, FundingRateItem, PreflightRequest, Snapshot } from '../../schemas/types.d.ts'
import { median } from '../lib/quant/rolling-median.ts'
import { roundBps, roundSignificant } from '../lib/quant/rounding.ts'

export interface Check {
  readonly check:
    'regime' | 'cost' | 'size_vs_adv' | 'size_vs_equity' | 'limit_distance' | 'data_freshness' | 'session' | 'funding'
  readonly status: 'pass' | 'warn' | 'fail' | 'not_checked'
  readonly value: number | string | null
  readonly limit: number | string | null
  readonly detail: string
}

/** Why an input of a check is not available. */
export interface Missing {
  readonly missing: string
}
export type RegimeView = Snapshot | Missing
/** What a long position pays in eight hours as a fraction: the median of the venues. */
export type FundingView = { readonly rate8h: number; readonly venues: number } | Missing

/** A funding rate of one contract. */
type VenueFunding = Pick<FundingRateItem, 'venue' | 'rate_8h'>

/**
 * The funding of a coin: the median of its venues. A venue with several contracts counts once, with their median.
 *
 * @example the rates a 1, a 2, a 3 and b 6 give { rate8h: 4, venues: 2 }
 */
export function fundingOf(rates: readonly VenueFunding[], symbol: string): FundingView {
  const byVenue = new Map<string, number[]>()
  for (const { venue, rate_8h } of rates) byVenue.set(venue, [...(byVenue.get(venue) ?? []), rate_8h])
  if (byVenue.size === 0) return { missing: `No venue publishes a funding rate of ${symbol}.` }
  return { rate8h: median([...byVenue.values()].map((own) => median(own))), venues: byVenue.size }
}

/** Shares of the turnover of an average day. */
const ADV_WARN = 0.01
const ADV_FAIL = 0.1
const LIMIT_SIGMAS = 5
const MAX_AGE_SECONDS = 300
/** Basis points in eight hours, which is 55% a year. */
const FUNDING_BPS = 5

/** All checks, in a fixed order. A check that cannot be made is `not_checked` and never passes. */
export function checksOf(
  request: PreflightRequest,
  regime: RegimeView,
  cost: CostEstimate,
  funding: FundingView,
): readonly Check[] {
  return [
    regimeCheck(regime, cost),
    costCheck(request, cost),
    advCheck(cost),
    equityCheck(request),
    limitCheck(request, cost),
    freshnessCheck(regime, cost),
    sessionCheck(cost),
    fundingCheck(request, funding),
  ]
}

type Decision = 'allow' | 'reduce' | 'deny'

/** Checks that a smaller order passes. */
const SIZE_CHECKS: readonly Check['check'][] = ['cost', 'size_vs_adv', 'size_vs_equity']

/**
 * A failed check denies the order and recommends 0, unless a smaller order passes it. The size is multiplied by the regime's
 * position scalar (at most 1) and limited to 1% of a day's turnover, to the share of the account, and to the largest size
 * whose cost stays within the limit at the ninetieth percentile. A warning or a smaller size makes the decision `reduce`.
 *
 * @example notional 1000, all pass, position_scalar 0.6: { decision: 'reduce', recommended: 600 }
 */
export function decide(
  request: PreflightRequest,
  regime: RegimeView,
  cost: CostEstimate,
  checks: readonly Check[],
): { readonly decision: Decision; readonly recommended: number } {
  const { notional_usd, account_equity_usd = Infinity, max_position_pct } = request
  const scalar = 'missing' in regime ? 1 : Math.min(1, regime.position_scalar)
  const largest = Math.min(
    notional_usd * scalar,
    ADV_WARN * cost.inputs.adv_usd,
    (account_equity_usd * max_position_pct) / 100,
    cost.largest_within_bps?.p90_notional_usd ?? 0,
  )
  // Down to the cent, so that the recommended size passes what limits it.
  const recommended = largest === notional_usd ? largest : Math.floor(100 * largest + 1e-6) / 100
  const isDenied = checks.some(({ check, status }) => status === 'fail' && !SIZE_CHECKS.includes(check))
  if (isDenied || recommended === 0) return { decision: 'deny', recommended: 0 }
  const isReduced = recommended < notional_usd || checks.some(({ status }) => status === 'warn')
  return { decision: isReduced ? 'reduce' : 'allow', recommended }
}

function notChecked(check: Check['check'], detail: string): Check {
  return { check, status: 'not_checked', value: null, limit: null, detail }
}

/**
 * The spot market whose regime an order in a crypto market depends on.
 *
 * @example spotMarketOf({ symbol: 'ETH-USD-PERP' }) // 'ETH-USD'
 */
export function spotMarketOf({ symbol }: Pick<CostEstimate, 'symbol'>): string {
  return symbol.replace(/-PERP$/, '')
}

function regimeCheck(regime: RegimeView, cost: CostEstimate): Check {
  if ('missing' in regime) return notChecked('regime', regime.missing)
  const { regime: label, symbol, confidence, position_scalar } = regime
  const status = label === 'VOLATILE' ? 'warn' : 'pass'
  const own = spotMarketOf(cost)
  const instead = symbol === own ? '' : `The regime of ${own} is not collected here, so that of ${symbol} is used. `
  const detail = `${instead}${symbol} is ${label} with confidence ${confidence}; the position scalar is ${position_scalar}.`
  return { check: 'regime', status, value: label, limit: 'STABLE', detail }
}

/** Why an estimate has no range, as the check says it. */
const NO_RANGE = {
  no_book: 'no order book was walked',
  spot_proxy: 'the order book is that of its spot market',
  beyond_book_depth: 'the order exceeds the order book',
  too_few_cases: 'too few such orders were measured',
} as const

/**
 * The cost at the ninetieth percentile against the limit; without a range the expected cost, unless a smaller order already
 * exceeds the limit at the ninetieth percentile.
 */
function costCheck({ max_cost_bps: limit, notional_usd }: PreflightRequest, cost: CostEstimate): Check {
  const { total_bps, range_bps, range_basis, timing_risk_bps, components, confidence } = cost
  const { p90_notional_usd: largest = Infinity } = cost.largest_within_bps ?? {}
  const value = range_bps?.p90 ?? total_bps
  const status = value > limit || (!range_bps && largest < Math.floor(100 * notional_usd) / 100) ? 'fail' : 'pass'
  const parts = `spread ${components.half_spread_bps}, impact ${components.impact_bps} and fee ${components.fee_bps}`
  const compared = range_bps
    ? `the ninetieth percentile is ${value} bps`
    : `there is no range, because ${NO_RANGE[range_basis.reason ?? 'no_book']}, so the limit is compared with the expected cost`
  const fits = largest === Infinity ? '' : ` The largest such order within the limit is ${largest} USD.`
  const detail = `Expected are ${total_bps} bps (${parts}), with ${confidence} confidence; ${compared}. Price moves meanwhile have a standard deviation of ${timing_risk_bps} bps.${fits}`
  return { check: 'cost', status, value, limit, detail }
}

function advCheck({ inputs: { participation_of_adv: value } }: CostEstimate): Check {
  const status = value > ADV_FAIL ? 'fail' : value > ADV_WARN ? 'warn' : 'pass'
  const detail = `The order is ${percent(value)} of a day's turnover; above 1% warns, above 10% fails.`
  return { check: 'size_vs_adv', status, value, limit: status === 'fail' ? ADV_FAIL : ADV_WARN, detail }
}

function equityCheck({ notional_usd, account_equity_usd, max_position_pct }: PreflightRequest): Check {
  if (account_equity_usd === undefined) return notChecked('size_vs_equity', 'account_equity_usd was not sent.')
  const value = roundSignificant((100 * notional_usd) / account_equity_usd)
  const detail = `The order is ${value.toFixed(2)}% of the account; max_position_pct allows ${max_position_pct}%.`
  const status = 100 * notional_usd > max_position_pct * account_equity_usd ? 'fail' : 'pass'
  return { check: 'size_vs_equity', status, value, limit: max_position_pct, detail }
}

/** Distance of the limit price in hourly standard deviations. A limit too far away is a typing error or never fills. */
function limitCheck({ limit_price }: PreflightRequest, { inputs }: CostEstimate): Check {
  const { price, sigma_daily, day_minutes } = inputs
  if (limit_price === undefined) return notChecked('limit_distance', 'limit_price was not sent.')
  if (price === null) return notChecked('limit_distance', 'The market has no price yet.')
  const hourly = sigma_daily * Math.sqrt(60 / day_minutes)
  const value = roundSignificant(Math.abs(limit_price / price - 1) / hourly)
  const detail = `The limit is ${value.toFixed(2)} hourly standard deviations from ${price}.`
  return { check: 'limit_distance', status: value > LIMIT_SIGMAS ? 'fail' : 'pass', value, limit: LIMIT_SIGMAS, detail }
}

function freshnessCheck(regime: RegimeView, { data_age_seconds, session }: CostEstimate): Check {
  const value = Math.max(data_age_seconds, 'missing' in regime ? 0 : regime.data_age_seconds)
  const detail = `The oldest data used was ${value} seconds old${session.is_open ? '' : ' at the last close'}.`
  return {
    check: 'data_freshness',
    status: value > MAX_AGE_SECONDS ? 'fail' : 'pass',
    value,
    limit: MAX_AGE_SECONDS,
    detail,
  }
}

function sessionCheck({ session: { is_open, next_open }, symbol }: CostEstimate): Check {
  const detail = is_open
    ? `${symbol} trades now.`
    : `${symbol} does not trade now; the next session opens ${next_open}.`
  return {
    check: 'session',
    status: is_open ? 'pass' : 'fail',
    value: is_open ? 'open' : 'closed',
    limit: 'open',
    detail,
  }
}

/** What the position pays in eight hours. A buyer pays a positive rate, a seller a negative one. */
function fundingCheck({ side }: PreflightRequest, funding: FundingView): Check {
  if ('missing' in funding) return notChecked('funding', funding.missing)
  const value = roundBps(1e4 * (side === 'buy' ? funding.rate8h : -funding.rate8h))
  const detail = `The position pays ${value.toFixed(2)} bps of funding in eight hours, the median of ${funding.venues} venues.`
  return { check: 'funding', status: value > FUNDING_BPS ? 'warn' : 'pass', value, limit: FUNDING_BPS, detail }
}

function percent(share: number): string {
  return `${(100 * share).toPrecision(3)}%`
}
