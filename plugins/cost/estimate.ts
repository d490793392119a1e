import type { CostRequest } from '../../schemas/types.d.ts'
import { IMPACT_COEFFICIENT, scheduledImpact, squareRootImpact, TURNOVER_FACTOR } from '../lib/quant/market-impact.ts'
import { type Book, type Level, walkBook } from '../lib/quant/order-book.ts'
import type { ErrorRange } from './walk-errors.ts'

/** The numbers that are assumed instead of measured for each call. Every answer contains them. */
interface Assumptions {
  /** The share of the half spread that is paid. */
  readonly spread_share: number
  readonly impact_coefficient?: number
  readonly turnover_factor?: number
  readonly temporary_factor?: number
  readonly lasting_share?: number
  readonly recovery_days?: number
  readonly fill_probability?: number
  readonly adverse_selection?: number
  readonly latency_seconds?: number
}

/** Where the cost may end up, before the fee, and the errors of market orders behind it. */
export interface CostRange {
  readonly p10: number
  readonly p90: number
  /** What the ends are away from the estimate: the errors of the orders that it is made of. */
  readonly lowErrorBps: number
  readonly highErrorBps: number
  /** The error of the same order sent at once. */
  readonly atOnce: ErrorRange
}

export interface Estimate {
  /** The share of the half spread that is paid; negative if more of it is earned than paid. */
  readonly halfSpreadBps: number
  readonly impactBps: number
  readonly feeBps: number
  /** Half spread, impact and fee. */
  readonly totalBps: number
  /** Null if the error of such an order was not measured. */
  readonly range: CostRange | null
  readonly timingRiskBps: number
  /** Length of the schedule or of the wait of a limit order, in trading days; null for a market order. */
  readonly horizonDays: number | null
  /** Share of the market volume that a schedule takes; null for immediate orders. */
  readonly participationRate: number | null
  readonly participationOfAdv: number
  /** The same order sent at once. */
  readonly immediate: Immediate
  readonly assumptions: Assumptions
}

/** Factor of the temporary impact of a schedule on the volume clock, which trades when markets are deeper. */
const VOLUME_CLOCK = 0.95
const SCHEDULE_SPREAD_SHARE = 0.5
const FILL_PROBABILITY = 0.65
const ADVERSE_SELECTION = 0.8
const LATENCY_SECONDS = 3
/** Nothing was measured for orders above this share of the turnover of a day. */
export const LARGE_PARTICIPATION = 0.1
/** Nothing was measured for schedules of more trading days. The market recovers no further in them. */
export const LONGEST_DAYS = 1
/** Schedules take this share of the market volume, unless they would be shorter or longer than the limits below. */
const PARTICIPATION_RATE = 0.1
const SHORTEST_MINUTES = 5
const LIMIT_WAIT_MINUTES = 5

/**
 * Trading days in which the liquidity that an order takes comes back once, about two hours around the clock. Here the
 * temporary impact of the square-root law equals that of Almgren et al. at a tenth of the volume:
 * 0.142 · 0.1^0.6 = 0.4 √(0.1 · 0.08).
 */
const RECOVERY_DAYS = 0.08

/**
 * The expected cost of an order, in basis points of its notional. M(Q) is the impact of Q at once, see `immediateImpact`.
 *
 * - market: half spread + M(Q) + taker fee.
 * - limit, posted at the touch: p(-half + adverse + maker fee) + (1-p)(half + M(Q) + taker fee), p = 0.65, adverse = 0.8 half.
 * - twap over T days: half of the half spread + s M(Q) + (1-s) M(Q / (1 + T/R)) + taker fee. The share s of the
 *   impact lasts; for the rest the liquidity comes back once in R days, for at most one day.
 * - vwap: as twap with 5% less of the part that recovers. pov: as vwap over T = Q/(rate ADV).
 *
 * So a schedule never costs more than the market order that it splits, and no cost falls with size or jumps.
 * Timing risk is a standard deviation: σ√(T/3) for a schedule, σ√T over three seconds for a market order, σ√((1-p)T) for
 * a limit order that waits for T and is then sent as a market order.
 *
 * The range adds to the estimate the errors that were measured for each M(x) in it, with its weight. So that of a schedule
 * never ends above that of the market order that it splits.
 *
 * Source: Almgren, Thum, Hauptmann and Li, Risk (July 2005), for s and R; Donier and Bonart (2015) for M.
 *
 * @example a market order of 1e6 with a spread of 2 bps, σ 0.02, ADV 1e9, no book and no fee: 1 + 2.52982… bps
 */
