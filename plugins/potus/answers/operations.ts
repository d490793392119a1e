/** The operations: what is asked, answered as of the moment of the call. */
import {
  type Access,
  type Call,
  type Catalog,
  type Handlers,
  type Database,
  Reply,
  type ServerEvent,
} from 'tollgate/plugin'
import type {
  PotusArchiveQuery,
  PotusEntitiesQuery,
  PotusFeedsQuery,
  PotusLiveQuery,
  PotusMinutesQuery,
  PotusQuartersQuery,
} from '../../../schemas/types.d.ts'
import { filterHash, readCursor, writeCursor } from './event-cursor.ts'
import { GAZETTEER_SOURCES, GAZETTEER_VERSION } from '../entities/gazetteer.ts'
import { LEXICON_VERSION, TOPICS } from '../entities/topics.ts'
import { DAY, iso, isoOrNull, rangeOf } from '../moment.ts'
import { method } from '../potus-methodology.ts'
import { KINDS, type Source, SOURCES_VERSION } from '../sources/source.ts'
import type { Reader, EventAtMoment } from '../store/event-reader.ts'
import { countEntities } from './entity-counts.ts'
import { barsAround, eventDetails, findSelected } from './event-details.ts'
import { type Filter, parseFilter, readPage } from './event-filters.ts'
import { knownEvents, type RecordContext, eventRecord } from './event-record.ts'
import {
  type Granularity,
  minuteWindow,
  ONE_MINUTE,
  QUARTER,
  quarterWindow,
  type Window,
  readWindows,
} from './event-windows.ts'
import { feedHealth } from './feed-health.ts'
import { createTail, liveState } from './live-feed.ts'

export interface HandlerParts {
  readonly db: Database
  readonly reader: Reader
  readonly marks: RecordContext
  readonly sources: readonly Source[]
  readonly product: string
  readonly now: () => Date
  /** Throws Unavailable while a recording is still being read. */
  readonly assertReady: () => void
}

type Asked<Query> = Call<{ readonly query: Query }>

const SCHEMA = 'potus/1' as const

