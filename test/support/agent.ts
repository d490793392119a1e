/** An x402 buyer in single steps, so that tests can look at each: 402, signature, paid request. */
import type { LocalAccount } from 'viem'
import { signPayment } from './wallet.ts'

export interface Offer {
  readonly response: Response
  /** Body of the 402. */
  readonly v1: {
    readonly error: string
    readonly code: string
    readonly retry: string
    readonly accepts: Record<string, never>[]
  }
  /** The decoded PAYMENT-REQUIRED header. */
  readonly v2: {
    readonly error: string
    readonly resource: { readonly url: string }
    readonly accepts: Record<string, never>[]
  }
}

export interface RequestOptions {
  readonly method?: string
  readonly body?: unknown
  readonly headers?: Record<string, string>
  readonly signal?: AbortSignal
}

export function ask(
  url: string,
  { method = 'GET', body, headers = {}, signal }: RequestOptions = {},
): Promise<Response> {
  const json = body === undefined ? {} : { body: JSON.stringify(body) }
  const type = body === undefined ? {} : { 'content-type': 'application/json' }
  return fetch(url, { method, headers: { ...type, ...headers }, ...json, ...(signal ? { signal } : {}) })
}

export async function offer(url: string, options: RequestOptions = {}): Promise<Offer> {
  const response = await ask(url, options)
  const header = response.headers.get('payment-required') ?? ''
  const v2 = JSON.parse(Buffer.from(header, 'base64').toString()) as Offer['v2']
  return { response, v2, v1: (await response.json()) as Offer['v1'] }
}

/** Signs a payment for a route and returns it as a header value. `at` is the time by the clock of the gateway. */
export async function payment(
  url: string,
  account: LocalAccount,
  version: 1 | 2 = 2,
  options: RequestOptions = {},
  at: Date = new Date(),
): Promise<string> {
  const { v1, v2 } = await offer(url, options)
  const requirement = version === 1 ? v1.accepts[0] : v2.accepts[0]
  const nowSeconds = Math.floor(at.getTime() / 1000)
  return signPayment({ account, requirement: requirement as never, version, nowSeconds })
}

/** Sends the request with a payment: X-PAYMENT for version 1, PAYMENT-SIGNATURE for version 2. */
export function send(url: string, header: string, version: 1 | 2 = 2, options: RequestOptions = {}): Promise<Response> {
  const name = version === 1 ? 'x-payment' : 'payment-signature'
  return ask(url, { ...options, headers: { ...options.headers, [name]: header } })
}

/** Requests a 402, signs the payment and sends it. */
export async function buy(
  url: string,
  account: LocalAccount,
  version: 1 | 2 = 2,
  options: RequestOptions = {},
  at?: Date,
): Promise<Response> {
  return send(url, await payment(url, account, version, options, at), version, options)
}

export function receipt(response: Response, name = 'payment-response'): Record<string, unknown> {
  return JSON.parse(Buffer.from(response.headers.get(name) ?? '', 'base64').toString()) as Record<string, unknown>
}

export const json = async (response: Response): Promise<Record<string, unknown>> =>
  (await response.json()) as Record<string, unknown>
