/**
 * The first minute of a service whose sources are all down: the shipped catalog and a product that was dropped in, online, on
 * an empty store, with valid payments on a local chain. Nothing that rests on data is sold.
 */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { expect } from 'chai'
import type { LocalAccount } from 'viem'
import { createLog } from '../../gateway/observe/log.ts'
import { createChainSettler } from '../../gateway/methods/exact-evm/chain/chain-settler.ts'
import type { Operation } from '../../gateway/plugin/catalog.ts'
import sources from '../../plugins/potus/data/sources.json' with { type: 'json' }
import { ask, json, offer, type RequestOptions, send } from '../support/agent.ts'
import { type ChainGateway, openChainGateway } from '../support/chain-gateway.ts'
import { newSettleKey } from '../support/payments.ts'
import { until } from '../support/until.ts'
import { signPayment } from '../support/wallet.ts'

const root = resolve(import.meta.dirname, '../..')
const VENUES = ['binance', 'bybit', 'okx', 'hyperliquid', 'dydx', 'kraken', 'gate', 'bitmex']
/** Operations whose answers rest on the request alone, and why. The catalog says so with `"fresh": false`. */
const NEED_NO_DATA: Readonly<Record<string, string>> = {
  auditBacktest: 'audits the ledger and the bars of the buyer',
  checkBarQuality: 'checks the bars of the buyer',
}
/** How an answer without data may be refused. */
const REFUSALS = ['data_stale', 'product_suspended', 'not_held', 'not_found']

/** A product of an operator: its handler would answer, but its feed has delivered nothing. */
const DROPPED_IN = {
  plugin: `import { definePlugin } from 'tollgate/plugin'
export default definePlugin({
  name: 'moonrise',
  setup: () => ({
    handlers: { getMoonrise: () => ({ items: [] }) },
    freshness: () => ({ newest: null, sources: 0, coverage: 0 }),
  }),
})
`,
  document: {
    product: 'moonrise',
    family: 'x',
    title: 'Moonrise',
    summary: 'When the moon rises.',
    plugin: 'moonrise',
    operations: {
      getMoonrise: {
        route: 'GET /v1/x/moonrise',
        summary: 'When the moon rises.',
        price: '0.01',
        fresh: { newest_seconds: 3600 },
        response: { type: 'object' },
        tool: true,
      },
    },
  },
}

/** Copies the catalog with every source at an address that refuses, and adds the product. */
function writeFolders(refusing: string): {
  readonly folder: string
  readonly catalogDir: string
  readonly plugins: string
} {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-empty-'))
  const [catalogDir, plugins] = [join(folder, 'catalog'), join(folder, 'plugins')]
  cpSync(join(root, 'catalog'), catalogDir, { recursive: true })
  mkdirSync(join(plugins, 'moonrise'), { recursive: true })
  writeFileSync(join(plugins, 'moonrise', 'index.ts'), DROPPED_IN.plugin)
  writeFileSync(join(catalogDir, 'x', 'moonrise.json'), JSON.stringify(DROPPED_IN.document))
  const own: Readonly<Record<string, object>> = {
    'potus.json': { sources: Object.fromEntries(sources.sources.map(({ id }) => [id, { url: `${refusing}/${id}` }])) },
    'x/perp-funding-rates.json': {
      venues: Object.fromEntries(VENUES.map((venue) => [venue, { enabled: true, url: `${refusing}/${venue}` }])),
      keep_hours: 6,
    },
  }
  for (const file of readdirSync(catalogDir, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.json')) continue
    const path = join(catalogDir, file)
    const document = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>
    if (!document['settings']) continue
    const settings = JSON.stringify(own[file] ?? document['settings']).replaceAll(
      /"https:\/\/([^"/]+)[^"]*"/g,
      `"${refusing}/$1"`,
    )
    writeFileSync(path, JSON.stringify({ ...document, settings: JSON.parse(settings) as object }))
  }
  return { folder, catalogDir, plugins }
}

/** The request of the operation's example. */
function requestOf({ method, path, example, bodyMedia }: Operation): { path: string; options: RequestOptions } {
  const { params = {}, query = {}, body } = example?.request ?? {}
  const filled = path.replace(/\{([^}]+)\}/g, (_, name: string) => encodeURIComponent(String(params[name])))
  const search = new URLSearchParams(query as Record<string, string>).toString()
  const options = { method, ...(bodyMedia.length > 0 ? { body: body ?? {} } : {}) }
  return { path: search === '' ? filled : `${filled}?${search}`, options }
}

