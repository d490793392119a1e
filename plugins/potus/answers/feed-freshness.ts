/** How fresh the feed is: what the gateway compares with the catalog before it sells an answer. */
import type { Freshness } from 'tollgate/plugin'
import type { Source } from '../sources/source.ts'
import type { FeedFigures } from './feed-figures.ts'
import { GOOD, latestOf, type SourceFigures, statusAround } from './feed-health.ts'

/**
 * The newest moment is that of the last successful poll of any source, at most `asOf`. Sources count while their last poll could be
 * read as a whole and is not older than their own limit before `now`; coverage is their share of those that are on. A source that
 * fails counts no longer at once: what it may have is unknown, however short ago it answered.
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
