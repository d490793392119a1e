/**
 * Writes the log of polls as lines of JSON, and reads such lines as recorded polls, so that any service can replay what
 * another has recorded. A repeated body is written once; after that its hash is written instead.
 */
import { gunzipSync } from 'node:zlib'
import type { Database } from 'tollgate/plugin'
import type { JsonRow } from '../sources/feed-body.ts'
import type { PollRow } from '../store/tables.ts'

/** What came with a recorded body or instead of it. */
export interface Answer {
  /** Null if there was no answer. */
  readonly status: number | null
  readonly headers: Readonly<Record<string, string>>
  readonly failure?: string
}

export interface LoggedPoll {
  readonly source: string
  readonly at: number
  readonly url: string
  readonly body: Buffer | null
  readonly answer: Answer
}

/** Rows read at once. */
const BATCH = 500

/** Every stored poll in order, each as one line without its line break. */
export async function* logLines(db: Database): AsyncGenerator<string> {
  for (let last = 0; ;) {
    const rows: (PollRow & { readonly id: number })[] = await db<PollRow & { readonly id: number }>('potus_polls')
      .where('id', '>', last)
      .orderBy('id')
      .limit(BATCH)
    for (const { source, at, url, status, headers, sha256, outcome, detail, body } of rows)
      yield JSON.stringify({
        source,
        fetched_at: new Date(at).toISOString(),
        url,
        status,
        headers: headers === null ? {} : (JSON.parse(headers) as unknown),
        sha256,
        ...(outcome === 'failed' ? { failure: detail } : {}),
        ...(body === null ? {} : { body: body.toString('base64') }),
      })
    const end = rows.at(-1)
    if (!end) return
    last = end.id
  }
}

/** Reads the rows of one log in order. Returns null for a row that is not a poll, or whose body is not in the log. */
export function createLogReader(): (row: JsonRow) => LoggedPoll | null {
  const bodies = new Map<string, Buffer>()
  return (row) => {
    const { source, fetched_at: fetched, url, status, headers, sha256, failure, body } = row
    const at = Date.parse(String(fetched))
    if (typeof source !== 'string' || typeof url !== 'string' || Number.isNaN(at)) return null
    const key = `${source} ${String(sha256)}`
    const own = typeof body === 'string' ? gunzipOrNull(Buffer.from(body, 'base64')) : null
    if (own) bodies.set(key, own)
    const known = typeof sha256 === 'string' ? (bodies.get(key) ?? null) : null
    if (typeof sha256 === 'string' && known === null) return null
    const answer = {
      status: typeof status === 'number' ? status : null,
      headers: (headers ?? {}) as Record<string, string>,
      ...(typeof failure === 'string' ? { failure } : {}),
    }
    return { source, at, url, body: known, answer }
  }
}

/** Decompresses gzip; null if the data is damaged. */
export function gunzipOrNull(bytes: Buffer): Buffer | null {
  try {
    return gunzipSync(bytes)
  } catch {
    return null
  }
}
