/**
 * Y of the square-root law: the average cost of an immediate order divided by σ·√(Q/V), measured by walking recorded
 * crypto order books. 1 is an upper bound.
 */
export const IMPACT_COEFFICIENT = 0.4

/**
 * The square-root law of market impact, Y·σ·√(Q/V), as a fraction of the price. Q is the size of the order and V the
 * volume of a day in the same unit; σ is the daily volatility, a fraction. The default of Y is IMPACT_COEFFICIENT.
 *
 * Source: Donier and Bonart, "A million metaorder analysis of market impact on the Bitcoin", Market Microstructure and
 * Liquidity 1 (2015), arXiv 1412.4503; Sato and Kanazawa, arXiv 2411.13965 (Tokyo Stock Exchange, exponent 1/2).
 *
 * @example squareRootImpact({ quantity: 1e6, dailyVolume: 1e9, dailyVolatility: 0.02 }) // 0.000252982…, 2.53 bps
 */
export function squareRootImpact(order: {
  readonly quantity: number
  readonly dailyVolume: number
  readonly dailyVolatility: number
  readonly coefficient?: number
}): number {
  const { quantity, dailyVolume, dailyVolatility, coefficient = IMPACT_COEFFICIENT } = order
  return coefficient * dailyVolatility * Math.sqrt(quantity / dailyVolume)
}

/** (Θ/V)^¼ of Almgren et al. if the number of shares outstanding is unknown. */
export const TURNOVER_FACTOR = 4

interface ScheduledOrder {
  /** Shares to trade. */
  readonly quantity: number
  /** Shares traded in an average day. */
  readonly dailyVolume: number
  /** Daily volatility, a fraction. */
  readonly dailyVolatility: number
  /** Length of the schedule, in trading days. */
  readonly days: number
  /** Shares outstanding, Θ. If omitted, (Θ/V)^¼ is TURNOVER_FACTOR. */
  readonly outstanding?: number
}

interface ScheduledImpact {
  /** I: the part of the price move that remains after the order, a fraction. */
  readonly permanent: number
  /** The part that is paid only while trading, a fraction. */
  readonly temporary: number
  /** J = I/2 + temporary: the expected cost against the price at the start of the order, a fraction. */
  readonly cost: number
}

/**
 * The impact of an order that is traded evenly over T days: I = 0.314·σ·(X/V)·(Θ/V)^¼ and J = I/2 + 0.142·σ·(X/(V·T))^⅗.
 *
 * Source: Almgren, Thum, Hauptmann and Li, "Direct estimation of equity market impact", Risk (July 2005). Their table
 * gives, for a tenth of a day's volume of IBM (V 6.561M, Θ 1,728M shares, σ 1.57%), J = 32, 25, 18 bps over 0.1, 0.2, 0.5
 * days.
 *
 * @example scheduledImpact({ quantity: 656100, dailyVolume: 6561000, dailyVolatility: 0.0157, days: 0.1, outstanding: 1.728e9 })
 * // { permanent: 0.0019859…, temporary: 0.0022294, cost: 0.0032223… }
 */
export function scheduledImpact(order: ScheduledOrder): ScheduledImpact {
  const { quantity, dailyVolume, dailyVolatility, days, outstanding } = order
  const turnover = outstanding === undefined ? TURNOVER_FACTOR : (outstanding / dailyVolume) ** 0.25
  const share = quantity / dailyVolume
  const permanent = 0.314 * dailyVolatility * share * turnover
  const temporary = 0.142 * dailyVolatility * (share / days) ** 0.6
  return { permanent, temporary, cost: permanent / 2 + temporary }
}
