import type { Snapshot } from '../../../plugins/regime/snapshots.ts'

/** A snapshot as of a time in epoch seconds, known at once. */
export function snapshotAt(time: number): Snapshot {
  return {
    as_of: time,
    volatile: 0,
    confidence: 0.9,
    position_scalar: 1,
    forecast_vol: 0.5,
    boundary_vol: 0.6,
    realized_vol_1h: null,
    since: 0,
    bars_used: 1,
    known_at: time,
    origin: null,
    computed_at: null,
    venues: null,
    spread_bps: null,
    model: null,
    forecast_vol_mean: null,
    forecast_vol_median: null,
    forecast_vol_p10: null,
    forecast_vol_p90: null,
    reference_vol: null,
  }
}
