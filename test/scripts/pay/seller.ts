/** A small seller that speaks x402 v1 and v2 and settles each payment on the sandbox chain. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Hex, parseSignature } from 'viem'
import { NETWORKS } from '../../../gateway/config/networks.ts'
import type { Sandbox } from '../../../gateway/sandbox/sandbox.ts'
import { createUsdcClient } from '../../gateway/sandbox/usdc-client.ts'

export interface ReceivedRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
  /** The decoded payment, or null. */
  readonly payment: Payment | null
}

export interface Payment {
  readonly x402Version: number
  readonly network?: string
  readonly accepted?: Readonly<Record<string, unknown>>
  readonly extensions?: Readonly<Record<string, { readonly info?: { readonly id?: string } }>>
  readonly payload: {
    readonly signature: Hex
    readonly authorization: Readonly<Record<'from' | 'to' | 'value' | 'validAfter' | 'validBefore' | 'nonce', Hex>>
  }
}

export interface Behaviour {
  price: bigint
  versions: readonly (1 | 2)[]
  asset: Hex
  extensions: Readonly<Record<string, unknown>>
  /** Interferes with a paid request, e.g. by closing the connection. Returns true if it has answered the request. */
  interfere: ((attempt: number, response: ServerResponse) => boolean) | null
  answer: unknown
}

const network = NETWORKS['base-sepolia']

/** Opens the seller. `behaviour` may be changed while it runs; `requests` records every request. */
export async function openSeller(sandbox: Sandbox) {
  const behaviour: Behaviour = {
    price: 5_000n,
    versions: [1, 2],
    asset: network.asset,
    extensions: {},
    interfere: null,
    answer: { sky: 'clear' },
  }
  const requests: ReceivedRequest[] = []
  const settled = new Map<string, Hex>()
  const usdc = createUsdcClient(sandbox.rpcUrl, sandbox.settleKey)

  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => (body += String(chunk)))
    request.on('end', () => void serve(request, response, body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  async function serve(request: IncomingMessage, response: ServerResponse, body: string): Promise<void> {
    const { method = '', url = '', headers } = request
    const header = String(headers['payment-signature'] ?? headers['x-payment'] ?? '')
    const payment = header === '' ? null : (JSON.parse(Buffer.from(header, 'base64').toString()) as Payment)
    requests.push({ method, url, headers, body, payment })
    const send = (status: number, value: unknown, more: Record<string, string> = {}): unknown =>
      response.writeHead(status, { 'content-type': 'application/json', ...more }).end(JSON.stringify(value))
    if (url.startsWith('/free')) return void send(200, behaviour.answer)
    if (!payment) return void send(402, v1(url), v2(url))
    const attempt = requests.filter((earlier) => earlier.payment).length
    const transaction = await settle(payment)
    if (behaviour.interfere?.(attempt, response)) return
    const receipt = { success: true, transaction, network: network.caip2, payer: payment.payload.authorization.from }
    send(200, behaviour.answer, { 'payment-response': Buffer.from(JSON.stringify(receipt)).toString('base64') })
  }

  function v1(url: string): object {
    if (!behaviour.versions.includes(1)) return {}
    const { price, asset } = behaviour
    const entry = {
      scheme: 'exact',
      network: network.name,
      maxAmountRequired: String(price),
      resource: base + url,
      asset,
    }
    const more = { description: 'The weather.', mimeType: 'application/json', payTo: sandbox.payTo }
    const terms = { maxTimeoutSeconds: 120, extra: network.domain }
    return {
      x402Version: 1,
      error: 'payment_required',
      code: 'payment_required',
      accepts: [{ ...entry, ...more, ...terms }],
    }
  }

  function v2(url: string): Record<string, string> {
    if (!behaviour.versions.includes(2)) return {}
    const { price, asset, extensions } = behaviour
    const entry = { scheme: 'exact', network: network.caip2, amount: String(price), asset, payTo: sandbox.payTo }
    const accepts = [{ ...entry, maxTimeoutSeconds: 120, extra: network.domain }]
    const resource = { url: base + url, description: 'The weather.' }
    const required = { x402Version: 2, resource, accepts, extensions }
    return { 'payment-required': Buffer.from(JSON.stringify(required)).toString('base64') }
  }

  /** Settles each nonce once. As with the gateway, a repeated payment gets the same transaction. */
  async function settle({ payload: { authorization, signature } }: Payment): Promise<Hex> {
    const { from, to, value, validAfter, validBefore, nonce } = authorization
    const known = settled.get(nonce)
    if (known) return known
    const { v, r, s } = parseSignature(signature)
    const args = [from, to, BigInt(value), BigInt(validAfter), BigInt(validBefore), nonce, Number(v), r, s]
    const { transactionHash } = await usdc.write('transferWithAuthorization', args)
    settled.set(nonce, transactionHash)
    return transactionHash
  }

  return {
    base,
    behaviour,
    requests,
    settled,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
