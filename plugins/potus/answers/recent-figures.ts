/**
 * Keeps in memory what calls about the present need, so that they cost no query while nothing has changed. Everything is
 * kept with its time and read as of the caller's moment, so that a delayed caller sees what the database would show.
 * Another process that writes raises a counter, which is read at most once a second.
 */
import type { Database } from 'tollgate/plugin'
import { LRUCache } from 'lru-cache'
import { ChangeCheck } from '../../lib/change-check.ts'
import { type Counters, readCounters } from '../store/change-counters.ts'
import type { Source } from '../sources/source.ts'
import type { EventReader } from '../store/event-reader.ts'
import { type HistoryRow, readHistories } from '../store/histories.ts'
import { type Held, HeldValues, overlapOf, type Span } from '../store/held-values.ts'
import { countUntil, SortedTimes } from '../store/sorted-times.ts'
import type { Outcome } from '../store/tables.ts'
import { readWatchRows, type WatchRow, watchSpans } from '../store/watch-spans.ts'
import { DAY, HOUR } from '../time-range.ts'
import {
  BASELINE_DAYS,
  createStoredFigures,
  type Derivation,
  type Derived,
  type EventFigures,
  type FeedFigures,
  type FiguresInMemory,
} from './feed-figures.ts'
import {
  BAD,
  GOOD,
  lastFailures,
  LATENCY_SAMPLES,
  latestOf,
  LOG_DAYS,
  MAX_FAILURES,
  newestLatencies,
  newestOfEach,
  type SourceFigures,
} from './feed-health.ts'

export interface RecentFiguresOptions {
  readonly db: Database
  readonly reader: EventReader
  readonly sources: readonly Pick<Source, 'id' | 'lateSeconds'>[]
  /** The clock of the data, epoch milliseconds. */
  readonly now: () => number
  /** How long a process may serve what it remembers before it looks for changes. */
  readonly checkMs?: number
}

export interface RecentFigures extends FeedFigures {
  /** Makes the next call look for changes, as after a write of this process. */
  expire(): void
}

/** Moments up to this long ago are answered from memory: more than the longest delay. Earlier ones are read. */
const REMEMBERED_MS = 2 * DAY
/** After this time everything is read again, so that old rows do not pile up. */
const RELOAD_MS = DAY
/** Remembered values. A page of 100 records takes about 300 kB. */
const MAX_VALUES = 64

/** Creates the figures. Nothing is read before the first call. */
export function createRecentFigures(options: RecentFiguresOptions): RecentFigures {
  return new MemoryFigures(options)
}

interface PollEntry {
  readonly id: number
  readonly source: string
  readonly at: number
  readonly outcome: Outcome
  readonly detail: string | null
}

interface EventEntry {
  readonly seq: number
  readonly source: string
  readonly at: number
  readonly ms: number | null
  readonly ingest: string
}

type RememberedValues = LRUCache<string, { readonly value: unknown }>

class MemoryFigures implements RecentFigures {
  readonly #options: RecentFiguresOptions
  readonly #stored: FeedFigures
  readonly #check: ChangeCheck
  #recent: RecentRows | null = null
  readonly #values: RememberedValues = new LRUCache({ max: MAX_VALUES })
  readonly #pending = new Map<string, Promise<{ readonly value: unknown; readonly isCurrent: boolean }>>()

  constructor(options: RecentFiguresOptions) {
    this.#options = options
    this.#stored = createStoredFigures(options.db)
    this.#check = new ChangeCheck(() => this.#refresh(), options.checkMs)
  }

  expire(): void {
    this.#check.expire()
  }

