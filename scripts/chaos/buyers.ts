/**
 * Buyers of a gateway that keeps being killed. They act on what they are told: after a lost connection, a 5xx or a
 * pending settlement they send the same payment again; only a 402 ends a purchase.
 */
import { randomBytes, randomInt } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import secp256k1 from 'secp256k1'
import { privateKeyToAddress } from 'viem/accounts'
import type { Hex, Network } from '../../gateway/config/networks.ts'
import { createDigest } from '../../gateway/methods/exact-evm/authorization-check.ts'

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

/** What an offer asks, as its `accepts` entry of x402 v2 says it. */
export interface Asked {
  readonly amount: string
  readonly payTo: Hex
  readonly maxTimeoutSeconds: number
}

export interface Signed {
  /** Value of PAYMENT-SIGNATURE. */
  readonly header: string
  readonly payer: Hex
  readonly nonce: Hex
}

export function createSigner(network: Network, key: Hex): (asked: Asked) => Signed {
  const digestOf = createDigest(network)
  const secret = Buffer.from(key.slice(2), 'hex')
  const payer = privateKeyToAddress(key)
  return (accepted) => {
    const nonce: Hex = `0x${randomBytes(32).toString('hex')}`
    const validBefore = Math.floor(Date.now() / 1000) + accepted.maxTimeoutSeconds
    const times = { validAfter: 0n, validBefore: BigInt(validBefore) }
    const { payTo: to } = accepted
    const { signature, recid } = secp256k1.ecdsaSign(
      digestOf({ from: payer, to, value: BigInt(accepted.amount), nonce, ...times }),
      secret,
    )
    const words = { from: payer, to, value: accepted.amount, validAfter: '0', validBefore: String(validBefore), nonce }
    const bytes = `0x${Buffer.from(signature).toString('hex')}${(27 + recid).toString(16)}`
    const payload = { x402Version: 2, accepted, payload: { signature: bytes, authorization: words } }
    return { header: Buffer.from(JSON.stringify(payload)).toString('base64'), payer, nonce }
  }
}
