/** The live feed: its newest page, its state in figures, and server-sent events for token holders. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Call, type CallOf, type Database, Reply, type ServerEvent } from 'tollgate/plugin'
import type { PotusLive } from '../../../schemas/types.d.ts'
import { roundTo } from '../../lib/quant/rounding.ts'
import { formatMilliseconds } from '../../lib/time/timestamps.ts'
import type { Source } from '../sources/source.ts'
import type { EventAtMoment } from '../store/event-reader.ts'
import type { Span } from '../store/held-values.ts'
import { DAY, HOUR, MINUTE } from '../time-range.ts'
import { delaySeconds, envelopeText, type FeedParts } from './answer-envelope.ts'
import { type Filter, parseFilter, readPage } from './event-filters.ts'
import { BASELINE_DAYS, type Derivation, type EventFigures } from './feed-figures.ts'
import type { FeedStatus, SourceFigures } from './feed-health.ts'
import { eventRecord, type KnownEvent, knownEvents } from './event-record.ts'
import { lastClosedEnd, ONE_MINUTE, QUARTER } from './event-windows.ts'
import { SourceStatuses } from './health-rows.ts'
import { assertWatched, type Polls, pollsOf, watchedFeed } from './watched-feed.ts'

const TOP_TOPICS = 5
const MATCH_ALL: Filter = { isOpen: true, term: undefined, source: undefined, matches: () => true }
const MAX_EVENTS_IN_AN_HOUR = 500
/** Remembered answers belong to every caller, so no caller's signal ends their computation. */
const NEVER = new AbortController().signal
/** How often the store is checked for new events while anybody follows. */
const CHECK_MS = 1000
/** Rows read at once. */
const BATCH = 100
/** A page reads at most about this many rows. The next call continues after them. */
const MAX_READ = 4000

/** Answers `getPotusLive`: a page, or a stream for a token holder who asks for server-sent events. */
export function createLiveHandler(parts: FeedParts) {
  const sourceIds = parts.sources.map(({ id }) => id)
  const health = enabledHealth(parts)
  const tail = createTail(async () => {
    const row = (await parts.db('potus_events').max('seq as seq').first()) as { seq: number | null }
    return row.seq ?? 0
  })
  return (call: CallOf<'getPotusLive'>) => {
    const filter = parseFilter(call.input.query, sourceIds)
    return call.stream && call.access.kind === 'token'
      ? followLive(parts, health, tail, call, filter).then((events) => Reply.events(events))
      : livePage(parts, health, call, filter)
  }
}

/** What a page is written of, as of one moment. */
interface LiveFigures {
  readonly sources: readonly SourceFigures[]
  readonly events: EventFigures
  /** Highest relevance of the last hour; null without events. */
  readonly highest: number | null
  readonly topics: PotusLive['state']['top_topics_24h']
  /** When the sources were watched; null for made-up and recorded data. */
  readonly spans: readonly Span[] | null
  readonly items: LiveItems
}

/** The records of a page as a JSON array. */
interface LiveItems {
  readonly count: number
  readonly text: Buffer
  /** The number that the next call continues from, if that is not the newest. */
  readonly next: number | null
  /** False if more remains to be read after `next`. */
  readonly isLast: boolean
  /** When the event became available that the page continues from; null if it continues from none. */
  readonly since: number | null
}

/** Since when a page says what was watched. */
const watchedFrom = ({ since }: LiveItems, asOf: number): number => since ?? asOf - DAY

const RELEVANCE: Derivation = { name: 'relevance', reach: HOUR }
const TOPICS: Derivation = { name: 'topics', reach: DAY }

/**
 * Without `since` the newest matching events; with it the oldest matching events after that number, so that a client
 * that polls misses none.
 */
function livePage(
  parts: FeedParts,
  health: EnabledHealth,
  call: CallOf<'getPotusLive'>,
  filter: Filter,
): Reply<PotusLive> | Promise<Reply<PotusLive>> {
  const { limit, since_seq: since, ...filters } = call.input.query
  const items: Derivation = { name: JSON.stringify(['live', limit, since, filters]), reach: 0 }
  const known = recallFigures(parts, health, call, items)
  return known
    ? liveReply(parts, health, call, known)
    : readFigures(parts, health, call, filter, items).then((figures) => liveReply(parts, health, call, figures))
}

/** The figures of a page if all of them are in memory, as `readFigures` computed them; otherwise null. */
function recallFigures(
  { figures, context }: FeedParts,
  { enabled }: EnabledHealth,
  call: CallOf<'getPotusLive'>,
  itemsOfPage: Derivation,
): LiveFigures | null {
  const asOf = call.asOf.getTime()
  const memory = figures.inMemory(asOf)
  const highest = memory?.recall(RELEVANCE)
  const topics = memory?.recall(TOPICS)
  const items = memory?.recall(itemsOfPage)
  if (!memory || !highest || !topics || !items) return null
  const isOnline = context.dataMode === 'online'
  const spans = isOnline ? memory.ofWatch(enabled, watchedFrom(items.value as LiveItems, asOf)) : null
  if (isOnline && !spans) return null
  return {
    spans,
    sources: memory.ofSources(enabled),
    events: memory.ofEvents(),
    highest: highest.value as LiveFigures['highest'],
    topics: topics.value as LiveFigures['topics'],
    items: items.value as LiveItems,
  }
}

