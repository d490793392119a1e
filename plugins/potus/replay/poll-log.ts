/**
 * The raw log of polls as lines of JSON, and such lines as recorded polls: what one service has kept, any other plays.
 * A body that came again is not written twice: its hash stands for it.
 */
import { gunzipSync } from 'node:zlib'
import type { Database } from 'tollgate/plugin'
import type { JsonRow } from '../sources/feed-body.ts'
import type { PollRow } from '../store/tables.ts'

/** What came with a recorded body, or instead of one. */
export interface Answer {
  /** Null where there was no answer. */
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

const PORTION = 500

/** Every poll that is kept, in order, each as one line without its end. */
export async function* logLines(db: Database): AsyncGenerator<string> {
  for (let last = 0; ;) {
    const rows: (PollRow & { readonly id: number })[] = await db<PollRow & { readonly id: number }>('potus_polls')
      .where('id', '>', last)
      .orderBy('id')
      .limit(PORTION)
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

/** Reads the lines of one log in order; null for a row that is no poll, or whose body came before the log began. */
export function createLogReader(): (row: JsonRow) => LoggedPoll | null {
  const bodies = new Map<string, Buffer>()
  return (row) => {
    const { source, fetched_at: fetched, url, status, headers, sha256, failure, body } = row
    const at = Date.parse(String(fetched))
    if (typeof source !== 'string' || typeof url !== 'string' || Number.isNaN(at)) return null
    const key = `${source} ${String(sha256)}`
    const own = typeof body === 'string' ? unpacked(Buffer.from(body, 'base64')) : null
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

/** What gzip packed, null where it is broken. */
export function unpacked(bytes: Buffer): Buffer | null {
  try {
    return gunzipSync(bytes)
  } catch {
    return null
  }
}
