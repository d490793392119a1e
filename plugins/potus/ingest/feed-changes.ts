/** Compares a poll with the store: new items, changed texts, texts that shrank to stubs, items that are missing or back. */
import { createHash } from 'node:crypto'
import type { Database } from 'tollgate/plugin'
import type { Counts, Item, Source } from '../sources/source.ts'
import type { Status } from '../store/tables.ts'
import type { SequenceRange } from './writer-state.ts'

/** The newest version of a known event, and the hashes of every text it ever had. */
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
  /** Items that the store does not have. */
  readonly fresh: readonly Item[]
  readonly revised: readonly Revision[]
  /** Texts that shrank to a stub. They wait until more polls confirm them. */
  readonly held: readonly Revision[]
  /** Known texts that came again. A stub that waited for confirmation is dropped. */
  readonly repeated: readonly KnownVersion[]
  /** Retracted events that are in the feed again, with a text that is not new. */
  readonly returned: readonly KnownVersion[]
  /** Events newer than the feed's oldest item that are not in the feed; null if the list is not whole, or not believed. */
  readonly missing: readonly number[] | null
  readonly counts: readonly { readonly seq: number; readonly counts: Counts }[]
}

/** A text longer than MIN_LENGTH characters that shrinks below this share is a stub until more polls confirm it. */
const MIN_LENGTH = 400
const STUB_SHARE = 0.2

/**
 * Id of an event: the first 16 hex digits of the SHA-256 of source, NUL and the source's key.
 *
 * @example eventId('truth.mirror', '116457972455781406') // "evt_" and 16 digits
 */
export function eventId(source: string, key: string): string {
  return `evt_${createHash('sha256').update(`${source}\0${key}`).digest('hex').slice(0, 16)}`
}

/** SHA-256 of title, NUL and text. */
export function contentHash({ title, text }: Pick<Item, 'title' | 'text'>): string {
  return `sha256:${createHash('sha256')
    .update(`${title ?? ''}\0${text}`)
    .digest('hex')}`
}

/** Returns true if a text of more than 400 characters shrinks below a fifth. Mirrors lose texts and restore them later. */
export function isStub(before: string, after: string): boolean {
  return before.length > MIN_LENGTH && after.length < STUB_SHARE * before.length
}

export interface ComparisonOptions {
  /** True if every entry of the body was read, so that events that are not in it count as missing. */
  readonly complete: boolean
  readonly range: SequenceRange
  readonly at: number
}

/** Compares the items of a successful poll with the store. A text that was seen before is never a new revision. */
export async function compareWithStore(
  db: Database,
  source: Source,
  items: readonly Item[],
  options: ComparisonOptions,
): Promise<FeedChanges> {
  const known = await knownVersions(db, source, items)
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
    const hash = contentHash(item)
    const isKnown = current.hashes.has(hash)
    const isRevised = !isKnown && !isStub(current.text, item.text)
    if (isKnown) change.repeated.push(current)
    else if (isRevised) change.revised.push({ current, item, hash })
    else change.held.push({ current, item, hash })
    // A new text ends a retraction by itself.
    if (current.status === 'retracted' && !isRevised) change.returned.push(current)
  }
  const missing = source.retracts && options.complete ? await findMissing(db, source, items, options) : null
  return { ...change, missing }
}

async function knownVersions(db: Database, source: Source, items: readonly Item[]): Promise<Map<string, KnownVersion>> {
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

async function findMissing(
  db: Database,
  source: Source,
  items: readonly Item[],
  { range, at }: ComparisonOptions,
): Promise<number[] | null> {
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
    .whereBetween('e.seq', [range.first, range.last])
    .select('e.seq', 'e.source_key as key')) as { seq: number; key: string }[]
  return believedMissing(rows, present)
}

/** A list may lack this share of what is stored, or this number of events. */
const BELIEVED = { share: 0.1, events: 3 }

/**
 * The numbers of the stored events that a list lacks. Null if it lacks so many that it is not believed: it was cut, or an
 * entry with a wrong date makes it seem to reach back further than it does.
 */
export function believedMissing(
  stored: readonly { readonly seq: number; readonly key: string }[],
  listed: ReadonlySet<string>,
): number[] | null {
  const missing = stored.filter(({ key }) => !listed.has(key)).map(({ seq }) => seq)
  return missing.length > Math.max(BELIEVED.events, BELIEVED.share * stored.length) ? null : missing
}
