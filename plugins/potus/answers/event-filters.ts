/** Query filters of event lists, and pages of the events that match them. */
import { InvalidInput } from 'tollgate/plugin'
import type { CursorPosition } from './event-cursor.ts'
import { KINDS } from '../sources/source.ts'
import type { EventReader, EventAtMoment, Scan } from '../store/event-reader.ts'
import { TOPICS } from '../entities/topics.ts'
import { type KnownEvent, knownEvents, type RecordContext } from './event-record.ts'

export interface FilterQuery {
  readonly kinds?: string
  readonly topics?: string
  readonly source?: string
  readonly entity?: string
  readonly q?: string
  readonly min_relevance?: number
  readonly unique?: boolean
  readonly origin?: 'live' | 'backfill'
}

export interface Filter {
  /** True if every row that the database returns matches. A page then needs no larger batches. */
  readonly isOpen: boolean
  /** An entity id or "topic:..." that the database can filter by. */
  readonly term: string | undefined
  readonly source: string | undefined
  matches(known: KnownEvent): boolean
}

/** Reads the filters of a query. Throws InvalidInput for a kind, topic or source that does not exist. */
export function parseFilter(
  { kinds, topics, source, entity, q, min_relevance: least = 0, unique = false, origin }: FilterQuery,
  sources: Iterable<string>,
): Filter {
  const wantedKinds = listOf('kinds', kinds, KINDS)
  const wantedTopics = listOf('topics', topics, TOPICS)
  listOf('source', source, [...sources])
  const words = (q ?? '').toLowerCase().split(/\s+/).filter(Boolean)
  const [only] = wantedTopics.length === 1 ? wantedTopics : []
  return {
    isOpen:
      wantedKinds.length + words.length === 0 &&
      wantedTopics.length < 2 &&
      least === 0 &&
      !unique &&
      origin === undefined,
    term: entity ?? (only === undefined ? undefined : `topic:${only}`),
    source,
    matches({ row, leads, reportsDeletion, topics: own, entities, relevance }) {
      if (unique && !leads && !reportsDeletion) return false
      if (origin !== undefined && row.ingest !== origin) return false
      if (wantedKinds.length > 0 && !wantedKinds.some((kind) => row.kind === kind || row.kind.startsWith(`${kind}.`)))
        return false
      if (wantedTopics.length > 0 && !wantedTopics.some((topic) => own.includes(topic))) return false
      if (entity !== undefined && !entities.some(({ id }) => id === entity)) return false
      if (relevance.score < least) return false
      if (words.length === 0) return true
      const text = `${row.title ?? ''}\n${row.text}`.toLowerCase()
      return words.every((word) => text.includes(word))
    },
  }
}

function listOf(field: string, text: string | undefined, known: readonly string[]): string[] {
  const words = (text ?? '')
    .split(',')
    .map((word) => word.trim())
    .filter(Boolean)
  const wrong = words.find(
    (word) => !known.some((one) => one === word || (field === 'kinds' && one.startsWith(`${word}.`))),
  )
  if (wrong === undefined) return words
  const msg = `${wrong} is unknown; use one or more of ${known.join(', ')}`
  throw new InvalidInput([{ loc: ['query', field], msg, type: 'enum', input: text }])
}

export interface Page {
  readonly events: readonly KnownEvent[]
  /** The last event that was read, after which the next page begins. Null at the end of the list. */
  readonly next: CursorPosition | null
}

const BATCH = 200
/** A page reads at most this many events. A page that ends early has a cursor to continue from. */
const MAX_READ = 4000

/** Reads up to `limit` matching events, in batches by index. */
export async function readPage(
  reader: EventReader,
  context: RecordContext,
  filter: Filter,
  scan: Omit<Scan, 'limit' | 'term' | 'source'>,
  limit: number,
  signal: AbortSignal,
): Promise<Page> {
  const found: KnownEvent[] = []
  const size = filter.isOpen ? limit + 1 : Math.max(BATCH, limit + 1)
  let after = scan.after
  for (let readCount = 0; readCount < MAX_READ;) {
    signal.throwIfAborted()
    const rows: EventAtMoment[] = await reader.scan({
      ...scan,
      after,
      term: filter.term,
      source: filter.source,
      limit: size,
    })
    for (const one of await knownEvents(reader, rows, scan.asOf, context)) {
      if (filter.matches(one)) {
        if (found.length === limit) return { events: found, next: after }
        found.push(one)
      }
      after = { availableAt: one.row.available_at, seq: one.row.seq }
    }
    if (rows.length < size) return { events: found, next: null }
    readCount += rows.length
  }
  return { events: found, next: after }
}
