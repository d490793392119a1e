/**
 * The times during which each source was watched. A span begins with a successful poll and goes on with the next ones. It ends with
 * a poll that fails, or once the source has not been polled for as long as it may be late. So what is known of a moment never
 * changes afterwards. Spans are few, and stay when the log of polls is pruned.
 */
import type { Database } from 'tollgate/plugin'
import type { Source } from '../sources/source.ts'
import type { Span } from './held-values.ts'

/** A span as it is stored. */
export interface WatchRow {
  readonly source: string
  readonly from_at: number
  /** The last successful poll. */
  readonly until_at: number
  /** The failed poll that ended it, or null. */
  readonly failed_at: number | null
}

/** Notes a successful poll. Call it in the transaction that stores the poll, as `noteUnwatched`. */
export async function noteWatched(tx: Database, source: Source, at: number): Promise<void> {
  const last = await lastSpan(tx, source)
  if (last && at <= (last.failed_at ?? last.until_at)) return
  const goesOn = last && last.failed_at === null && at <= last.until_at + source.lateSeconds * 1000
  const row = { source: source.id, from_at: goesOn ? last.from_at : at, until_at: at }
  await tx('potus_watch').insert(row).onConflict(['source', 'from_at']).merge()
}

/** Notes a failed poll. */
export async function noteUnwatched(tx: Database, source: Source, at: number): Promise<void> {
  const last = await lastSpan(tx, source)
  if (!last || last.failed_at !== null || at < last.until_at || at > last.until_at + source.lateSeconds * 1000) return
  await tx('potus_watch').where({ source: source.id, from_at: last.from_at }).update({ failed_at: at })
}

function lastSpan(db: Database, { id }: Source): Promise<WatchRow | undefined> {
  return db<WatchRow>('potus_watch').where({ source: id }).orderBy('from_at', 'desc').first()
}

/** The rows of these sources, without those that ended before `from`. */
export async function readWatchRows(
  db: Database,
  sources: readonly Pick<Source, 'id' | 'lateSeconds'>[],
  from: number,
): Promise<readonly WatchRow[]> {
  const late = Math.max(0, ...sources.map(({ lateSeconds }) => lateSeconds * 1000))
  return db<WatchRow>('potus_watch')
    .whereIn(
      'source',
      sources.map(({ id }) => id),
    )
    .where('until_at', '>', from - late)
}

/** The spans of these sources until a moment. Those that ended before `from` may be missing. */
export function watchSpans(rows: readonly WatchRow[], sources: readonly Source[], until: number): readonly Span[] {
  const late = new Map(sources.map(({ id, lateSeconds }) => [id, lateSeconds * 1000]))
  return rows.flatMap(({ source, from_at: from, until_at, failed_at }) => {
    const lateBy = late.get(source)
    return lateBy === undefined || from >= until
      ? []
      : [{ from, until: Math.min(failed_at ?? until_at + lateBy, until) }]
  })
}

/** Reads the spans of these sources until a moment. Those that ended before `from` may be missing. */
export async function readWatched(
  db: Database,
  sources: readonly Source[],
  { from, until }: Span,
): Promise<readonly Span[]> {
  return watchSpans(await readWatchRows(db, sources, from), sources, until)
}

/** When one of these sources was watched for the first time; null if none ever was. */
export async function firstWatched(db: Database, sources: readonly Source[]): Promise<number | null> {
  const ids = sources.map(({ id }) => id)
  const row = (await db('potus_watch').whereIn('source', ids).min('from_at as at').first()) as { at: number | null }
  return row.at
}
