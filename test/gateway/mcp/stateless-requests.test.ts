import { expect } from 'chai'
import { openTransportGateway, PRICED, route, type TransportGateway } from '../../http/transport-gateway.ts'

const VERSION = '2026-07-28'
const ENVELOPE = {
  'io.modelcontextprotocol/protocolVersion': VERSION,
  'io.modelcontextprotocol/clientCapabilities': {},
}
const HEADERS = {
  accept: 'application/json, text/event-stream',
  'content-type': 'application/json',
  'mcp-protocol-version': VERSION,
}

interface Change {
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>>
  readonly headers?: Readonly<Record<string, string | null>>
}

describe('a request of MCP 2026-07-28', () => {
  let gateway: TransportGateway
  before(async () => {
    gateway = await openTransportGateway([
      route('getSample', 'GET /v1/sample', { tool: 'get_sample' }, () => ({ free: true })),
      route('getPrice', 'GET /v1/price', { ...PRICED, tool: 'get_price' }),
    ])
  })
  after(() => gateway.close())

  /** Sends a request whose envelope and headers are complete but for what is changed. null leaves a header out. */
  async function send({ method = 'tools/list', params = {}, headers = {} }: Change = {}) {
    const name = typeof params['name'] === 'string' ? { 'mcp-name': params['name'] } : {}
    const sent = Object.entries({ ...HEADERS, 'mcp-method': method, ...name, ...headers }).flatMap(([key, value]) =>
      value === null ? [] : [[key, value] as [string, string]],
    )
    const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method, params: { _meta: ENVELOPE, ...params } })
    const response = await fetch(`${gateway.url}/mcp`, { method: 'POST', headers: sent, body })
    const answer = (await response.json()) as {
      readonly id: number
      readonly result?: Readonly<Record<string, unknown>>
      readonly error?: { readonly code: number; readonly message: string; readonly data?: object }
    }
    expect(answer.id).to.equal(7)
    return { status: response.status, ...answer }
  }

  it('learns what the server can do, and the tools, for a while', async () => {
    const { result } = await send({ method: 'server/discover' })
    expect(result).to.deep.include({ resultType: 'complete', supportedVersions: [VERSION], cacheScope: 'public' })
    expect(result).to.have.nested.property('capabilities.tools')
    expect(result?.['ttlMs']).to.be.above(0)
    const list = (await send()).result as { tools: { name: string }[]; resultType: string }
    expect(list.resultType).to.equal('complete')
    expect(list.tools.map(({ name }) => name)).to.deep.equal(['get_sample', 'get_price'])
  })

  it('calls a tool: free, unpaid and unknown', async () => {
    const call = (name: string, headers = {}) =>
      send({ method: 'tools/call', params: { name, arguments: {} }, headers })
    expect((await call('get_sample')).result).to.deep.include({
      resultType: 'complete',
      structuredContent: { free: true },
    })
    const encoded = { 'mcp-name': `=?base64?${Buffer.from('get_sample').toString('base64')}?=` }
    expect((await call('get_sample', encoded)).result).to.include({ resultType: 'complete' })
    const unpaid = (await call('get_price')).result
    expect(unpaid).to.include({ resultType: 'complete', isError: true })
    expect(unpaid).to.have.nested.property('structuredContent.accepts')
    const { status, error } = await call('get_gold')
    expect([status, error?.code]).to.deep.equal([200, -32_602])
  })

  const refusals: Readonly<Record<string, readonly [Change, number, number]>> = {
    'another revision': [
      { params: { _meta: { ...ENVELOPE, 'io.modelcontextprotocol/protocolVersion': '2027-01-01' } } },
      400,
      -32_022,
    ],
    'no envelope': [{ params: { _meta: undefined } }, 400, -32_602],
    'no capabilities': [{ params: { _meta: { 'io.modelcontextprotocol/protocolVersion': VERSION } } }, 400, -32_602],
    'a version that is no text': [
      { params: { _meta: { ...ENVELOPE, 'io.modelcontextprotocol/protocolVersion': 1 } } },
      400,
      -32_602,
    ],
    'no version in the headers': [{ headers: { 'mcp-protocol-version': null } }, 400, -32_020],
    'another version in the headers': [{ headers: { 'mcp-protocol-version': '2025-11-25' } }, 400, -32_020],
    'no method in the headers': [{ headers: { 'mcp-method': null } }, 400, -32_020],
    'another method in the headers': [{ headers: { 'mcp-method': 'tools/call' } }, 400, -32_020],
    'no name in the headers': [
      { method: 'tools/call', params: { name: 'get_sample' }, headers: { 'mcp-name': null } },
      400,
      -32_020,
    ],
    'another name in the headers': [
      { method: 'tools/call', params: { name: 'get_sample' }, headers: { 'mcp-name': 'get_price' } },
      400,
      -32_020,
    ],
    'the method of a session': [{ method: 'initialize' }, 404, -32_601],
    'an unknown method': [{ method: 'completion/complete' }, 404, -32_601],
  }
  for (const [name, [change, status, code]] of Object.entries(refusals))
    it(`is refused with ${code} and status ${status} for ${name}`, async () => {
      const refused = await send(change)
      expect([refused.status, refused.error?.code]).to.deep.equal([status, code])
      expect(refused.error?.message).to.match(/^[A-Z]/)
      if (code === -32_022)
        expect(refused.error?.data)
          .to.deep.include({ requested: '2027-01-01' })
          .and.to.have.property('supported')
          .that.includes(VERSION)
    })

  it('is not sent in a batch, and as a notification needs no answer', async () => {
    const headers = { ...HEADERS, 'mcp-method': 'tools/list' }
    const request = { jsonrpc: '2.0', id: 7, method: 'tools/list', params: { _meta: ENVELOPE } }
    const post = (body: unknown) => fetch(`${gateway.url}/mcp`, { method: 'POST', headers, body: JSON.stringify(body) })
    const batch = await post([request])
    expect(batch.status).to.equal(400)
    expect(await batch.json()).to.have.nested.property('error.code', -32_600)
    expect(
      (await post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } })).status,
    ).to.equal(202)
  })
})
