/**
 * Square-root law of market impact, Y·σ·√(Q/V): a fraction of price, for an order of Q where V trades a day (same unit)
 * and the daily volatility is σ (a fraction). Y = 0.4 was measured for an immediate order walking recorded crypto books;
 * 1 is an upper bound.
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
  const { quantity, dailyVolume, dailyVolatility, coefficient = 0.4 } = order
  return coefficient * dailyVolatility * Math.sqrt(quantity / dailyVolume)
}
