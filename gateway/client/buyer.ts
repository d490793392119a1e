/**
 * A buyer of x402 services. It signs one payment for a request and sends that same payment until its outcome is known: after a
 * lost answer, while a settlement is pending, and when the same request is made again. It never signs a second payment while
 * the first may still be settled.
 */
import { createHash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Hex } from '../config/networks.ts'
import { Budget, dollars, type Limits, type Spending } from './budget.ts'
import { NotPaid, type Payment, readRequirement, type Requirement, type Signer, signPayment } from './payment.ts'

export type { Limits } from './budget.ts'
export { NotPaid, type Payment, type Requirement, type Signer } from './payment.ts'

export interface BuyerOptions {
  /** The wallet, e.g. `privateKeyToAccount('0x…')` of viem. Without one, nothing is paid. */
  readonly account?: Signer
  /** The default is 0.10 USDC a call and no other limit. */
  readonly limits?: Limits
  /** Asked before a payment that exceeds a limit, which `exceeded` names. Without it, nothing above a limit is paid. */
  readonly approve?: (requirement: Requirement, exceeded: string) => boolean | Promise<boolean>
  /** Called with what a request costs, when it is signed, and when it is sent again. The buyer waits for it. */
  readonly onStep?: (step: Step) => unknown
  /** True prefers x402 v1 if both versions are offered. */
  readonly prefersV1?: boolean
  /** Seconds after which an attempt counts as lost. The default is 90. */
  readonly attemptSeconds?: number
  /** Seconds to wait for the outcome of a payment. The default is 120. */
  readonly waitSeconds?: number
  readonly fetch?: typeof fetch
  /** Milliseconds since the epoch. */
  readonly now?: () => number
}

export type Step =
  | { readonly step: 'offered'; readonly requirement: Requirement }
  | { readonly step: 'signed'; readonly requirement: Requirement; readonly payment: Payment }
  | { readonly step: 'repeated'; readonly reason: 'lost' | 'busy' | 'pending'; readonly afterSeconds: number }

export interface BuyInit {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>> | readonly (readonly [name: string, value: string])[]
  /** Kept and sent again as it is, so it cannot be a stream. */
  readonly body?: string | Uint8Array<ArrayBuffer> | FormData | null
  /** A payment for this request that was signed earlier, perhaps by another process: it is sent in place of a new one. */
  readonly payment?: Payment
  /** Ends the call. A payment that was sent may still be settled. */
  readonly signal?: AbortSignal
}

export interface Purchase {
  readonly response: Response
  /** Null if the request was answered without a payment. */
  readonly payment: Payment | null
  /** The settlement response of the service; null if it sent none. */
  readonly receipt: Receipt | null
  /** Whether the payment was settled. Null if the service does not say, and it may have been. */
  readonly charged: boolean | null
}

export interface Receipt {
  readonly success?: boolean
  readonly transaction?: Hex
  readonly errorReason?: string
}

/**
 * The outcome of a payment is not known. Do not sign another: make the same request again, or give `payment` to a later `buy`.
 */
export class OutcomeUnknown extends Error {
  override readonly name = 'OutcomeUnknown'
  readonly payment: Payment

  constructor(why: string, payment: Payment, cause?: unknown) {
    super(
      `${why}, so the payment may or may not be settled. Do not pay again: repeat this request with the same payment.`,
      { cause },
    )
    this.payment = payment
  }
}

export interface Buyer {
  /**
   * Makes a request and pays for it if it costs something. Resolves with the last answer, whatever its status. Throws NotPaid if
   * nothing was signed, OutcomeUnknown if a payment was sent and its outcome is unknown, and what `fetch` throws if the first
   * request gets no answer.
   *
   * @example
   * const buyer = createBuyer({ account, limits: { perCall: 10_000n, perDay: 1_000_000n } })
   * const { response } = await buyer.buy('https://api.example.com/v1/weather')
   */
  buy(url: string | URL, init?: BuyInit): Promise<Purchase>
  /** Reads the state of a payment, such as "settled" or "released", at a service that says it. Null at any other. */
  stateOf(payment: Payment, service: string | URL): Promise<string | null>
}

