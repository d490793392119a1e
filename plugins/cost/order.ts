import type { CostRequest } from '../../schemas/types.d.ts'

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

export function orderOf(request: CostRequest): Order {
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