describe('on an empty store, while every source refuses', () => {
  let venue: Server
  let refused = 0
  let shop: ChainGateway
  let folder: string
  let operations: readonly Operation[]
  let buyer: LocalAccount

  before(async function () {
    venue = createServer((_, response) => {
      refused += 1
      response.writeHead(503, { 'retry-after': '60' }).end('down for maintenance')
    })
    await new Promise<void>((listening) => venue.listen(0, '127.0.0.1', listening))
    const written = writeFolders(`http://127.0.0.1:${(venue.address() as AddressInfo).port}`)
    folder = written.folder
    shop = await openChainGateway(
      this,
      async (chain, [node]) =>
        createChainSettler({
          rpcUrl: node.url,
          key: await newSettleKey(chain),
          network: chain.network,
          log: createLog('silent'),
          confirmSeconds: 10,
          pollMs: 30,
        }),
      {
        config: {
          DATA_MODE: 'online',
          CATALOG_DIR: written.catalogDir,
          PLUGIN_DIRS: [written.plugins, join(root, 'plugins')].join(delimiter),
        },
      },
    )
    buyer = await shop.newBuyer(10_000_000_000n)
    expect(shop.issues()).to.deep.equal([])
    operations = shop.operations().filter(({ price, retired }) => price !== null && !retired)
    await until(() => refused > 20)
  })
  after(async () => {
    await shop?.close()
    await new Promise((closed) => venue.close(closed))
    rmSync(folder, { recursive: true, force: true })
  })

  /** Signs a payment for a call. */
  async function signed(path: string, options: RequestOptions): Promise<string> {
    const { response, v2 } = await offer(`${shop.url}${path}`, options)
    expect(response.status, 'an unpaid call gets its 402').to.equal(402)
    return signPayment({ account: buyer, requirement: v2.accepts[0] as never, version: 2 })
  }

  it('sells what rests on the request alone, and nothing else is said to', async () => {
    const own = operations.filter(({ fresh }) => fresh === 'request')
    expect(own.map(({ id }) => id).sort()).to.deep.equal(Object.keys(NEED_NO_DATA).sort())
    for (const operation of own) {
      const { path, options } = requestOf(operation)
      const answer = await send(`${shop.url}${path}`, await signed(path, options), 2, options)
      expect(answer.status, `${operation.id}: ${await answer.text()}`).to.equal(200)
    }
    await shop.received()
  })

  it('refuses every other paid route, uncharged: products, plans, and the product that was dropped in', async () => {
    const rest = operations.filter(({ fresh }) => fresh !== 'request')
    expect(rest.map(({ id }) => id)).to.include.members([
      'getRegimeCurrent',
      'getRegimeHistory',
      'getPotusLive',
      'getPotusArchive',
      'purchasePlanLive24h',
      'purchasePlanArchive30d',
      'estimateExecutionCost',
      'preflightTrade',
      'getPerpFundingRates',
      'getAgentDirectory',
      'getMoonrise',
    ])
    const outcomes: string[] = []
    for (const operation of rest) {
      const { path, options } = requestOf(operation)
      const answer = await send(`${shop.url}${path}`, await signed(path, options), 2, options)
      const { code } = await json(answer)
      const isRefused = [404, 503].includes(answer.status) && REFUSALS.includes(String(code))
      outcomes.push(`${isRefused ? 'refused' : 'SOLD'} ${operation.route}: ${answer.status} ${String(code)}`)
      if (answer.status === 503) expect(answer.headers.get('retry-after'), operation.route).to.match(/^\d+$/)
      expect(answer.headers.get('payment-response'), operation.route).to.equal(null)
    }
    expect(outcomes.filter((outcome) => !outcome.startsWith('refused'))).to.deep.equal([])
    expect(await shop.received()).to.equal(0n)
    const settled = await shop.journal.list({ states: ['submitted', 'settled'], limit: 1000 })
    expect(settled.map(({ operation }) => operation).filter((id) => !(id in NEED_NO_DATA))).to.deep.equal([])
  })

  it('refuses every paid tool over MCP, uncharged', async () => {
    const client = new Client({ name: 'agent', version: '1.0.0' })
    await client.connect(new StreamableHTTPClientTransport(new URL(`${shop.url}/mcp`)))
    const tools = operations.filter(({ tool, fresh }) => tool !== null && fresh !== 'request')
    expect(tools.length).to.be.greaterThan(2)
    for (const operation of tools) {
      const { path, options } = requestOf(operation)
      const { params = {}, query = {}, body = {} } = operation.example?.request ?? {}
      const payment_signature = await signed(path, options)
      const answer = await client.callTool({
        name: operation.tool as string,
        arguments: { ...params, ...query, ...(body as object), payment_signature },
      })
      expect(answer.isError, operation.id).to.equal(true)
      expect(REFUSALS, operation.id).to.include((answer.structuredContent as { code: string }).code)
    }
    await client.close()
    expect(await shop.received()).to.equal(0n)
  })

  it('says so in /health, and in the 402 of each operation that promises fresh data', async () => {
    const promises = ({ fresh }: Operation): boolean => typeof fresh === 'object' && fresh !== null
    // A plan that opens delayed operations is measured without their delay, so it has a state of its own.
    const opensDelayed = ({ plan }: Operation): boolean =>
      operations.some((each) => plan?.authorizes.includes(each.id) && promises(each) && each.maxFreshnessSeconds > 0)
    const promising = operations.filter((each) => promises(each) || opensDelayed(each))
    const health = await json(await ask(`${shop.url}/health`))
    expect(health['status']).to.equal('degraded')
    const states = health['freshness'] as { operation: string; request?: string; status: string; reason?: string }[]
    const ordinary = states.filter(({ request }) => request === undefined)
    expect(ordinary.map(({ operation }) => operation).sort()).to.deep.equal(promising.map(({ id }) => id).sort())
    expect(states.map(({ request }) => request)).to.include('GET /v1/regime/current?symbol=DOGE-USD')
    expect(states.filter(({ status }) => status !== 'stale')).to.deep.equal([])
    for (const operation of promising) {
      const { path, options } = requestOf(operation)
      const { v1 } = await offer(`${shop.url}${path}`, options)
      expect((v1 as unknown as { freshness: object }).freshness, operation.id).to.include({ status: 'stale' })
    }
  })
})