/** A larger body is sent once the price is agreed. */
const SMALL_BODY = 65_536
const DEFAULT_LIMITS: Limits = { perCall: 100_000n }
/** Answers that are lost, one after the other, before the buyer gives up. */
const MAX_LOST = 5
const MAX_PAUSE_SECONDS = 30
/** A payment of an earlier buyer, which has counted it. */
const NOT_COUNTED: Spending = { giveBack: () => undefined, giveBackAfter: () => undefined }

/** A block may carry an earlier time than our clock: so long after its expiry a payment may still be settled, seconds. */
const MARGIN_SECONDS = 30
/** Codes of refusals after which the payment may have been settled all the same. */
const MAYBE_SETTLED = new Set(['payment_already_used', 'payment_owed', 'sign_in_required'])

/** A payment that may still be settled. */
interface Open {
  readonly payment: Payment
  readonly spending: Spending
  /** True while a call is sending it: another call of the same request buys for itself. */
  isSending: boolean
}

/** Creates a buyer. What it has spent and what is open is remembered as long as it lives. */
export function createBuyer(options: BuyerOptions = {}): Buyer {
  const { account, approve, onStep, limits = DEFAULT_LIMITS, prefersV1 = false } = options
  const { attemptSeconds = 90, waitSeconds = 120, fetch: send = fetch, now = Date.now } = options
  const budget = new Budget(limits, now)
  /** By request: a payment is only ever sent with the request that it was signed for. */
  const open = new Map<string, Set<Open>>()

  const attempt = (url: URL, init: BuyInit, payment: Payment | null): Promise<Response> =>
    request(url, payment ? { ...init, headers: paidHeaders(init, payment) } : init, { send, attemptSeconds })

  async function accept(requirement: Requirement, host: string): Promise<Spending> {
    await onStep?.({ step: 'offered', requirement })
    const price = `the price of ${dollars(requirement.amount)} USDC`
    if (!account) throw new NotPaid(`Not paid: ${price} needs a wallet. Give the buyer an account.`)
    // Other calls spend while this one is being approved, so the limits are looked at again.
    for (const approved = new Set<string>(); ;) {
      const exceeded = budget.exceeded(requirement.amount, host)
      if (exceeded === null || approved.has(exceeded)) return budget.spend(requirement.amount, host)
      if (!approve) throw new NotPaid(`Not paid: ${price} is above ${exceeded}.`)
      if (!(await approve(requirement, exceeded))) throw new NotPaid(`Not paid: ${price} was not approved.`)
      approved.add(exceeded)
    }
  }

  async function sign(requirement: Requirement, host: string): Promise<Open> {
    const spending = await accept(requirement, host)
    try {
      const payment = await signPayment(requirement, account as Signer, Math.floor(now() / 1000))
      await onStep?.({ step: 'signed', requirement, payment })
      return { payment, spending, isSending: false }
    } catch (error) {
      spending.giveBack()
      throw error
    }
  }

  /** Sends the payment until its outcome is known. */
  async function pursue(url: URL, init: BuyInit, payment: Payment): Promise<Response> {
    const began = performance.now()
    const { signal } = init
    for (let lost = 0; ;) {
      const last = await attempt(url, init, payment).catch((error: unknown) => ({ error }))
      const reason = last instanceof Response ? await reasonToRepeat(last) : 'lost'
      if (reason === null) return last as Response
      lost = reason === 'lost' ? lost + 1 : 0
      if (signal?.aborted) throw new OutcomeUnknown('The call was aborted', payment, signal.reason)
      if (lost >= MAX_LOST) throw new OutcomeUnknown('No answer came', payment, last)
      if ((performance.now() - began) / 1000 > waitSeconds) {
        if (reason === 'busy') return last as Response
        throw new OutcomeUnknown('The settlement is still pending', payment)
      }
      const asked = last instanceof Response ? Number(last.headers.get('retry-after') ?? 2) || 0 : lost / 2
      const afterSeconds = Math.min(MAX_PAUSE_SECONDS, Math.max(0.1, asked))
      await onStep?.({ step: 'repeated', reason, afterSeconds })
      await pause(afterSeconds * 1000, undefined, { signal }).catch(() => undefined)
    }
  }

  /** Sends a payment, and keeps it for the same request as long as it may still be settled. */
  async function pay(key: string, url: URL, init: BuyInit, paying: Open): Promise<Purchase> {
    const ofRequest = open.get(key) ?? new Set()
    open.set(key, ofRequest.add(paying))
    const { payment, spending } = paying
    paying.isSending = true
    try {
      const response = await pursue(url, init, payment)
      const receipt = receiptOf(response)
      const charged = await wasCharged(response, receipt)
      if (charged) forget(key, paying)
      // The payment stays valid for a while, and the next try uses it.
      else if (charged === false) spending.giveBackAfter(endOf(payment) * 1000)
      return { response, payment, receipt, charged }
    } finally {
      paying.isSending = false
    }
  }

  function forget(key: string, paying: Open): void {
    const ofRequest = open.get(key)
    ofRequest?.delete(paying)
    if (ofRequest?.size === 0) open.delete(key)
  }

  /** The payment for this request that may still be settled; null if there is none, or none that could be. */
  async function openFor(key: string, url: URL, { payment }: BuyInit): Promise<Open | null> {
    const all = [...(open.get(key) ?? [])]
    const known = all.find((one) => !one.isSending && (!payment || one.payment.nonce === payment.nonce))
    if (!known) return payment ? { payment, spending: NOT_COUNTED, isSending: false } : null
    // What was sent may have been refused since, and the service then says so.
    if ((await stateOf(known.payment, url)) !== 'released') return known
    known.spending.giveBack()
    forget(key, known)
    return null
  }

  async function stateOf({ network, from, nonce, id }: Payment, service: string | URL): Promise<string | null> {
    const url = new URL(`/v1/payments/${network}/${from}/${nonce}`, service)
    try {
      const response = await attempt(url, { headers: { 'idempotency-key': id } }, null)
      const { state } = (response.ok ? await response.json() : {}) as { readonly state?: unknown }
      return typeof state === 'string' ? state : null
    } catch {
      return null
    }
  }

  async function buy(target: string | URL, init: BuyInit = {}): Promise<Purchase> {
    const url = new URL(target)
    const key = await requestKey(url, init)
    const before = await openFor(key, url, init)
    if (before) {
      const purchase = await pay(key, url, init, before)
      // A payment that is refused as unused after its end can no longer be settled.
      if (now() / 1000 <= endOf(before.payment) || (await codeOf(purchase.response)) !== 'payment_invalid')
        return purchase
      forget(key, before)
    }
    const first = isLarge(init.body) ? { ...init, body: null } : init
    let response = await attempt(url, first, null)
    if (response.status !== 402 && first !== init) response = await attempt(url, init, null)
    if (response.status !== 402) return { response, payment: null, receipt: null, charged: false }
    const requirement = readRequirement(response.headers.get('payment-required'), await response.text(), prefersV1)
    return pay(key, url, init, await sign(requirement, url.host))
  }

  return { buy, stateOf }
}

