import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  type CallToolResult,
  ErrorCode,
  type McpError,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { expect } from 'chai'
import { InvalidInput, ServiceError, Unavailable } from '../../gateway/errors.ts'
import { Reply } from '../../gateway/plugin/plugin.ts'
import { proves } from '../requirements.ts'
import {
  BASE_URL,
  NETWORK,
  openTransportGateway,
  PRICED,
  type TransportGateway,
  route,
  type Route,
} from '../http/transport-gateway.ts'

const QUERY = {
  type: 'object',
  properties: { symbol: { type: 'string' }, limit: { type: 'integer', default: 10 } },
  required: ['symbol'],
}
const BARS = { type: 'array', items: { type: 'object' } }
const TICKET = { method: 'POST', body: { type: 'object', properties: { side: { type: 'string' } } } } as const

const ROUTES: readonly Route[] = [
  route('getSample', 'GET /v1/sample', { tool: 'get_sample' }, () => ({ free: true })),
  route('getHistory', 'GET /v1/history/{venue}', {
    ...PRICED,
    tool: 'get_history',
    params: { type: 'object', properties: { venue: { type: 'string' } }, required: ['venue'] },
    query: QUERY,
    description: 'Newest first.',
  }),
  route(
    'checkBars',
    'POST /v1/bars',
    { ...PRICED, tool: 'check_bars', body: BARS, bodyMedia: ['application/json'] },
    ({ raw }) => raw.body,
  ),
  route('estimate', 'POST /v1/estimate', { ...TICKET, tool: 'estimate', bodyMedia: ['application/json'] }, () => {
    throw new InvalidInput([{ loc: ['body', 'side'], msg: 'is unknown', type: 'enum' }])
  }),
  route('failSettling', 'GET /v1/unsettled', { ...PRICED, tool: 'fail_settling' }, () => {
    throw new ServiceError('settlement_failed', 'The balance is too small.', { reason: 'insufficient_funds' })
  }),
  route('getWritten', 'GET /v1/written', { tool: 'get_written' }, () => Reply.json(Buffer.from('{"n":"1\\n"}'))),
  route('getHidden', 'GET /v1/hidden'),
]

const PAYMENT = { x402Version: 2, payload: { signature: '0x' } }
const BASE64 = Buffer.from(JSON.stringify(PAYMENT)).toString('base64')

const PAYER = '0x857b06519e91e3a54538791bdbb0e22373e36b66'

const use = async (client: Client, name: string, args: Record<string, unknown> = {}, meta?: Record<string, unknown>) =>
  (await client.callTool({ name, arguments: args, ...(meta ? { _meta: meta } : {}) })) as CallToolResult

