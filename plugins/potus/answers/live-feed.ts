/** The live feed: its newest page, its state in figures, and server-sent events for token holders. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Call, type Database, Reply, type ServerEvent } from 'tollgate/plugin'
import type { PotusLiveQuery } from '../../../schemas/types.d.ts'
import { formatMilliseconds } from '../../lib/time/timestamps.ts'
import type { EventAtMoment } from '../store/event-reader.ts'
import { DAY, HOUR } from '../time-range.ts'
import { delaySeconds, envelope, type FeedParts, type QueryCall } from './answer-envelope.ts'
import { type Filter, type FilterQuery, parseFilter, readPage } from './event-filters.ts'
import { BASELINE_DAYS } from './feed-figures.ts'
import { eventRecord, type KnownEvent, knownEvents } from './event-record.ts'
import { lastClosedEnd, ONE_MINUTE, QUARTER } from './event-windows.ts'
import { feedStatus, type SourceFigures } from './feed-health.ts'

const TOP_TOPICS = 5
const MATCH_ALL: Filter = { isOpen: true, term: undefined, source: undefined, matches: () => true }
const MAX_EVENTS_IN_AN_HOUR = 500
/** Remembered answers belong to every caller, so no caller's signal ends their computation. */
const NEVER = new AbortController().signal
/** How often the store is checked for new events while anybody follows. */
const CHECK_MS = 1000
/** Rows read at once for a follower. */
const BATCH = 100

/** Answers `getPotusLive`: a page, or a stream for a token holder who asks for server-sent events. */
export function createLiveHandler(parts: FeedParts) {
  const sourceIds = parts.sources.map(({ id }) => id)
  const tail = createTail(async () => {
    const row = (await parts.db('potus_events').max('seq as seq').first()) as { seq: number | null }
    return row.seq ?? 0
  })
  return async (call: QueryCall<PotusLiveQuery>) => {
    const { limit, since_seq: since, ...filters } = call.input.query
    const filter = parseFilter(filters, sourceIds)
    return call.stream && call.access.kind === 'token'
      ? Reply.events(await followLive(parts, tail, call, filter))
      : livePage(parts, call, filter, { limit, since, filters })
  }
}

/**
 * Without `since` the newest matching events; with it the oldest matching events after that number, so that a client
 * that polls misses none.
 */
async function livePage(
  parts: FeedParts,
  call: QueryCall<PotusLiveQuery>,
  filter: Filter,
  {
    limit,
    since,
    filters,
  }: { readonly limit: number; readonly since: number | undefined; readonly filters: FilterQuery },
) {
  const asOf = call.asOf.getTime()
  const state = await liveState(parts, asOf)
  const name = JSON.stringify(['live', limit, since, filters])
  const { items, next } = await parts.figures.remember({ name, asOf, reach: 0 }, async () => {
    const page =
      since === undefined
        ? { events: await newestEvents(parts, { asOf: call.asOf, signal: NEVER }, filter, limit), next: null }
        : await eventsAfter(parts, filter, asOf, since, limit)
    return { items: page.events.map((event) => eventRecord(event, parts.context)), next: page.next }
  })
  return { ...envelope(parts, call), count: items.length, items, next_since_seq: next ?? state.last_seq, state }
}

async function newestEvents(
  { reader, context }: FeedParts,
  { asOf: moment, signal }: Pick<Call, 'asOf' | 'signal'>,
  filter: Filter,
  limit: number,
): Promise<readonly KnownEvent[]> {
  const asOf = moment.getTime()
  const scan = { asOf, order: 'desc', from: 0, to: asOf + 1, after: null } as const
  return (await readPage(reader, context, filter, scan, limit, signal)).events
}

/** Matching events numbered above `since`, newest first, and the number that the next call continues from. */
async function eventsAfter({ reader, context }: FeedParts, filter: Filter, asOf: number, since: number, limit: number) {
  const found: KnownEvent[] = []
  let next = since
  for (let more = true; more;) {
    const rows = await reader.since(next, asOf, limit)
    const matching = (await knownEvents(reader, rows, asOf, context)).filter((event) => filter.matches(event))
    const taken = matching.slice(0, limit - found.length)
    found.push(...taken)
    const isFull = found.length === limit
    next = (isFull ? taken.at(-1)?.row.seq : rows.at(-1)?.seq) ?? next
    more = !isFull && rows.length === limit
  }
  return { events: found.reverse(), next }
}

/**
 * Live records as server-sent events. The event id is the record's number. The stream continues after Last-Event-ID,
 * otherwise after `since_seq`, otherwise it begins with the newest `limit` events.
 */
async function followLive(
  parts: FeedParts,
  tail: Tail,
  call: QueryCall<PotusLiveQuery>,
  filter: Filter,
): Promise<AsyncIterable<ServerEvent>> {
  const { reader, context, now, assertReady } = parts
  assertReady()
  const { since_seq: since, limit } = call.input.query
  // Counted from the delay itself and not from asOf, because a time that lags would skip events that came meanwhile.
  const visibleUntil = (): number => now().getTime() - delaySeconds(call) * 1000
  const id = call.stream?.lastEventId ?? ''
  const after = /^\d{1,15}$/.test(id) ? Number(id) : (since ?? (await seqBeforeNewest(parts, call, filter, limit)))
  return tail.follow<EventAtMoment>(after, {
    read: (position, count) => reader.since(position, visibleUntil(), count),
    async show(rows) {
      const known = await knownEvents(reader, rows, visibleUntil(), context)
      return known.map((event) =>
        filter.matches(event) ? { id: String(event.row.seq), data: eventRecord(event, context) } : null,
      )
    },
  })
}