async function readFigures(
  parts: FeedParts,
  { enabled }: EnabledHealth,
  call: CallOf<'getPotusLive'>,
  filter: Filter,
  itemsOfPage: Derivation,
): Promise<LiveFigures> {
  const { figures, db, context } = parts
  const asOf = call.asOf.getTime()
  const items = await figures.remember({ ...itemsOfPage, asOf }, () => readItems(parts, call, filter))
  const span = { from: watchedFrom(items, asOf), until: asOf }
  return {
    sources: await figures.ofSources(enabled, asOf),
    events: await figures.ofEvents(asOf),
    highest: await figures.remember({ ...RELEVANCE, asOf }, () => highestRelevance(parts, asOf)),
    topics: await figures.remember({ ...TOPICS, asOf }, () => topTopics(db, asOf)),
    spans: context.dataMode === 'online' ? await figures.ofWatch(enabled, span) : null,
    items,
  }
}

async function readItems(parts: FeedParts, call: CallOf<'getPotusLive'>, filter: Filter): Promise<LiveItems> {
  const { limit, since_seq: since } = call.input.query
  const asOf = call.asOf.getTime()
  const page =
    since === undefined
      ? {
          events: await newestEvents(parts, { asOf: call.asOf, signal: NEVER }, filter, limit),
          next: null,
          isLast: true,
        }
      : await eventsAfter(parts, filter, asOf, since, limit)
  const items: PotusLive['items'] = page.events.map((event) => eventRecord(event, parts.context))
  return {
    count: items.length,
    text: Buffer.from(JSON.stringify(items)),
    next: page.next,
    isLast: page.isLast,
    since: since === undefined ? null : await parts.reader.availableBefore(since, asOf),
  }
}

function liveReply(
  parts: FeedParts,
  health: EnabledHealth,
  call: CallOf<'getPotusLive'>,
  figures: LiveFigures,
): Reply<PotusLive> | Promise<Reply<PotusLive>> {
  const asOf = call.asOf.getTime()
  const { sources, spans, items } = figures
  const polls = pollsAt(health, sources, asOf)
  const watched = watchedFeed(polls, spans, asOf)
  const range = { from: watchedFrom(items, asOf), to: asOf }
  const { count, text, next } = items
  const watchedText = health.watchedText.of([polls, watched.coverageOf(range)], (): PotusLive['watched'] =>
    watched.shown(range),
  )
  const stateText = liveState(health.stateText, polls, figures, asOf)
  const opening = `${envelopeText(parts, call)},"watched":${watchedText},"count":${count},"items":`
  const ending = `,"next_since_seq":${next ?? figures.events.lastSeq},"state":${stateText}}`
  // A page that ended early is not empty: the next call goes on where it stopped.
  const isEmpty = count === 0 && items.isLast
  const reply: Reply<PotusLive> = Reply.json([Buffer.from(opening), text, Buffer.from(ending)], { empty: isEmpty })
  if (!isEmpty || call.access.kind !== 'payment') return reply
  return assertWatched(parts, watched, range, { access: call.access, step: MINUTE, until: asOf }).then(() => reply)
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
  let more = true
  for (let readCount = 0; more && readCount < MAX_READ;) {
    const rows = await reader.since(next, asOf, Math.max(BATCH, limit))
    readCount += rows.length
    const matching = (await knownEvents(reader, rows, asOf, context)).filter((event) => filter.matches(event))
    const taken = matching.slice(0, limit - found.length)
    found.push(...taken)
    const isFull = found.length === limit
    next = (isFull ? taken.at(-1)?.row.seq : rows.at(-1)?.seq) ?? next
    more = !isFull && rows.length >= BATCH
  }
  return { events: found.reverse(), next, isLast: !more }
}

/**
 * Live records as server-sent events. The event id is the record's number. The stream continues after Last-Event-ID,
 * otherwise after `since_seq`, otherwise it begins with the newest `limit` events.
 */
async function followLive(
  parts: FeedParts,
  health: EnabledHealth,
  tail: Tail,
  call: CallOf<'getPotusLive'>,
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
    state: stateChanges(parts, health, visibleUntil),
  })
}

/**
 * Returns an event whenever other sources are late than at the call before; at first none are. It has no id, so Last-Event-ID
 * still names the last record.
 */
