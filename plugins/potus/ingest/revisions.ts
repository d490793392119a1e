/**
 * Versions of events: revisions, stubs, retractions and returns. An earlier version is kept with the time until which it
 * was valid, and each version carries the hash of the record before it, so that a removal would show.
 */
import { createHash } from 'node:crypto'
import type { Database } from 'tollgate/plugin'
import { annotate, type Annotations } from '../entities/relevance.ts'
import type { Item, Source } from '../sources/source.ts'
import { insertAll, type MentionRow, type Status, type VersionRow } from '../store/tables.ts'
import type { FeedChanges, KnownVersion, Revision } from './feed-changes.ts'
import type { WriterState, SequenceRange } from './writer-state.ts'

/** Number of successful polls that must agree before a stub or an absence counts. */
const CONFIRMING_POLLS = 3

export interface Applied {
  readonly revised: number
  readonly held: number
  readonly repeated: number
}

export interface ChangeContext {
  readonly source: Source
  readonly change: FeedChanges
  readonly raw: Provenance
  readonly now: number
  readonly state: WriterState
  readonly range: SequenceRange
  readonly descriptions: ReadonlyMap<Item, Annotations>
}

interface HeldRow {
  readonly seq: number
  readonly source: string
  readonly content_hash: string
  readonly polls: number
  readonly item: string
}

/** Stores what a successful poll changes about known events. */
export async function applyChanges(db: Database, application: ChangeContext): Promise<Applied> {
  const { change, source, descriptions } = application
  for (const { current, item, hash } of change.revised)
    await revise(db, application, current, item, hash, descriptions.get(item) ?? annotate(item, source))
  for (const revision of change.held) await hold(db, application, revision)
  for (const current of change.returned)
    await restate(db, application, current.seq, current.revision > 1 ? 'corrected' : 'active')
  const settled = [...change.revised.map(({ current }) => current), ...change.repeated].map(({ seq }) => seq)
  if (settled.length > 0) await db('potus_held').whereIn('seq', settled).delete()
  if (change.missing) await countMissing(db, application, change.missing)
  const counted = change.counts.map(({ seq, counts }) => ({ seq, observed_at: application.raw.at, ...counts }))
  for (const row of counted) await db('potus_engagement').insert(row).onConflict('seq').merge()
  return { revised: change.revised.length, held: change.held.length, repeated: change.repeated.length }
}

export interface Waiting {
  readonly poll: { readonly at: number; readonly url: string }
  readonly now: number
  readonly state: WriterState
  readonly range: SequenceRange
}

/** An unchanged poll confirms the one before it: stubs and absences that wait get one more confirmation. */
export async function confirmPending(
  db: Database,
  source: Source,
  { poll, now, state, range }: Waiting,
): Promise<Partial<Applied>> {
  const rows = (await db('potus_held').where({ source: source.id })) as HeldRow[]
  const missing = (await db('potus_missing').where({ source: source.id }).select('seq')) as { seq: number }[]
  if (rows.length === 0 && missing.length === 0) return {}
  const raw = { sha256: rows[0]?.content_hash ?? '', at: poll.at, url: poll.url, parser: source.parser }
  const none = { fresh: [], revised: [], held: [], repeated: [], returned: [], counts: [], missing: null }
  const application = {
    source,
    change: none,
    raw,
    now: Math.max(poll.at, now),
    state,
    range,
    descriptions: new Map(),
  }
  let revised = 0
  for (const { seq, polls, item, content_hash } of rows) {
    const current = await newest(db, seq)
    const again = { current, item: JSON.parse(item) as Item, hash: content_hash }
    if (await hold(db, application, again, polls)) revised += 1
  }
  await countMissing(
    db,
    application,
    missing.map(({ seq }) => seq),
  )
  return { revised }
}

/**
 * Ends the waiting of what a changed list does not show. The next polls may repeat that list, and must not confirm what is not
 * in it.
 */
