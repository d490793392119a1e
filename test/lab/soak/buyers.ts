/**
 * Buyers over HTTP and MCP. They act on what they are told: after a lost connection or a refusal they send the same
 * payment again, when the answer says so; a 402 ends a purchase. Each wallet buys one thing at a time.
 */
import { createHash, randomInt } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { ERRORS, type ErrorCode } from '../../../gateway/errors.ts'
import { createBuyer, headerOf, type SignedPayment, type Wallet } from '../bench/calls/payments.ts'
import type { Outcome } from '../chaos/verdict.ts'
import { readRequirement } from '../../../gateway/client/payment.ts'
import type { Client, Reply, SoakRequest } from './client.ts'

/** Something for sale. */
export interface Product {
  readonly kind: 'paid' | 'mcp' | 'plan'
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly body?: string
  /** The tool that sells the same over MCP. */
  readonly tool?: { readonly name: string; readonly arguments: object }
}

export interface Purchase extends Outcome {
  readonly product: Product
  /** Null once its outcome is known. */
  signed: SignedPayment | null
  /** Digest of the first delivery. */
  body: string | null
  refused: boolean
  changed: number
  /** The delivered token of a plan. */
  token?: string
}

/** A product with the signer of its payments. */
interface Offer {
  readonly product: Product
  readonly sign: (by?: Wallet) => SignedPayment
}

/** The rest of the purchases is repeated at the end. */
const MAX_WAIT_MS = 120_000
const MAX_WAIT_SECONDS = 3
/** One delivered answer in so many is asked for again with the same payment. */
const AGAIN = 20
const MCP_HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

export class Buyers {
  readonly purchases: Purchase[] = []
  readonly #client: Client
  readonly #idle: Wallet[]
  readonly #offers: readonly Offer[]
  /** How many purchases did not begin because every wallet was buying. */
  skipped = 0

  private constructor(client: Client, wallets: readonly Wallet[], offers: readonly Offer[]) {
    this.#client = client
    this.#idle = [...wallets]
    this.#offers = offers
  }

  /** Reads what each product costs. */
  static async open(client: Client, wallets: readonly Wallet[], products: readonly Product[]): Promise<Buyers> {
    const offers = await Promise.all(
      products.map(async (product) => {
        const { headers, text } = await client.send(requestOf(product, null))
        // A tool says in its result what the header says over HTTP.
        const required = product.tool ? Buffer.from(text).toString('base64') : String(headers['payment-required'])
        const requirement = readRequirement(required, '{}', false)
        return { product, sign: createBuyer(wallets, requirement) }
      }),
    )
    return new Buyers(client, wallets, offers)
  }

  /** Buys a plan and returns its token; null if it was not delivered. */
  async buyPlan(): Promise<string | null> {
    return (await this.buy('plan', performance.now()))?.token ?? null
  }

  /** Buys one of the products of this kind, or does nothing if every wallet is buying. */
  async buy(kind: Product['kind'], due: number): Promise<Purchase | null> {
    const wallet = this.#idle.pop()
    if (!wallet) {
      this.skipped += 1
      return null
    }
    const offers = this.#offers.filter(({ product }) => product.kind === kind)
    const { product, sign } = offers[randomInt(offers.length)] as Offer
    const signed = sign(wallet)
    const { from: payer, nonce, value } = signed.payload.authorization
    const payment = { header: '', payer, nonce, amount: BigInt(value) }
    const purchase: Purchase = { product, payment, signed, body: null, refused: false, changed: 0 }
    this.purchases.push(purchase)
    await this.#pursue(purchase, due, MAX_WAIT_MS)
    if (purchase.body !== null && randomInt(AGAIN) === 0) await this.#send(purchase)
    // A long run makes many purchases: forget those whose outcome is known.
    if (isKnown(purchase)) purchase.signed = null
    this.#idle.unshift(wallet)
    return purchase
  }

  /** Repeats every open payment until its outcome is known. Returns how many stay unknown. */
  async resolveOpen(): Promise<number> {
    const open = this.purchases.filter((purchase) => !isKnown(purchase))
    await Promise.all(open.map((purchase) => this.#pursue(purchase, performance.now(), MAX_WAIT_MS)))
    return this.purchases.filter((purchase) => !isKnown(purchase)).length
  }

  /** Sends the payment until its outcome is known, or the time is over. */
  async #pursue(purchase: Purchase, due: number, maxWaitMs: number): Promise<void> {
    let waitSeconds = await this.#send(purchase, due)
    while (!isKnown(purchase) && performance.now() - due < maxWaitMs) {
      await delay(1000 * Math.min(waitSeconds, MAX_WAIT_SECONDS) + randomInt(200))
      waitSeconds = await this.#send(purchase)
    }
  }

  /** Sends the payment once. Returns the seconds after which it may be sent again. */
  async #send(purchase: Purchase, due = performance.now()): Promise<number> {
    const { product, signed } = purchase
    if (signed === null) return 0
    const reply = await this.#client.send({ ...requestOf(product, signed), due })
    if (reply.status === 200) {
      const digest = createHash('sha1').update(reply.text).digest('base64')
      if (purchase.body !== null && purchase.body !== digest) purchase.changed += 1
      purchase.body ??= digest
      if (product.kind === 'plan') purchase.token = (JSON.parse(reply.text) as { token: string }).token
    }
    purchase.refused = reply.status === 402
    return reply.retryAfter ?? Math.random()
  }
}

function isKnown({ body, refused }: Purchase): boolean {
  return body !== null || refused
}

/** The request of a product, with a payment or without. */
function requestOf({ kind, method, path, body, tool }: Product, payment: SignedPayment | null): SoakRequest {
  const asked = payment === null ? '402' : kind
  if (tool) {
    const params = { ...tool, ...(payment === null ? {} : { _meta: { 'x402/payment': payment } }) }
    const message = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
    return { kind: asked, method: 'POST', path: '/mcp', headers: MCP_HEADERS, body: message, read: readTool }
  }
  const headers = {
    'content-type': 'application/json',
    ...(payment === null ? {} : { 'payment-signature': headerOf(payment) }),
  }
  return { kind: asked, method, path, headers, ...(body === undefined ? {} : { body }) }
}

interface ToolAnswer {
  readonly result?: {
    readonly isError?: boolean
    readonly content: readonly { readonly text: string }[]
    readonly structuredContent?: { readonly code?: ErrorCode; readonly retry_after_seconds?: number }
  }
}

/** Reads the result of a tool as the answer that HTTP would have given. */
function readTool(reply: Reply): Reply {
  if (reply.status !== 200) return reply
  const { result } = JSON.parse(reply.text) as ToolAnswer
  const text = result?.content[0]?.text ?? ''
  if (!result?.isError) return { ...reply, text }
  const { code = 'payment_required', retry_after_seconds: retryAfter } = result.structuredContent ?? {}
  return { ...reply, status: ERRORS[code].status, text, code, ...(retryAfter === undefined ? {} : { retryAfter }) }
}
