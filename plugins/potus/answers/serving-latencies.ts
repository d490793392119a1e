/** How long after its publication an item of a source could be served: percentiles, which are free. */
import type { Database } from 'tollgate/plugin'
import type { PotusIndex } from '../../../schemas/types.d.ts'
import type { Source } from '../sources/source.ts'
import { DAY } from '../time-range.ts'
import { quantile } from './feed-health.ts'

/** Items of so many days count. */
const DAYS = 90

export type ServingLatency = PotusIndex['latencies'][number]

/**
 * Percentiles of `available_at - published_at` over the live items with an exact time that were available in the 90 days
 * before `asOf`. A source without such items is left out.
 */
export async function servingLatencies(
  db: Database,
  sources: readonly Source[],
  asOf: number,
): Promise<ServingLatency[]> {
  const rows = (await db('potus_events')
    .whereBetween('available_at', [asOf - DAYS * DAY, asOf])
    .where({ ingest: 'live' })
    .whereNotNull('latency_ms')
    .select('source', 'available_at as served', 'published_at as published')) as {
    source: string
    served: number
    published: number
  }[]
  return sources.flatMap(({ id }) => {
    const sorted = rows
      .filter(({ source }) => source === id)
      .map(({ served, published }) => served - published)
      .sort((a, b) => a - b)
    if (sorted.length === 0) return []
    const [p50, p90, p99] = [0.5, 0.9, 0.99].map((share) => quantile(sorted, share) as number) as [
      number,
      number,
      number,
    ]
    const old = { p50_s: p50, p90_s: p90, p99_s: p99 }
    return [{ source: id, samples: sorted.length, p50_seconds: p50, p90_seconds: p90, p99_seconds: p99, ...old }]
  })
}