  inMemory(asOf: number): FiguresInMemory | null {
    const recent = this.#check.isCurrent ? this.#reaching(asOf) : null
    return recent && new RecalledFigures(recent, asOf, this.#values)
  }

  async ofSources(sources: readonly Source[], asOf: number): Promise<readonly SourceFigures[]> {
    const recent = await this.#at(asOf)
    return recent ? recent.ofSources(sources, asOf) : this.#stored.ofSources(sources, asOf)
  }

  async ofEvents(asOf: number): Promise<EventFigures> {
    const recent = await this.#at(asOf)
    return recent ? recent.ofEvents(asOf) : this.#stored.ofEvents(asOf)
  }

  async ofWatch(sources: readonly Source[], span: Span): Promise<readonly Span[]> {
    const recent = await this.#at(span.until)
    return recent?.ofWatch(sources, span) ?? this.#stored.ofWatch(sources, span)
  }

  async ofHistories(): Promise<readonly HistoryRow[]> {
    await this.#check.run()
    return this.#recent?.histories ?? this.#stored.ofHistories()
  }

  async remember<Value>(derived: Derived, compute: () => Promise<Value>): Promise<Value> {
    const recent = await this.#at(derived.asOf)
    if (!recent) return compute()
    const key = recent.keyOf(derived, derived.asOf)
    const known = this.#values.get(key)
    if (known) return known.value as Value
    const shared = this.#pending.get(key)
    if (shared) {
      const { value, isCurrent } = await shared
      // What was computed while another process wrote may show what this caller may not see yet.
      return isCurrent ? (value as Value) : compute()
    }
    const run = this.#compute(recent, key, compute)
    this.#pending.set(key, run)
    try {
      const { value } = await run
      return value
    } finally {
      this.#pending.delete(key)
    }
  }

  /** Computes a value, and remembers it unless somebody wrote meanwhile. */
  async #compute<Value>(recent: RecentRows, key: string, compute: () => Promise<Value>) {
    const version = recent.lastVersion
    const value = await compute()
    const isCurrent = (await lastVersionId(this.#options.db)) === version
    if (isCurrent) this.#values.set(key, { value })
    return { value, isCurrent }
  }

  /** The rows in memory, at most `checkMs` old; null if they do not reach back to `asOf`. */
  async #at(asOf: number): Promise<RecentRows | null> {
    await this.#check.run()
    return this.#reaching(asOf)
  }

  #reaching(asOf: number): RecentRows | null {
    return this.#recent && asOf >= this.#recent.from ? this.#recent : null
  }

  async #refresh(): Promise<void> {
    const { db, now } = this.#options
    const counters = await readCounters(db)
    const isWhole = this.#recent?.counters.removals === counters.removals
    if (this.#recent && isWhole && now() < this.#recent.from + REMEMBERED_MS + RELOAD_MS) {
      await this.#recent.update(this.#options, counters)
      return
    }
    const rows = new RecentRows(now() - REMEMBERED_MS, counters)
    await rows.load(this.#options)
    this.#recent = rows
  }
}

class RecalledFigures implements FiguresInMemory {
  readonly #recent: RecentRows
  readonly #asOf: number
  readonly #values: RememberedValues

  constructor(recent: RecentRows, asOf: number, values: RememberedValues) {
    this.#recent = recent
    this.#asOf = asOf
    this.#values = values
  }

  ofSources(sources: readonly Source[]): readonly SourceFigures[] {
    return this.#recent.ofSources(sources, this.#asOf)
  }

  ofEvents(): EventFigures {
    return this.#recent.ofEvents(this.#asOf)
  }

  ofWatch(sources: readonly Source[], from: number): readonly Span[] | null {
    return this.#recent.ofWatch(sources, { from, until: this.#asOf })
  }

  recall(derivation: Derivation): { readonly value: unknown } | undefined {
    return this.#values.get(this.#recent.keyOf(derivation, this.#asOf))
  }
}

async function lastVersionId(db: Database): Promise<number> {
  const row = (await db('potus_versions').max('id as id').first()) as { id: number | null }
  return row.id ?? 0
}

/** What is known about the polls and the events of one source. */
class SourceRows {
  readonly polls = new Map<Outcome, SortedTimes>()
  /** Ascending. */
  failures: { readonly at: number; readonly detail: string | null }[] = []
  readonly events = new SortedTimes()
  /** Ascending by time and number. */
  latencies: { readonly at: number; readonly seq: number; readonly ms: number }[] = []
  /** The newest latencies among the first `until`, sorted by length. */
  sorted: { readonly until: number; readonly latencies: readonly number[] } | null = null
  /** The figures of the rows that are there. */
  readonly figures = new HeldValues<SourceFigures>()

  timesOf(outcome: Outcome): SortedTimes {
    const times = this.polls.get(outcome) ?? new SortedTimes()
    this.polls.set(outcome, times)
    return times
  }
}