const isLarge = (body: BuyInit['body'] = null): boolean =>
  body !== null && (body instanceof FormData || body.length > SMALL_BODY)

/** The same for the same request: method, address and body. */
async function requestKey(url: URL, { method = 'GET', body = null }: BuyInit): Promise<string> {
  const hash = createHash('sha256').update(JSON.stringify([method.toUpperCase(), url.href]))
  if (!(body instanceof FormData)) return hash.update(body ?? '').digest('hex')
  for (const [name, value] of body) {
    hash.update(JSON.stringify([name, typeof value === 'string' ? value : value.name]))
    if (typeof value !== 'string') hash.update(new Uint8Array(await value.arrayBuffer()))
  }
  return hash.digest('hex')
}

async function wasCharged(response: Response, receipt: Receipt | null): Promise<boolean | null> {
  if (receipt?.success === true || (response.ok && receipt?.success !== false)) return true
  return MAYBE_SETTLED.has(String(await codeOf(response))) ? null : false
}

/** When a payment can no longer be settled, seconds since the epoch. */
const endOf = ({ validBefore }: Payment): number => validBefore + MARGIN_SECONDS

/** Statuses of a service that has not looked at the payment yet. */
const BUSY = new Set([408, 425, 429])

/** Why the same payment is to be sent again: the service is busy, or does not know or say what became of it. Else null. */
async function reasonToRepeat(response: Response): Promise<'busy' | 'pending' | null> {
  if (BUSY.has(response.status)) return 'busy'
  if (response.status < 500) return null
  const { code, retry } = await errorOf(response)
  return code === 'settlement_pending' || retry === 'same_payment' || typeof retry !== 'string' ? 'pending' : null
}

