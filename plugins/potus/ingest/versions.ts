/** Versions of events as rows: each is chained to the record its source had before, so that a removal would show. */
import { createHash } from 'node:crypto'
import type { Knex } from 'tollgate/plugin'
import type { Item } from '../item.ts'
import type { MentionRow, Status, VersionRow } from '../store/rows.ts'
import type { Description } from './describe.ts'
import type { Memory } from './memory.ts'
import type { Stretch } from './writer.ts'

/** Where a version comes from. */
export interface Raw {
  readonly sha256: string
  readonly at: number
  readonly url: string
  readonly parser: string
}

export interface Numbered {
  readonly seq: number
  readonly version: number
  readonly revision: number
  readonly status: Status
  readonly knownAt: number
  readonly revisedAt: number | null
}

interface Parts {
  readonly source: string
  readonly raw: Raw
  readonly memory: Memory
  readonly stretch: Stretch
}

/** The row of one version; its hash covers what it says, when it was known, and the record before it. */
export async function versionRow(
  db: Knex,
  { source, raw, memory, stretch }: Parts,
  { seq, version, revision, status, knownAt, revisedAt }: Numbered,
  item: Item,
  hash: string,
  { topics, entities, assets, grounds }: Description,
): Promise<VersionRow> {
  const prev = await memory.chainEnd(db, source, stretch)
  const said = JSON.stringify([prev, source, item.key, version, status, hash, knownAt])
  const recordHash = `sha256:${createHash('sha256').update(said).digest('hex')}`
  memory.setChainEnd(source, recordHash)
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

/** Topics and entities of a version, to be counted and searched. */
export function mentionRows(
  { seq, version, knownAt }: Pick<Numbered, 'seq' | 'version' | 'knownAt'>,
  availableAt: number,
  { topics, entities }: Pick<Description, 'topics' | 'entities'>,
): MentionRow[] {
  const plain = { seq, version, available_at: availableAt, known_at: knownAt, superseded_at: null }
  return [
    ...topics.map((topic) => ({ ...plain, term: `topic:${topic}`, type: 'topic', name: topic, count: 1 })),
    ...entities.map(({ id, type, name, count }) => ({ ...plain, term: id, type, name, count })),
  ]
}
