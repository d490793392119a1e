import type { CostRequest } from '../../schemas/types.d.ts'
import { IMPACT_COEFFICIENT, scheduledImpact, squareRootImpact, TURNOVER_FACTOR } from '../lib/quant/market-impact.ts'
import { type Book, type Level, walkBook } from '../lib/quant/order-book.ts'

/** The numbers that are assumed instead of measured for each call. Every answer contains them. */
interface Assumptions {
  /** The share of the half spread that is paid. */
  readonly spread_share: number
  readonly impact_coefficient?: number
  readonly turnover_factor?: number
  readonly temporary_factor?: number
  readonly fill_probability?: number
  readonly adverse_selection?: number
  readonly latency_seconds?: number
  readonly half_spread_error_bps: number
  readonly impact_low_factor: number
  readonly impact_high_factor: number
}

export interface Estimate {
  /** The share of the half spread that is paid; negative if more of it is earned than paid. */
  readonly halfSpreadBps: number
  readonly impactBps: number
  readonly impactSource: Immediate['source'] | 'almgren_2005'
  readonly timingRiskBps: number
  /** Length of the schedule or of the wait of a limit order, in trading days; null for a market order. */
  readonly horizonDays: number | null
  /** Share of the market volume that a schedule takes; null for immediate orders. */
  readonly participationRate: number | null
  readonly participationOfAdv: number
  readonly immediate: Immediate | null
  /** Factors of the impact at the tenth and ninetieth percentile. */
  readonly low: number
  readonly high: number
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
/** Nothing was measured with older books. */
const MEASURED_BOOK_SECONDS = 120
/** Tenth and ninetieth percentile of true impact divided by estimated impact. */
export const IMPACT_FACTORS = {
  // The mean error of the law against recorded books is 0.16 in log10. For a normal error: ±1.2816 · 0.16 · √(π/2).
  law: [10 ** -0.257, 10 ** 0.257],
  // The same walk repeated half a minute later.
  book: [0.65, 1.7],
  unmeasured: [0.5, 2.5],
} as const

/**
 * The expected cost of an order before fees, in basis points of its notional.
 *
 * - market: half spread + impact of an immediate order.
 * - limit, posted at the touch: p(-half + adverse) + (1-p)(half + impact), p = 0.65, adverse = 0.8 half.
 * - twap: half of the half spread + J of Almgren et al. over the horizon.
 * - vwap: as twap with 5% less temporary impact. pov: as vwap over T = Q/(rate ADV).
 *
 * Timing risk is a standard deviation: σ√(T/3) for a schedule, σ√T over three seconds for a market order, σ√((1-p)T) for
 * a limit order that waits for T and is then sent as a market order.
 *
 * Source: Almgren, Thum, Hauptmann and Li, Risk (July 2005); Donier and Bonart (2015).
 *
 * @example a market order of 1e6 with a spread of 2 bps, σ 0.02, ADV 1e9 and no book: 1 + 2.52982… bps
 */
export function estimate(order: Order, inputs: EstimateInputs): Estimate {
  const { sigmaDaily, advUsd, dayMinutes, spreadBps, halfSpreadErrorBps } = inputs
  const participationOfAdv = order.notionalUsd / advUsd
  const horizonDays = horizonOf(order, participationOfAdv, dayMinutes)
  const isSchedule = order.type === 'twap' || order.type === 'vwap' || order.type === 'pov'
  const immediate = isSchedule ? null : immediateImpact(inputs, order.side, order.notionalUsd)
  const isOld = immediate?.depthUsd != null && inputs.bookAgeSeconds > MEASURED_BOOK_SECONDS
  const isUnmeasured = isOld || participationOfAdv > LARGE_PARTICIPATION
  const [low, high] = IMPACT_FACTORS[isUnmeasured ? 'unmeasured' : immediate?.source === 'book_walk' ? 'book' : 'law']
  const parts = immediate
    ? immediateParts(order, immediate, sigmaDaily, horizonDays, dayMinutes)
    : scheduleParts(order, sigmaDaily, participationOfAdv, horizonDays ?? 0)
  return {
    halfSpreadBps: (parts.spreadShare * spreadBps) / 2,
    impactBps: parts.impactBps,
    impactSource: immediate?.source ?? 'almgren_2005',
    timingRiskBps: 1e4 * parts.risk,
    horizonDays,
    participationRate: isSchedule ? (order.participationRate ?? participationOfAdv / (horizonDays ?? 1)) : null,
    participationOfAdv,
    immediate,
    low,
    high,
    assumptions: {
      spread_share: parts.spreadShare,
      ...parts.assumptions,
      half_spread_error_bps: halfSpreadErrorBps,
      impact_low_factor: low,
      impact_high_factor: high,
    },
  }
}

function horizonOf({ horizonMinutes, participationRate }: Order, share: number, dayMinutes: number): number | null {
  if (participationRate !== null) return share / participationRate
  return horizonMinutes === null ? null : horizonMinutes / dayMinutes
}

interface Parts {
  readonly spreadShare: number
  readonly impactBps: number
  /** A fraction. */
  readonly risk: number
  readonly assumptions: Partial<Assumptions>
}

function immediateParts(
  { type }: Order,
  { impactBps, source }: Immediate,
  sigmaDaily: number,
  horizonDays: number | null,
  dayMinutes: number,
): Parts {
  const law = source === 'book_walk' ? {} : { impact_coefficient: IMPACT_COEFFICIENT }
  if (type === 'market') {
    const risk = sigmaDaily * Math.sqrt(LATENCY_SECONDS / 60 / dayMinutes)
    return { spreadShare: 1, impactBps, risk, assumptions: { ...law, latency_seconds: LATENCY_SECONDS } }
  }
  const chased = 1 - FILL_PROBABILITY
  return {
    spreadShare: FILL_PROBABILITY * (ADVERSE_SELECTION - 1) + chased,
    impactBps: chased * impactBps,
    risk: sigmaDaily * Math.sqrt(chased * (horizonDays ?? 0)),
    assumptions: { ...law, fill_probability: FILL_PROBABILITY, adverse_selection: ADVERSE_SELECTION },
  }
}

function scheduleParts({ type }: Order, sigmaDaily: number, share: number, days: number): Parts {
  const order = { quantity: share, dailyVolume: 1, dailyVolatility: sigmaDaily, days }
  const { permanent, temporary } = scheduledImpact(order)
  const factor = type === 'twap' ? 1 : VOLUME_CLOCK
  return {
    spreadShare: SCHEDULE_SPREAD_SHARE,
    impactBps: 1e4 * (permanent / 2 + factor * temporary),
    risk: sigmaDaily * Math.sqrt(days / 3),
    assumptions: { turnover_factor: TURNOVER_FACTOR, temporary_factor: factor },
  }
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
  /** Error of the half spread, bps: 0.8 times the mean error of the source of the spread. */
  readonly halfSpreadErrorBps: number
  readonly book: Book | null
  /** Seconds from the time of the book to that of the estimate; 0 without a book. */
  readonly bookAgeSeconds: number
}

/** The order to estimate, with defaults applied. */
export interface Order {
  readonly side: 'buy' | 'sell'
  readonly type: 'market' | 'limit' | 'twap' | 'vwap' | 'pov'
  readonly notionalUsd: number
  /** Length of a schedule, or how long a limit order waits; null for market and pov orders. */
  readonly horizonMinutes: number | null
  /** Share of the market volume that a pov order takes; null for other orders. */
  readonly participationRate: number | null
}

/** Defaults: a schedule lasts an hour and a limit order waits five minutes. */
const HORIZON_MINUTES = { market: null, limit: 5, twap: 60, vwap: 60, pov: null } as const
const PARTICIPATION_RATE = 0.1

/** The order of a request. A field that does not apply to the type of the order is ignored. */
export function orderFrom(request: CostRequest): Order {
  const { side, order_type: type, notional_usd: notionalUsd, horizon_minutes, participation_rate } = request
  const usual = HORIZON_MINUTES[type]
  return {
    side,
    type,
    notionalUsd,
    horizonMinutes: usual === null ? null : (horizon_minutes ?? usual),
    participationRate: type === 'pov' ? (participation_rate ?? PARTICIPATION_RATE) : null,
  }
}