export async function endConfirmations(
  db: Database,
  source: Source,
  { held, missing }: Pick<FeedChanges, 'held' | 'missing'>,
): Promise<void> {
  if (missing === null) await endAbsences(db, source)
  const shown = new Set(held.map(({ current }) => current.seq))
  const waiting = await db<HeldRow>('potus_held').where({ source: source.id }).select('seq')
  const ended = waiting.map(({ seq }) => seq).filter((seq) => !shown.has(seq))
  if (ended.length > 0) await db('potus_held').whereIn('seq', ended).delete()
}

/** Counts no event as missing any more, after a list that was not read as a whole. */
export async function endAbsences(db: Database, { id }: Source): Promise<void> {
  await db('potus_missing').where({ source: id }).delete()
}

async function newest(db: Database, seq: number): Promise<KnownVersion> {
  const row = (await db('potus_versions').where({ seq }).whereNull('superseded_at').first()) as VersionRow
  return { ...row, key: '', hash: row.content_hash, hashes: new Set() }
}

/** Stores a new text as a corrected version. */
async function revise(
  db: Database,
  application: ChangeContext,
  current: KnownVersion,
  item: Item,
  hash: string,
  description: Annotations,
): Promise<void> {
  await supersede(db, application, current, item, hash, description, {
    revision: current.revision + 1,
    status: 'corrected',
  })
}

/** Stores a version and ends the validity of the one before it. */
async function supersede(
  db: Database,
  { source, raw, now, state, range }: ChangeContext,
  current: Pick<KnownVersion, 'seq' | 'version' | 'revision'>,
  item: Item,
  hash: string,
  description: Annotations,
  { revision, status, revisedAt }: { revision: number; status: Status; revisedAt?: number | null },
): Promise<void> {
  const { seq, version } = current
  const before = (await db('potus_events as e')
    .join('potus_versions as v', 'v.seq', 'e.seq')
    .where({ 'v.seq': seq, 'v.version': version })
    .first('e.available_at', 'v.known_at')) as { available_at: number; known_at: number }
  // A change is known from the time it is written, but never before the version it replaces: that one may come from a
  // process whose clock is ahead.
  const knownAt = Math.max(now, before.known_at)
  const numbered = {
    seq,
    version: version + 1,
    revision,
    status,
    knownAt,
    revisedAt: revisedAt === undefined ? knownAt : revisedAt,
  }
  await db('potus_versions').where({ seq, version }).update({ superseded_at: knownAt })
  await db('potus_mentions').where({ seq, version }).update({ superseded_at: knownAt })
  const row = await buildVersionRow(db, { source: source.id, raw, state, range }, numbered, item, hash, description)
  await insertAll(db, 'potus_versions', [row])
  await insertAll(db, 'potus_mentions', buildMentionRows(numbered, before.available_at, description))
}

/** Holds a stub back, or stores it once enough polls agree. Returns true if it became a revision. */
async function hold(
  db: Database,
  application: ChangeContext,
  { current, item, hash }: Revision,
  seen?: number,
): Promise<boolean> {
  const known = (await db('potus_held').where({ seq: current.seq }).first()) as HeldRow | undefined
  const polls = (known?.content_hash === hash ? (seen ?? known.polls) : 0) + 1
  if (polls >= CONFIRMING_POLLS) {
    await revise(db, application, current, item, hash, annotate(item, application.source))
    await db('potus_held').where({ seq: current.seq }).delete()
    return true
  }
  const row = { seq: current.seq, source: application.source.id, content_hash: hash, polls, item: JSON.stringify(item) }
  await db('potus_held').insert(row).onConflict('seq').merge()
  return false
}