/** The polls and events since `from`, and of each source what it takes to answer as of any moment since then. */
class RecentRows {
  /** The earliest moment that can be answered. */
  readonly from: number
  counters: Counters
  histories: readonly HistoryRow[] = []
  /** Ids of the newest rows. */
  lastVersion = 0
  #lastPoll = 0
  readonly #sources = new Map<string, SourceRows>()
  readonly #available = new SortedTimes()
  /** When a version became known: between two of these moments the same events are visible. */
  readonly #changes = new SortedTimes()
  /** Without those that ended before `from`. */
  #watch: readonly WatchRow[] = []
  #live: { readonly at: number; readonly seq: number }[] = []
  /** The figures of lists of sources, until a row is added. */
  #figures = new WeakMap<readonly Source[], HeldValues<readonly SourceFigures[]>>()

  constructor(from: number, counters: Counters) {
    this.from = from
    this.counters = counters
  }

  /** Reads the rows that are there now. What is written meanwhile has higher ids, which `update` adds. */
  async load({ db, reader, sources }: RecentFiguresOptions): Promise<void> {
    // Figures of the last 24 hours reach back this far.
    const before = this.from - DAY
    this.histories = await readHistories(db)
    this.#lastPoll = await lastPollId(db)
    this.lastVersion = await lastVersionId(db)
    this.#watch = await readWatchRows(db, sources, this.from)
    const ids = sources.map(({ id }) => id)
    const newestOf = await newestOfEach(db, ids, before)
    for (const [i, source] of ids.entries()) await this.#loadEarlier(db, source, newestOf[i] ?? null, before)
    const polls = db<PollEntry>('potus_polls').where('at', '>', before).where('id', '<=', this.#lastPoll)
    this.#addPolls(await polls.orderBy('id').select(POLL))
    const events = () => this.#eventsUntil(db, this.lastVersion)
    const earlier = (await events()
      .where('e.available_at', '>', this.from - BASELINE_DAYS * DAY)
      .where('e.available_at', '<=', before)
      .select('e.available_at as at')) as { at: number }[]
    const newest = await reader.newest(this.from - BASELINE_DAYS * DAY)
    this.#available.add([...(newest === null ? [] : [newest]), ...earlier.map(({ at }) => at)])
    const live = (await events()
      .where('e.available_at', '<=', before)
      .where('e.ingest', 'live')
      .orderBy([
        { column: 'e.available_at', order: 'desc' },
        { column: 'e.seq', order: 'desc' },
      ])
      .first('e.seq', 'e.available_at as at')) as { seq: number; at: number } | undefined
    if (live) this.#live.push(live)
    const recent = events().where('e.available_at', '>', before).orderBy(['e.available_at', 'e.seq'])
    this.#addEvents((await recent.select(EVENT)) as EventEntry[])
    const known = (await db('potus_versions')
      .where('known_at', '>', before)
      .where('id', '<=', this.lastVersion)
      .select('known_at as at')) as { at: number }[]
    this.#changes.add(known.map(({ at }) => at))
  }

  /** Adds what was written since. Ids rise in the order in which rows become visible. */
  async update({ db, sources }: RecentFiguresOptions, counters: Counters): Promise<void> {
    const isPolled = counters.polls !== this.counters.polls || counters.turn !== this.counters.turn
    if (isPolled) this.histories = await readHistories(db)
    if (isPolled) this.#watch = await readWatchRows(db, sources, this.from)
    const polls = !isPolled
      ? []
      : await db<PollEntry>('potus_polls').where('id', '>', this.#lastPoll).orderBy('id').select(POLL)
    const versions = (
      counters.turn === this.counters.turn
        ? []
        : await db('potus_versions as v')
            .join('potus_events as e', 'e.seq', 'v.seq')
            .where('v.id', '>', this.lastVersion)
            .orderBy('v.id')
            .select('v.id', 'v.version', 'v.known_at', ...EVENT)
    ) as (EventEntry & { readonly id: number; readonly version: number; readonly known_at: number })[]
    this.#addPolls(polls)
    this.#addEvents(versions.filter(({ version }) => version === 1))
    this.#changes.add(versions.map(({ known_at: at }) => at))
    this.#lastPoll = polls.at(-1)?.id ?? this.#lastPoll
    this.lastVersion = versions.at(-1)?.id ?? this.lastVersion
    this.counters = counters
  }

  /** The same for two moments if the value is: it names the rows that the value is computed from. */
  keyOf({ name, reach }: Derivation, asOf: number): string {
    return `${this.lastVersion} ${this.#unchangedSince(asOf, reach)} ${reach} ${name}`
  }

  /** Since when the visible events, and those of the last `reach` milliseconds, are the same as at the moment. */
  #unchangedSince(asOf: number, reach: number): number {
    const changed = this.#changes.last(asOf) ?? -Infinity
    if (reach === 0) return changed
    const left = this.#available.last(asOf - reach) ?? -Infinity
    return Math.max(changed, left + reach)
  }

  ofEvents(asOf: number): EventFigures {
    const times = this.#available
    const live = this.#live[countUntil(this.#live, asOf, ({ at }) => at) - 1]
    return {
      hour: times.count(asOf - HOUR + 1, asOf),
      day: times.count(asOf - DAY + 1, asOf),
      month: times.count(asOf - BASELINE_DAYS * DAY + 1, asOf),
      firstOfMonth: times.next(asOf - BASELINE_DAYS * DAY),
      newest: times.last(asOf),
      lastSeq: live?.seq ?? 0,
    }
  }

  ofWatch(sources: readonly Source[], { from, until }: Span): readonly Span[] | null {
    return from < this.from ? null : watchSpans(this.#watch, sources, until)
  }

  /** The figures of the sources: the same array while the figures of none of them change. */
  ofSources(sources: readonly Source[], asOf: number): readonly SourceFigures[] {
    const known = this.#figures.get(sources) ?? new HeldValues()
    this.#figures.set(sources, known)
    return known.at(asOf, () => {
      const held = sources.map(({ id }) => this.#ofSource(id, asOf))
      return { ...overlapOf(held), value: held.map(({ value }) => value) }
    }).value
  }

  #ofSource(id: string, asOf: number): Held<SourceFigures> {
    const rows = this.#rowsOf(id)
    return rows.figures.at(asOf, () => ({ ...unchangedAround(rows, asOf), value: this.#figuresOf(rows, asOf) }))
  }

  #figuresOf(rows: SourceRows, asOf: number): SourceFigures {
    const last = lastPolls(rows, asOf)
    const failed = countUntil(rows.failures, asOf, ({ at }) => at)
    const before = countUntil(rows.failures, (latestOf(last, GOOD) ?? 0) - 1, ({ at }) => at)
    const polls = [...rows.polls.values()].reduce((sum, times) => sum + times.count(asOf - DAY + 1, asOf), 0)
    return {
      last,
      failures: {
        count: Math.min(MAX_FAILURES, failed - before),
        detail: failed > before ? (rows.failures[failed - 1]?.detail ?? null) : null,
      },
      polls,
      notModified: rows.polls.get('not_modified')?.count(asOf - DAY + 1, asOf) ?? 0,
      latencies: sortedLatencies(rows, asOf),
      newest: rows.events.last(asOf),
      items: rows.events.count(asOf - DAY + 1, asOf),
    }
  }

  #rowsOf(id: string): SourceRows {
    const rows = this.#sources.get(id) ?? new SourceRows()
    this.#sources.set(id, rows)
    return rows
  }

  /** The last rows of a source until `before`, which later figures may still show. `newest` is that of its events. */
  async #loadEarlier(db: Database, source: string, newest: number | null, before: number): Promise<void> {
    const rows = this.#rowsOf(source)
    const poll = await db('potus_polls').where({ source }).where('at', '<=', before).first('id')
    if (poll) {
      for (const outcome of [...GOOD, ...BAD]) {
        const row = (await db('potus_polls')
          .where({ source, outcome })
          .where('at', '<=', before)
          .max('at as at')
          .first()) as { at: number | null }
        if (row.at !== null) rows.timesOf(outcome).add([row.at])
      }
      const failures = await lastFailures(db, source, 0, before)
      rows.failures = failures.filter(({ id }) => id <= this.#lastPoll).toReversed()
    }
    if (newest === null) return
    rows.events.add([newest])
    rows.latencies = (await newestLatencies(db, source, before)).toReversed()
  }

  /** Events whose first version has at most this id. */
  #eventsUntil(db: Database, version: number) {
    return db('potus_events as e')
      .join('potus_versions as v', 'v.seq', 'e.seq')
      .where('v.version', 1)
      .where('v.id', '<=', version)
  }

  #addPolls(polls: readonly PollEntry[]): void {
    if (polls.length > 0) this.#figures = new WeakMap()
    for (const [source, own] of bySource(polls)) {
      const rows = this.#rowsOf(source)
      rows.figures.clear()
      for (const [outcome, same] of grouped(own, (poll) => poll.outcome))
        rows.timesOf(outcome).add(same.map(({ at }) => at))
      const failures = own.filter(({ outcome }) => BAD.includes(outcome))
      if (failures.length === 0) continue
      // A stable sort: of two failures at the same time the one that was stored later stays later.
      rows.failures = [...rows.failures, ...failures].sort((a, b) => a.at - b.at)
    }
  }

  #addEvents(events: readonly EventEntry[]): void {
    if (events.length > 0) this.#figures = new WeakMap()
    this.#available.add(events.map(({ at }) => at))
    this.#live.push(...events.filter(({ ingest }) => ingest === 'live').map(({ at, seq }) => ({ at, seq })))
    this.#live.sort((a, b) => a.at - b.at || a.seq - b.seq)
    for (const [source, own] of bySource(events)) {
      const rows = this.#rowsOf(source)
      rows.figures.clear()
      rows.events.add(own.map(({ at }) => at))
      // An old event that is stored while the figures are being read may be among the first latencies already.
      const present = new Set(rows.latencies.map(({ seq }) => seq))
      const timed = own.flatMap(({ at, seq, ms }) => (ms === null || present.has(seq) ? [] : [{ at, seq, ms }]))
      rows.latencies = [...rows.latencies, ...timed].sort((a, b) => a.at - b.at || a.seq - b.seq)
      rows.sorted = null
    }
  }
}

