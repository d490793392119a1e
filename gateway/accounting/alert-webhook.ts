/** Alerts for the operator: a warning in the log, and a POST to a webhook if one is configured. */
import { randomUUID } from 'node:crypto'
import type { Logger } from '../plugin/plugin.ts'
import { createWebhook, retryAfter, type WebhookMessage, type WebhookParts } from './webhook.ts'

export interface Alert {
  /** Machine-readable name, e.g. "reconciliation.missing". */
  readonly event: string
  /** One sentence for people. */
  readonly message: string
  readonly details: Readonly<Record<string, unknown>>
}

/**
 * Sends an alert. Resolves to true if the webhook accepted it, wants no more, or is not configured, to false otherwise:
 * then call it again with the same event and details, which are the same message until it is accepted.
 */
export type SendAlert = (alert: Alert) => Promise<boolean>

export interface AlertParts extends Omit<WebhookParts, 'url'> {
  /** Receives the alert; null: alerts only go to the log. */
  readonly url: string | null
  /** The public address of this service, named in the webhook's body. */
  readonly service: string
  readonly log: Logger
}

/** A message that was not accepted yet. */
interface Waiting extends WebhookMessage {
  tries: number
  /** Milliseconds since the epoch. */
  dueAt: number
}

/** More than there are alarms. The oldest is forgotten; if it is sent again, it is another message. */
const MAX_WAITING = 100

/**
 * Creates the sender. The webhook's body is `{ type: 'alert', timestamp, service, event, message, at, details }`; amounts are
 * decimal strings. After a try that failed, calls resolve to false without another one until its time has come.
 */
export function createAlertSender({ url, service, secrets, log, now }: AlertParts): SendAlert {
  const deliver = url === null ? null : createWebhook({ url, secrets, now })
  const waiting = new Map<string, Waiting>()
  let isGone = false

  return async ({ event, message, details }) => {
    log.warn({ event, ...details }, message)
    if (deliver === null || isGone) return true
    const key = JSON.stringify([event, details])
    const at = now().toISOString()
    const body = JSON.stringify({ type: 'alert', timestamp: at, service, event, message, at, details })
    const alert = waiting.get(key) ?? { id: `msg_${randomUUID()}`, body, tries: 0, dueAt: 0 }
    if (now().getTime() < alert.dueAt) return false
    const delivery = await deliver(alert)
    waiting.delete(key)
    if (delivery === 'accepted') return true
    if (delivery === 'gone') {
      isGone = true
      log.error({ event }, 'the alert webhook answered 410: it gets no more alerts until the gateway starts again')
      return true
    }
    alert.tries += 1
    alert.dueAt = now().getTime() + retryAfter(alert.tries)
    for (const oldest of [...waiting.keys()].slice(0, waiting.size - MAX_WAITING + 1)) waiting.delete(oldest)
    waiting.set(key, alert)
    if (delivery.refused instanceof Error)
      log.error({ event, err: delivery.refused }, 'the alert webhook could not be reached')
    else log.error({ event, status: delivery.refused }, 'the alert webhook answered with an error')
    return false
  }
}
