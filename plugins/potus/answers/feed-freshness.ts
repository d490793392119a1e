/** How fresh the feed is: what the gateway compares with the catalog before it sells an answer. */
import type { Freshness } from 'tollgate/plugin'
import type { Source } from '../sources/source.ts'
import type { FeedFigures } from './feed-figures.ts'
import { GOOD, latestOf, type SourceFigures, statusAround } from './feed-health.ts'

/**
 * Measures how fresh the feed is. `newest` is the last successful poll of any source, at most `asOf`. `sources` counts those whose
 * last poll succeeded, could be read as a whole and is at `now` (epoch milliseconds) not older than their own limit; `coverage` is
 * their share of the sources that are on. A source whose last poll failed does not count, however recently it answered before.
 */
export async function feedFreshness(
  figures: FeedFigures,
  sources: readonly Source[],
  asOf: Date,
  now: number,
): Promise<Freshness> {
  const enabled = sources.filter(({ enabled }) => enabled)
  const known = await figures.ofSources(enabled, now)
  const alive = enabled.filter(
    (source, n) => statusAround(source, known[n] as SourceFigures, now, 'online').value === 'ok',
  )
  const newest = Math.max(-Infinity, ...known.map(({ last }) => latestOf(last, GOOD) ?? -Infinity))
  return {
    newest: Number.isFinite(newest) ? new Date(Math.min(newest, asOf.getTime())) : null,
    sources: alive.length,
    coverage: enabled.length === 0 ? 0 : alive.length / enabled.length,
  }
}
