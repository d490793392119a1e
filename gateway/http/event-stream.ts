/** Server-sent events (WHATWG HTML, section 9.2) over an open response. */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { ServerEvent } from '../plugin/plugin.ts'

/** Shorter than the idle timeouts of common proxies (30 s and up). */
const HEARTBEAT_MS = 15_000
/** A reader that takes nothing for so long is cut off: it holds a place, and resumes where it was when it comes back. */
const STALL_MS = 60_000

export interface StreamOptions {
  /** Ends the stream: the caller is gone, or the server closes. */
  readonly signal: AbortSignal
  /** Asked with each heartbeat and event; false ends the stream. */
  readonly isCurrent: () => boolean
  readonly heartbeatMs?: number
  readonly stallMs?: number
}

/** One event as text. `{id: '7', data: {a: 1}}` is `id: 7`, `data: {"a":1}` and a blank line. */
export function eventText({ id, data }: ServerEvent): string {
  return `id: ${id.replace(/[\r\n\0]/g, '')}\ndata: ${JSON.stringify(data ?? null)}\n\n`
}

/**
 * Writes events as fast as the caller reads them, and ends the response: no event is asked for before the last one has
 * gone, so a slow reader costs one event and a socket's buffer. The source is told to stop (`return`) when the stream
 * ends first. Rejects with what the source throws.
 */
export async function sendEvents(
  response: ServerResponse,
  source: AsyncIterable<ServerEvent>,
  { signal, isCurrent, heartbeatMs = HEARTBEAT_MS, stallMs = STALL_MS }: StreamOptions,
): Promise<void> {
  const events = source[Symbol.asyncIterator]()
  const ended = new AbortController()
  const over = AbortSignal.any([signal, ended.signal])
  const heartbeat = setInterval(() => {
    if (!isCurrent()) ended.abort()
    else if (!response.writableNeedDrain) response.write(': still here\n\n')
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
      if (response.write(eventText(next.value)) || (await drained(response, over, stallMs))) continue
      response.destroy()
      break
    }
  } finally {
    clearInterval(heartbeat)
    response.end()
    // Not awaited: a source that waits for its next event would hold the connection's end back.
    events.return?.()?.catch(() => {})
  }
}

/** Waits until the reader has taken what was written, or the stream is over. False: it took nothing for too long. */
async function drained(response: ServerResponse, over: AbortSignal, stallMs: number): Promise<boolean> {
  const stalled = AbortSignal.timeout(stallMs)
  await once(response, 'drain', { signal: AbortSignal.any([over, stalled]) }).catch(() => {})
  return !(stalled.aborted && response.writableNeedDrain)
}
