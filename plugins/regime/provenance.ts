/** What is recorded of how a snapshot came about, as it is sold. */
import { venuesOfBits } from '../lib/feeds/venue-bits.ts'
import { formatSeconds } from '../lib/time/timestamps.ts'
import type { Snapshot as RegimeSnapshot } from '../../schemas/types.d.ts'
import { hasOwnFit } from './regime-model.ts'
import { BACKFILL, ORIGINS, type Snapshot } from './snapshots.ts'

/** The fields of a sold snapshot that say how it came about. */
export type SoldProvenance = Required<
  Pick<RegimeSnapshot, 'origin' | 'computed_at' | 'venues' | 'disagreeing' | 'spread_bps' | 'warm_up'>
>

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
  const { agreed, dissenting } = venuesOfBits(venues ?? 0, bits)
  return {
    origin: ORIGINS[origin ?? BACKFILL],
    computed_at: computed_at === null ? null : formatSeconds(computed_at),
    venues: agreed,
    disagreeing: dissenting,
    spread_bps,
    warm_up: !hasOwnFit(as_of / 60, bars_used),
  }
}
