import { InvalidInput } from 'tollgate/plugin'
import type { CostEstimate, CostRequest } from '../../schemas/types.d.ts'
import { bpsDecimals, roundBps, roundSignificant, roundTo } from '../lib/quant/rounding.ts'
import { formatMilliseconds } from '../lib/time/timestamps.ts'
import {
  type Estimate,
  estimate,
  type EstimateInputs,
  largestWithin,
  LARGE_PARTICIPATION,
  LONGEST_DAYS,
  type Order,
  orderFrom,
} from './estimate.ts'
import type { MarketClass } from './market-classes.ts'
import type { MarketInputs } from './market-inputs.ts'
import { LEVEL } from './walk-errors.ts'

/** Published with every estimate. A change in the meaning of the numbers needs a new name. */
export const MODEL = 'cost/3'

/**
 * The answer to a request. The class has the fees that the request does not name. Throws InvalidInput for more than a day's
 * turnover.
 */
export function costAnswer(
  request: CostRequest,
  known: MarketInputs,
  fees: Pick<MarketClass, 'fee_bps' | 'maker_fee_bps'>,
  dataMode: CostEstimate['data_mode'],
): CostEstimate {
  const order = orderFrom(request, touchOf(known))
  const inputs = { ...known.inputs, ...feesOf(request, fees) }
  if (order.notionalUsd > inputs.advUsd)
    throw new InvalidInput(
      `More than a day's turnover of ${known.symbol}, ${cents(inputs.advUsd)} USD. Nothing was measured for such an order.`,
      ['body', 'notional_usd'],
    )
  const result = estimate(order, inputs)
  const total_bps = roundBps(result.totalBps)
  const decimals = bpsDecimals(result.totalBps)
  const components = componentsOf(result, decimals)
  const { spread_share, lasting_share } = result.assumptions
  const { range } = result
  return {
    symbol: known.symbol,
    side: order.side,
    order_type: request.order_type,
    notional_usd: order.notionalUsd,
    as_of: formatTime(known.newest),
    market_bps: roundTo(total_bps - components.fee_bps, decimals),
    total_bps,
    cost_usd: cents((order.notionalUsd * total_bps) / 1e4),
    components,
    range_bps: range && { p10: roundBps(result.feeBps + range.p10), p90: roundBps(result.feeBps + range.p90) },
    market_range_bps: range && { p10: roundBps(range.p10), p90: roundBps(range.p90) },
    range_basis: rangeBasisOf(known, order, result),
    timing_risk_bps: roundBps(result.timingRiskBps),
    ...(request.largest_within_bps === undefined ? {} : inverseOf(order, inputs, request.largest_within_bps)),
    inputs: inputsOf(known, result, request.include_book ?? false),
    assumptions: {
      ...result.assumptions,
      spread_share: roundSignificant(spread_share),
      ...(lasting_share === undefined ? {} : { lasting_share: roundSignificant(lasting_share) }),
    },
    formulas: formulasOf(order.type, result.immediate.source),
    sources: {
      ...known.sources,
      impact: result.immediate.source,
      fee: request.fee_bps === undefined ? 'class' : 'request',
    },
    confidence: confidenceOf(known, order, result),
    warnings: warningsOf(known, request, order, result),
    session: {
      is_open: known.session.is_open,
      next_open: known.session.next_open === null ? null : formatTime(known.session.next_open),
    },
    data_age_seconds: Math.floor(known.age),
    data_mode: dataMode,
    model: MODEL,
  }
}

/** The best prices of the book; without one, half the estimated spread to each side of the price. */
function touchOf({ book, price, inputs }: MarketInputs) {
  if (book) return { bid: book.bids[0]![0], ask: book.asks[0]![0] }
  const half = inputs.spreadBps / 2e4
  return { bid: (price ?? NaN) * (1 - half), ask: (price ?? NaN) * (1 + half) }
}

/** A caller who names one fee pays it for every fill. */
function feesOf(request: CostRequest, fees: Pick<MarketClass, 'fee_bps' | 'maker_fee_bps'>) {
  const own = request.fee_bps
  const takerFeeBps = own ?? fees.fee_bps
  return { takerFeeBps, makerFeeBps: request.maker_fee_bps ?? own ?? fees.maker_fee_bps ?? takerFeeBps }
}

/** The components with the decimals of the total. Each is rounded with those before it, so that they sum to the total. */
function componentsOf({ feeBps, halfSpreadBps, impactBps }: Estimate, decimals: number): CostEstimate['components'] {
  const [fee, spread, total] = [feeBps, feeBps + halfSpreadBps, feeBps + halfSpreadBps + impactBps].map((sum) =>
    roundTo(sum, decimals),
  ) as [number, number, number]
  return {
    half_spread_bps: roundTo(spread - fee, decimals),
    impact_bps: roundTo(total - spread, decimals),
    fee_bps: fee,
  }
}