export function estimate(order: Order, inputs: EstimateInputs): Estimate {
  const { spreadBps, takerFeeBps, makerFeeBps } = inputs
  const participationOfAdv = order.notionalUsd / inputs.advUsd
  const horizonDays = horizonOf(order, participationOfAdv, inputs.dayMinutes)
  const isSchedule = order.type !== 'market' && order.type !== 'limit'
  const immediate = immediateImpact(inputs, order.side, order.notionalUsd)
  const parts = isSchedule
    ? scheduleParts(order, inputs, immediate, horizonDays ?? 0)
    : immediateParts(order, inputs, immediate, horizonDays ?? 0)
  const { spreadShare, impactBps, makerShare } = parts
  const halfSpreadBps = (spreadShare * spreadBps) / 2
  const feeBps = makerShare * makerFeeBps + (1 - makerShare) * takerFeeBps
  const law = immediate.source === 'book_walk' && !isSchedule ? {} : { impact_coefficient: IMPACT_COEFFICIENT }
  return {
    halfSpreadBps,
    impactBps,
    feeBps,
    totalBps: halfSpreadBps + impactBps + feeBps,
    range: rangeOf(order, inputs, immediate, parts.walks, halfSpreadBps + impactBps),
    timingRiskBps: 1e4 * inputs.sigmaDaily * Math.sqrt(parts.riskDays),
    horizonDays,
    participationRate: isSchedule ? (order.participationRate ?? participationOfAdv / (horizonDays ?? 1)) : null,
    participationOfAdv,
    immediate,
    assumptions: {
      spread_share: spreadShare,
      ...law,
      ...parts.assumptions,
    },
  }
}

/** Only what costs at the touch, and not what is posted there, can be earned. */
const LEAST_BPS = { market: 0, twap: 0, vwap: 0, pov: 0, limit: -Infinity } as const

function rangeOf(
  { type, side, notionalUsd }: Order,
  { errors }: EstimateInputs,
  { source }: Immediate,
  walks: Parts['walks'],
  marketBps: number,
): CostRange | null {
  const atOnce = errors && source === 'book_walk' ? errors.at(side, notionalUsd) : null
  if (!errors || !atOnce) return null
  let [lowErrorBps, highErrorBps] = [0, 0]
  for (const { weight, usd } of walks) {
    // A smaller size has a range where a larger one has.
    const { low, high } = errors.at(side, usd)!
    lowErrorBps += weight * low
    highErrorBps += weight * high
  }
  const p10 = Math.max(LEAST_BPS[type], marketBps + lowErrorBps)
  return { p10, p90: marketBps + highErrorBps, lowErrorBps, highErrorBps, atOnce }
}

function horizonOf({ type, horizonMinutes, participationRate }: Order, share: number, dayMinutes: number) {
  if (type === 'market') return null
  if (participationRate !== null) return share / participationRate
  if (horizonMinutes !== null) return horizonMinutes / dayMinutes
  if (type === 'limit') return LIMIT_WAIT_MINUTES / dayMinutes
  return Math.min(LONGEST_DAYS, Math.max(SHORTEST_MINUTES / dayMinutes, share / PARTICIPATION_RATE))
}

interface Parts {
  readonly spreadShare: number
  /** Share of the order that is expected to be filled as a maker. */
  readonly makerShare: number
  readonly impactBps: number
  /** The market orders whose impact is part of it: M(usd) · weight. */
  readonly walks: readonly { readonly weight: number; readonly usd: number }[]
  /** The days of price moves behind the timing risk. */
  readonly riskDays: number
  readonly assumptions: Partial<Assumptions>
}

