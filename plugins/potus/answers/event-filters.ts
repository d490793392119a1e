/** Filters of lists, and reading through a list until enough events fit. */
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
}

export interface Filter {
  /** Everything fits, so nothing need be read in advance. */
  readonly isOpen: boolean
  readonly term: string | undefined
  readonly source: string | undefined
  matches(known: KnownEvent): boolean
}

/** Reads comma-separated words. Throws InvalidInput for one that does not exist. */
export function parseFilter(
  { kinds, topics, source, entity, q, min_relevance: least = 0 }: FilterQuery,
  sources: Iterable<string>,
): Filter {
  const wantedKinds = listOf('kinds', kinds, KINDS)
  const wantedTopics = listOf('topics', topics, TOPICS)
  listOf('source', source, [...sources])
  const words = (q ?? '').toLowerCase().split(/\s+/).filter(Boolean)
  const [only] = wantedTopics.length === 1 ? wantedTopics : []
  return {
    isOpen: wantedKinds.length + words.length === 0 && wantedTopics.length < 2 && least === 0,
    term: entity ?? (only === undefined ? undefined : `topic:${only}`),
    source,
    matches({ row, topics: own, entities, relevance }) {
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
  const msg = `${wrong} is unknown; write one or more of ${known.join(', ')}`
  throw new InvalidInput([{ loc: ['query', field], msg, type: 'enum', input: text }])
}

export interface Page {
  readonly events: readonly KnownEvent[]
  /** Where the next page begins: after the last event looked at. Null where there is nothing more. */
  readonly next: CursorPosition | null
}

const BATCH = 200
/** A page looks at no more than this many events; one that ends early says where to go on. */
const MOST = 4000

/** Up to `limit` events that fit, read in batches by index. */
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
  for (let looked = 0; looked < MOST;) {
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
    looked += rows.length
  }
  return { events: found, next: after }
}
