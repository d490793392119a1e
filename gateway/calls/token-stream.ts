/** An event stream that lasts as long as the token it was opened with. */
import type { ServerEvent } from '../plugin/plugin.ts'

const CHECK_MS = 1_000

export interface Lasting {
  /** Asked before each event leaves, and once a second while nothing happens. */
  readonly isValid: () => Promise<boolean>
  /** Milliseconds until the end that is known in advance. */
  readonly left: () => number
}

/** The source, ended in the moment `left` names, or when `isValid` says no. The source is told to stop. */
export function lasting(
  source: AsyncIterable<ServerEvent>,
  { isValid, left }: Lasting,
  checkMs = CHECK_MS,
): AsyncIterable<ServerEvent> {
  return {
    [Symbol.asyncIterator]() {
      const events = source[Symbol.asyncIterator]()
      let end: () => void = () => {}
      let timer: NodeJS.Timeout | undefined
      let isOver = false
      const ended = new Promise<null>((resolve) => {
        end = () => resolve(null)
      })
      const watch = (): void => {
        if (isOver) return
        const wait = Math.min(checkMs, Math.max(1, Math.ceil(left())))
        timer = setTimeout(() => void isValid().then((valid) => (valid ? watch() : end()), end), wait).unref()
      }
      watch()
      const over = async (): Promise<IteratorResult<ServerEvent>> => {
        isOver = true
        clearTimeout(timer)
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