function immediateParts(
  { type, notionalUsd: usd }: Order,
  { dayMinutes }: EstimateInputs,
  immediate: Immediate,
  days: number,
): Parts {
  const { impactBps } = immediate
  if (type === 'market') {
    const riskDays = LATENCY_SECONDS / 60 / dayMinutes
    const walks = [{ weight: 1, usd }]
    const assumptions = { latency_seconds: LATENCY_SECONDS }
    return { spreadShare: 1, makerShare: 0, impactBps, walks, riskDays, assumptions }
  }
  const chased = 1 - FILL_PROBABILITY
  return {
    spreadShare: FILL_PROBABILITY * (ADVERSE_SELECTION - 1) + chased,
    makerShare: FILL_PROBABILITY,
    impactBps: chased * impactBps,
    walks: [{ weight: chased, usd }],
    riskDays: chased * days,
    assumptions: { fill_probability: FILL_PROBABILITY, adverse_selection: ADVERSE_SELECTION },
  }
}

function scheduleParts(
  { type, side, notionalUsd }: Order,
  inputs: EstimateInputs,
  whole: Immediate,
  days: number,
): Parts {
  const scale = { quantity: notionalUsd / inputs.advUsd, dailyVolume: 1, dailyVolatility: 1 }
  const lasting = Math.min(1, scheduledImpact({ ...scale, days: 1 }).permanent / 2 / squareRootImpact(scale))
  const met = notionalUsd / (1 + Math.min(days, LONGEST_DAYS) / RECOVERY_DAYS)
  const factor = type === 'twap' ? 1 : VOLUME_CLOCK
  const recovering = factor * immediateImpact(inputs, side, met).impactBps
  return {
    spreadShare: SCHEDULE_SPREAD_SHARE,
    // How many of its slices rest is up to the algorithm, so all count as taken.
    makerShare: 0,
    impactBps: lasting * whole.impactBps + (1 - lasting) * recovering,
    walks: [
      { weight: lasting, usd: notionalUsd },
      { weight: (1 - lasting) * factor, usd: met },
    ],
    riskDays: days / 3,
    assumptions: {
      turnover_factor: TURNOVER_FACTOR,
      temporary_factor: factor,
      lasting_share: lasting,
      recovery_days: RECOVERY_DAYS,
    },
  }
}

/**
 * The largest order, in whole cents and no larger than a day's turnover, that `bpsOf` puts within a limit; 0 if none is.
 * The cost of an order never falls with its size.
 *
 * @example largestWithin({ ...order, type: 'market' }, inputs, ({ totalBps }) => totalBps, 20)
 */
export function largestWithin(
  order: Order,
  inputs: EstimateInputs,
  bpsOf: (cost: Estimate) => number,
  limitBps: number,
): number {
  const isWithin = (cents: number): boolean =>
    bpsOf(estimate({ ...order, notionalUsd: cents / 100 }, inputs)) <= limitBps
  let [within, beyond] = [0, Math.floor(inputs.advUsd * 100) + 1]
  if (isWithin(beyond - 1)) return (beyond - 1) / 100
  while (beyond - within > 1) {
    const middle = Math.floor((within + beyond) / 2)
    if (isWithin(middle)) within = middle
    else beyond = middle
  }
  return within / 100
}

/** What an immediate order pays beyond the half spread. */
export interface Immediate {
  readonly impactBps: number
  readonly source: 'book_walk' | 'book_walk_and_square_root' | 'square_root'
  /** The levels that the order takes, best first; empty without a book. */
  readonly levels: readonly Level[]
  /** Depth of the side of the book that the order takes from, in USD; null without a book. */
  readonly depthUsd: number | null
}

/** Stays slightly inside the depth of the book, so that rounding cannot make the book too thin. */
const INSIDE = 1 - 1e-12

