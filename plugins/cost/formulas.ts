import type { CostEstimate } from '../../schemas/types.d.ts'
import type { Estimate } from './estimate.ts'
import type { Order } from './order.ts'

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

/** How the answer's numbers follow from its inputs and assumptions, in its own field names. */
export function formulasOf(type: Order['type'], source: Estimate['impactSource']): CostEstimate['formulas'] {
  const impact = IMMEDIATE[source]
  return {
    half_spread_bps: 'spread_share * spread_bps / 2',
    impact_bps: type === 'limit' ? `(1 - fill_probability) * (${impact})` : impact,
    timing_risk_bps: TIMING[type],
    range_bps:
      'fee_bps + max(0, half_spread_bps - spread_share * half_spread_error_bps) + impact_low_factor * impact_bps; fee_bps + half_spread_bps + spread_share * half_spread_error_bps + impact_high_factor * impact_bps',
  }
}