/** The number just before the newest `limit` matching events. */
async function seqBeforeNewest(
  parts: FeedParts,
  call: Pick<Call, 'asOf' | 'signal'>,
  filter: Filter,
  limit: number,
): Promise<number> {
  const newest = await newestEvents(parts, call, filter, limit)
  if (newest.length === 0) return parts.reader.lastSeq(call.asOf.getTime())
  return Math.min(...newest.map(({ row }) => row.seq)) - 1
}

/** The state of the feed as of a moment: open windows, how many events came, whether that is many, source health. */
async function liveState({ reader, db, context, sources, figures }: FeedParts, asOf: number) {
  const enabled = sources.filter((source) => source.enabled)
  const known = await figures.ofSources(enabled, asOf)
  const statuses = enabled.map((source, at) => feedStatus(source, known[at] as SourceFigures, asOf, context.dataMode))
  const late = statuses.filter((status) => status === 'late' || status === 'failing').length
  const { hour, day, month, firstOfMonth, newest, lastSeq } = await figures.ofEvents(asOf)
  // Events per day over the last 30 days, or over the days that a younger store has.
  const usual = month / Math.max(1, Math.min(BASELINE_DAYS, (asOf - (firstOfMonth ?? asOf)) / DAY))
  const highest = await figures.remember({ name: 'relevance', asOf, reach: HOUR }, async () => {
    const range = { asOf, order: 'desc', from: asOf - HOUR + 1, to: asOf + 1, after: null } as const
    const { events } = await readPage(reader, context, MATCH_ALL, range, MAX_EVENTS_IN_AN_HOUR, NEVER)
    return events.length === 0 ? null : Math.max(...events.map(({ relevance }) => relevance.score))
  })
  const topics = await figures.remember({ name: 'topics', asOf, reach: DAY }, async () =>
    (await topicCounts(db, asOf)).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, TOP_TOPICS),
  )
  return {
    window_open: {
      '1m': formatMilliseconds(lastClosedEnd(asOf + ONE_MINUTE.grace, ONE_MINUTE)),
      '15m': formatMilliseconds(lastClosedEnd(asOf + QUARTER.grace, QUARTER)),
    },
    events_1h: hour,
    events_24h: day,
    baseline_24h: Math.round(usual * 10) / 10,
    intensity: usual === 0 ? null : Math.round((day / usual) * 100) / 100,
    max_relevance_1h: highest,
    top_topics_24h: topics,
    sources_ok: statuses.length - late,
    sources_late: late,
    last_seq: lastSeq,
    seconds_since_last: newest === null ? null : Math.floor((asOf - newest) / 1000),
  }
}

/** How many versions that stood at the moment name each topic, over the last 24 hours. */
async function topicCounts(db: Database, asOf: number): Promise<[string, number][]> {
  const rows = (await db('potus_mentions')
    .where('type', 'topic')
    .whereBetween('available_at', [asOf - DAY + 1, asOf])
    .where('known_at', '<=', asOf)
    .where((open) => void open.whereNull('superseded_at').orWhere('superseded_at', '>', asOf))
    .groupBy('name')
    .select('name')
    .count('* as n')) as { name: string; n: number }[]
  return rows.map(({ name, n }) => [name, n])
}

export interface Follower<Row> {
  /** Rows numbered above a position, oldest first. */
  readonly read: (after: number, limit: number) => Promise<readonly Row[]>
  /** The events to send for these rows; null for a row to skip. */
  readonly show: (rows: readonly Row[]) => Promise<readonly (ServerEvent | null)[]>
}

export interface Tail {
  /** Events after a position, in order and without gaps or duplicates, until the reader leaves. */
  follow<Row extends { readonly seq: number }>(after: number, follower: Follower<Row>): AsyncIterable<ServerEvent>
}

/**
 * Lets any number of readers follow the feed. `newest` returns the highest number in the store. It is called once per
 * `checkMs` while anybody follows, however many there are; each reader continues from its own position.
 */
export function createTail(newest: () => Promise<number>, checkMs = CHECK_MS): Tail {
  let pending: Promise<number> | null = null
  const nextCheck = (): Promise<number> =>
    (pending ??= sleep(checkMs, undefined, { ref: false })
      .then(newest)
      .finally(() => {
        pending = null
      }))
  return {
    follow: (after, follower) => ({
      [Symbol.asyncIterator]() {
        // A generator that waits for its next event would learn of `return` only with that event.
        const reader = { hasLeft: false }
        const running = tailEvents(after, follower, reader, nextCheck)
        return {
          next: () => running.next(),
          async return() {
            reader.hasLeft = true
            return { done: true, value: undefined }
          },
        }
      },
    }),
  }
}

async function* tailEvents<Row extends { readonly seq: number }>(
  after: number,
  { read, show }: Follower<Row>,
  reader: { readonly hasLeft: boolean },
  nextCheck: () => Promise<number>,
): AsyncGenerator<ServerEvent> {
  let position = after
  let highest = Infinity
  while (!reader.hasLeft) {
    const rows = highest > position ? await read(position, BATCH) : []
    for (const event of await show(rows)) if (event) yield event
    position = rows.at(-1)?.seq ?? position
    if (rows.length < BATCH && !reader.hasLeft) highest = await nextCheck()
  }
}