export function createHandlers({
  db,
  reader,
  marks,
  sources,
  product,
  now,
  assertReady,
}: HandlerParts): Handlers<'potus'> {
  const ids = sources.map(({ id }) => id)
  const tail = createTail(async () => {
    const row = (await db('potus_events').max('seq as seq').first()) as { seq: number | null }
    return row.seq ?? 0
  })
  const envelope = (call: Pick<Call, 'asOf' | 'operation' | 'catalog' | 'access'>) => {
    assertReady()
    return {
      schema: SCHEMA,
      data_mode: marks.dataMode,
      as_of: iso(call.asOf.getTime()),
      max_freshness_seconds: gateOf(call),
    }
  }

  /** The newest that fit, or, after a number, the oldest after it: so that nobody who asks again and again misses one. */
  async function getPotusLive(call: Asked<PotusLiveQuery>) {
    const { limit, since_seq: since, ...asked } = call.input.query
    const filter = parseFilter(asked, ids)
    if (call.stream && call.access.kind === 'token') return Reply.events(await followed(call))
    const asOf = call.asOf.getTime()
    const on = sources.filter(({ enabled }) => enabled)
    const feeds = await feedHealth(db, on, asOf, marks.dataMode)
    const late = feeds.filter(({ status }) => status === 'late' || status === 'failing').length
    const health = { ok: feeds.length - late, late }
    const state = await liveState(db, reader, marks, asOf, health, call.signal)
    if (since === undefined) {
      const scan = { asOf, order: 'desc', from: 0, to: asOf + 1, after: null } as const
      const { events: found } = await readPage(reader, marks, filter, scan, limit, call.signal)
      const items = found.map((one) => eventRecord(one, marks))
      return { ...envelope(call), count: items.length, items, next_since_seq: state.last_seq, state }
    }
    const found = []
    let next = since
    for (let more = true; more;) {
      const rows = await reader.since(next, asOf, limit)
      const fitting = (await knownEvents(reader, rows, asOf, marks)).filter((one) => filter.matches(one))
      const taken = fitting.slice(0, limit - found.length)
      found.push(...taken)
      const isFull = found.length === limit
      next = (isFull ? taken.at(-1)?.row.seq : rows.at(-1)?.seq) ?? next
      more = !isFull && rows.length === limit
    }
    const items = found.map((one) => eventRecord(one, marks)).reverse()
    return { ...envelope(call), count: items.length, items, next_since_seq: next, state }
  }

  /**
   * Live records as server-sent events, each with its number as id: after the last one had, else after `since_seq`, else
   * beginning with the newest `limit`.
   */
  async function followed(call: Asked<PotusLiveQuery>): Promise<AsyncIterable<ServerEvent>> {
    assertReady()
    const { since_seq: since, limit, ...asked } = call.input.query
    const filter = parseFilter(asked, ids)
    // The gate itself, not what has passed since asOf: a moment that lags passes over what has come meanwhile.
    const moment = (): number => now().getTime() - gateOf(call) * 1000
    const id = call.stream?.lastEventId ?? ''
    const after = /^\d{1,15}$/.test(id) ? Number(id) : (since ?? (await beforeNewest(call, filter, limit)))
    return tail.follow<EventAtMoment>(after, {
      read: (place, portion) => reader.since(place, moment(), portion),
      async show(rows) {
        const shown = await knownEvents(reader, rows, moment(), marks)
        return shown.map((one) =>
          filter.matches(one) ? { id: String(one.row.seq), data: eventRecord(one, marks) } : null,
        )
      },
    })
  }

  /** The number after which the newest `limit` events begin. */
  async function beforeNewest(
    { asOf: at, signal }: Pick<Call, 'asOf' | 'signal'>,
    filter: Filter,
    limit: number,
  ): Promise<number> {
    const asOf = at.getTime()
    const scan = { asOf, order: 'desc', from: 0, to: asOf + 1, after: null } as const
    const { events: found } = await readPage(reader, marks, filter, scan, limit, signal)
    const lowest = Math.min(...found.map(({ row }) => row.seq))
    return found.length === 0 ? await reader.lastSeq(asOf) : lowest - 1
  }

  /** Windows of one size, with what each shows. */
  function windows<Name extends Granularity['name'], Shown>(
    granularity: Granularity<Name>,
    longest: number,
    show: (window: Window) => Shown,
  ) {
    return async (call: Asked<PotusMinutesQuery | PotusQuartersQuery>) => {
      const { from, to, limit, include_empty: withEmpty, cursor } = call.input.query
      const asOf = call.asOf.getTime()
      const asked = { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) }
      const hash = filterHash({ of: granularity.name, from, to, withEmpty })
      const after = cursor === undefined ? null : readCursor(cursor, 'asc', hash)
      const range = rangeOf(asked, asOf, longest)
      const page = await readWindows(reader, marks, granularity, range, asOf, { after, limit, withEmpty })
      return {
        ...envelope(call),
        granularity: granularity.name,
        from: iso(range.from),
        to: iso(range.to),
        count: page.windows.length,
        windows: page.windows.map(show),
        next_cursor: page.next === null ? null : writeCursor('asc', page.next, hash),
      }
    }
  }

  async function getPotusArchive(call: Asked<PotusArchiveQuery>) {
    const { from, to, cursor, limit, order, ...asked } = call.input.query
    const asOf = call.asOf.getTime()
    const hash = filterHash({ of: 'archive', from, to, ...asked })
    const after = cursor === undefined ? null : readCursor(cursor, order, hash)
    const moments = { ...(from === undefined ? { from: 0 } : { from }), ...(to === undefined ? {} : { to }) }
    const range = rangeOf(moments, asOf, null)
    const scan = { asOf, order, from: range.from, to: range.to, after } as const
    const page = await readPage(reader, marks, parseFilter(asked, ids), scan, limit, call.signal)
    return {
      ...envelope(call),
      count: page.events.length,
      items: page.events.map((one) => eventRecord(one, marks)),
      next_cursor: page.next === null ? null : writeCursor(order, page.next, hash),
    }
  }

  return {
    async getPotus(call: Call) {
      const asOf = call.asOf.getTime()
      return { ...envelope(call), ...(await familyAt(db, reader, call.catalog, product, sources, asOf)) }
    },
    getPotusLive,
    getPotusEvents1m: windows(ONE_MINUTE, DAY, minuteWindow),
    getPotusEvents15m: windows(QUARTER, 7 * DAY, quarterWindow),
    getPotusArchive,
    async getPotusEvent(call: Call<{ readonly params: { readonly selector: string } }>) {
      const asOf = call.asOf.getTime()
      const row = await findSelected(reader, call.input.params.selector, asOf)
      const details = await eventDetails(db, reader, row, asOf, marks)
      const hasBars = call.catalog.operations.has('getBars')
      const bars = hasBars ? await barsAround(call.ask, details.event.assets, row.available_at, asOf) : null
      return { ...envelope(call), ...details, bars }
    },
    async getPotusEntities(call: Asked<PotusEntitiesQuery>) {
      const { from, to, ...asked } = call.input.query
      const asOf = call.asOf.getTime()
      const moments = { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) }
      const range = rangeOf(moments, asOf, 31 * DAY, 7 * DAY)
      const { total, items } = await countEntities(db, range, asOf, asked)
      return { ...envelope(call), from: iso(range.from), to: iso(range.to), total, count: items.length, items }
    },
    getPotusMethod: method,
    async getPotusFeeds(call: Asked<PotusFeedsQuery>) {
      const { status } = call.input.query
      const all = await feedHealth(db, sources, call.asOf.getTime(), marks.dataMode)
      const feeds = all.filter((feed) => status === undefined || feed.status === status)
      return { ...envelope(call), count: feeds.length, feeds }
    },
  }
}