/** Where the range comes from, or why there is none. */
function rangeBasisOf(
  { book, className }: MarketInputs,
  { type }: Order,
  result: Estimate,
): CostEstimate['range_basis'] {
  const { range, immediate } = result
  if (!range) {
    const isOfSpot = className === 'perpetual' && book?.instrument === undefined
    const measurable = isOfSpot
      ? 'spot_proxy'
      : immediate.source === 'book_walk'
        ? 'too_few_cases'
        : 'beyond_book_depth'
    return { method: null, reason: book ? measurable : 'no_book' }
  }
  const { cases, from, to, judged, held } = range.atOnce
  const isMeasured = type === 'market'
  return {
    method: isMeasured ? 'conformal' : 'market_orders',
    reason: null,
    level: LEVEL,
    low_error_bps: roundBps(range.lowErrorBps),
    high_error_bps: roundBps(range.highErrorBps),
    cases,
    start: formatTime(from),
    end: formatTime(to),
    coverage: isMeasured && judged > 0 ? roundTo(held / judged, 4) : null,
    coverage_cases: isMeasured ? judged : 0,
  }
}

/** The inverse of the cost, and of its ninetieth percentile. */
function inverseOf(order: Order, inputs: EstimateInputs, limit: number): Pick<CostEstimate, 'largest_within_bps'> {
  const of = (bpsOf: (cost: Estimate) => number) => largestWithin(order, inputs, (cost) => roundBps(bpsOf(cost)), limit)
  const upper = ({ feeBps, range }: Estimate): number => (range ? feeBps + range.p90 : NaN)
  // Beyond the largest size with a range, the ninetieth percentile is above that of this size and above the expected cost.
  const measured = largestWithin(order, inputs, ({ range }) => (range ? 0 : 1), 0)
  const least = measured > 0 ? upper(estimate({ ...order, notionalUsd: measured }, inputs)) : 0
  return {
    largest_within_bps: {
      limit_bps: limit,
      notional_usd: of(({ totalBps }) => totalBps),
      p90_notional_usd: of((cost) => (cost.range ? upper(cost) : Math.max(cost.totalBps, least))),
    },
  }
}

const cents = (usd: number): number => roundTo(usd, 2)

function inputsOf(known: MarketInputs, result: Estimate, isBookAsked: boolean): CostEstimate['inputs'] {
  const { inputs, bars, price, tickBps } = known
  const { horizonDays, participationRate, immediate } = result
  const annualisation = inputs.dayMinutes === 1440 ? 365 : 252
  return {
    class: known.className,
    // The middle of two prices at tick may be half a tick off; ten digits take the noise of its division away.
    price: price === null ? null : Number(price.toPrecision(10)),
    spread_bps: roundBps(inputs.spreadBps),
    tick_bps: tickBps === null ? null : roundBps(tickBps),
    annual_vol: roundSignificant(inputs.sigmaDaily * Math.sqrt(annualisation)),
    annualisation,
    sigma_daily: roundSignificant(inputs.sigmaDaily),
    adv_usd: cents(inputs.advUsd),
    participation_of_adv: roundSignificant(result.participationOfAdv),
    day_minutes: inputs.dayMinutes,
    horizon_days: horizonDays === null ? null : roundSignificant(horizonDays),
    participation_rate: participationRate === null ? null : roundSignificant(participationRate),
    book_depth_used: immediate.depthUsd !== null,
    book: bookOf(known, immediate, isBookAsked),
    bars: bars && {
      interval_seconds: bars.intervalSeconds,
      count: bars.count,
      start: formatTime(bars.from),
      end: formatTime(bars.to),
      from: formatTime(bars.from),
      to: formatTime(bars.to),
    },
  }
}

function bookOf(
  { book }: MarketInputs,
  { depthUsd, levels }: Estimate['immediate'],
  isAsked: boolean,
): CostEstimate['inputs']['book'] {
  if (!book || depthUsd === null) return null
  const { venue, instrument, time } = book
  return {
    venue,
    ...(instrument === undefined ? {} : { instrument }),
    as_of: formatTime(time),
    depth_usd: cents(depthUsd),
    ...(isAsked ? { levels } : {}),
  }
}

/**
 * The confidence depends on the source of the spread. It is one step lower if an input is stale or the spot market stands
 * in for a perpetual. It is low if class defaults stand in for data, and where nothing was measured: beyond the depth of
 * the book and above 10% of a day's turnover.
 */
