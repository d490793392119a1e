/** Whether payments can be settled, as of the last look. Asking is free; looking happens on a timer. */
import type { Logger } from '../../plugin/plugin.ts'

export interface Health {
  current(): { readonly ready: boolean; readonly reason?: string }
  /** Looks now. Never rejects; looks that overlap are one. */
  look(): Promise<void>
  close(): void
}

/** How soon to look again while nothing works. */
const DOWN_SECONDS = 3

/** @param inspect returns why nothing can be settled, or null; a throw means the same with the words of `unreachable` */
export function createHealth(options: {
  readonly inspect: () => Promise<string | null>
  readonly everySeconds: number
  readonly unreachable: string
  /** Hears when payments can no longer be settled, and when they can again. */
  readonly log: Logger
}): Health {
  const { inspect, everySeconds, unreachable, log } = options
  let reason: string | null = null
  let looking: Promise<void> | null = null
  let timer: NodeJS.Timeout | null = null
  let closed = false

  async function once(): Promise<void> {
    const before = reason
    try {
      reason = await inspect()
    } catch {
      reason = unreachable
    }
    looking = null
    if (reason !== null && reason !== before)
      log.error({ reason }, 'payments cannot be settled: paid calls are answered 503 and nothing is charged')
    if (reason === null && before !== null) log.info({ before }, 'payments can be settled again')
    if (timer) clearTimeout(timer)
    if (closed) return
    timer = setTimeout(() => void look(), (reason === null ? everySeconds : DOWN_SECONDS) * 1000)
    timer.unref()
  }

  function look(): Promise<void> {
    looking ??= once()
    return looking
  }

  return {
    current: () => (reason === null ? { ready: true } : { ready: false, reason }),
    look,
    close() {
      closed = true
      if (timer) clearTimeout(timer)
    },
  }
}
