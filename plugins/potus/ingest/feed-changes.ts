/** What a poll changes: new items, new texts, texts that shrank to stubs, items that are gone or back. */
import { createHash } from 'node:crypto'
import type { Database } from 'tollgate/plugin'
import type { Counts, Item, Source } from '../sources/source.ts'
import type { Status } from '../store/tables.ts'
import type { SequenceRange } from './writer-state.ts'

/** The newest version of a known event, and every text it ever had. */
export interface KnownVersion {
  readonly seq: number
  readonly key: string
  readonly version: number
  readonly revision: number
  readonly status: Status
  readonly title: string | null
  readonly text: string
  readonly hash: string
  readonly hashes: ReadonlySet<string>
}

export interface Revision {
  readonly current: KnownVersion
  readonly item: Item
  readonly hash: string
}

export interface FeedChanges {
  readonly fresh: readonly Item[]
  readonly revised: readonly Revision[]
  readonly held: readonly Revision[]
  /** Known texts that came again: whatever waited for them is settled. */
  readonly repeated: readonly KnownVersion[]
  /** Retracted before, and in the feed again. */
  readonly returned: readonly KnownVersion[]
  /** Newer than the feed's oldest item, and not in it. */
  readonly missing: readonly number[]
  readonly counts: readonly { readonly seq: number; readonly counts: Counts }[]
}

/** A text of more than this many characters that shrinks below the share is a stub until the source insists. */
const LONG = 400
const STUB = 0.2

/**
 * Identity of an event: the first 16 hex digits of SHA-256 of source, NUL and the source's key.
 *
 * @example eventId('truth.mirror', '116457972455781406') // "evt_" and 16 digits
 */
export function eventId(source: string, key: string): string {
  return `evt_${createHash('sha256').update(`${source}\0${key}`).digest('hex').slice(0, 16)}`
}

/** Title and text; white space at the ends never counts. */
export function contentHash({ title, text }: Pick<Item, 'title' | 'text'>): string {
  return `sha256:${createHash('sha256')
    .update(`${title ?? ''}\0${text}`)
    .digest('hex')}`
}

/** True where a text of more than 400 characters shrinks below a fifth: mirrors lose texts and find them again. */
export function isStub(before: string, after: string): boolean {
  return before.length > LONG && after.length < STUB * before.length
}

export interface Within {
  /** Everything in the body was read, so what is not there is missing. */
  readonly complete: boolean
  readonly stretch: SequenceRange
  readonly at: number
}

/** Compares the items of a good poll with what is known. A text that was seen before is never a new revision. */
export async function compareWithStore(
  db: Database,
  source: Source,
  items: readonly Item[],
  within: Within,
): Promise<FeedChanges> {
  const known = await currents(db, source, items)
  const change = {
    fresh: [] as Item[],
    revised: [] as Revision[],
    held: [] as Revision[],
    repeated: [] as KnownVersion[],
    returned: [] as KnownVersion[],
    counts: [] as { seq: number; counts: Counts }[],
  }
  for (const item of items) {
    const current = known.get(item.key)
    if (!current) {
      change.fresh.push(item)
      continue
    }
    if (item.counts) change.counts.push({ seq: current.seq, counts: item.counts })
    if (current.status === 'retracted') change.returned.push(current)
    const hash = contentHash(item)
    if (current.hashes.has(hash)) change.repeated.push(current)
    else if (isStub(current.text, item.text)) change.held.push({ current, item, hash })
    else change.revised.push({ current, item, hash })
  }
  const missing = source.retracts && within.complete ? await missingFrom(db, source, items, within) : []
  return { ...change, missing }
}

async function currents(db: Database, source: Source, items: readonly Item[]): Promise<Map<string, KnownVersion>> {
  const found = new Map<string, KnownVersion>()
  for (let from = 0; from < items.length; from += 200) {
    const ids = items.slice(from, from + 200).map(({ key }) => eventId(source.id, key))
    const rows = (await db('potus_events as e')
      .join('potus_versions as v', 'v.seq', 'e.seq')
      .whereIn('e.id', ids)
      .orderBy(['e.seq', 'v.version'])
      .select(
        'e.seq',
        'e.source_key as key',
        'v.version',
        'v.revision',
        'v.status',
        'v.title',
        'v.text',
        'v.content_hash as hash',
      )) as Omit<KnownVersion, 'hashes'>[]
    for (const row of rows) {
      const hashes = new Set([...(found.get(row.key)?.hashes ?? []), row.hash])
      found.set(row.key, { ...row, hashes })
    }
  }
  return found
}

async function missingFrom(
  db: Database,
  source: Source,
  items: readonly Item[],
  { stretch, at }: Within,
): Promise<number[]> {
  if (items.length === 0) return []
  const oldest = Math.min(...items.map(({ publishedAt }) => publishedAt))
  const present = new Set(items.map(({ key }) => key))
  const rows = (await db('potus_events as e')
    .join('potus_versions as v', 'v.seq', 'e.seq')
    .whereNull('v.superseded_at')
    .whereNot('v.status', 'retracted')
    .where('e.source', source.id)
    .where('e.published_at', '>', oldest)
    .where('e.available_at', '<=', at)
    .whereBetween('e.seq', [stretch.first, stretch.last])
    .select('e.seq', 'e.source_key as key')) as { seq: number; key: string }[]
  return rows.filter(({ key }) => !present.has(key)).map(({ seq }) => seq)
}
