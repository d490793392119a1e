import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect } from 'chai'
import { type LiveGateway, openLiveGateway } from '../dynamic/live-gateway.ts'
import { JSON_LIMITS } from '../../gateway/validation/json-meter.ts'

interface ErrorBody {
  readonly code?: string
  readonly error?: unknown
  readonly detail?: readonly { readonly loc: readonly unknown[]; readonly type: string }[]
}

/** The requests that once stopped the process, and what they get now. */
describe('a request that pays nothing and is made to cost much', () => {
  let shop: LiveGateway
  before(async () => {
    shop = await openLiveGateway({ own: true })
  })
  after(() => shop.close())

  const JSON_TYPE = { 'content-type': 'application/json' }
  const keys = (count: number): string => `{${Array.from({ length: count }, (_, at) => `"k${at}":1`).join(',')}}`

  async function post(path: string, body: string, headers: Readonly<Record<string, string>> = JSON_TYPE) {
    const response = await fetch(shop.url + path, { method: 'POST', body, headers })
    return { status: response.status, body: (await response.json()) as ErrorBody }
  }

  /** Sends only the head of a request with a body, or the first bytes of it, and returns the answer. */
  async function begin(
    path: string,
    headers: readonly string[],
    start = '',
  ): Promise<{ status: number; body: ErrorBody }> {
    const socket = connect(Number(new URL(shop.url).port), '127.0.0.1')
    await once(socket, 'connect')
    const head = [`POST ${path} HTTP/1.1`, 'Host: a', 'Content-Type: application/json', 'Content-Length: 12000000']
    socket.write(`${[...head, ...headers].join('\r\n')}\r\n\r\n${start}`)
    const text = await answerOf(socket)
    socket.destroy()
    return { status: Number(text.slice(9, 12)), body: JSON.parse(text.split('\r\n\r\n')[1] ?? '') as ErrorBody }
  }

  async function answerOf(socket: Socket): Promise<string> {
    let text = ''
    for await (const chunk of socket) {
      text += String(chunk)
      const [head = '', body] = text.split('\r\n\r\n')
      if (body !== undefined && Buffer.byteLength(body) >= Number(/content-length: (\d+)/i.exec(head)?.[1])) break
    }
    return text
  }

  it('is refused at the key that exceeds the limit, while the rest of the body has not come', async () => {
    const start = keys(JSON_LIMITS.keys + 1)
    const { status, body } = await begin('/audit', [], start)
    expect([status, body.code, body.detail?.[0]?.type]).to.deep.equal([422, 'validation_failed', 'too_many_keys'])
  })

  it('is refused at the value that exceeds the limit, while the rest of the body has not come', async () => {
    const { status, body } = await begin('/audit', [], `[${'1,'.repeat(JSON_LIMITS.values)}`)
    expect([status, body.detail?.[0]?.type]).to.deep.equal([422, 'too_many_values'])
  })

  it('is refused with one issue if it has thousands of unknown fields', async () => {
    const { status, body } = await post('/audit', keys(9_000))
    expect([status, body.code]).to.deep.equal([422, 'validation_failed'])
    expect(body.detail).to.have.length(1)
    expect(
      (await post('/founding', 'a&'.repeat(2_000), { 'content-type': 'application/x-www-form-urlencoded' })).status,
    ).to.equal(422)
    expect((await fetch(`${shop.url}/v1/regime/sample?${'a&'.repeat(2_000)}`)).status).to.equal(422)
  })

  it('gets its 402 before its body has come, with a payment or a token that is none', async () => {
    for (const path of ['/v1/audit', '/v1/bars/qc'])
      for (const [header, code] of [
        ['X-PAYMENT: e30=', 'payment_invalid'],
        ['X-PAYMENT: junk', 'payment_invalid'],
        ['PAYMENT-SIGNATURE: e30=', 'payment_invalid'],
        ['X-SERVICE-TOKEN: a.b.c', 'token_invalid'],
      ] as const) {
        const { status, body } = await begin(path, [header])
        expect([status, body.code], `${path} ${header}`).to.deep.equal([402, code])
      }
  })

  it('gets a JSON-RPC error over MCP, for arguments and for batches', async () => {
    const headers = { ...JSON_TYPE, accept: 'application/json, text/event-stream' }
    const call = (args: string): string =>
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_regime_sample","arguments":${args}}}`
    for (const message of [call(keys(110_000)), `[${'[],'.repeat(3_000_000)}[]]`]) {
      const { status, body } = await post('/mcp', message, headers)
      expect(status).to.equal(400)
      expect(body.error).to.have.property('code').that.is.oneOf([-32_600, -32_700])
    }
    const { status, body } = await post('/mcp', call(`{"x":[${'1,'.repeat(1_000_000)}1]}`), headers)
    expect(status).to.equal(200)
    expect((body as { result?: { isError?: boolean } }).result?.isError).to.equal(true)
  })
})
