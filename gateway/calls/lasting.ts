/** An event stream that lasts as long as the token it was opened with. */
import type { ServerEvent } from '../plugin.ts'

const CHECK_MS = 1_000

/**
 * The source, ended when `isValid` says no: asked before each event leaves, and once a second while nothing happens. The
 * source is told to stop.
 */
export function lasting(
  source: AsyncIterable<ServerEvent>,
  isValid: () => Promise<boolean>,
  checkMs = CHECK_MS,
): AsyncIterable<ServerEvent> {
  return {
    [Symbol.asyncIterator]() {
      const events = source[Symbol.asyncIterator]()
      let end: () => void = () => {}
      const ended = new Promise<null>((resolve) => {
        end = () => resolve(null)
      })
      const timer = setInterval(() => void isValid().then((valid) => (valid ? undefined : end()), end), checkMs).unref()
      const over = async (): Promise<IteratorResult<ServerEvent>> => {
        clearInterval(timer)
        // Not awaited: a source that waits for its next event would hold the end back.
        events.return?.()?.catch(() => {})
        return { done: true, value: undefined }
      }
      return {
        async next() {
          const next = await Promise.race([events.next(), ended])
          if (next === null || next.done || !(await isValid().catch(() => false))) return over()
          return next
        },
        return: over,
      }
    },
  }
}
