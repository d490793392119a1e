/** Event streams that end with the access token they were opened with. */
import type { ServerEvent } from '../plugin/plugin.ts'

const CHECK_MS = 1_000

export interface TokenValidity {
  /** Checked before each event is sent, and once a second while no event comes. */
  readonly isValid: () => Promise<boolean>
  /** Milliseconds until the token expires. */
  readonly remainingMs: () => number
}

/** Ends the stream when the token expires or is no longer valid, and tells the source to stop. */
export function untilTokenExpires(
  source: AsyncIterable<ServerEvent>,
  { isValid, remainingMs }: TokenValidity,
  checkMs = CHECK_MS,
): AsyncIterable<ServerEvent> {
  return {
    [Symbol.asyncIterator]() {
      const events = source[Symbol.asyncIterator]()
      let expire: () => void = () => {}
      let timer: NodeJS.Timeout | undefined
      let isClosed = false
      const expired = new Promise<null>((resolve) => {
        expire = () => resolve(null)
      })
      const watch = (): void => {
        if (isClosed) return
        const wait = Math.min(checkMs, Math.max(1, Math.ceil(remainingMs())))
        timer = setTimeout(() => void isValid().then((valid) => (valid ? watch() : expire()), expire), wait).unref()
      }
      watch()
      const close = async (): Promise<IteratorResult<ServerEvent>> => {
        isClosed = true
        clearTimeout(timer)
        // Not awaited: a source that waits for its next event would delay the end.
        events.return?.()?.catch(() => {})
        return { done: true, value: undefined }
      }
      return {
        async next() {
          const next = await Promise.race([events.next(), expired])
          if (next === null || next.done || !(await isValid().catch(() => false))) return close()
          return next
        },
        return: close,
      }
    },
  }
}
