/** Streams that end with the access token they were opened with. */
import type { Writable } from 'node:stream'
import type { UpstreamResponse } from '../editions/upstream.ts'
import type { ServerEvent } from '../plugin/plugin.ts'

const CHECK_MS = 1_000

export interface TokenValidity {
  /** Checked before each event is sent, and once a second. */
  readonly isValid: () => Promise<boolean>
  /** Milliseconds until the token expires. */
  readonly remainingMs: () => number
}

/** Ends the stream when the token expires or is no longer valid, and tells the source to stop. */
export function untilTokenExpires(
  source: AsyncIterable<ServerEvent>,
  validity: TokenValidity,
  checkMs = CHECK_MS,
): AsyncIterable<ServerEvent> {
  return {
    [Symbol.asyncIterator]() {
      const events = source[Symbol.asyncIterator]()
      let expire: () => void = () => {}
      const expired = new Promise<null>((resolve) => {
        expire = () => resolve(null)
      })
      const stopWatching = watch(validity, checkMs, expire)
      const close = async (): Promise<IteratorResult<ServerEvent>> => {
        stopWatching()
        // Not awaited: a source that waits for its next event would delay the end.
        events.return?.()?.catch(() => {})
        return { done: true, value: undefined }
      }
      return {
        async next() {
          const next = await Promise.race([events.next(), expired])
          if (next === null || next.done || !(await validity.isValid().catch(() => false))) return close()
          return next
        },
        return: close,
      }
    },
  }
}

/**
 * The response of an upstream that is cut off when the token expires or is no longer valid. It may never end by itself: an
 * upstream may send events too.
 */
export function cutWhenTokenExpires(
  response: UpstreamResponse,
  validity: TokenValidity,
  checkMs = CHECK_MS,
): UpstreamResponse {
  return {
    ...response,
    async pipe(to: Writable) {
      const stopWatching = watch(validity, checkMs, () => to.destroy())
      try {
        await response.pipe(to)
      } finally {
        stopWatching()
      }
    },
  }
}

/** Calls `expire` once the token is no longer valid. Returns a function that stops watching. */
function watch({ isValid, remainingMs }: TokenValidity, checkMs: number, expire: () => void): () => void {
  let timer: NodeJS.Timeout | undefined
  let isStopped = false
  const wait = (): void => {
    const ms = Math.min(checkMs, Math.max(1, Math.ceil(remainingMs())))
    timer = setTimeout(() => void check(), ms).unref()
  }
  const check = async (): Promise<void> => {
    const isGood = await isValid().catch(() => false)
    if (isStopped) return
    if (isGood) wait()
    else expire()
  }
  wait()
  return () => {
    isStopped = true
    clearTimeout(timer)
  }
}
