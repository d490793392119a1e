/** Alerts for the operator: a warning in the log, and a POST to a webhook if one is configured. */
import { withoutCredentials } from '../config/address-credentials.ts'
import type { Logger } from '../plugin/plugin.ts'
import { timeoutSignal } from '../plugin/timeout-signal.ts'

export interface Alert {
  /** Machine-readable name, e.g. "reconciliation.missing". */
  readonly event: string
  /** One sentence for people. */
  readonly message: string
  readonly details: Readonly<Record<string, unknown>>
}

/** Sends an alert. Resolves to true if the webhook accepted it or none is configured, to false otherwise. */
export type SendAlert = (alert: Alert) => Promise<boolean>

export interface AlertParts {
  /** Receives the alert as a JSON POST, its user name and password as Basic authorization; null: alerts only go to the log. */
  readonly url: string | null
  /** The public address of this service, named in the webhook's body. */
  readonly service: string
  readonly log: Logger
  readonly now: () => Date
}

const TIMEOUT_MS = 10_000

/** Creates the sender. The webhook's body is `{ service, event, message, at, details }`; amounts are decimal strings. */
export function createAlertSender({ url, service, log, now }: AlertParts): SendAlert {
  const webhook = url === null ? null : withoutCredentials(url)
  return async ({ event, message, details }) => {
    log.warn({ event, ...details }, message)
    if (webhook === null) return true
    try {
      const response = await fetch(webhook.address, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...webhook.headers },
        body: JSON.stringify({ service, event, message, at: now().toISOString(), details }),
        signal: timeoutSignal(TIMEOUT_MS),
      })
      await response.arrayBuffer()
      if (response.ok) return true
      log.error({ event, status: response.status }, 'the alert webhook answered with an error')
    } catch (error) {
      log.error({ event, err: error }, 'the alert webhook could not be reached')
    }
    return false
  }
}
