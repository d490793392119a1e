/** Handlers of the feed's operations. Each answers with what was known at `asOf` and nothing newer. */
import { type Call, type CallOf, type Database, type Handlers, NotHeld, Reply } from 'tollgate/plugin'
import type { PotusFeeds } from '../../../schemas/types.d.ts'
import { roundTo } from '../../lib/quant/rounding.ts'
import { formatMilliseconds } from '../../lib/time/timestamps.ts'
import { GAZETTEER_SOURCES, GAZETTEER_VERSION } from '../entities/gazetteer.ts'
import { LEXICON_VERSION, TOPICS } from '../entities/topics.ts'
import { feedMethod } from '../potus-methodology.ts'
import { KINDS, SOURCES_VERSION } from '../sources/source.ts'
import type { HistoryRow } from '../store/histories.ts'
import { DAY, formatOrNull, MINUTE, shownRange, type TimeRange, timeRange } from '../time-range.ts'
import { assertHeld } from './archive-holdings.ts'
import { envelope, envelopeText, type FeedParts } from './answer-envelope.ts'
import { countEntities } from './entity-counts.ts'
import { filterHash, readCursor, writeCursor } from './event-cursor.ts'
import { barsAround, eventDetails, findSelected } from './event-details.ts'
import { parseFilter, readPage } from './event-filters.ts'
import { eventRecord } from './event-record.ts'
import {
  closedWindows,
  type Granularity,
  lastClosedEnd,
  minuteWindow,
  ONE_MINUTE,
  QUARTER,
  quarterWindow,
  readWindows,
  type Window,
} from './event-windows.ts'
import type { SourceFigures } from './feed-health.ts'
import { HealthRows, type RowsText } from './health-rows.ts'
import { createLiveHandler } from './live-feed.ts'
import { servingLatencies } from './serving-latencies.ts'
import { assertWatched, readWatchedFeed } from './watched-feed.ts'

/** The handlers of the product, by the operation ids of the catalog. */
export function createHandlers(parts: FeedParts): Handlers<'potus'> {
  const health = new HealthRows(parts.sources, parts.context.dataMode)
  return {
    getPotus: (call) => productIndex(parts, call),
    getPotusLive: createLiveHandler(parts),
    getPotusEvents1m: (call) => windowPage(parts, call, ONE_MINUTE, DAY, minuteWindow),
    getPotusEvents15m: (call) => windowPage(parts, call, QUARTER, 7 * DAY, quarterWindow),
    getPotusArchive: (call) => archivePage(parts, call),
    getPotusEvent: (call) => singleEvent(parts, call),
    getPotusEntities: (call) => entityCounts(parts, call),
    getPotusMethod: feedMethod,
    getPotusFeeds: (call) => sourceHealth(parts, health, call),
  }
}

/** The free index of the product: its operations, sources, topics and counts. The figures are a day old. */
async function productIndex(parts: FeedParts, call: Call) {
  const { db, reader, sources, product, figures } = parts
  const asOf = call.asOf.getTime()
  const operations = [...call.catalog.operations.values()].filter(
    (operation) => operation.product === product && !operation.internal && operation.price !== null,
  )
  const { events, backfilled, newest, byKind, latencies } = await figures.remember(
    { name: 'index', asOf, reach: MONTH + 1 },
    async () => ({
      events: await reader.countAll(asOf),
      backfilled: await countBackfilled(db, asOf),
      newest: await reader.newest(asOf),
      byKind: await countByKind(db, asOf),
      latencies: await servingLatencies(db, sources, asOf),
    }),
  )
  return {
    ...envelope(parts, call),
    routes: operations.map(({ displayRoute, summary, priceText, maxFreshnessSeconds }) => ({
      route: displayRoute,
      summary,
      price_usd: Number(priceText),
      max_freshness_seconds: maxFreshnessSeconds,
    })),
    plans: call.catalog.plans.path,
    sources: sources.map(({ id, name, enabled, verified, affiliation }) => ({
      id,
      name,
      enabled,
      verified,
      affiliation,
    })),
    kinds: [...KINDS],
    topics: [...TOPICS],
    versions: { sources: SOURCES_VERSION, gazetteer: GAZETTEER_VERSION, lexicon: LEXICON_VERSION },
    gazetteer_sources: [...GAZETTEER_SOURCES],
    counts: {
      events,
      backfilled,
      events_30d: byKind.reduce((sum, { n }) => sum + n, 0),
      by_kind_30d: Object.fromEntries(
        byKind.map(({ kind, n }) => [kind, n] as const).sort(([a], [b]) => (a < b ? -1 : 1)),
      ),
    },
    newest_available_at: formatOrNull(newest),
    latencies,
    histories: (await figures.ofHistories()).map(historyShown),
  }
}

