/** What an operator must hear: a line in the log, and a POST to a webhook where there is one. */
import type { Logger } from '../plugin/plugin.ts'

export interface Alert {
  /** A word for machines, e.g. "reconciliation.missing". */
  readonly event: string
  /** A sentence for people. */
  readonly message: string
  readonly details: Readonly<Record<string, unknown>>
}

/** True where everybody who should know was told. */
export type Tell = (alert: Alert) => Promise<boolean>

export interface TellParts {
  /** Takes a JSON POST; null: the log is all there is. */
  readonly url: string | null
  readonly service: string
  readonly log: Logger
  readonly now: () => Date
}

const TIMEOUT_MS = 10_000

/** Builds `tell`. The body is `{ service, event, message, at, details }`; amounts are decimal strings. */
export function createTell({ url, service, log, now }: TellParts): Tell {
  return async ({ event, message, details }) => {
    log.warn({ event, ...details }, message)
    if (url === null) return true
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ service, event, message, at: now().toISOString(), details }),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      })
      await response.arrayBuffer()
      if (response.ok) return true
      log.error({ event, status: response.status }, 'the alert webhook refused')
    } catch (error) {
      log.error({ event, err: error }, 'the alert webhook could not be reached')
    }
    return false
  }
}
