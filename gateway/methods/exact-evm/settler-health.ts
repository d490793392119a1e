/** Whether a settler can settle payments, as of its last check. Checks run on a timer, so that reading is free. */
import { ServiceError } from '../../errors.ts'
import type { Logger } from '../../plugin/plugin.ts'

export interface SettlerHealthCheck {
  current(): { readonly ready: boolean; readonly reason?: string }
  /** Checks now. Never rejects; calls during a check share it. */
  refresh(): Promise<void>
  close(): void
}

/** How soon to check again while payments cannot be settled. */
const RETRY_SECONDS = 1

/**
 * Creates the health check of one settler. The first `refresh` starts its timer. It logs when payments can no longer be
 * settled, and when they can again.
 */
export function createSettlerHealth(options: {
  /** Returns why payments cannot be settled, or null. If it throws, `unreachable` is the reason. */
  readonly inspect: () => Promise<string | null>
  readonly everySeconds: number
  readonly unreachable: string
  readonly log: Logger
}): SettlerHealthCheck {
  const { inspect, everySeconds, unreachable, log } = options
  let reason: string | null = null
  let current: Promise<void> | null = null
  let timer: NodeJS.Timeout | null = null
  let closed = false

  async function check(): Promise<void> {
    const before = reason
    try {
      reason = await inspect()
    } catch {
      reason = unreachable
    }
    current = null
    if (reason !== null && reason !== before)
      log.error({ reason }, 'payments cannot be settled: paid calls are answered 503 and nothing is charged')
    if (reason === null && before !== null) log.info({ before }, 'payments can be settled again')
    if (timer) clearTimeout(timer)
    if (closed) return
    timer = setTimeout(() => void refresh(), (reason === null ? everySeconds : RETRY_SECONDS) * 1000)
    timer.unref()
  }

  function refresh(): Promise<void> {
    current ??= check()
    return current
  }

  return {
    current: () => (reason === null ? { ready: true } : { ready: false, reason }),
    refresh,
    close() {
      closed = true
      if (timer) clearTimeout(timer)
    },
  }
}

/**
 * Runs work that asks the chain for a settler. An error that `isOutage` recognises is thrown as `settler_unavailable`,
 * and the health is refreshed at once, so that no more work is done for payments that cannot be settled.
 */
export async function orUnavailable<Result>(
  health: SettlerHealthCheck,
  isOutage: (error: unknown) => boolean,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (!isOutage(error)) throw error
    void health.refresh()
    throw new ServiceError('settler_unavailable', undefined, { cause: error })
  }
}