/**
 * The impact of an immediate order. Within the depth D of the book it is the cost of the walk, W(Q), less the half spread.
 * Beyond D it is the walk of the whole book plus L(Q) - L(D) of the square-root law. Without a book it is L(Q). The impact
 * never falls with size.
 *
 * Source: Donier and Bonart (2015) for the law L(Q) = 0.4 σ √(Q/ADV).
 *
 * @example immediateImpact({ ... sigmaDaily: 0.02, advUsd: 1e9, book: null }, 'buy', 1e6).impactBps // 2.52982…
 */
function immediateImpact(inputs: EstimateInputs, side: 'buy' | 'sell', notionalUsd: number): Immediate {
  const { book, spreadBps } = inputs
  if (!book) return { impactBps: lawBps(inputs, notionalUsd), source: 'square_root', levels: [], depthUsd: null }
  const resting = side === 'buy' ? book.asks : book.bids
  const depthUsd = resting.reduce((sum, [price, quantity]) => sum + price * quantity, 0)
  const walked = Math.min(notionalUsd, depthUsd * INSIDE)
  const walk = walkOf(book, side, walked)
  const impactBps = Math.max(0, walk.costBps - spreadBps / 2)
  const levels = resting.slice(0, walk.levels)
  if (notionalUsd <= depthUsd) return { impactBps, source: 'book_walk', levels, depthUsd }
  const beyond = lawBps(inputs, notionalUsd) - lawBps(inputs, depthUsd)
  return { impactBps: impactBps + beyond, source: 'book_walk_and_square_root', levels, depthUsd }
}

function lawBps({ sigmaDaily, advUsd }: EstimateInputs, notionalUsd: number): number {
  const order = { quantity: notionalUsd, dailyVolume: advUsd, dailyVolatility: sigmaDaily }
  return 1e4 * squareRootImpact({ ...order, coefficient: IMPACT_COEFFICIENT })
}

function walkOf(book: Book, side: 'buy' | 'sell', notionalUsd: number) {
  const walk = walkBook(book, side, notionalUsd)
  if (!walk) throw new RangeError('the book has only one side, or the order is larger than its depth')
  return walk
}

/** The numbers from which an estimate is computed. */
export interface EstimateInputs {
  /** Quoted or estimated spread, bps. */
  readonly spreadBps: number
  /** Standard deviation of the price over a trading day, a fraction. */
  readonly sigmaDaily: number
  /** Average turnover of a trading day, USD. */
  readonly advUsd: number
  /** Minutes of a trading day: 1440 around the clock, 390 for US equities. */
  readonly dayMinutes: number
  /** Fees of fills that take and of fills that rest, bps. */
  readonly takerFeeBps: number
  readonly makerFeeBps: number
  readonly book: Book | null
  /** The errors of orders in earlier books of the same asset and venue; null if none were kept. */
  readonly errors: { at(side: 'buy' | 'sell', notionalUsd: number): ErrorRange | null } | null
}

/** The order to estimate. */
export interface Order {
  readonly side: 'buy' | 'sell'
  readonly type: 'market' | 'limit' | 'twap' | 'vwap' | 'pov'
  readonly notionalUsd: number
  /** Length of a twap or vwap schedule, or how long a limit order waits; null for the default and for other orders. */
  readonly horizonMinutes: number | null
  /** Share of the market volume that a pov order takes; null for other orders. */
  readonly participationRate: number | null
}

/**
 * The order of a request, in a market whose best prices are `touch`. A limit order that crosses them is a market order. A
 * field that does not apply to the type of the order is ignored.
 */
export function orderFrom(request: CostRequest, touch: { readonly bid: number; readonly ask: number }): Order {
  const {
    side,
    order_type,
    notional_usd: notionalUsd,
    limit_price: limit,
    horizon_minutes,
    participation_rate,
  } = request
  const crosses = limit !== undefined && (side === 'buy' ? limit >= touch.ask : limit <= touch.bid)
  const type = order_type === 'limit' && crosses ? 'market' : order_type
  return {
    side,
    type,
    notionalUsd,
    horizonMinutes: type === 'market' || type === 'pov' ? null : (horizon_minutes ?? null),
    participationRate: type === 'pov' ? (participation_rate ?? PARTICIPATION_RATE) : null,
  }
}
