/** Rows as the database gives them, and the batches they are written in. */
import type { Knex } from 'tollgate/plugin'
import type { Kind, Precision } from '../item.ts'

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
  /** The next five are JSON. */
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
 * `new`: parsed. `unchanged`: the body of last time. `not_modified`: 304. `quarantined`: not what the source should
 * send; kept and not published. `failed`: no answer, or a status that is not 200.
 */
export type Outcome = 'new' | 'unchanged' | 'not_modified' | 'quarantined' | 'failed'

/** Rows per statement: far below the number of values both databases allow. */
const BATCH = 200

export async function insertAll(db: Knex, table: string, rows: readonly object[]): Promise<void> {
  for (let from = 0; from < rows.length; from += BATCH) await db(table).insert(rows.slice(from, from + BATCH))
}
