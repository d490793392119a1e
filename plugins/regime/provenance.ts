/** What is recorded of how a snapshot came about, as it is sold. */
import { formatSeconds } from '../lib/time/timestamps.ts'
import type { Snapshot as RegimeSnapshot } from '../../schemas/types.d.ts'
import { hasOwnFit } from './regime-model.ts'
import { BACKFILL, ORIGINS, type Snapshot } from './snapshots.ts'

/** The fields of a sold snapshot that say how it came about. */
export type SoldProvenance = Required<
  Pick<RegimeSnapshot, 'origin' | 'computed_at' | 'venues' | 'disagreeing' | 'spread_bps' | 'warm_up'>
>

/** Venues that traded at other prices are counted from this bit on. */
const DISSENT_SHIFT = 16

/**
 * Which venues stood behind a snapshot, when it was computed, and whether the model was still warming up. `bits` names the
 * venue of each bit. A snapshot of an earlier release counts as back-filled, with no venues.
 *
 * @example provenanceOf({ ...snapshot, origin: LIVE, venues: 0b101 }, ['coinbase', 'binance', 'kraken']).venues // ["coinbase", "kraken"]
 */
export function provenanceOf(
  { as_of, origin, computed_at, venues, spread_bps, bars_used }: Snapshot,
  bits: readonly string[],
): SoldProvenance {
  const named = (mask: number): string[] => bits.filter((_, bit) => Math.floor(mask / 2 ** bit) % 2 === 1)
  return {
    origin: ORIGINS[origin ?? BACKFILL],
    computed_at: computed_at === null ? null : formatSeconds(computed_at),
    venues: named((venues ?? 0) % 2 ** DISSENT_SHIFT),
    disagreeing: named(Math.floor((venues ?? 0) / 2 ** DISSENT_SHIFT)),
    spread_bps,
    warm_up: !hasOwnFit(as_of / 60, bars_used),
  }
}
