/** One event with its revisions, cluster and engagement counts, and the minute bars around it. */
import { type Ask, type Database, NotFound } from 'tollgate/plugin'
import { wordDiff } from './word-diff.ts'
import { formatMilliseconds } from '../../lib/time/timestamps.ts'
import { HOUR, formatOrNull } from '../time-range.ts'
import type { EventReader, EventAtMoment } from '../store/event-reader.ts'
import type { VersionRow } from '../store/tables.ts'
import { assetSymbol } from '../entities/topics.ts'
import { type KnownEvent, knownEvents, type RecordContext, eventRecord } from './event-record.ts'

const SELECTOR = /^(?:(evt_[0-9a-f]{16})|(latest)|seq:(\d{1,15}))$/

/** Finds the event that a selector names: an id, `latest`, or `seq:` and a number. Throws NotFound, which is not charged. */
export async function findSelected(reader: EventReader, selector: string, asOf: number): Promise<EventAtMoment> {
  const [, id, latest, seq] = selector.match(SELECTOR) ?? []
  const scan = { asOf, order: 'desc', from: 0, to: asOf + 1, after: null, limit: 1 } as const
  const row = id
    ? await reader.find({ id }, asOf)
    : latest
      ? ((await reader.scan(scan))[0] ?? null)
      : seq
        ? await reader.find({ seq: Number(seq) }, asOf)
        : null
  if (row) return row
  throw new NotFound(`There is no event ${selector}. Use an id such as evt_9f2c61d0a4b87e13, latest, or seq:48213.`)
}

/** The record, its revisions with word differences and hashes, the members of its cluster, and engagement counts. */
export async function eventDetails(
  db: Database,
  reader: EventReader,
  row: EventAtMoment,
  asOf: number,
  context: RecordContext,
) {
  const [event] = (await knownEvents(reader, [row], asOf, context)) as [KnownEvent]
  const versions = await reader.versions(row.seq, asOf)
  const counts = (await db('potus_engagement').where({ seq: row.seq }).where('observed_at', '<=', asOf).first()) as
    { observed_at: number; replies: number; reblogs: number; favourites: number } | undefined
  return {
    event: eventRecord(event, context),
    revisions: versions.map((version, at) => revisionOf(version, versions[at - 1])),
    cluster_members: event.members.map(({ id, seq, source, available_at }, at) => ({
      id,
      seq,
      source,
      available_at: formatMilliseconds(available_at),
      role: at === 0 ? ('lead' as const) : ('member' as const),
    })),
    engagement: counts
      ? {
          observed_at: formatMilliseconds(counts.observed_at),
          replies: counts.replies,
          reblogs: counts.reblogs,
          favourites: counts.favourites,
        }
      : null,
  }
}

function revisionOf(version: VersionRow, before: VersionRow | undefined) {
  return {
    version: version.version,
    revision: version.revision,
    status: version.status,
    known_at: formatMilliseconds(version.known_at),
    revised_at: formatOrNull(version.revised_at),
    title: version.title,
    characters: version.text.length,
    content_hash: version.content_hash,
    prev: version.prev,
    record_hash: version.record_hash,
    raw_sha256: version.raw_sha256 || null,
    parser: version.parser,
    changes: before ? wordDiff(`${before.title ?? ''} ${before.text}`, `${version.title ?? ''} ${version.text}`) : [],
  }
}

interface Columns {
  readonly count: number
  readonly time: ArrayLike<number>
  readonly open: ArrayLike<number>
  readonly high: ArrayLike<number>
  readonly low: ArrayLike<number>
  readonly close: ArrayLike<number>
  readonly volume: ArrayLike<number>
}

/**
 * Minute bars of the first asset that the market product covers: one hour before and after the event, and never later
 * than `asOf`. Null if no asset is covered.
 */
export async function barsAround(ask: Ask, assets: readonly { readonly id: string }[], at: number, asOf: number) {
  for (const { id } of assets) {
    const symbol = assetSymbol(id)
    if (symbol === null) continue
    const seconds = (time: number): number => Math.floor(time / 60_000) * 60
    const query = { symbol, from: seconds(at - HOUR), to: Math.min(seconds(at + HOUR), seconds(asOf)), interval: 60 }
    try {
      const bars = (await ask('getBars', { params: {}, query, body: undefined })) as unknown as Columns
      if (bars.count === 0) continue
      const rows = Array.from({ length: bars.count }, (_, i) => ({
        time: formatMilliseconds(bars.time[i]! * 1000),
        open: bars.open[i]!,
        high: bars.high[i]!,
        low: bars.low[i]!,
        close: bars.close[i]!,
        volume: bars.volume[i]!,
      }))
      return { asset: id, symbol, interval_seconds: 60 as const, items: rows }
    } catch (error) {
      // The market product has no bars of this symbol; the event is complete without them.
      if (!(error instanceof NotFound)) throw error
    }
  }
  return null
}