/** Counts one more poll without these events, and retracts those that enough polls lack. The others are no longer missing. */
async function countMissing(db: Database, application: ChangeContext, missing: readonly number[]): Promise<void> {
  const { source } = application
  const before = (await db('potus_missing').where({ source: source.id })) as { seq: number; polls: number }[]
  const polls = new Map(before.map((row) => [row.seq, row.polls]))
  const gone = new Set(missing)
  const back = before.filter(({ seq }) => !gone.has(seq)).map(({ seq }) => seq)
  if (back.length > 0) await db('potus_missing').whereIn('seq', back).delete()
  for (const seq of missing) {
    const count = (polls.get(seq) ?? 0) + 1
    if (count < CONFIRMING_POLLS)
      await db('potus_missing').insert({ seq, source: source.id, polls: count }).onConflict('seq').merge()
    else {
      await restate(db, application, seq, 'retracted')
      await db('potus_missing').where({ seq }).delete()
    }
  }
}

/** Stores the same text under another status. */
async function restate(db: Database, application: ChangeContext, seq: number, status: Status): Promise<void> {
  const row = (await db('potus_versions').where({ seq }).whereNull('superseded_at').first()) as VersionRow
  const event = (await db('potus_events').where({ seq }).first('source_key as key')) as { key: string }
  const item = { ...row, key: event.key, media: JSON.parse(row.media) } as unknown as Item
  const description = {
    topics: JSON.parse(row.topics),
    entities: JSON.parse(row.entities),
    assets: JSON.parse(row.assets),
    grounds: JSON.parse(row.grounds),
  } as Annotations
  const { revision, revised_at: revisedAt } = row
  await supersede(db, application, row, item, row.content_hash, description, { revision, status, revisedAt })
}

/** The poll that a version comes from. */
export interface Provenance {
  readonly sha256: string
  readonly at: number
  readonly url: string
  readonly parser: string
}

export interface VersionNumbers {
  readonly seq: number
  readonly version: number
  readonly revision: number
  readonly status: Status
  readonly knownAt: number
  readonly revisedAt: number | null
}

interface Parts {
  readonly source: string
  readonly raw: Provenance
  readonly state: WriterState
  readonly range: SequenceRange
}

/** The row of one version. Its hash covers its content, when it was known, and the hash of the record before it. */
export async function buildVersionRow(
  db: Database,
  { source, raw, state, range }: Parts,
  { seq, version, revision, status, knownAt, revisedAt }: VersionNumbers,
  item: Item,
  hash: string,
  { topics, entities, assets, grounds }: Annotations,
): Promise<VersionRow> {
  const prev = await state.chainEnd(db, source, range)
  const hashed = JSON.stringify([prev, source, item.key, version, status, hash, knownAt])
  const recordHash = `sha256:${createHash('sha256').update(hashed).digest('hex')}`
  state.setChainEnd(source, recordHash)
  return {
    seq,
    version,
    revision,
    status,
    known_at: knownAt,
    superseded_at: null,
    revised_at: revisedAt,
    kind: item.kind,
    title: item.title,
    text: item.text,
    lang: item.lang,
    media: JSON.stringify(item.media),
    topics: JSON.stringify(topics),
    entities: JSON.stringify(entities),
    assets: JSON.stringify(assets),
    grounds: JSON.stringify(grounds),
    content_hash: hash,
    source,
    prev,
    record_hash: recordHash,
    raw_sha256: raw.sha256,
    fetched_at: raw.at,
    feed_url: raw.url,
    parser: raw.parser,
  }
}

/** One row per topic and entity of a version, for counts and searches. */
export function buildMentionRows(
  { seq, version, knownAt }: Pick<VersionNumbers, 'seq' | 'version' | 'knownAt'>,
  availableAt: number,
  { topics, entities }: Pick<Annotations, 'topics' | 'entities'>,
): MentionRow[] {
  const plain = { seq, version, available_at: availableAt, known_at: knownAt, superseded_at: null }
  return [
    ...topics.map((topic) => ({ ...plain, term: `topic:${topic}`, type: 'topic', name: topic, count: 1 })),
    ...entities.map(({ id, type, name, count }) => ({ ...plain, term: id, type, name, count })),
  ]
}
