/**
 * Tables of the event store and the types of their rows. Times are milliseconds since 1970 in 64 bits. Everything that may
 * change has a version.
 */
import type { Database, Migration } from 'tollgate/plugin'
import type { Kind, Precision } from '../sources/source.ts'

export const migrations: readonly Migration[] = [
  async (db) => {
    await createPolls(db)
    await createEvents(db)
    await createEventNotes(db)
  },
  async (db) => {
    const [{ n }] = (await db('potus_events').count('* as n')) as unknown as [{ n: number }]
    if (n > 0) await addToEventCount(db, n)
  },
  async (db) => {
    // The moments at which a version became known, and the last polls of a source by what became of them.
    await db.schema.alterTable('potus_versions', (table) => void table.index(['known_at']))
    await db.schema.alterTable('potus_polls', (table) => void table.index(['source', 'outcome', 'at']))
  },
  async (db) => {
    await db.schema.alterTable('potus_events', (table) => void table.index(['post']))
    // How far the older items of a source have been fetched.
    await db.schema.createTable('potus_histories', (table) => {
      table.text('source').primary()
      table.text('state').notNullable()
      table.text('position').notNullable()
      table.integer('pages').notNullable()
      table.integer('items').notNullable()
      table.integer('fresh').notNullable()
      table.bigInteger('oldest')
      table.double('share')
      table.bigInteger('started_at').notNullable()
      table.bigInteger('updated_at').notNullable()
      table.bigInteger('finished_at')
      table.text('detail')
    })
  },
  async (db) => {
    // The times in which each source was watched (watch-spans.ts).
    await db.schema.createTable('potus_watch', (table) => {
      table.text('source').notNullable()
      table.bigInteger('from_at').notNullable()
      table.bigInteger('until_at').notNullable()
      table.bigInteger('failed_at')
      table.primary(['source', 'from_at'])
    })
  },
]

/** Name of the note that keeps the number of events. */
export const EVENT_COUNT = 'events'

/** Adds to the kept number of events. Call it in the transaction that inserts them. */
export async function addToEventCount(tx: Database, added: number): Promise<void> {
  const sum = tx.raw('cast(cast(potus_notes.value as bigint) + ? as text)', [added])
  await tx('potus_notes')
    .insert({ name: EVENT_COUNT, value: String(added) })
    .onConflict('name')
    .merge({ value: sum })
}

export interface EventRow {
  readonly seq: number
  readonly id: string
  readonly source: string
  readonly source_key: string
  readonly url: string
  readonly published_at: number
  readonly precision: Precision
  readonly occurred_at: number | null
  readonly first_seen_at: number
  readonly available_at: number
  readonly latency_ms: number | null
  readonly ingest: 'live' | 'backfill'
  readonly cluster: string
  readonly post: string | null
  readonly signed_on: string | null
}

export type Status = 'active' | 'corrected' | 'retracted'

export interface VersionRow {
  readonly seq: number
  readonly version: number
  readonly revision: number
  readonly status: Status
  readonly known_at: number
  readonly superseded_at: number | null
  readonly revised_at: number | null
  readonly kind: Kind
  readonly title: string | null
  readonly text: string
  readonly lang: string
  /** `media` to `grounds` are JSON. */
  readonly media: string
  readonly topics: string
  readonly entities: string
  readonly assets: string
  readonly grounds: string
  readonly content_hash: string
  readonly source: string
  readonly prev: string | null
  readonly record_hash: string
  readonly raw_sha256: string
  readonly fetched_at: number
  readonly feed_url: string
  readonly parser: string
}

export interface MentionRow {
  readonly term: string
  readonly type: string
  readonly name: string
  readonly seq: number
  readonly version: number
  readonly count: number
  readonly available_at: number
  readonly known_at: number
  readonly superseded_at: number | null
}

export interface PollRow {
  readonly source: string
  readonly at: number
  readonly outcome: Outcome
  readonly status: number | null
  readonly detail: string | null
  readonly url: string
  readonly headers: string | null
  readonly sha256: string | null
  readonly parser: string
  readonly items: number
  readonly fresh: number
  readonly body: Buffer | null
}

/**
 * What became of a poll. `new`: parsed and stored. `partial`: the same, without entries that cannot be read. `unchanged`: the same
 * body as last time. `not_modified`: status 304.
 * `quarantined`: not what the source should send; the body is kept and not published. `failed`: no answer, or another
 * status than 200.
 */
export type Outcome = 'new' | 'partial' | 'unchanged' | 'not_modified' | 'quarantined' | 'failed'

/** Rows per statement, far below the number of parameters that both databases allow. */
const BATCH = 200

/** Inserts rows in batches. */
export async function insertAll(db: Database, table: string, rows: readonly object[]): Promise<void> {
  for (let from = 0; from < rows.length; from += BATCH) await db(table).insert(rows.slice(from, from + BATCH))
}