/** The least age of what is served, in seconds: the plan's where a token is used, else the operation's. */
function gateOf({ operation, catalog, access }: Pick<Call, 'operation' | 'catalog' | 'access'>): number {
  const plan = planOf(access)
  const bought = catalog.plans.plans.find((one) => one.plan === plan)
  return bought ? bought.maxFreshnessSeconds : operation.maxFreshnessSeconds
}

const planOf = (access: Access): string | null => (access.kind === 'token' ? access.plan : null)

/* --- The free index of the family: what is sold, how fresh, from which sources. Its figures are a day old. --- */

export async function familyAt(
  db: Database,
  reader: Reader,
  catalog: Catalog,
  product: string,
  sources: readonly Source[],
  asOf: number,
) {
  const operations = [...catalog.operations.values()].filter(
    (operation) => operation.product === product && !operation.internal && operation.price !== null,
  )
  const total = await reader.count(0, asOf)
  const kinds = (await db('potus_events as e')
    .join('potus_versions as v', 'v.seq', 'e.seq')
    .where('v.version', 1)
    .whereBetween('e.available_at', [asOf - 30 * DAY, asOf])
    .groupBy('v.kind')
    .select('v.kind as kind')
    .count('* as n')) as { kind: string; n: number }[]
  return {
    routes: operations.map(({ displayRoute, summary, priceText, maxFreshnessSeconds }) => ({
      route: displayRoute,
      summary,
      price_usd: Number(priceText),
      max_freshness_seconds: maxFreshnessSeconds,
    })),
    plans: catalog.plans.path,
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
      events: total,
      events_30d: kinds.reduce((sum, { n }) => sum + n, 0),
      by_kind_30d: Object.fromEntries(
        kinds.map(({ kind, n }) => [kind, n] as const).sort(([a], [b]) => (a < b ? -1 : 1)),
      ),
    },
    newest_available_at: isoOrNull(await reader.newest(asOf)),
  }
}
