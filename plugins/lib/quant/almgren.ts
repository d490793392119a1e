export interface ScheduledOrder {
  /** Shares to trade. */
  readonly quantity: number
  /** Shares traded in an average day. */
  readonly dailyVolume: number
  /** Daily volatility, a fraction. */
  readonly dailyVolatility: number
  /** Length of the schedule in trading days. */
  readonly days: number
  /** Shares outstanding; without them (Θ/V)^¼ is taken as 4. */
  readonly outstanding?: number
}

export interface ScheduledImpact {
  /** I: what the price keeps after the order, a fraction. */
  readonly permanent: number
  /** What is paid only while trading, a fraction. */
  readonly temporary: number
  /** J = I/2 + temporary: the expected cost of the order against the price at its start, a fraction. */
  readonly cost: number
}

/**
 * Impact of an order traded evenly over a schedule: I = 0.314·σ·(X/V)·(Θ/V)^¼ and J = I/2 + 0.142·σ·(X/(V·T))^⅗.
 *
 * Source: Almgren, Thum, Hauptmann and Li, "Direct estimation of equity market impact", Risk (July 2005). Their table, a
 * tenth of a day's volume of IBM (V 6.561M, Θ 1,728M shares, σ 1.57%): J = 32, 25, 18 bps over 0.1, 0.2, 0.5 days.
 *
 * @example scheduledImpact({ quantity: 656100, dailyVolume: 6561000, dailyVolatility: 0.0157, days: 0.1, outstanding: 1.728e9 })
 * // { permanent: 0.0019859…, temporary: 0.0022294, cost: 0.0032223… }
 */
export function scheduledImpact(order: ScheduledOrder): ScheduledImpact {
  const { quantity, dailyVolume, dailyVolatility, days, outstanding } = order
  const turnover = outstanding === undefined ? 4 : (outstanding / dailyVolume) ** 0.25
  const share = quantity / dailyVolume
  const permanent = 0.314 * dailyVolatility * share * turnover
  const temporary = 0.142 * dailyVolatility * (share / days) ** 0.6
  return { permanent, temporary, cost: permanent / 2 + temporary }
}
