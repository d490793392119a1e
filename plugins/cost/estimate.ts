import { scheduledImpact } from '../lib/quant/almgren.ts'
import { type Immediate, IMPACT_COEFFICIENT, immediateImpact } from './immediate.ts'
import type { Inputs } from './inputs.ts'
import type { Order } from './order.ts'

/** The numbers that are assumed rather than measured for each call; published with every estimate. */
export interface Assumptions {
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
export function estimate(order: Order, inputs: Inputs): Estimate {
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
