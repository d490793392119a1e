import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { expect } from 'chai'
import { json } from '../support/agent.ts'
import { gold } from '../support/catalog.ts'
import { openLiveGateway, type LiveGateway, root } from './live-gateway.ts'
import { startStopwatch } from '../support/stopwatch.ts'
import { until } from '../support/until.ts'
import { openUpstreamServer, type UpstreamServer } from './upstream-server.ts'

const shipped = (file: string): string => readFileSync(join(root, 'catalog', file), 'utf8')
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
const texts = (product: string) => ({ product, family: 'x', title: product, summary: `The price of ${product}.` })

describe('a product added under a load of fifty requests a second', () => {
  let live: LiveGateway
  let upstream: UpstreamServer
  let load: NodeJS.Timeout
  const outcomes: Promise<string>[] = []
  const failures = async (): Promise<string[]> => (await Promise.all(outcomes)).filter((outcome) => outcome !== 'ok')

  const VISITS: readonly (readonly [path: string, status: number, text: string])[] = [
    ['/pricing.json', 200, 'GET /v1/gold'],
    ['/v1/gold', 402, 'maxAmountRequired'],
    ['/openapi.json', 200, '/v1/gold'],
    ['/pricing', 200, '/v1/gold'],
    ['/v1/gold?days=3', 402, 'maxAmountRequired'],
    ['/health', 200, '"status":"ok"'],
    ['/nowhere', 404, 'not_found'],
  ]

  async function visit([path, status, expected]: (typeof VISITS)[number]): Promise<string> {
    try {
      const answer = await live.get(path)
      const text = await answer.text()
      return answer.status === status && text.includes(expected)
        ? 'ok'
        : `${path}: ${answer.status} ${text.slice(0, 200)}`
    } catch (error) {
      return `${path}: ${String(error)}`
    }
  }

  before(async () => {
    upstream = await openUpstreamServer()
    upstream.answer = (response) => response.end('{"price": 2100}')
    live = await openLiveGateway({
      catalog: { 'documents.json': shipped('documents.json'), 'site.json': shipped('site.json'), 'gold.json': gold() },
      plugins: ['gold'],
      ownPlugins: true,
    })
    expect(live.gateway.issues).to.deep.equal([])
    load = setInterval(() => {
      outcomes.push(visit(VISITS[outcomes.length % VISITS.length] as (typeof VISITS)[number]))
    }, 1000 / REQUESTS_A_SECOND)
  })
  after(async () => {
    clearInterval(load)
    await Promise.all(outcomes)
    await live.close()
    await upstream.close()
  })

  async function untilListedEverywhere(product: string): Promise<void> {
    const route = `/v1/x/${product}`
    await until(async () => (await live.get(route)).status === 402)
    for (const path of ['/pricing.json', '/.well-known/x402', '/openapi.json', '/llms.txt', '/v1/x', '/pricing'])
      await until(async () => (await (await live.get(path)).text()).includes(route))
    const client = new Client({ name: 'agent', version: '1.0.0' })
    await client.connect(new StreamableHTTPClientTransport(new URL(`${live.url}/mcp`)))
    expect((await client.listTools()).tools.map(({ name }) => name)).to.include(`get_${product}`)
    await client.close()
  }

  async function addAndBuy(product: string, writeFiles: () => void): Promise<void> {
    await until(() => outcomes.length > 20)
    const elapsed = startStopwatch()
    writeFiles()
    await untilListedEverywhere(product)
    const ms = Math.round(elapsed())
    process.stdout.write(`    ${product}: live everywhere after ${ms} ms\n`)
    expect(ms).to.be.lessThan(LIVE_MS)
    const client = new x402Client().register('eip155:84532', new ExactEvmScheme(live.wallet))
    const bought = await wrapFetchWithPayment(fetch, client)(`${live.url}/v1/x/${product}`)
    expect(bought.status).to.equal(200)
    expect((await json(bought))['price']).to.be.a('number')
    expect(await failures()).to.deep.equal([])
  }

  it('is in every document within five seconds and can be bought, if its plugin is a few lines of code', async () => {
    await addAndBuy('tin', () => {
      live.writePlugin('tin/index.ts', PLUGIN)
      live.writeCatalog('x/tin.json', { ...texts('tin'), plugin: 'tin', operations: { getTin: operation('tin') } })
    })
    expect(PLUGIN.split('\n').length).to.be.at.most(25)
  })

  it('is in every document within five seconds and can be bought, if it has an upstream and no code', async () => {
    await addAndBuy('lead', () => {
      live.writeCatalog('x/lead.json', {
        ...texts('lead'),
        upstream: { url: `${upstream.url}/lead` },
        operations: { getLead: operation('lead') },
      })
    })
  })
})
