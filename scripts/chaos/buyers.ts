/**
 * Buyers under a gateway that keeps dying. They believe what they are told: a lost connection, a 5xx or a pending
 * settlement means the same payment again; only a 402 ends a purchase.
 */
import { randomInt } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Asked, Signed } from './payment.ts'

export interface Purchase {
  readonly url: string
  readonly payment: Signed
  /** What was delivered, by the bytes of the first delivery. */
  body: string | null
  /** The buyer was told, last of all, that this payment took nothing. */
  refused: boolean
  /** Deliveries that differed from the first. */
  changed: number
  sent: number
}

export interface Load {
  readonly purchases: readonly Purchase[]
  /** Answers by status and error code, and "lost" for connections. */
  readonly answers: ReadonlyMap<string, number>
  /** Every buyer comes back with every payment until he knows; returns how many still do not. */
  comeBack(): Promise<number>
  /** Ends the load and waits for what is under way. */
  stop(): Promise<void>
}

export interface LoadOptions {
  readonly baseUrl: string
  readonly buyers: readonly ((asked: Asked) => Signed)[]
  readonly asked: Asked
  /** Path of the paid route, with a word of its own for each purchase. */
  readonly path: (word: string) => string
}

/** The code of an error and the x402 reason it gives. */
function wordsOf(body: string): readonly string[] {
  try {
    const { code, error } = JSON.parse(body) as { code?: string; error?: string }
    return [code, ...(error === code ? [] : [error])].filter((word) => word !== undefined)
  } catch {
    return []
  }
}

const TIMEOUT_MS = 20_000
const TOGETHER = 16

export function startLoad({ baseUrl, buyers, asked, path }: LoadOptions): Load {
  const purchases: Purchase[] = []
  const answers = new Map<string, number>()
  const over = new AbortController()

  async function send(purchase: Purchase): Promise<void> {
    purchase.sent += 1
    const count = (name: string): Map<string, number> => answers.set(name, (answers.get(name) ?? 0) + 1)
    try {
      const response = await fetch(purchase.url, {
        headers: { 'payment-signature': purchase.payment.header },
        signal: AbortSignal.timeout(TIMEOUT_MS),
      })
      const body = await response.text()
      count([response.status, ...wordsOf(body)].join(' '))
      if (response.status === 200) {
        if (purchase.body !== null && purchase.body !== body) purchase.changed += 1
        purchase.body ??= body
      }
      purchase.refused = response.status === 402
    } catch {
      count('lost')
      await delay(randomInt(50, 400))
    }
  }

  const isOpen = ({ body, refused }: Purchase): boolean => body === null && !refused

  async function buy(sign: (asked: Asked) => Signed): Promise<void> {
    const word = Array.from({ length: 16 }, () => String.fromCharCode(97 + randomInt(26))).join('')
    const purchase: Purchase = {
      url: baseUrl + path(word),
      payment: sign(asked),
      body: null,
      refused: false,
      changed: 0,
      sent: 0,
    }
    purchases.push(purchase)
    // Now and then twice at once; and some never come back before the end.
    await Promise.all(Array.from({ length: randomInt(10) === 0 ? 2 : 1 }, () => send(purchase)))
    const patience = randomInt(4)
    for (let tries = 0; tries < patience && isOpen(purchase); tries++) await send(purchase)
  }

  const work = Promise.all(
    buyers.map(async (sign) => {
      while (!over.signal.aborted) await buy(sign)
    }),
  )

  return {
    purchases,
    answers,
    async comeBack() {
      const queue = purchases.filter(({ refused }) => !refused).values()
      const returning = async (): Promise<void> => {
        for (const purchase of queue) {
          await send(purchase)
          for (let tries = 0; tries < 60 && isOpen(purchase); tries++) {
            await delay(500)
            await send(purchase)
          }
        }
      }
      await Promise.all(Array.from({ length: TOGETHER }, returning))
      return purchases.filter(isOpen).length
    },
    async stop() {
      over.abort()
      await work
    },
  }
}