function historyShown(row: HistoryRow) {
  return {
    source: row.source,
    state: row.state,
    stored: row.fresh,
    oldest: formatOrNull(row.oldest),
    share: row.share === null ? null : roundTo(row.share, 3),
    pages: row.pages,
    started_at: formatMilliseconds(row.started_at),
    updated_at: formatMilliseconds(row.updated_at),
    finished_at: formatOrNull(row.finished_at),
    error: row.detail,
  }
}

const MONTH = 30 * DAY

async function countBackfilled(db: Database, asOf: number): Promise<number> {
  const row = (await db('potus_events')
    .where({ ingest: 'backfill' })
    .where('available_at', '<=', asOf)
    .count('* as n')
    .first()) as { n: number }
  return row.n
}

/** Events of the last 30 days by kind. */
async function countByKind(db: Database, asOf: number): Promise<readonly { kind: string; n: number }[]> {
  return db('potus_events as e')
    .join('potus_versions as v', 'v.seq', 'e.seq')
    .where('v.version', 1)
    .whereBetween('e.available_at', [asOf - MONTH, asOf])
    .groupBy('v.kind')
    .select('v.kind as kind')
    .count('* as n') as unknown as Promise<{ kind: string; n: number }[]>
}

/** A page of windows of one size, at most `longest` milliseconds of them. */
async function windowPage<Name extends Granularity['name'], Shown>(
  parts: FeedParts,
  call: CallOf<'getPotusEvents1m' | 'getPotusEvents15m'>,
  granularity: Granularity<Name>,
  longest: number,
  show: (window: Window, coverage: number | null) => Shown,
) {
  const { start, end, from = start, to = end, limit, include_empty: withEmpty, cursor } = call.input.query
  const asOf = call.asOf.getTime()
  const hash = filterHash({ of: granularity.name, from, to, withEmpty })
  const after = cursor === undefined ? null : readCursor(cursor, 'asc', hash)
  const range = timeRange(call.input.query, { asOf, longest })
  const page = await readWindows(parts.reader, parts.context, granularity, range, asOf, { after, limit, withEmpty })
  const first = envelope(parts, call)
  const watched = await readWatchedFeed(parts, range, asOf)
  // The part of the range whose windows have closed.
  const until = lastClosedEnd(asOf, granularity)
  const closed = { from: range.from, to: Math.min(range.to, until) }
  const isEmpty = page.windows.every(({ events }) => events.length === 0)
  const isSold = call.access.kind === 'payment'
  // A subscriber who asks too early gets an empty list. A buyer would pay for it.
  if (isEmpty && isSold && after === null) assertClosed(range, asOf, granularity)
  if (isEmpty && (isSold || after === null)) {
    // What this page says that nothing happened in.
    const empty = {
      from: Math.max(closed.from, after === null ? 0 : after.availableAt + 1),
      to: page.next === null ? closed.to : page.next.availableAt + 1,
    }
    await assertWatched(parts, watched, empty, { access: call.access, step: granularity.size, until })
  }
  const answer = {
    ...first,
    granularity: granularity.name,
    ...shownRange(range),
    watched: watched.shown(closed),
    count: page.windows.length,
    windows: page.windows.map((window) =>
      show(window, watched.coverageOf({ from: window.start, to: window.start + granularity.size })),
    ),
    next_cursor: page.next === null ? null : writeCursor('asc', page.next, hash),
  }
  return new Reply(answer, { empty: isEmpty })
}