const POLL = ['id', 'source', 'at', 'outcome', 'detail'] as const
const EVENT = ['e.seq', 'e.source', 'e.available_at as at', 'e.latency_ms as ms', 'e.ingest']

async function lastPollId(db: Database): Promise<number> {
  const row = (await db('potus_polls').max('id as id').first()) as { id: number | null }
  return row.id ?? 0
}

/** The last poll with each outcome: within LOG_DAYS, or ever if there was none within. */
function lastPolls({ polls }: SourceRows, asOf: number): ReadonlyMap<Outcome, number> {
  const last = new Map<Outcome, number>()
  for (const [outcome, times] of polls) {
    const at = times.last(asOf)
    if (at !== null) last.set(outcome, at)
  }
  const since = asOf - LOG_DAYS * DAY
  const recent = [...last].filter(([, at]) => at >= since)
  return recent.length === 0 || recent.length === last.size ? last : new Map(recent)
}

/** The moments around `asOf` at which the figures of the source are the same. */
function unchangedAround({ polls, events }: SourceRows, asOf: number): Span {
  const spans = [events.unchangedAround(asOf, DAY)]
  for (const times of polls.values()) {
    spans.push(times.unchangedAround(asOf, DAY))
    // The last poll with an outcome is forgotten after LOG_DAYS if there were others since.
    const last = times.last(asOf)
    if (last === null) continue
    const forgotten = last + LOG_DAYS * DAY + 1
    spans.push(asOf < forgotten ? { from: last, until: forgotten } : { from: forgotten, until: Infinity })
  }
  return overlapOf(spans)
}

function sortedLatencies(rows: SourceRows, asOf: number): readonly number[] {
  const until = countUntil(rows.latencies, asOf, ({ at }) => at)
  if (rows.sorted?.until !== until) {
    const newest = rows.latencies.slice(Math.max(0, until - LATENCY_SAMPLES), until)
    rows.sorted = { until, latencies: newest.map(({ ms }) => ms).sort((a, b) => a - b) }
  }
  return rows.sorted.latencies
}

const bySource = <Row extends { readonly source: string }>(rows: readonly Row[]) =>
  grouped(rows, ({ source }) => source)

function grouped<Row, Key>(rows: readonly Row[], keyOf: (row: Row) => Key): ReadonlyMap<Key, Row[]> {
  const groups = new Map<Key, Row[]>()
  for (const row of rows) {
    const group = groups.get(keyOf(row))
    if (group) group.push(row)
    else groups.set(keyOf(row), [row])
  }
  return groups
}
