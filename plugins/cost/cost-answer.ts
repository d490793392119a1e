import type { CostEstimate, CostRequest } from '../../schemas/types.d.ts'
import { formatMilliseconds } from '../lib/time/timestamps.ts'
import { type Estimate, estimate, type Immediate, LARGE_PARTICIPATION, type Order, orderFrom } from './estimate.ts'
import type { MarketInputs } from './market-inputs.ts'

/** Published with every estimate. A change in the meaning of the numbers needs a new name. */
export const MODEL = 'cost/1'

/** The answer to a request. `feeBps` is the fee of the market class, used if the request names none. */
export function costAnswer(
  request: CostRequest,
  known: MarketInputs,
  feeBps: number,
  dataMode: CostEstimate['data_mode'],
): CostEstimate {
  const order = orderFrom(request)
  const result = estimate(order, known.inputs)
  const fee_bps = request.fee_bps ?? feeBps
  const components = { half_spread_bps: result.halfSpreadBps, impact_bps: result.impactBps, fee_bps }
  const market_bps = result.halfSpreadBps + result.impactBps
  const total_bps = market_bps + fee_bps
  const error = result.assumptions.spread_share * result.assumptions.half_spread_error_bps
  return {
    symbol: known.symbol,
    side: order.side,
    order_type: order.type,
    notional_usd: order.notionalUsd,
    as_of: formatTime(known.newest),
    market_bps,
    total_bps,
    cost_usd: (order.notionalUsd * total_bps) / 1e4,
    components,
    range_bps: {
      p10: fee_bps + Math.max(0, result.halfSpreadBps - error) + result.low * result.impactBps,
      p90: fee_bps + result.halfSpreadBps + error + result.high * result.impactBps,
    },
    timing_risk_bps: result.timingRiskBps,
    inputs: inputsOf(known, result),
    assumptions: result.assumptions,
    formulas: formulasOf(order.type, result.impactSource),
    sources: {
      ...known.sources,
      impact: result.impactSource,
      fee: request.fee_bps === undefined ? 'class' : 'request',
    },
    confidence: confidenceOf(known, result),
    warnings: warningsOf(known, order, result),
    session: {
      is_open: known.session.is_open,
      next_open: known.session.next_open === null ? null : formatTime(known.session.next_open),
    },
    data_age_seconds: Math.floor(known.age),
    data_mode: dataMode,
    model: MODEL,
  }
}

function inputsOf(known: MarketInputs, result: Estimate): CostEstimate['inputs'] {
  const { inputs, bars } = known
  return {
    class: known.className,
    price: known.price,
    spread_bps: inputs.spreadBps,
    tick_bps: known.tickBps,
    sigma_daily: inputs.sigmaDaily,
    adv_usd: inputs.advUsd,
    participation_of_adv: result.participationOfAdv,
    day_minutes: inputs.dayMinutes,
    horizon_days: result.horizonDays,
    participation_rate: result.participationRate,
    book_depth_used: (result.immediate?.depthUsd ?? null) !== null,
    book: bookOf(known, result.immediate),
    bars: bars && {
      interval_seconds: bars.intervalSeconds,
      count: bars.count,
      from: formatTime(bars.from),
      to: formatTime(bars.to),
    },
  }
}

function bookOf({ book }: MarketInputs, immediate: Immediate | null): CostEstimate['inputs']['book'] {
  if (!book || immediate?.depthUsd == null) return null
  const { venue, instrument, time } = book
  return {
    venue,
    ...(instrument === undefined ? {} : { instrument }),
    as_of: formatTime(time),
    depth_usd: immediate.depthUsd,
    levels: immediate.levels,
  }
}

/**
 * The confidence depends on the source of the spread. It is one step lower if an input is stale or the spot market stands
 * in for a perpetual. It is low if class defaults stand in for data.
 */
function confidenceOf(known: MarketInputs, result: Estimate): CostEstimate['confidence'] {
  const { sources, isStale } = known
  if ([sources.spread, sources.volatility, sources.volume].includes('class')) return 'low'
  const isQuoted = sources.spread === 'book' || sources.spread === 'quotes'
  const isLess = isStale || isSpotProxy(known, result)
  if (isQuoted) return isLess ? 'medium' : 'high'
  return isLess ? 'low' : 'medium'
}

/** True if the spot market stands in for a perpetual: for its book, or for the turnover behind an impact that no book shows. */
function isSpotProxy({ className, book }: MarketInputs, { impactSource }: Estimate): boolean {
  return className === 'perpetual' && (book?.instrument === undefined || impactSource !== 'book_walk')
}

function warningsOf(known: MarketInputs, order: Order, result: Estimate): CostEstimate['warnings'] {
  const { sources, isStale } = known
  const isClass = [sources.spread, sources.volatility, sources.volume].includes('class')
  const isCrowded = order.participationRate === null && (result.participationRate ?? 0) > 1
  return [
    ...(result.participationOfAdv > LARGE_PARTICIPATION ? ['above_10pct_adv' as const] : []),
    ...(isStale ? ['stale_inputs' as const] : []),
    ...(isClass ? ['class_defaults' as const] : []),
    ...(result.impactSource === 'book_walk_and_square_root' ? ['beyond_book_depth' as const] : []),
    ...(isSpotProxy(known, result) ? ['spot_proxy' as const] : []),
    ...(isCrowded ? ['above_market_volume' as const] : []),
  ]
}

/** RFC 3339 in UTC, to the millisecond. */
function formatTime(seconds: number): string {
  return formatMilliseconds(Math.floor(seconds * 1000))
}

const LAW = 'impact_coefficient * sigma_daily * sqrt(x / adv_usd) * 1e4'
const IMMEDIATE: Readonly<Record<Estimate['impactSource'], string>> = {
  book_walk: 'average price of taking notional_usd from book.levels, against price, in bps, less spread_bps / 2',
  book_walk_and_square_root: `walk of all book.levels less spread_bps / 2, plus L(notional_usd) - L(book.depth_usd), L(x) = ${LAW}`,
  square_root: LAW.replace('x', 'notional_usd'),
  almgren_2005:
    '1e4 * sigma_daily * (0.314 / 2 * participation_of_adv * turnover_factor + temporary_factor * 0.142 * participation_rate ^ 0.6)',
}
const TIMING: Readonly<Record<Order['type'], string>> = {
  market: '1e4 * sigma_daily * sqrt(latency_seconds / 60 / day_minutes)',
  limit: '1e4 * sigma_daily * sqrt((1 - fill_probability) * horizon_days)',
  twap: '1e4 * sigma_daily * sqrt(horizon_days / 3)',
  vwap: '1e4 * sigma_daily * sqrt(horizon_days / 3)',
  pov: '1e4 * sigma_daily * sqrt(horizon_days / 3)',
}

/** How the numbers of the answer follow from its inputs and assumptions, in the field names of the answer. */
function formulasOf(type: Order['type'], source: Estimate['impactSource']): CostEstimate['formulas'] {
  const impact = IMMEDIATE[source]
  return {
    half_spread_bps: 'spread_share * spread_bps / 2',
    impact_bps: type === 'limit' ? `(1 - fill_probability) * (${impact})` : impact,
    timing_risk_bps: TIMING[type],
    range_bps:
      'fee_bps + max(0, half_spread_bps - spread_share * half_spread_error_bps) + impact_low_factor * impact_bps; fee_bps + half_spread_bps + spread_share * half_spread_error_bps + impact_high_factor * impact_bps',
  }
}
