/** A receiver of Standard Webhooks on loopback, written from the specification: it takes nothing of the gateway. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { type LoopbackServer, startLoopbackServer } from './loopback-server.ts'

export const SECRET = `whsec_${Buffer.from('a secret of exactly thirty bytes').toString('base64')}`

export interface Received {
  readonly id: string
  readonly timestamp: number
  readonly body: Readonly<Record<string, unknown>>
  readonly headers: IncomingHttpHeaders
  readonly isGenuine: boolean
  /** Whether it was accepted. */
  readonly isAccepted: boolean
}

export interface Receiver extends Pick<LoopbackServer, 'url' | 'down' | 'up' | 'close'> {
  /** Every try, in order. */
  readonly received: readonly Received[]
  /** The status of the answers from now on; null: there is no answer. */
  answer(status: number | null): void
}

/** Verifies a message as docs/operations.md shows. */
export function isGenuine(headers: IncomingHttpHeaders, body: string, secret = SECRET): boolean {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const signed = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${body}`
  const expected = createHmac('sha256', key).update(signed).digest()
  return String(headers['webhook-signature'])
    .split(' ')
    .some((each) => {
      const [version, signature = ''] = each.split(',')
      const given = Buffer.from(signature, 'base64')
      return version === 'v1' && given.length === expected.length && timingSafeEqual(given, expected)
    })
}

export async function startReceiver(): Promise<Receiver> {
  const received: Received[] = []
  let status: number | null = 200
  const server = await startLoopbackServer(async (request, response) => {
    let text = ''
    for await (const chunk of request.setEncoding('utf8')) text += String(chunk)
    const { headers } = request
    received.push({
      id: String(headers['webhook-id']),
      timestamp: Number(headers['webhook-timestamp']),
      body: JSON.parse(text) as Received['body'],
      headers,
      isGenuine: isGenuine(headers, text),
      isAccepted: status !== null && status < 300,
    })
    if (status !== null) response.writeHead(status).end()
  })
  return { ...server, received, answer: (next) => (status = next) }
}
