/** The checks of a preflight: pure functions of the request, the regime, the cost estimate and the funding rate. */
import type { CostEstimate, FundingRateItem, PreflightRequest, Snapshot } from '../../schemas/types.d.ts'
import { median } from '../lib/quant/rolling-median.ts'

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

/**
 * Any failed check denies the order and recommends 0. Otherwise the size is multiplied by the regime's position scalar (at
 * most 1) and limited to 1% of a day's turnover. A warning or a smaller size makes the decision `reduce`.
 *
 * @example notional 1000, all pass, position_scalar 0.6: { decision: 'reduce', recommended: 600 }
 */
export function decide(
  request: PreflightRequest,
  regime: RegimeView,
  cost: CostEstimate,
  checks: readonly Check[],
): { readonly decision: Decision; readonly recommended: number } {
  if (checks.some(({ status }) => status === 'fail')) return { decision: 'deny', recommended: 0 }
  const scalar = 'missing' in regime ? 1 : Math.min(1, regime.position_scalar)
  const recommended = Math.min(request.notional_usd * scalar, ADV_WARN * cost.inputs.adv_usd)
  const isReduced = recommended < request.notional_usd || checks.some(({ status }) => status === 'warn')
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

function costCheck({ max_cost_bps: limit }: PreflightRequest, cost: CostEstimate): Check {
  const { market_bps, total_bps: value, components, confidence } = cost
  const status = value > limit ? 'fail' : 'pass'
  const parts = `${market_bps.toFixed(2)} bps and the fee ${components.fee_bps.toFixed(2)} bps`
  const detail = `The market is expected to cost ${parts}, ${value.toFixed(2)} bps in all, with ${confidence} confidence.`
  return { check: 'cost', status, value, limit, detail }
}

function advCheck({ inputs: { participation_of_adv: value } }: CostEstimate): Check {
  const status = value > ADV_FAIL ? 'fail' : value > ADV_WARN ? 'warn' : 'pass'
  const detail = `The order is ${percent(value)} of a day's turnover; above 1% warns, above 10% fails.`
  return { check: 'size_vs_adv', status, value, limit: status === 'fail' ? ADV_FAIL : ADV_WARN, detail }
}

function equityCheck({ notional_usd, account_equity_usd, max_position_pct }: PreflightRequest): Check {
  if (account_equity_usd === undefined) return notChecked('size_vs_equity', 'account_equity_usd was not sent.')
  const value = (100 * notional_usd) / account_equity_usd
  const detail = `The order is ${value.toFixed(2)}% of the account; max_position_pct allows ${max_position_pct}%.`
  const status = value > max_position_pct ? 'fail' : 'pass'
  return { check: 'size_vs_equity', status, value, limit: max_position_pct, detail }
}

/** Distance of the limit price in hourly standard deviations. A limit too far away is a typing error or never fills. */
function limitCheck({ limit_price }: PreflightRequest, { inputs }: CostEstimate): Check {
  const { price, sigma_daily, day_minutes } = inputs
  if (limit_price === undefined) return notChecked('limit_distance', 'limit_price was not sent.')
  if (price === null) return notChecked('limit_distance', 'The market has no price yet.')
  const hourly = sigma_daily * Math.sqrt(60 / day_minutes)
  const value = Math.abs(limit_price / price - 1) / hourly
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
  const value = 1e4 * (side === 'buy' ? funding.rate8h : -funding.rate8h)
  const detail = `The position pays ${value.toFixed(2)} bps of funding in eight hours, the median of ${funding.venues} venues.`
  return { check: 'funding', status: value > FUNDING_BPS ? 'warn' : 'pass', value, limit: FUNDING_BPS, detail }
}

function percent(share: number): string {
  return `${(100 * share).toPrecision(3)}%`
}
