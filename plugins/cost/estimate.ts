import type { CostRequest } from '../../schemas/types.d.ts'
import { scheduledImpact, squareRootImpact } from '../lib/quant/market-impact.ts'
import { type Book, type Level, walkBook } from '../lib/quant/order-book.ts'

/** The numbers that are assumed rather than measured for each call; published with every estimate. */
interface Assumptions {
  /** Share of the half spread that is paid. */
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
  /** Share of the half spread that is paid, less what is earned. */
  readonly halfSpreadBps: number
  readonly impactBps: number
  readonly impactSource: Immediate['source'] | 'almgren_2005'
  readonly timingRiskBps: number
  /** Length of the schedule or of the wait, in trading days; null for a market order. */
  readonly horizonDays: number | null
  /** Share of the market's volume taken while a schedule lasts; null for immediate orders. */
  readonly participationRate: number | null
  readonly participationOfAdv: number
  readonly immediate: Immediate | null
  readonly low: number
  readonly high: number
  readonly assumptions: Assumptions
}

/** (Θ/V)^¼ of Almgren et al. where shares outstanding are not known. */
const TURNOVER_FACTOR = 4
/** A schedule on the volume clock meets deeper markets than an even one. */
const VOLUME_CLOCK = 0.95
const SCHEDULE_SPREAD_SHARE = 0.5
const FILL_PROBABILITY = 0.65
const ADVERSE_SELECTION = 0.8
const LATENCY_SECONDS = 3
const LARGE_PARTICIPATION = 0.1
/** Tenth and ninetieth percentile of true impact over estimated. */
const FACTORS = {
  // The law's mean error against recorded books is 0.16 in log10; of a normal error, 1.2816 · 0.16 · √(π/2) either way.
  law: [10 ** -0.257, 10 ** 0.257],
  // The same walk half a minute later.
  book: [0.65, 1.7],
  large: [0.5, 2.5],
} as const

/**
 * The expected cost of an order before fees, in basis points of its notional.
 *
 * market: half spread + impact of an immediate order. limit, posted at the touch: p(-half + adverse) + (1-p)(half +
 * impact), p = 0.65, adverse = 0.8 half. twap: half of the half spread + J of Almgren et al. over the horizon; vwap: 5%
 * less temporary impact; pov: as vwap, over T = Q/(rate ADV). Timing risk is a standard deviation: σ√(T/3) for an even
 * schedule, σ√T over three seconds for a market order, σ√((1-p)T) for an order that waits T and is then sent.
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
  const isLarge = participationOfAdv > LARGE_PARTICIPATION
  const [low, high] = FACTORS[isLarge ? 'large' : immediate?.source === 'book_walk' ? 'book' : 'law']
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

/** What an immediate order of a size pays beyond the half spread. */
export interface Immediate {
  readonly impactBps: number
  readonly source: 'book_walk' | 'book_walk_and_square_root' | 'square_root'
  /** Levels taken, best first; empty without a book. */
  readonly levels: readonly Level[]
  /** All that rests on the side that is taken, in USD; null without a book. */
  readonly depthUsd: number | null
}

/** Average cost of an immediate order over σ √(Q/ADV), as measured by walking recorded books. */
const IMPACT_COEFFICIENT = 0.4
/** A hair inside the book's depth, so that rounding never says it is too thin. */
const INSIDE = 1 - 1e-12

/**
 * Impact of an immediate order: the walk of the book as far as it reaches, W(Q) less the half spread; beyond its depth
 * D the walk of all of it plus what the square-root law adds from D to Q, L(Q) - L(D); without a book L(Q) alone. It
 * never falls with size.
 *
 * Source: definition of the walk; the law of Donier and Bonart (2015), L(Q) = 0.4 σ √(Q/ADV).
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
  if (!walk) throw new RangeError('a book that is held has two sides and is walked within its depth')
  return walk
}

/** The numbers an estimate is made of. */
export interface EstimateInputs {
  /** Quoted or estimated spread, bps. */
  readonly spreadBps: number
  /** Standard deviation of the price over a trading day, a fraction. */
  readonly sigmaDaily: number
  /** Average turnover of a trading day, USD. */
  readonly advUsd: number
  /** Minutes of a trading day: 1440 around the clock, 390 for US equities. */
  readonly dayMinutes: number
  /** Error of half the spread, bps: 0.8 times the mean error of the spread's source. */
  readonly halfSpreadErrorBps: number
  readonly book: Book | null
}

/** What is to be traded, defaults applied. */
export interface Order {
  readonly side: 'buy' | 'sell'
  readonly type: 'market' | 'limit' | 'twap' | 'vwap' | 'pov'
  readonly notionalUsd: number
  /** Length of a schedule, or how long a limit order waits; null where the type has none of its own. */
  readonly horizonMinutes: number | null
  /** Share of the market's volume that a pov order takes; null for the others. */
  readonly participationRate: number | null
}

/** A schedule lasts an hour, a posted order waits five minutes, unless the request says otherwise. */
const HORIZON_MINUTES = { market: null, limit: 5, twap: 60, vwap: 60, pov: null } as const
const PARTICIPATION_RATE = 0.1

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
