/** Sends one request, and sends a paid one again, unchanged, until its outcome is known. */
import { setTimeout as pause } from 'node:timers/promises'
import { PayError } from './arguments.ts'
import type { Payment } from './sign.ts'

export interface Exchange {
  readonly status: number
  readonly headers: Headers
  readonly body: Buffer
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

/** One exchange, answer read whole. Redirects are not followed: a payment goes where it was meant to go. */
export async function exchange(
  { url, method, headers, body }: Outgoing,
  ...more: readonly (readonly [string, string])[]
): Promise<Exchange> {
  const began = performance.now()
  const sent = body instanceof Buffer ? new Uint8Array(body) : body
  const lines = [...headers, ...more].map(([name, value]): [string, string] => [name, value])
  const response = await fetch(url, { method, headers: lines, body: sent, redirect: 'manual' })
  const answer = Buffer.from(await response.arrayBuffer())
  return { status: response.status, headers: response.headers, body: answer, milliseconds: performance.now() - began }
}

/**
 * Repeats the very same payment after a lost connection and while its settlement is pending; never signs another.
 * Throws PayError when the outcome stays unknown, with what is needed to ask again later.
 */
export async function exchangePaid(
  outgoing: Outgoing,
  payment: Payment,
  note: (sentence: string) => void,
): Promise<Exchange> {
  let lost = 0
  let pending = 0
  for (;;) {
    const answer = await exchange(outgoing, [payment.header, payment.value]).catch((error: unknown) => {
      if (++lost >= LOST_TRIES) throw new PayError(unknownOutcome('No answer came', payment), { cause: error })
      return null
    })
    if (answer === null) {
      note('the connection was lost; the same payment is sent again')
      await pause(500 * lost)
      continue
    }
    if (!isPending(answer)) return answer
    if (++pending >= PENDING_TRIES) throw new PayError(unknownOutcome('The settlement is still pending', payment))
    const seconds = Math.min(30, Number(answer.headers.get('retry-after') ?? 2) || 0)
    note(`the settlement is pending; the same payment is sent again in ${seconds} s`)
    await pause(Math.max(100, seconds * 1000))
  }
}

function unknownOutcome(what: string, { header, value }: Payment): string {
  return `${what}, so the payment may be settled or not. Do not pay again: repeat this call with the same payment,\n--header '${header}:${value}'`
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
