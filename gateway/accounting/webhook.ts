/**
 * Messages to an address of the operator, by the Standard Webhooks specification (https://www.standardwebhooks.com): each
 * has an id, the same with every try, the time of the try, and a signature for each secret.
 */
import { createHmac } from 'node:crypto'
import { withoutCredentials } from '../config/address-credentials.ts'
import { timeoutSignal } from '../plugin/timeout-signal.ts'

export interface WebhookMessage {
  readonly id: string
  /** JSON. */
  readonly body: string
}

/** How a try ended: accepted; refused, so that it is tried again later; or gone, as 410 says: nothing is wanted any more. */
export type Delivery = 'accepted' | 'gone' | { readonly refused: unknown }

/** Sends a message once. Never rejects; `signal` ends a try that takes too long for the caller. */
export type Deliver = (message: WebhookMessage, signal?: AbortSignal) => Promise<Delivery>

export interface WebhookParts {
  /** Its user name and password are sent as Basic authorization. */
  readonly url: string
  /** Base64 keys, each with the prefix "whsec_". Without any, nothing is signed. */
  readonly secrets: readonly string[]
  readonly now: () => Date
}

const TIMEOUT_MS = 10_000
const FIRST_RETRY_MS = 5_000
const LONGEST_RETRY_MS = 3_600_000

/** How long to wait after the n-th try that failed, in milliseconds: 5 seconds, then twice as long, up to an hour. */
export function retryAfter(tries: number): number {
  return Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(tries - 1, 30))
}

/** Creates the sender of one address. */
export function createWebhook({ url, secrets, now }: WebhookParts): Deliver {
  const { address, headers } = withoutCredentials(url)
  const keys = secrets.map((secret) => Buffer.from(secret.replace(/^whsec_/, ''), 'base64'))
  return async ({ id, body }, signal) => {
    const timestamp = Math.floor(now().getTime() / 1000)
    const signatures = keys.map(
      (key) => `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`,
    )
    try {
      const response = await fetch(address, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'webhook-id': id,
          'webhook-timestamp': String(timestamp),
          ...(signatures.length === 0 ? {} : { 'webhook-signature': signatures.join(' ') }),
          ...headers,
        },
        body,
        // A redirect could lead to somebody else.
        redirect: 'manual',
        signal: AbortSignal.any([timeoutSignal(TIMEOUT_MS), ...(signal ? [signal] : [])]),
      })
      await response.body?.cancel()
      if (response.ok) return 'accepted'
      return response.status === 410 ? 'gone' : { refused: response.status }
    } catch (error) {
      return { refused: error }
    }
  }
}
