/** How fresh the bars of a symbol are: what other products pass on as the freshness of their own answers. */
import type { Freshness } from 'tollgate/plugin'
import type { BarSource } from './bar-source.ts'
import type { OnlineBars } from './online-bars.ts'

/** Bars are counted over this time, up to the last one that has closed. */
const COUNTED_SECONDS = 3600

/**
 * Measures how fresh the bars of a symbol are at `asOf` (epoch seconds). `newest` is the close of the last bar, `sources` counts
 * the live venues that answer, and `coverage` is the share of the last hour that bars cover. Made-up and recorded bars always
 * count as fresh, if there are any.
 *
 * @param online null if the bars are made up or recorded
 */
export async function barFreshness(
  source: BarSource,
  online: Pick<OnlineBars, 'venues'> | null,
  { symbol, asOf }: { readonly symbol: string; readonly asOf: number },
): Promise<Freshness> {
  const series = (await source.series()).filter((entry) => entry.symbol === symbol)
  if (!online)
    return series.length > 0
      ? { newest: new Date(asOf * 1000), sources: null, coverage: 1 }
      : { newest: null, sources: 0, coverage: 0 }
  const venues = (await online.venues(symbol)) ?? []
  const sources = venues.filter(({ live, failures }) => live && failures === 0).length
  let newest: number | null = null
  let coverage = 0
  for (const entry of series) {
    const { interval_seconds: interval } = entry
    const closed = Math.floor(asOf / interval) * interval
    const { count, time } = await source.read(entry, closed - COUNTED_SECONDS, closed, asOf)
    const last = count > 0 ? time[count - 1]! : await source.last(entry, asOf)
    coverage = Math.max(coverage, Math.min(1, count / Math.max(1, Math.floor(COUNTED_SECONDS / interval))))
    if (last !== null) newest = Math.max(newest ?? 0, Math.min(asOf, last + interval))
  }
  return { newest: newest === null ? null : new Date(newest * 1000), sources, coverage }
}