/** The log of polls, and what the next poll of a source needs. */
async function createPolls(db: Database): Promise<void> {
  // The log of polls: one row per poll, with the body if it was new. replay/poll-log.ts exports it as a recording.
  await db.schema.createTable('potus_polls', (table) => {
    table.increments('id')
    table.text('source').notNullable()
    table.bigInteger('at').notNullable()
    table.text('outcome').notNullable()
    table.integer('status')
    table.text('detail')
    table.text('url').notNullable()
    table.text('headers')
    table.text('sha256')
    table.text('parser').notNullable()
    table.integer('items').notNullable().defaultTo(0)
    table.integer('fresh').notNullable().defaultTo(0)
    table.binary('body')
    table.index(['source', 'at'])
    table.index(['at'])
  })
  // What the next poll of a source needs: validators and the hash of the last body.
  await db.schema.createTable('potus_feeds', (table) => {
    table.text('source').primary()
    table.text('etag')
    table.text('last_modified')
    table.text('sha256')
    table.text('parser')
  })
}

/** Events and their versions. */
async function createEvents(db: Database): Promise<void> {
  await db.schema.createTable('potus_events', (table) => {
    table.bigInteger('seq').primary()
    table.text('id').notNullable().unique()
    table.text('source').notNullable()
    table.text('source_key').notNullable()
    table.text('url').notNullable()
    table.bigInteger('published_at').notNullable()
    table.text('precision').notNullable()
    table.bigInteger('occurred_at')
    table.bigInteger('first_seen_at').notNullable()
    table.bigInteger('available_at').notNullable()
    table.integer('latency_ms')
    table.text('ingest').notNullable()
    table.text('cluster').notNullable()
    table.text('post')
    table.text('signed_on')
    table.index(['available_at', 'seq'])
    table.index(['source', 'available_at'])
    table.index(['source', 'published_at'])
    table.index(['cluster', 'available_at'])
  })
  await db.schema.createTable('potus_versions', (table) => {
    table.increments('id')
    table.bigInteger('seq').notNullable()
    table.integer('version').notNullable()
    table.integer('revision').notNullable()
    table.text('status').notNullable()
    table.bigInteger('known_at').notNullable()
    table.bigInteger('superseded_at')
    table.bigInteger('revised_at')
    table.text('kind').notNullable()
    table.text('title')
    table.text('text').notNullable()
    table.text('lang').notNullable()
    table.text('media').notNullable()
    table.text('topics').notNullable()
    table.text('entities').notNullable()
    table.text('assets').notNullable()
    table.text('grounds').notNullable()
    table.text('content_hash').notNullable()
    table.text('source').notNullable()
    table.text('prev')
    table.text('record_hash').notNullable()
    table.text('raw_sha256').notNullable()
    table.bigInteger('fetched_at').notNullable()
    table.text('feed_url').notNullable()
    table.text('parser').notNullable()
    table.unique(['seq', 'version'])
    table.index(['source', 'id'])
  })
}

/** What is derived from events, and what is known about them between two polls. */
async function createEventNotes(db: Database): Promise<void> {
  // Topics and entities of each version, for searches and counts.
  await db.schema.createTable('potus_mentions', (table) => {
    table.text('term').notNullable()
    table.text('type').notNullable()
    table.text('name').notNullable()
    table.bigInteger('seq').notNullable()
    table.integer('version').notNullable()
    table.integer('count').notNullable()
    table.bigInteger('available_at').notNullable()
    table.bigInteger('known_at').notNullable()
    table.bigInteger('superseded_at')
    table.index(['term', 'available_at', 'seq'])
    table.index(['available_at'])
    table.index(['seq'])
  })
  // Texts that shrank to a stub. They wait until more polls confirm them.
  await db.schema.createTable('potus_held', (table) => {
    table.bigInteger('seq').primary()
    table.text('source').notNullable()
    table.text('content_hash').notNullable()
    table.integer('polls').notNullable()
    table.text('item').notNullable()
    table.index(['source'])
  })
  // Events missing from their feed. They are retracted once three successful polls agree.
  await db.schema.createTable('potus_missing', (table) => {
    table.bigInteger('seq').primary()
    table.text('source').notNullable()
    table.integer('polls').notNullable()
    table.index(['source'])
  })
  await db.schema.createTable('potus_engagement', (table) => {
    table.bigInteger('seq').primary()
    table.bigInteger('observed_at').notNullable()
    table.bigInteger('replies').notNullable()
    table.bigInteger('reblogs').notNullable()
    table.bigInteger('favourites').notNullable()
  })
  await db.schema.createTable('potus_notes', (table) => {
    table.text('name').primary()
    table.text('value').notNullable()
  })
}