function confidenceOf(known: MarketInputs, order: Order, result: Estimate): CostEstimate['confidence'] {
  const { sources, isStale } = known
  const isBeyond = result.immediate.source === 'book_walk_and_square_root'
  if (isClass(known) || isBeyond || result.participationOfAdv > LARGE_PARTICIPATION) return 'low'
  const isQuoted = sources.spread === 'book' || sources.spread === 'quotes'
  const isLess = isStale || isSpotProxy(known, order, result)
  if (isQuoted) return isLess ? 'medium' : 'high'
  return isLess ? 'low' : 'medium'
}

const isClass = ({ sources: { spread, volatility, volume } }: MarketInputs): boolean =>
  [spread, volatility, volume].includes('class')

/** True if the spot market stands in for a perpetual: for its book, or for the turnover behind an impact that is not walked. */
function isSpotProxy({ className, book }: MarketInputs, { type }: Order, { immediate }: Estimate): boolean {
  const isWalk = immediate.source === 'book_walk' && (type === 'market' || type === 'limit')
  return className === 'perpetual' && (book?.instrument === undefined || !isWalk)
}

function warningsOf(
  known: MarketInputs,
  request: CostRequest,
  order: Order,
  result: Estimate,
): CostEstimate['warnings'] {
  const { participationOfAdv, participationRate, horizonDays, immediate } = result
  const isCrowded = order.participationRate === null && (participationRate ?? 0) > 1
  return [
    ...(participationOfAdv > LARGE_PARTICIPATION ? ['above_10pct_adv' as const] : []),
    ...(known.isStale ? ['stale_inputs' as const] : []),
    ...(isClass(known) ? ['class_defaults' as const] : []),
    ...(immediate.source === 'book_walk_and_square_root' ? ['beyond_book_depth' as const] : []),
    ...(isSpotProxy(known, order, result) ? ['spot_proxy' as const] : []),
    ...(isCrowded ? ['above_market_volume' as const] : []),
    ...(participationRate !== null && horizonDays! > LONGEST_DAYS ? ['horizon_capped' as const] : []),
    ...(request.order_type !== order.type ? ['marketable_limit' as const] : []),
  ]
}

/** RFC 3339 in UTC, to the millisecond. */
function formatTime(seconds: number): string {
  return formatMilliseconds(Math.floor(seconds * 1000))
}

const LAW = 'impact_coefficient * sigma_daily * sqrt(x / adv_usd) * 1e4'
const WALK = 'average price of taking x USD from book.levels, against price, in bps, less spread_bps / 2'
/** M(x): the impact of x USD at once. */
const IMMEDIATE: Readonly<Record<Estimate['immediate']['source'], string>> = {
  book_walk: `M(x) = ${WALK}`,
  book_walk_and_square_root: `M(x) = W(x) up to book.depth_usd, W(x) = ${WALK}; beyond, W(depth_usd) + L(x) - L(depth_usd), L(x) = ${LAW}`,
  square_root: `M(x) = ${LAW}`,
}
const SCHEDULE = {
  impact:
    'lasting_share * M(notional_usd) + (1 - lasting_share) * temporary_factor * M(notional_usd / (1 + min(1, horizon_days) / recovery_days)), lasting_share = min(1, 0.314 / 2 * turnover_factor / impact_coefficient * sqrt(participation_of_adv))',
  timing: '1e4 * sigma_daily * sqrt(horizon_days / 3)',
}
const IMPACT: Readonly<Record<Order['type'], string>> = {
  market: 'M(notional_usd)',
  limit: '(1 - fill_probability) * M(notional_usd)',
  twap: SCHEDULE.impact,
  vwap: SCHEDULE.impact,
  pov: SCHEDULE.impact,
}
const TIMING: Readonly<Record<Order['type'], string>> = {
  market: '1e4 * sigma_daily * sqrt(latency_seconds / 60 / day_minutes)',
  limit: '1e4 * sigma_daily * sqrt((1 - fill_probability) * horizon_days)',
  twap: SCHEDULE.timing,
  vwap: SCHEDULE.timing,
  pov: SCHEDULE.timing,
}

/** How the numbers of the answer follow from its inputs and assumptions, in the field names of the answer. */
function formulasOf(type: Order['type'], source: Estimate['immediate']['source']): CostEstimate['formulas'] {
  return {
    half_spread_bps: 'spread_share * spread_bps / 2',
    impact_bps: `${IMPACT[type]}, ${IMMEDIATE[source]}`,
    timing_risk_bps: TIMING[type],
    range_bps: 'total_bps + range_basis.low_error_bps; total_bps + range_basis.high_error_bps',
  }
}
