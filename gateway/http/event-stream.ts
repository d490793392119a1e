/** Sends server-sent events (WHATWG HTML, section 9.2) over an open response. */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { ServerEvent } from '../plugin/plugin.ts'
import { timeoutSignal } from '../plugin/timeout-signal.ts'

/** Shorter than the idle timeouts of common proxies, which start at 30 s. */
const HEARTBEAT_MS = 15_000
/** A reader that accepts no data for this long is disconnected. It can reconnect and resume with Last-Event-ID. */
const STALL_MS = 60_000

export interface StreamOptions {
  /** Ends the stream: the caller disconnected, or the server is closing. */
  readonly signal: AbortSignal
  /** Called at each heartbeat and event. If it returns false, the stream ends. */
  readonly isCurrent: () => boolean
  readonly heartbeatMs?: number
  readonly stallMs?: number
}

/** Formats one event. `{id: '7', data: {a: 1}}` becomes the lines `id: 7`, `data: {"a":1}` and a blank line. */
export function eventText({ id, event, data }: ServerEvent): string {
  return `${field('event', event)}${field('id', id)}data: ${JSON.stringify(data ?? null)}\n\n`
}

const field = (name: string, value: string | undefined): string =>
  value === undefined ? '' : `${name}: ${value.replace(/[\r\n\0]/g, '')}\n`

/**
 * Writes events as fast as the caller reads them, then ends the response. The next event is requested only after the
 * last one was written, so a slow reader costs one event and a socket buffer. If the stream ends before the source, the
 * source's `return` is called. Rejects with the error that the source throws.
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
    // Not awaited: a source that is waiting for its next event would keep the connection open.
    events.return?.()?.catch(() => {})
  }
}

/** Waits until the reader has accepted the data, or the stream is over. Returns false if it stalled for `stallMs`. */
async function drained(response: ServerResponse, over: AbortSignal, stallMs: number): Promise<boolean> {
  const stalled = timeoutSignal(stallMs)
  await once(response, 'drain', { signal: AbortSignal.any([over, stalled]) }).catch(() => {})
  return !(stalled.aborted && response.writableNeedDrain)
}
