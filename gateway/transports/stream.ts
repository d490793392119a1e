/** Server-sent events (WHATWG HTML, section 9.2) over an open response. */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { ServerEvent } from '../plugin.ts'

/** Shorter than the idle timeouts of common proxies (30 s and up). */
const HEARTBEAT_MS = 15_000

export interface StreamOptions {
  /** Ends the stream: the caller is gone, or the server closes. */
  readonly signal: AbortSignal
  /** Asked with each heartbeat and event; false ends the stream. */
  readonly isCurrent: () => boolean
  readonly heartbeatMs?: number
}

/** One event as text. `{id: '7', data: {a: 1}}` is `id: 7`, `data: {"a":1}` and a blank line. */
export function eventText({ id, data }: ServerEvent): string {
  return `id: ${id.replace(/[\r\n\0]/g, '')}\ndata: ${JSON.stringify(data ?? null)}\n\n`
}

/**
 * Writes events as fast as the caller reads them, and ends the response. The source is told to stop (`return`) when
 * the stream ends first. Rejects with what the source throws.
 */
export async function sendEvents(
  response: ServerResponse,
  source: AsyncIterable<ServerEvent>,
  { signal, isCurrent, heartbeatMs = HEARTBEAT_MS }: StreamOptions,
): Promise<void> {
  const events = source[Symbol.asyncIterator]()
  const ended = new AbortController()
  const over = AbortSignal.any([signal, ended.signal])
  const heartbeat = setInterval(() => {
    if (isCurrent()) response.write(': still here\n\n')
    else ended.abort()
  }, heartbeatMs)
  const stopped = new Promise<null>((resolve) => {
    if (over.aborted) resolve(null)
    over.addEventListener('abort', () => resolve(null), { once: true })
  })
  try {
    response.flushHeaders()
    while (!over.aborted && isCurrent()) {
      const next = await Promise.race([events.next(), stopped])
      if (next === null || next.done) break
      if (!response.write(eventText(next.value))) await once(response, 'drain', { signal: over }).catch(() => {})
    }
  } finally {
    clearInterval(heartbeat)
    response.end()
    // Not awaited: a source that waits for its next event would hold the connection's end back.
    events.return?.()?.catch(() => {})
  }
}