const codeOf = async (response: Response): Promise<unknown> => (await errorOf(response)).code

async function errorOf(response: Response): Promise<{ readonly code?: unknown; readonly retry?: unknown }> {
  try {
    const body: unknown = await response.clone().json()
    return typeof body === 'object' && body !== null ? body : {}
  } catch {
    return {}
  }
}

function paidHeaders({ headers = {} }: BuyInit, payment: Payment): readonly (readonly [string, string])[] {
  const own = headersOf(headers)
  const isNamed = payment.purchaseKey === null || own.some(([name]) => name.toLowerCase() === 'idempotency-key')
  return [
    ...own,
    [payment.header, payment.value],
    ...(isNamed ? [] : [['Idempotency-Key', payment.purchaseKey] as const]),
  ]
}

const headersOf = (headers: NonNullable<BuyInit['headers']>): readonly (readonly [string, string])[] =>
  Symbol.iterator in headers ? headers : Object.entries(headers)

/**
 * Sends a request once and reads the whole answer, except for a stream of events. Redirects are not followed, so that a payment
 * only reaches its service.
 */
export async function request(
  url: URL,
  { method = 'GET', headers = {}, body = null, signal }: Omit<BuyInit, 'payment'>,
  { send = fetch, attemptSeconds = 90 }: { readonly send?: typeof fetch; readonly attemptSeconds?: number } = {},
): Promise<Response> {
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(new Error(`no answer within ${attemptSeconds} s`)), attemptSeconds * 1000)
  try {
    const lines = headersOf(headers).map(([name, value]): [string, string] => [name, value])
    const ends = signal ? AbortSignal.any([late.signal, signal]) : late.signal
    const init = { method, headers: lines, redirect: 'manual', signal: ends } as const
    const response = await send(url, body === null ? init : { ...init, body })
    if (response.headers.get('content-type')?.startsWith('text/event-stream')) return response
    const bytes = await response.arrayBuffer()
    const { status, statusText, headers: answered } = response
    return new Response(WITHOUT_BODY.has(status) ? null : bytes, { status, statusText, headers: answered })
  } finally {
    clearTimeout(timer)
  }
}

/** Statuses of answers that cannot have a body. */
const WITHOUT_BODY = new Set([204, 205, 304])

/** Reads the settlement response of an answer; null if there is none. */
function receiptOf({ headers }: Response): Receipt | null {
  const header = headers.get('payment-response') ?? headers.get('x-payment-response')
  try {
    return header === null ? null : (JSON.parse(Buffer.from(header, 'base64').toString()) as Receipt)
  } catch {
    return null
  }
}
