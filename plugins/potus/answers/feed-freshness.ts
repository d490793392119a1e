/** How fresh the feed is: what the gateway compares with the catalog before it sells an answer. */
import type { Freshness } from 'tollgate/plugin'
import type { Source } from '../sources/source.ts'
import type { FeedFigures } from './feed-figures.ts'
import { GOOD, latestOf } from './feed-health.ts'

/**
 * The newest moment is that of the last successful poll of any source, at most `asOf`. Sources count that were polled
 * successfully within their own limit before `now`, and coverage is their share of those that are on.
 */
export async function feedFreshness(
  figures: FeedFigures,
  sources: readonly Source[],
  asOf: Date,
  now: number,
): Promise<Freshness> {
  const enabled = sources.filter(({ enabled }) => enabled)
  const polled = (await figures.ofSources(enabled, now)).map(({ last }) => latestOf(last, GOOD))
  const alive = enabled.filter(({ lateSeconds }, n) => {
    const at = polled[n] ?? null
    return at !== null && now - at <= lateSeconds * 1000
  })
  const newest = Math.max(-Infinity, ...polled.filter((at) => at !== null))
  return {
    newest: Number.isFinite(newest) ? new Date(Math.min(newest, asOf.getTime())) : null,
    sources: alive.length,
    coverage: enabled.length === 0 ? 0 : alive.length / enabled.length,
  }
}