function stateChanges(
  { figures, context }: FeedParts,
  health: EnabledHealth,
  visibleUntil: () => number,
): () => Promise<ServerEvent | null> {
  let last = ''
  return async () => {
    const asOf = visibleUntil()
    const known = await figures.ofSources(health.enabled, asOf)
    const polls = pollsAt(health, known, asOf)
    const late = polls.late.map(({ id }) => id).join()
    if (late === last) return null
    last = late
    const span = { from: asOf - DAY, until: asOf }
    const spans = context.dataMode === 'online' ? await figures.ofWatch(health.enabled, span) : null
    const watched = watchedFeed(polls, spans, asOf)
    return { event: 'state', data: watched.shown({ from: span.from, to: asOf }) }
  }
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

/** The sources that are polled, and their statuses. */
interface EnabledHealth {
  readonly enabled: readonly Source[]
  readonly statusesOf: SourceStatuses
  /** The polls by the statuses that they were found with. */
  readonly polls: WeakMap<readonly FeedStatus[], Polls>
  readonly watchedText: LastText
  readonly stateText: LastText
}

function enabledHealth({ sources, context }: FeedParts): EnabledHealth {
  const enabled = sources.filter((source) => source.enabled)
  return {
    enabled,
    statusesOf: new SourceStatuses(enabled, context.dataMode),
    polls: new WeakMap(),
    watchedText: new LastText(),
    stateText: new LastText(),
  }
}

/** The polls of the sources as of a moment: the same object as long as nothing of them changes. */
function pollsAt(
  { enabled, statusesOf, polls }: EnabledHealth,
  figures: readonly SourceFigures[],
  asOf: number,
): Polls {
  const statuses = statusesOf.of(figures, asOf)
  let known = polls.get(statuses)
  if (!known) polls.set(statuses, (known = pollsOf({ enabled, figures, statuses })))
  return known
}

/** The state of the feed as of a moment, as JSON: open windows, how many events came, whether that is many, source health. */
function liveState(kept: LastText, polls: Polls, { events, highest, topics }: LiveFigures, asOf: number): string {
  const { hour, day, month, firstOfMonth, newest, lastSeq } = events
  // Events per day over the last 30 days, or over the days that a younger store has.
  const usual = month / Math.max(1, Math.min(BASELINE_DAYS, (asOf - (firstOfMonth ?? asOf)) / DAY))
  const minute = lastClosedEnd(asOf + ONE_MINUTE.grace, ONE_MINUTE)
  const quarter = lastClosedEnd(asOf + QUARTER.grace, QUARTER)
  const baseline = roundTo(usual, 1)
  const intensity = usual === 0 ? null : roundTo(day / usual, 2)
  const sinceLast = newest === null ? null : Math.floor((asOf - newest) / 1000)
  const madeOf = [minute, quarter, hour, day, baseline, intensity, highest, topics, polls, lastSeq, sinceLast]
  return kept.of(madeOf, (): PotusLive['state'] => ({
    window_open: { '1m': formatMilliseconds(minute), '15m': formatMilliseconds(quarter) },
    events_1h: hour,
    events_24h: day,
    baseline_24h: baseline,
    intensity,
    max_relevance_1h: highest,
    top_topics_24h: topics,
    sources_ok: polls.sources - polls.sources_late,
    sources_late: polls.sources_late,
    last_seq: lastSeq,
    seconds_since_last: sinceLast,
  }))
}

/** The JSON of the value that was written last. Most calls of a second have the same. */
class LastText {
  #madeOf: readonly unknown[] = []
  #text: string | null = null

  /** @param madeOf everything that the value is made of; objects are compared by identity */
  of(madeOf: readonly unknown[], make: () => object): string {
    if (this.#text === null || madeOf.some((part, at) => part !== this.#madeOf[at])) {
      this.#text = JSON.stringify(make())
      this.#madeOf = madeOf
    }
    return this.#text
  }
}

async function highestRelevance({ reader, context }: FeedParts, asOf: number): Promise<number | null> {
  const range = { asOf, order: 'desc', from: asOf - HOUR + 1, to: asOf + 1, after: null } as const
  const { events } = await readPage(reader, context, MATCH_ALL, range, MAX_EVENTS_IN_AN_HOUR, NEVER)
  return events.length === 0 ? null : Math.max(...events.map(({ relevance }) => relevance.score))
}

async function topTopics(db: Database, asOf: number): Promise<[string, number][]> {
  const counts = await topicCounts(db, asOf)
  return counts.sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, TOP_TOPICS)
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
  /** An event to send beside the rows, at each check; null if there is none. */
  readonly state?: () => Promise<ServerEvent | null>
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
  { read, show, state }: Follower<Row>,
  reader: { readonly hasLeft: boolean },
  nextCheck: () => Promise<number>,
): AsyncGenerator<ServerEvent> {
  let position = after
  let highest = Infinity
  while (!reader.hasLeft) {
    const rows = highest > position ? await read(position, BATCH) : []
    for (const event of await show(rows)) if (event) yield event
    position = rows.at(-1)?.seq ?? position
    const change = (await state?.()) ?? null
    if (change) yield change
    if (rows.length < BATCH && !reader.hasLeft) highest = await nextCheck()
  }
}
