/** The state of the live feed in figures: what is open, how much comes, and whether that is much. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database, ServerEvent } from 'tollgate/plugin'
import { DAY, HOUR, iso } from '../moment.ts'
import type { Reader } from '../store/event-reader.ts'
import { type Filter, readPage } from './event-filters.ts'
import type { RecordContext } from './event-record.ts'
import { lastClosedEnd, ONE_MINUTE, QUARTER } from './event-windows.ts'

const BASELINE_DAYS = 30
const TOP = 5
const EVERYTHING: Filter = { isOpen: true, term: undefined, source: undefined, matches: () => true }
const MOST_IN_AN_HOUR = 500

export interface Health {
  readonly ok: number
  readonly late: number
}

/** Everything about the store as of a moment that a poller would have to work out for itself. */
export async function liveState(
  db: Database,
  reader: Reader,
  marks: RecordContext,
  asOf: number,
  health: Health,
  signal: AbortSignal,
) {
  const [lastHour, lastDay, baseline, newest, lastSeq] = [
    await reader.count(asOf - HOUR + 1, asOf),
    await reader.count(asOf - DAY + 1, asOf),
    await reader.count(asOf - BASELINE_DAYS * DAY + 1, asOf),
    await reader.newest(asOf),
    await reader.lastSeq(asOf),
  ]
  // A young store has fewer days to compare with.
  const first = (await db('potus_events')
    .where('available_at', '>', asOf - BASELINE_DAYS * DAY)
    .min('available_at as at')
    .first()) as {
    at: number | null
  }
  const usual = baseline / Math.max(1, Math.min(BASELINE_DAYS, (asOf - (first.at ?? asOf)) / DAY))
  const hour = { asOf, order: 'desc', from: asOf - HOUR + 1, to: asOf + 1, after: null } as const
  const { events: found } =
    lastHour === 0 ? { events: [] } : await readPage(reader, marks, EVERYTHING, hour, MOST_IN_AN_HOUR, signal)
  const topics = (await db('potus_mentions')
    .where('type', 'topic')
    .whereBetween('available_at', [asOf - DAY + 1, asOf])
    .where('known_at', '<=', asOf)
    .where((open) => void open.whereNull('superseded_at').orWhere('superseded_at', '>', asOf))
    .groupBy('name')
    .select('name')
    .count('* as n')) as { name: string; n: number }[]
  return {
    window_open: {
      '1m': iso(lastClosedEnd(asOf + ONE_MINUTE.grace, ONE_MINUTE)),
      '15m': iso(lastClosedEnd(asOf + QUARTER.grace, QUARTER)),
    },
    events_1h: lastHour,
    events_24h: lastDay,
    baseline_24h: Math.round(usual * 10) / 10,
    intensity: usual === 0 ? null : Math.round((lastDay / usual) * 100) / 100,
    max_relevance_1h: found.length === 0 ? null : Math.max(...found.map(({ relevance }) => relevance.score)),
    top_topics_24h: topics
      .map(({ name, n }) => [name, n] as [string, number])
      .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
      .slice(0, TOP),
    sources_ok: health.ok,
    sources_late: health.late,
    last_seq: lastSeq,
    seconds_since_last: newest === null ? null : Math.floor((asOf - newest) / 1000),
  }
}

/* --- Following the live feed: one look at the store a second, however many follow; each reads on from its own place. --- */

const LOOK_MS = 1000
const PORTION = 100

export interface Follower<Row> {
  /** Rows numbered above a place, oldest first. */
  readonly read: (after: number, limit: number) => Promise<readonly Row[]>
  /** What is sent of them; null for a row that is passed over. */
  readonly show: (rows: readonly Row[]) => Promise<readonly (ServerEvent | null)[]>
}

export interface Tail {
  /** Events after a place until the reader leaves: in order, none left out and none twice. */
  follow<Row extends { readonly seq: number }>(after: number, follower: Follower<Row>): AsyncIterable<ServerEvent>
}

/** `newest` is the highest number there is; asked once a second while anybody follows. */
export function createTail(newest: () => Promise<number>): Tail {
  let looking: Promise<number> | null = null
  const look = (): Promise<number> =>
    (looking ??= sleep(LOOK_MS, undefined, { ref: false })
      .then(newest)
      .finally(() => {
        looking = null
      }))

  async function* events<Row extends { readonly seq: number }>(
    after: number,
    { read, show }: Follower<Row>,
    leaving: { left: boolean },
  ): AsyncGenerator<ServerEvent> {
    let place = after
    let highest = Infinity
    while (!leaving.left) {
      const rows = highest > place ? await read(place, PORTION) : []
      for (const event of await show(rows)) if (event) yield event
      place = rows.at(-1)?.seq ?? place
      if (rows.length < PORTION && !leaving.left) highest = await look()
    }
  }

  return {
    follow: (after, follower) => ({
      [Symbol.asyncIterator]() {
        // A generator that waits would hear of its end only with its next event.
        const leaving = { left: false }
        const running = events(after, follower, leaving)
        return {
          next: () => running.next(),
          async return() {
            leaving.left = true
            return { done: true, value: undefined }
          },
        }
      },
    }),
  }
}
