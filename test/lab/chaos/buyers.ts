/**
 * Buyers of a gateway that keeps being killed. They act on what they are told: after a lost connection, a 5xx or a
 * pending settlement they send the same payment again; only a 402 ends a purchase.
 */
import { randomInt } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Hex } from '../../../gateway/config/networks.ts'
import { createBuyer, headerOf, type SignedPayment, type Wallet } from '../bench/calls/payments.ts'
import type { Requirement } from '../../../gateway/client/payment.ts'

export interface Purchase {
  readonly path: string
  readonly payment: Signed
  /** The body of the first delivery. */
  body: string | null
  /** The last answer said that this payment was not charged. */
  refused: boolean
  /** How many later deliveries differed from the first. */
  changed: number
  sent: number
}

export interface Load {
  readonly purchases: readonly Purchase[]
  /** Counts of answers by status and error code; "lost" counts lost connections. */
  readonly answers: ReadonlyMap<string, number>
  /** Repeats every open payment until its outcome is known. Returns how many stay unknown. */
  resolveOpen(): Promise<number>
  /** Ends the load and waits for the purchases under way. */
  stop(): Promise<void>
}

export interface LoadOptions {
  /** The addresses of the gateways. Each request goes to any of them. */
  readonly baseUrls: readonly string[]
  readonly buyers: readonly Wallet[]
  readonly requirement: Requirement
  /** The path of the paid route; each purchase has its own id. */
  readonly path: (id: string) => string
}

/** Returns the code of an error and its x402 reason. */
function errorOf(body: string): readonly string[] {
  try {
    const { code, error } = JSON.parse(body) as { code?: string; error?: string }
    return [code, ...(error === code ? [] : [error])].filter((text) => text !== undefined)
  } catch {
    return []
  }
}

const TIMEOUT_MS = 20_000
const CONCURRENCY = 16

/** Starts to buy with every buyer at once, and continues until `stop`. */
export function startLoad({ baseUrls, buyers, requirement, path }: LoadOptions): Load {
  const sign = createBuyer(buyers, requirement)
  const purchases: Purchase[] = []
  const answers = new Map<string, number>()
  const stopping = new AbortController()

  async function send(purchase: Purchase): Promise<void> {
    purchase.sent += 1
    const count = (name: string): Map<string, number> => answers.set(name, (answers.get(name) ?? 0) + 1)
    try {
      const response = await fetch(`${baseUrls[randomInt(baseUrls.length)]}${purchase.path}`, {
        headers: { 'payment-signature': purchase.payment.header },
        signal: AbortSignal.timeout(TIMEOUT_MS),
      })
      const body = await response.text()
      count([response.status, ...errorOf(body)].join(' '))
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

  async function buy(buyer: Wallet): Promise<void> {
    const id = Array.from({ length: 16 }, () => String.fromCharCode(97 + randomInt(26))).join('')
    const purchase: Purchase = {
      path: path(id),
      payment: signedBy(buyer, sign),
      body: null,
      refused: false,
      changed: 0,
      sent: 0,
    }
    purchases.push(purchase)
    // One in ten is sent twice at the same time, and some are not repeated before the end.
    await Promise.all(Array.from({ length: randomInt(10) === 0 ? 2 : 1 }, () => send(purchase)))
    const maxRepeats = randomInt(4)
    for (let tries = 0; tries < maxRepeats && isOpen(purchase); tries++) await send(purchase)
  }

  const work = Promise.all(
    buyers.map(async (buyer) => {
      while (!stopping.signal.aborted) await buy(buyer)
    }),
  )

  return {
    purchases,
    answers,
    async resolveOpen() {
      const queue = purchases.filter(({ refused }) => !refused).values()
      const repeat = async (): Promise<void> => {
        for (const purchase of queue) {
          await send(purchase)
          for (let tries = 0; tries < 60 && isOpen(purchase); tries++) {
            await delay(500)
            await send(purchase)
          }
        }
      }
      await Promise.all(Array.from({ length: CONCURRENCY }, repeat))
      return purchases.filter(isOpen).length
    },
    async stop() {
      stopping.abort()
      await work
    },
  }
}

/** A signed payment, and what the chain and the journal will say about it. */
export interface Signed {
  /** Value of PAYMENT-SIGNATURE. */
  readonly header: string
  readonly payer: Hex
  readonly nonce: Hex
  /** Atomic units. */
  readonly amount: bigint
}

function signedBy(wallet: Wallet, sign: (by: Wallet) => SignedPayment): Signed {
  const payment = sign(wallet)
  const { from: payer, nonce, value } = payment.payload.authorization
  return { header: headerOf(payment), payer, nonce, amount: BigInt(value) }
}
