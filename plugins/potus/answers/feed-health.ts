/** The health of every source as of a moment, computed from the log of polls. */
import { roundTo } from '../../lib/quant/rounding.ts'
import type { Database, DataMode } from 'tollgate/plugin'
import { DAY, formatOrNull } from '../time-range.ts'
import type { Source } from '../sources/source.ts'
import type { Held } from '../store/held-values.ts'
import { EVENT_COUNT, type Outcome } from '../store/tables.ts'

export type FeedStatus = 'ok' | 'degraded' | 'late' | 'failing' | 'disabled' | 'replay' | 'sample'

/** Days that polls without a body are kept. */
export const LOG_DAYS = 8
/** Number of the newest latencies that the quantiles are taken from. */
export const LATENCY_SAMPLES = 200
/** Whether a poll with this outcome reached the source, or counts as a failure. */
const KINDS: Readonly<Record<Outcome, 'good' | 'bad'>> = {
  new: 'good',
  partial: 'good',
  unchanged: 'good',
  not_modified: 'good',
  failed: 'bad',
  quarantined: 'bad',
}
const OUTCOMES = Object.keys(KINDS) as Outcome[]
/** Outcomes of polls that reached the source. */
export const GOOD: readonly Outcome[] = OUTCOMES.filter((outcome) => KINDS[outcome] === 'good')
/** Outcomes of polls that found another body than the one before. */
const CHANGES: readonly Outcome[] = ['new', 'partial']
/** Outcomes of polls that count as failures. */
export const BAD: readonly Outcome[] = OUTCOMES.filter((outcome) => KINDS[outcome] === 'bad')
/** Failures in a row are counted up to this number. */
export const MAX_FAILURES = 1000

/** What the log of polls and the events say about one source as of a moment. */
export interface SourceFigures {
  /** When the last polls with each outcome were: within LOG_DAYS, or ever if there was none within. */
  readonly last: ReadonlyMap<Outcome, number>
  /** Failures since the last success, and the reason of the newest. */
  readonly failures: { readonly count: number; readonly detail: string | null }
  /** Polls of the last 24 hours. */
  readonly polls: number
  readonly notModified: number
  /** The newest latencies, ascending, in milliseconds. */
  readonly latencies: readonly number[]
  readonly newest: number | null
  /** Events of the last 24 hours. */
  readonly items: number
}

/** The time of the latest poll with one of these outcomes, or null. */
export function latestOf(last: ReadonlyMap<Outcome, number>, outcomes: readonly Outcome[]): number | null {
  let latest: number | null = null
  for (const outcome of outcomes) {
    const at = last.get(outcome) ?? null
    if (at !== null && (latest === null || at > latest)) latest = at
  }
  return latest
}

interface Counted {
  readonly source: string
  readonly outcome: Outcome
  readonly at: number
  /** Polls of the last 24 hours. */
  readonly n: number
}

/** Reads the figures of the sources as of a moment, in the order of `sources`. */
export async function readSourceFigures(
  db: Database,
  sources: readonly string[],
  asOf: number,
): Promise<readonly SourceFigures[]> {
  const today = db.raw('count(case when at >= ? then 1 end) as n', [asOf - DAY + 1])
  const counted = (from: number, only?: readonly string[]): Promise<Counted[]> => {
    const query = db('potus_polls').whereBetween('at', [from, asOf]).groupBy('source', 'outcome')
    if (only) void query.whereIn('source', [...only])
    return query.select('source', 'outcome', today).max('at as at') as unknown as Promise<Counted[]>
  }
  const recent = await counted(asOf - LOG_DAYS * DAY)
  // Sources that were not polled recently have few rows: only polls with a body are kept that long.
  const polled = new Set(recent.map(({ source }) => source))
  const quiet = sources.filter((id) => !polled.has(id))
  const all = [...recent, ...(await counted(0, quiet))]
  const seen = (await db('potus_events')
    .whereBetween('available_at', [asOf - DAY + 1, asOf])
    .groupBy('source')
    .select('source')
    .count('* as n')) as { source: string; n: number }[]
  const newest = await newestOfEach(db, sources, asOf)
  return Promise.all(
    sources.map(async (source, i) => {
      const own = all.filter((row) => row.source === source)
      const last = new Map(own.map(({ outcome, at }) => [outcome, at]))
      const latencies = newest[i] === null ? [] : await newestLatencies(db, source, asOf)
      return {
        last,
        failures: await failuresSinceSuccess(db, source, last, asOf),
        polls: own.reduce((sum, { n }) => sum + n, 0),
        notModified: own.find(({ outcome }) => outcome === 'not_modified')?.n ?? 0,
        latencies: latencies.map(({ ms }) => ms).sort((a, b) => a - b),
        newest: newest[i] ?? null,
        items: seen.find((row) => row.source === source)?.n ?? 0,
      }
    }),
  )
}

