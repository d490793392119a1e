/** The health of every source as of a moment, computed from the log of polls. */
import type { Database } from 'tollgate/plugin'
import type { DataMode } from '../../lib/feeds/data-settings.ts'
import { DAY, formatOrNull } from '../time-range.ts'
import type { Source } from '../sources/source.ts'
import type { Outcome } from '../store/tables.ts'

type FeedStatus = 'ok' | 'late' | 'failing' | 'disabled' | 'replay' | 'sample'

/** Days that polls without a body are kept. */
export const LOG_DAYS = 8
/** Number of the newest latencies that the quantiles are taken from. */
const LATENCY_SAMPLES = 200
const GOOD: readonly Outcome[] = ['new', 'unchanged', 'not_modified']

interface Counted {
  readonly source: string
  readonly outcome: Outcome
  readonly at: number
  readonly n: number
}

/** The health of each source at `asOf`: last polls, failures, latencies and status. */
export async function feedHealth(db: Database, sources: readonly Source[], asOf: number, dataMode: DataMode) {
  const counted = (from: number, only?: readonly string[]): Promise<Counted[]> => {
    const query = db('potus_polls').whereBetween('at', [from, asOf]).groupBy('source', 'outcome')
    if (only) void query.whereIn('source', [...only])
    return query.select('source', 'outcome').max('at as at').count('* as n') as unknown as Promise<Counted[]>
  }
  const [recent, day] = [await counted(asOf - LOG_DAYS * DAY), await counted(asOf - DAY + 1)]
  // Sources that were not polled recently have few rows: only polls with a body are kept that long.
  const polled = new Set(recent.map(({ source }) => source))
  const quiet = sources.map(({ id }) => id).filter((id) => !polled.has(id))
  const all = [...recent, ...(await counted(0, quiet))]
  const seen = (await db('potus_events')
    .whereBetween('available_at', [asOf - DAY + 1, asOf])
    .groupBy('source')
    .select('source')
    .count('* as n')) as { source: string; n: number }[]
  return Promise.all(
    sources.map(async (source) => {
      const own = all.filter((row) => row.source === source.id)
      const today = day.filter((row) => row.source === source.id)
      const latest = (outcomes: readonly Outcome[]): number | null => {
        const times = own.filter(({ outcome }) => outcomes.includes(outcome)).map(({ at }) => at)
        return times.length === 0 ? null : Math.max(...times)
      }
      const lastSuccess = latest(GOOD)
      const failures = await failuresSince(db, source.id, lastSuccess ?? 0, asOf)
      const lags = await latenciesOf(db, source.id, asOf)
      const polls = today.reduce((sum, { n }) => sum + n, 0)
      const notModified = today.filter(({ outcome }) => outcome === 'not_modified').reduce((sum, { n }) => sum + n, 0)
      const last = (await db('potus_events')
        .where({ source: source.id })
        .where('available_at', '<=', asOf)
        .max('available_at as at')
        .first()) as { at: number | null }
      return {
        id: source.id,
        name: source.name,
        url: source.url,
        format: source.format,
        licence: source.licence,
        attribution: source.attribution,
        tier: source.tier,
        enabled: source.enabled,
        verified: source.verified,
        affiliation: source.affiliation,
        poll_seconds: source.pollSeconds,
        last_attempt: formatOrNull(latest([...GOOD, 'quarantined', 'failed'])),
        last_success: formatOrNull(lastSuccess),
        last_change: formatOrNull(latest(['new'])),
        last_item_at: formatOrNull(last.at),
        items_24h: seen.find((row) => row.source === source.id)?.n ?? 0,
        lag_p50_s: quantile(lags, 0.5),
        lag_p95_s: quantile(lags, 0.95),
        consecutive_failures: failures.count,
        last_failure: failures.detail,
        http_304_share: polls === 0 ? null : Math.round((notModified / polls) * 1000) / 1000,
        status: statusOf(source, dataMode, failures.count, lastSuccess, asOf),
      }
    }),
  )
}

function statusOf(
  source: Source,
  dataMode: DataMode,
  failures: number,
  lastSuccess: number | null,
  asOf: number,
): FeedStatus {
  if (!source.enabled) return 'disabled'
  if (failures > 0) return 'failing'
  if (dataMode !== 'online') return dataMode
  return lastSuccess === null || asOf - lastSuccess > source.lateSeconds * 1000 ? 'late' : 'ok'
}

/** Failed and quarantined polls since the last success, and the reason of the newest. */
async function failuresSince(db: Database, source: string, since: number, asOf: number) {
  const rows = (await db('potus_polls')
    .where({ source })
    .whereBetween('at', [since, asOf])
    .whereIn('outcome', ['failed', 'quarantined'])
    .orderBy('at', 'desc')
    .limit(1000)
    .select('detail')) as { detail: string | null }[]
  return { count: rows.length, detail: rows[0]?.detail ?? null }
}

/** The newest latencies of a source, ascending, in milliseconds. */
async function latenciesOf(db: Database, source: string, asOf: number): Promise<number[]> {
  const rows = (await db('potus_events')
    .where({ source })
    .where('available_at', '<=', asOf)
    .whereNotNull('latency_ms')
    .orderBy('available_at', 'desc')
    .limit(LATENCY_SAMPLES)
    .select('latency_ms as lag')) as { lag: number }[]
  return rows.map(({ lag }) => lag).sort((a, b) => a - b)
}

/**
 * Nearest-rank quantile of ascending milliseconds, in seconds to one decimal; null for an empty list.
 *
 * @example quantile([1000, 2000, 3000, 4000], 0.5) // 2
 */
function quantile(sorted: readonly number[], share: number): number | null {
  if (sorted.length === 0) return null
  const rank = Math.max(1, Math.ceil(share * sorted.length))
  return Math.round((sorted[rank - 1] as number) / 100) / 10
}