/** Throws NotHeld for a range in which no window begins that has closed: it lies ahead, or within one window. */
function assertClosed(range: TimeRange, asOf: number, granularity: Granularity): void {
  const closed = closedWindows(range, asOf, granularity)
  if (closed.from < closed.to) return
  const { size, name } = granularity
  const length = Math.max(1, Math.ceil((range.to - range.from) / size)) * size
  const end = Math.min(Math.floor(range.from / size) * size + length, lastClosedEnd(asOf, granularity))
  const span = `from ${formatMilliseconds(range.from)} to ${formatMilliseconds(range.to)}`
  const msg = `No ${name} window that begins ${span} has closed yet. Nothing was charged.`
  throw new NotHeld(msg, { start: new Date(Math.max(0, end - length)), end: new Date(end) })
}

async function archivePage(parts: FeedParts, call: CallOf<'getPotusArchive'>) {
  const { reader, context, sources } = parts
  const { start, end, from = start, to = end, cursor, limit, order, ...filters } = call.input.query
  const asOf = call.asOf.getTime()
  const hash = filterHash({ of: 'archive', from, to, ...filters })
  const after = cursor === undefined ? null : readCursor(cursor, order, hash)
  const range = timeRange(call.input.query, { asOf, longest: null, usual: Infinity })
  const filter = parseFilter(
    filters,
    sources.map(({ id }) => id),
  )
  const scan = { asOf, order, from: range.from, to: range.to, after } as const
  const page = await readPage(reader, context, filter, scan, limit, call.signal)
  // A page that ended early is no empty answer: its cursor goes on where it stopped.
  const isEmpty = page.events.length === 0 && page.next === null
  if (isEmpty && after === null) await assertHeld(parts, range, asOf)
  const answer = {
    ...envelope(parts, call),
    count: page.events.length,
    items: page.events.map((event) => eventRecord(event, context)),
    next_cursor: page.next === null ? null : writeCursor(order, page.next, hash),
  }
  return new Reply(answer, { empty: isEmpty })
}

/** One event, with minute bars around it if the catalog has bars. */
async function singleEvent(parts: FeedParts, call: CallOf<'getPotusEvent'>) {
  const { db, reader, context } = parts
  const asOf = call.asOf.getTime()
  const row = await findSelected(reader, call.input.params.selector, asOf)
  const details = await eventDetails(db, reader, row, asOf, context)
  const hasBars = call.catalog.operations.has('getBars')
  const bars = hasBars ? await barsAround(call.ask, details.event.assets, row.available_at, asOf) : null
  const watched = await readWatchedFeed(parts, { from: row.available_at, to: asOf }, asOf)
  return { ...envelope(parts, call), watched: watched.shown({ from: row.available_at, to: asOf }), ...details, bars }
}

async function entityCounts(parts: FeedParts, call: CallOf<'getPotusEntities'>) {
  const { query } = call.input
  const asOf = call.asOf.getTime()
  const range = timeRange(query, { asOf, longest: 31 * DAY, usual: 7 * DAY })
  const { total, items } = await countEntities(parts.db, range, asOf, query)
  const watched = await readWatchedFeed(parts, range, asOf)
  if (total === 0) await assertWatched(parts, watched, range, { access: call.access, step: MINUTE, until: asOf })
  const answer = {
    ...envelope(parts, call),
    ...shownRange(range),
    watched: watched.shown(range),
    total,
    count: items.length,
    items,
  }
  return new Reply(answer, { empty: total === 0 })
}

function sourceHealth(
  parts: FeedParts,
  health: HealthRows,
  call: CallOf<'getPotusFeeds'>,
): Reply<PotusFeeds> | Promise<Reply<PotusFeeds>> {
  const { figures, sources } = parts
  const asOf = call.asOf.getTime()
  const reply = (known: readonly SourceFigures[]): Reply<PotusFeeds> =>
    healthReply(parts, call, health.of(known, asOf, call.input.query.status))
  const memory = figures.inMemory(asOf)
  return memory ? reply(memory.ofSources(sources)) : figures.ofSources(sources, asOf).then(reply)
}

function healthReply(parts: FeedParts, call: CallOf<'getPotusFeeds'>, { count, text }: RowsText): Reply<PotusFeeds> {
  const opening = `${envelopeText(parts, call)},"count":${count},"feeds":[`
  return Reply.json([Buffer.from(opening), text, END_OF_ROWS], { empty: count === 0 })
}

const END_OF_ROWS = Buffer.from(']}')