/** The health of a source: last polls, failures and latencies. Its status, which follows, also depends on the moment. */
export function feedHealth(source: Source, figures: SourceFigures) {
  const { last, failures, polls, notModified, latencies, newest, items } = figures
  const [lagP50, lagP95] = [quantile(latencies, 0.5), quantile(latencies, 0.95)]
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
    last_attempt: formatOrNull(latestOf(last, OUTCOMES)),
    last_success: formatOrNull(latestOf(last, GOOD)),
    last_change: formatOrNull(latestOf(last, CHANGES)),
    last_item_at: formatOrNull(newest),
    items_24h: items,
    lag_p50_seconds: lagP50,
    lag_p95_seconds: lagP95,
    lag_p50_s: lagP50,
    lag_p95_s: lagP95,
    consecutive_failures: failures.count,
    last_failure: failures.detail,
    http_304_share: polls === 0 ? null : roundTo(notModified / polls, 3),
  }
}

/** The status of a source at `asOf`, and at which moments it is that as long as the figures are the same. */
export function statusAround(
  source: Source,
  { last, failures }: Pick<SourceFigures, 'last' | 'failures'>,
  asOf: number,
  dataMode: DataMode,
): Held<FeedStatus> {
  const always = (value: FeedStatus) => ({ value, from: -Infinity, until: Infinity })
  if (!source.enabled) return always('disabled')
  if (failures.count > 0) return always('failing')
  if (dataMode !== 'online') return always(dataMode)
  const lastSuccess = latestOf(last, GOOD)
  if (lastSuccess === null) return always('late')
  const lateFrom = lastSuccess + source.lateSeconds * 1000 + 1
  // The same body again, or none, lacks the same entries.
  const lacksEntries = (latestOf(last, ['partial']) ?? -1) > (latestOf(last, ['new']) ?? -1)
  return asOf < lateFrom
    ? { value: lacksEntries ? 'degraded' : 'ok', from: -Infinity, until: lateFrom }
    : { value: 'late', from: lateFrom, until: Infinity }
}

/** True for a source that may have news which the feed lacks. */
export function isLate(status: FeedStatus): status is 'late' | 'failing' | 'degraded' {
  return status === 'late' || status === 'failing' || status === 'degraded'
}

/** Failures since the last success. Nothing is read for a source whose last poll was none. */
async function failuresSinceSuccess(
  db: Database,
  source: string,
  last: SourceFigures['last'],
  asOf: number,
): Promise<SourceFigures['failures']> {
  const since = latestOf(last, GOOD) ?? 0
  if ((latestOf(last, BAD) ?? -1) < since) return { count: 0, detail: null }
  const rows = await lastFailures(db, source, since, asOf)
  return { count: rows.length, detail: rows[0]?.detail ?? null }
}

/** Failed and quarantined polls in [since, asOf], newest first, at most MAX_FAILURES. */
export async function lastFailures(
  db: Database,
  source: string,
  since: number,
  asOf: number,
): Promise<readonly { readonly id: number; readonly at: number; readonly detail: string | null }[]> {
  return (await db('potus_polls')
    .where({ source })
    .whereBetween('at', [since, asOf])
    .whereIn('outcome', BAD)
    .orderBy([
      { column: 'at', order: 'desc' },
      { column: 'id', order: 'desc' },
    ])
    .limit(MAX_FAILURES)
    .select('id', 'at', 'detail')) as { id: number; at: number; detail: string | null }[]
}

/** The newest latencies of a source, newest first, in milliseconds. */
export async function newestLatencies(
  db: Database,
  source: string,
  asOf: number,
): Promise<readonly { readonly at: number; readonly seq: number; readonly ms: number }[]> {
  return (await db('potus_events')
    .where({ source })
    .where('available_at', '<=', asOf)
    .whereNotNull('latency_ms')
    .orderBy([
      { column: 'available_at', order: 'desc' },
      { column: 'seq', order: 'desc' },
    ])
    .limit(LATENCY_SAMPLES)
    .select('available_at as at', 'seq', 'latency_ms as ms')) as { at: number; seq: number; ms: number }[]
}

/** When the newest event of each source became available, or null, in the order of `sources`: one statement. */
export async function newestOfEach(
  db: Database,
  sources: readonly string[],
  asOf: number,
): Promise<readonly (number | null)[]> {
  const newest = sources.map((source, i) => {
    const e = `e${i}`
    const found = `from potus_events as ${e} where ${e}.source = ? and ${e}.available_at <= ?`
    return db.raw(`(select max(${e}.available_at) ${found}) as newest_${i}`, [source, asOf])
  })
  const row = (await db('potus_notes')
    .where({ name: EVENT_COUNT })
    .first(...newest)) as Readonly<Record<string, number | null>> | undefined
  return sources.map((_, i) => row?.[`newest_${i}`] ?? null)
}

/**
 * Nearest-rank quantile of ascending milliseconds, in seconds to one decimal; null for an empty list.
 *
 * @example quantile([1000, 2000, 3000, 4000], 0.5) // 2
 */
export function quantile(sorted: readonly number[], share: number): number | null {
  if (sorted.length === 0) return null
  const rank = Math.max(1, Math.ceil(share * sorted.length))
  return Math.round((sorted[rank - 1] as number) / 100) / 10
}