describe('the MCP endpoint', () => {
  let gateway: TransportGateway
  const clients: Client[] = []

  async function connect(headers: Record<string, string> = {}): Promise<Client> {
    const client = new Client({ name: 'test', version: '1' })
    const transport = new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), { requestInit: { headers } })
    await client.connect(transport)
    clients.push(client)
    return client
  }
  before(async () => {
    gateway = await openTransportGateway(ROUTES, {
      settle: (answer, { operation, request }) =>
        request.credential?.payments.length && operation !== 'getSample'
          ? {
              ...answer,
              receipt: { success: true, transaction: '0x1', network: NETWORK, payer: PAYER, amount: 5000n, version: 2 },
            }
          : answer,
    })
  })
  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close()))
    gateway.swap(ROUTES)
    gateway.calls.length = 0
    gateway.requests.length = 0
  })
  after(() => gateway.close())

  it('describes the service and lists exactly the tools of the catalog', async () => {
    proves('mcp-tools')
    const client = await connect()
    expect(client.getServerVersion()).to.include({ name: 'shop', version: '1.0.0' })
    expect(client.getServerCapabilities()?.tools).to.deep.equal({ listChanged: true })
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).to.deep.equal([
      'get_sample',
      'get_history',
      'check_bars',
      'estimate',
      'fail_settling',
      'get_written',
    ])
    expect(tools.every(({ outputSchema }) => outputSchema === undefined)).to.equal(true)
  })

  it('answers a free tool with structured content and the same JSON as text', async () => {
    const result = await use(await connect(), 'get_sample')
    expect(result.isError ?? false).to.equal(false)
    expect(result.structuredContent).to.deep.equal({ free: true })
    expect(result.content).to.deep.equal([{ type: 'text', text: '{"free":true}' }])
  })

  it('answers with JSON that the handler has written as with a value', async () => {
    const result = await use(await connect(), 'get_written')
    expect(result.structuredContent).to.deep.equal({ n: '1\n' })
    expect(result.content).to.deep.equal([{ type: 'text', text: '{"n":"1\\n"}' }])
  })

  it('answers an unpaid call with the payment requirements in every place where clients look', async () => {
    const client = await connect()
    const result = await use(client, 'get_history', { venue: 'a b', symbol: 'X', limit: 5 })
    expect(result.isError).to.equal(true)
    const required = result.structuredContent as Record<string, unknown>
    expect(required).to.deep.include({ x402Version: 2, code: 'payment_required', retry: 'new_quote' })
    expect(required['resource']).to.deep.equal({ url: `${BASE_URL}/v1/history/a%20b?symbol=X&limit=5` })
    expect(required['v1']).to.have.property('x402Version', 1)
    expect(required).to.not.have.property('detail')
    expect(result.content).to.deep.equal([{ type: 'text', text: JSON.stringify(required) }])
    expect(result._meta?.['x402/error']).to.deep.equal(required)
    expect(gateway.calls).to.have.length(0)
  })

  it('passes the same input to the product as the equivalent HTTP request', async () => {
    const client = await connect()
    await use(client, 'get_history', { venue: 'v', symbol: 'X', limit: 5, end: null, payment_signature: BASE64 })
    await fetch(`${gateway.url}/v1/history/v?symbol=X&limit=5`, { headers: { 'X-PAYMENT': BASE64 } })
    const [mcp, http] = gateway.calls
    expect(mcp?.raw).to.deep.equal(http?.raw)
    expect(mcp?.request).to.include({ transport: 'mcp', url: http?.request.url })
    expect(mcp?.request.credential).to.deep.equal(http?.request.credential)
  })

  it('accepts the payment in the argument, in _meta in either form, and in the headers', async () => {
    proves('mcp-payment')
    const args = { venue: 'v', symbol: 'X' }
    const plain = await connect()
    const paid = await use(plain, 'get_history', { ...args, payment_signature: BASE64 })
    expect(paid._meta?.['x402/payment-response']).to.include({
      success: true,
      transaction: '0x1',
      network: 'eip155:84532',
    })
    await use(plain, 'get_history', args, { 'x402/payment': PAYMENT })
    await use(plain, 'get_history', args, { 'x402.payment': BASE64 })
    await use(await connect({ 'PAYMENT-SIGNATURE': BASE64 }), 'get_history', args)
    await use(await connect({ 'X-PAYMENT': BASE64 }), 'get_history', args)
    await use(plain, 'get_history', { ...args, payment_signature: 'one' }, { 'x402/payment': 'two' })
    expect(gateway.calls.map(({ request }) => request.credential?.payments)).to.deep.equal([
      [BASE64],
      [PAYMENT],
      [BASE64],
      [BASE64],
      [BASE64],
      ['one', 'two'],
    ])
  })

  it('accepts the access token in the header', async () => {
    await use(await connect({ 'X-SERVICE-TOKEN': 'Bearer t.o.k' }), 'get_history', { venue: 'v', symbol: 'X' })
    expect(gateway.calls[0]?.request.credential).to.deep.equal({ payments: [], token: 't.o.k' })
  })

  it('accepts a body that is not an object as the argument body, and answers a list as text', async () => {
    const bars = [{ open: 1 }, { open: 2 }]
    const result = await use(await connect(), 'check_bars', { body: bars, payment_signature: BASE64 })
    expect(gateway.calls[0]?.raw.body).to.deep.equal(bars)
    expect(result.structuredContent).to.equal(undefined)
    expect(result.content).to.deep.equal([{ type: 'text', text: JSON.stringify(bars) }])
  })

  it('names the argument that is invalid', async () => {
    const result = await use(await connect(), 'estimate', { side: 'up' })
    expect(result.isError).to.equal(true)
    expect(result.structuredContent).to.deep.include({
      code: 'validation_failed',
      detail: [{ loc: ['arguments', 'side'], msg: 'is unknown', type: 'enum' }],
    })
  })

  it('does not reveal the answer when settlement fails', async () => {
    const result = await use(await connect(), 'fail_settling', { payment_signature: BASE64 })
    expect(result.isError).to.equal(true)
    expect(result.structuredContent).to.include({ code: 'settlement_failed', message: 'The balance is too small.' })
    expect(result.content).to.deep.equal([{ type: 'text', text: JSON.stringify(result.structuredContent) }])
  })

  it('says how many seconds to wait before a retry', async () => {
    gateway.swap([
      route('getLate', 'GET /v1/late', { tool: 'get_late' }, () => {
        throw new Unavailable('Closed for a moment.', 30)
      }),
    ])
    const result = await use(await connect(), 'get_late')
    expect(result.structuredContent).to.include({ code: 'product_suspended', retry_after_seconds: 30 })
  })

  it('refuses an unknown tool as a protocol error', async () => {
    const client = await connect()
    const error = await client.callTool({ name: 'getHidden' }).then(
      () => null,
      (refusal: McpError) => refusal,
    )
    expect(error?.code).to.equal(ErrorCode.InvalidParams)
    // The client of the SDK adds the first part.
    expect(error?.message).to.equal('MCP error -32602: Unknown tool: getHidden. tools/list names the tools.')
  })

  it('notifies open sessions of a new edition and serves it at once', async () => {
    const client = await connect()
    const notified = new Promise<void>((resolve) =>
      client.setNotificationHandler(ToolListChangedNotificationSchema, () => resolve()),
    )
    // The client opens its notification stream some time after connecting, so swap until it was notified.
    const swapping = setInterval(
      () => gateway.swap([...ROUTES, route('getGold', 'GET /v1/gold', { tool: 'get_gold' })]),
      20,
    )
    await notified.finally(() => clearInterval(swapping))
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).to.include('get_gold')
    expect((await use(client, 'get_gold')).structuredContent).to.deep.equal({ id: 'getGold' })
  })
})
