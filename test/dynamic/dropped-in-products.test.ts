import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { expect } from 'chai'
import { json } from '../support/agent.ts'
import { gold } from '../support/catalog.ts'
import { openLiveGateway, type LiveGateway, root, until } from './live-gateway.ts'
import { openUpstreamServer, type UpstreamServer } from './upstream-server.ts'

const own = (file: string): string => readFileSync(join(root, 'catalog', file), 'utf8')
const REQUESTS_A_SECOND = 50
/** The longest time an operator should wait from the last file until every document shows the product. */
const LIVE_MS = 5_000

/** The plugin that an operator writes. */
const PLUGIN = `import { type Call, definePlugin } from '#gateway'

export default definePlugin({
  name: 'tin',
  setup: () => ({
    handlers: { getTin: ({ asOf }: Call) => ({ as_of: asOf.toISOString(), price: 31 }) },
  }),
})
`

const operation = (product: string) => ({
  route: `GET /v1/x/${product}`,
  summary: `The price of ${product}.`,
  price: '0.005',
  response: { type: 'object', required: ['price'], properties: { price: { type: 'number' } } },
  tool: true,
  example: { request: {}, response: { price: 31 } },
})
const words = (product: string) => ({ product, family: 'x', title: product, summary: `The price of ${product}.` })

describe('a product that is added while fifty requests a second are answered', () => {
  let place: LiveGateway
  let source: UpstreamServer
  let ticking: NodeJS.Timeout
  const outcomes: Promise<string>[] = []
  const wrong = async (): Promise<string[]> => (await Promise.all(outcomes)).filter((outcome) => outcome !== 'well')

  const VISITS: readonly (readonly [path: string, status: number, says: string])[] = [
    ['/pricing.json', 200, 'GET /v1/gold'],
    ['/v1/gold', 402, 'maxAmountRequired'],
    ['/openapi.json', 200, '/v1/gold'],
    ['/pricing', 200, '/v1/gold'],
    ['/v1/gold?days=3', 402, 'maxAmountRequired'],
    ['/health', 200, '"status":"ok"'],
    ['/nowhere', 404, 'not_found'],
  ]

  async function visit([path, status, says]: (typeof VISITS)[number]): Promise<string> {
    try {
      const answer = await place.get(path)
      const text = await answer.text()
      return answer.status === status && text.includes(says)
        ? 'well'
        : `${path}: ${answer.status} ${text.slice(0, 200)}`
    } catch (error) {
      return `${path}: ${String(error)}`
    }
  }

  before(async () => {
    source = await openUpstreamServer()
    source.answer = (response) => response.end('{"price": 2100}')
    place = await openLiveGateway({
      catalog: { 'documents.json': own('documents.json'), 'site.json': own('site.json'), 'gold.json': gold() },
      plugins: ['gold'],
      ownPlugins: true,
    })
    expect(place.gateway.issues).to.deep.equal([])
    ticking = setInterval(() => {
      outcomes.push(visit(VISITS[outcomes.length % VISITS.length] as (typeof VISITS)[number]))
    }, 1000 / REQUESTS_A_SECOND)
  })
  after(async () => {
    clearInterval(ticking)
    await Promise.all(outcomes)
    await place.close()
    await source.close()
  })

  async function isEverywhere(product: string): Promise<void> {
    const route = `/v1/x/${product}`
    await until(async () => (await place.get(route)).status === 402)
    for (const path of ['/pricing.json', '/.well-known/x402', '/openapi.json', '/llms.txt', '/v1/x', '/pricing'])
      await until(async () => (await (await place.get(path)).text()).includes(route))
    const client = new Client({ name: 'agent', version: '1.0.0' })
    await client.connect(new StreamableHTTPClientTransport(new URL(`${place.url}/mcp`)))
    expect((await client.listTools()).tools.map(({ name }) => name)).to.include(`get_${product}`)
    await client.close()
  }

  async function dropIn(product: string, files: () => void): Promise<void> {
    await until(() => outcomes.length > 20)
    const began = performance.now()
    files()
    await isEverywhere(product)
    const ms = Math.round(performance.now() - began)
    process.stdout.write(`    ${product}: live everywhere after ${ms} ms\n`)
    expect(ms).to.be.lessThan(LIVE_MS)
    const client = new x402Client().register('eip155:84532', new ExactEvmScheme(place.wallet))
    const bought = await wrapFetchWithPayment(fetch, client)(`${place.url}/v1/x/${product}`)
    expect(bought.status).to.equal(200)
    expect((await json(bought))['price']).to.be.a('number')
    expect(await wrong()).to.deep.equal([])
  }

  it('is in every document within seconds and can be bought, with a plugin of a few lines', async () => {
    await dropIn('tin', () => {
      place.plugin('tin/index.ts', PLUGIN)
      place.catalog('x/tin.json', { ...words('tin'), plugin: 'tin', operations: { getTin: operation('tin') } })
    })
    expect(PLUGIN.split('\n').length).to.be.at.most(25)
  })

  it('is in every document within seconds and can be bought, with an upstream and no code', async () => {
    await dropIn('lead', () => {
      const upstream = { url: `${source.url}/lead` }
      place.catalog('x/lead.json', { ...words('lead'), upstream, operations: { getLead: operation('lead') } })
    })
  })
})
