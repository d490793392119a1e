/** What plugins learn of where a call comes from: a name in place of the address. */
import { expect } from 'chai'
import { callOperation } from '../../gateway/testing/testing.ts'
import { createKey } from '../../gateway/tokens/key-set.ts'
import { type LiveGateway, openLiveGateway } from '../dynamic/live-gateway.ts'
import { until } from '../support/until.ts'

/** Answers with the client of its call, of a call that it asked for, and of one that its job asked for. */
const witness = (name: string, asked: string): string => `import { definePlugin } from 'tollgate/plugin'
let ofJob = null
const NOTHING = { params: {}, query: {}, body: undefined }
export default definePlugin({
  name: '${name}',
  setup: () => ({
    handlers: {
      ${name}Client: async (call) => ({
        client: call.client,
        copied: { ...call }.client,
        ${asked ? `asked: (await call.ask('${asked}', NOTHING)).client, ofJob,` : ''}
      }),
    },
    jobs: ${asked ? `[{ name: 'look', everySeconds: 60, async run({ ask }) { ofJob = (await ask('${asked}', NOTHING)).client } }]` : '[]'},
  }),
})
`

const product = (name: string, uses: readonly string[]) => ({
  product: name,
  title: name,
  summary: 'Says who calls.',
  plugin: name,
  uses,
  operations: {
    [`${name}Client`]: {
      route: `GET /v1/${name}`,
      summary: 'Says who calls.',
      price: 'free',
      response: { type: 'object' },
      tool: true,
    },
  },
})

interface Answer {
  readonly client: string
  readonly copied: string
  readonly asked: string
  readonly ofJob: string | null
}

describe('the client of a call', () => {
  const opened: LiveGateway[] = []
  let keys: string
  before(async () => {
    keys = JSON.stringify({ keys: [await createKey()] })
  })
  afterEach(async () => {
    for (const live of opened.splice(0)) await live.close()
  })

  async function open(environment: Readonly<Record<string, string>> = {}): Promise<LiveGateway> {
    const live = await openLiveGateway({
      sources: { 'outer/index.ts': witness('outer', 'innerClient'), 'inner/index.ts': witness('inner', '') },
      catalog: { 'outer.json': product('outer', ['innerClient']), 'inner.json': product('inner', []) },
      environment: { TOKEN_KEYS: keys, TRUSTED_PROXIES: '127.0.0.1', ...environment },
    })
    opened.push(live)
    return live
  }

  async function answerTo(live: LiveGateway, address: string | null): Promise<Answer> {
    const headers: Record<string, string> = address === null ? {} : { 'x-forwarded-for': address }
    const answer = (await (await fetch(`${live.url}/v1/outer`, { headers })).json()) as Answer
    expect(answer.client).to.match(/^[\w-]{22}$/)
    return answer
  }
  const clientAt = async (live: LiveGateway, address: string | null): Promise<string> =>
    (await answerTo(live, address)).client

  it('is the same for all calls from one IPv4 address or IPv6 /64, and no other', async () => {
    const live = await open()
    const ofIpv4 = await clientAt(live, '203.0.113.7')
    expect(await clientAt(live, '203.0.113.7:4711')).to.equal(ofIpv4)
    expect(await clientAt(live, '::ffff:203.0.113.7')).to.equal(ofIpv4)
    const ofIpv6 = await clientAt(live, '2001:db8:1:2::1')
    expect(await clientAt(live, '2001:db8:1:2:ffff::9')).to.equal(ofIpv6)
    const others = await Promise.all(['203.0.113.8', '2001:db8:1:3::1', null].map((address) => clientAt(live, address)))
    expect(new Set([ofIpv4, ofIpv6, ...others]).size).to.equal(5)
  })

  it('does not tell its address to those who lack the token keys', async () => {
    const other = { TOKEN_KEYS: JSON.stringify({ keys: [await createKey()] }) }
    const [one, same, another] = [await open(), await open(), await open(other)]
    const client = await clientAt(one, '203.0.113.7')
    expect(await clientAt(same, '203.0.113.7')).to.equal(client)
    expect(await clientAt(another, '203.0.113.7')).not.to.equal(client)
  })

  it('is that of the proxy if nobody named the proxy', async () => {
    const live = await open({ TRUSTED_PROXIES: '' })
    expect(await clientAt(live, '203.0.113.7')).to.equal(await clientAt(live, '203.0.113.8'))
  })

  it('is the same over MCP', async () => {
    const live = await open()
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'outer_client', arguments: {} } }
    const response = await fetch(`${live.url}/mcp`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'x-forwarded-for': '203.0.113.7',
      },
      body: JSON.stringify(message),
    })
    const { result } = (await response.json()) as { result: { structuredContent: Answer } }
    expect(result.structuredContent.client).to.equal(await clientAt(live, '203.0.113.7'))
  })

  it('goes on to products that are asked, and into copies of the call', async () => {
    const live = await open()
    const { client, copied, asked } = await answerTo(live, '203.0.113.7')
    expect([asked, copied]).to.deep.equal([client, client])
  })

  it('is the gateway if a job asks', async () => {
    const live = await open()
    await until(async () => (await answerTo(live, null)).ofJob !== null)
    expect((await answerTo(live, null)).ofJob).to.equal('gateway')
  })

  it('is chosen by the test of a plugin', async () => {
    const live = await open()
    const answer = await callOperation(live.gateway.current, 'outerClient', { asOf: live.now(), client: 'one' })
    expect(answer).to.include({ client: 'one', asked: 'one' })
  })
})
