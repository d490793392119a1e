/** Fills a store with made-up events for benchmarks and tests. The database generates them, which takes seconds. */
import type { OpenDatabase } from '../../../gateway/stores/database.ts'
import { raiseCounter, TURN } from '../../../plugins/potus/store/change-counters.ts'
import { addToEventCount } from '../../../plugins/potus/store/tables.ts'

/** Milliseconds between two events. It is fixed, so that every store has the same density. */
export const APART_MS = 60_000

/**
 * Inserts `count` events numbered from `first`, one per minute, the last at `end` (epoch milliseconds). Every seventh
 * event has a second version. Real news are less dense.
 */
export async function insertMadeUpEvents(db: OpenDatabase, count: number, end: number, first = 1): Promise<void> {
  const start = end - (count - 1) * APART_MS
  const isSqlite = db.client.config.client === 'sqlite3'
  const numbers = isSqlite
    ? `with recursive numbers(n) as (select 0 union all select n + 1 from numbers where n < ${count - 1})`
    : `with numbers as (select generate_series(0, ${count - 1}) as n)`
  const hex = isSqlite ? `printf('%016x', n + ${first})` : `lpad(to_hex(n + ${first}), 16, '0')`
  const at = `(${start} + cast(n as bigint) * ${APART_MS})`
  const insert = (table: string, columns: string, values: string, where = ''): Promise<unknown> =>
    isSqlite
      ? db.raw(`insert into ${table} (${columns}) ${numbers} select ${values} from numbers ${where}`)
      : db.raw(`${numbers} insert into ${table} (${columns}) select ${values} from numbers ${where}`)
  await insert(
    'potus_events',
    'seq, id, source, source_key, url, published_at, "precision", occurred_at, first_seen_at, available_at, latency_ms, ingest, cluster, post, signed_on',
    `n + ${first}, 'evt_' || ${hex}, 'truth.mirror', cast(n as text), 'https://sample.invalid', ${at}, 's', null, ${at}, ${at}, 0, 'live', 'clu_' || ${hex}, null, null`,
  )
  const version = (number: number, status: string, known: string, until: string): string =>
    `n + ${first}, ${number}, ${number}, '${status}', ${known}, ${until}, null, 'social.post', null, 'Event number ' || n || ' about tariffs on copper.', 'en', '[]', '["trade"]', '[]', '[]', '{"score":0.6,"reasons":["topic:trade"]}', 'sha256:' || ${hex}, 'truth.mirror', null, 'sha256:${number}' || ${hex}, '', ${at}, 'https://sample.invalid', 'truth-rss@1'`
  const columns =
    'seq, version, revision, status, known_at, superseded_at, revised_at, kind, title, text, lang, media, topics, entities, assets, grounds, content_hash, source, prev, record_hash, raw_sha256, fetched_at, feed_url, parser'
  const later = `${at} + 3600000`
  const until = `case when n % 7 = 0 then ${later} else null end`
  await insert('potus_versions', columns, version(1, 'active', at, until))
  await insert('potus_versions', columns, version(2, 'corrected', later, 'null'), 'where n % 7 = 0')
  const mention = 'term, type, name, seq, version, count, available_at, known_at, superseded_at'
  await insert('potus_mentions', mention, `'topic:trade', 'topic', 'trade', n + ${first}, 1, 1, ${at}, ${at}, ${until}`)
  await insert(
    'potus_mentions',
    mention,
    `'topic:trade', 'topic', 'trade', n + ${first}, 2, 1, ${at}, ${later}, null`,
    'where n % 7 = 0',
  )
  await addToEventCount(db, count)
  await raiseCounter(db, TURN)
}
