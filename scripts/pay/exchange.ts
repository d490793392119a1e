/** Sends a request, and repeats a paid one unchanged until its outcome is known. */
import { setTimeout as pause } from 'node:timers/promises'
import { PayError } from './arguments.ts'
import type { Payment } from './payment.ts'

export interface Exchange {
  readonly status: number
  readonly headers: Headers
  /** The whole answer; empty if it is a stream of events. */
  readonly body: Buffer
  /** The events as they come, if the answer is a stream of server-sent events. */
  readonly events: AsyncIterable<Uint8Array> | null
  readonly milliseconds: number
}

export interface Outgoing {
  readonly url: URL
  readonly method: string
  readonly headers: readonly (readonly [string, string])[]
  readonly body: string | Buffer | FormData | null
}

const LOST_TRIES = 5
const PENDING_TRIES = 15

/**
 * Sends a request and reads the whole answer, or the head of a stream of events. Redirects are not followed, so that a
 * payment only reaches its service.
 */
export async function exchange(
  { url, method, headers, body }: Outgoing,
  ...more: readonly (readonly [string, string])[]
): Promise<Exchange> {
  const began = performance.now()
  const sent = body instanceof Buffer ? new Uint8Array(body) : body
  const lines = [...headers, ...more].map(([name, value]): [string, string] => [name, value])
  const response = await fetch(url, { method, headers: lines, body: sent, redirect: 'manual' })
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
  const answer = isStream ? Buffer.alloc(0) : Buffer.from(await response.arrayBuffer())
  const milliseconds = performance.now() - began
  const events = isStream ? response.body : null
  return { status: response.status, headers: response.headers, body: answer, events, milliseconds }
}

/**
 * Sends a paid request, and repeats it with the same payment after a lost connection and while its settlement is
 * pending. Throws PayError if the outcome stays unknown, with the header needed to repeat the call later.
 */
export async function exchangePaid(
  outgoing: Outgoing,
  payment: Payment,
  note: (message: string) => void,
): Promise<Exchange> {
  let lost = 0
  let pending = 0
  const { header, value, purchaseKey } = payment
  const paying: Outgoing['headers'] = [
    [header, value],
    ...(purchaseKey === null ? [] : [['Idempotency-Key', purchaseKey] as const]),
  ]
  for (;;) {
    const answer = await exchange(outgoing, ...paying).catch((error: unknown) => {
      if (++lost >= LOST_TRIES) throw new PayError(unknownOutcome('No answer came', paying), { cause: error })
      return null
    })
    if (answer === null) {
      note('the connection was lost; sending the same payment again')
      await pause(500 * lost)
      continue
    }
    if (!isPending(answer)) return answer
    if (++pending >= PENDING_TRIES) throw new PayError(unknownOutcome('The settlement is still pending', paying))
    const seconds = Math.min(30, Number(answer.headers.get('retry-after') ?? 2) || 0)
    note(`the settlement is pending; sending the same payment again in ${seconds} s`)
    await pause(Math.max(100, seconds * 1000))
  }
}

function unknownOutcome(what: string, paying: Outgoing['headers']): string {
  const again = paying.map(([name, value]) => `--header '${name}:${value}'`).join(' ')
  return `${what}, so the payment may or may not be settled. Do not pay again: repeat this call with the same payment:\n${again}`
}

function isPending({ status, body }: Exchange): boolean {
  if (status !== 503) return false
  try {
    const { code, retry } = JSON.parse(body.toString()) as { code?: unknown; retry?: unknown }
    return code === 'settlement_pending' || retry === 'same_payment'
  } catch {
    return false
  }
}
