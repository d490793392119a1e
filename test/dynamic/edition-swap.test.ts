import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import { expect } from 'chai'
import { createLog } from '../../gateway/observe/log.ts'
import { gold, SERVICE, thing } from '../support/catalog.ts'
import { buy, json } from '../support/agent.ts'
import { openLiveGateway, type LiveGateway, root, wordPlugin, wordProduct } from './live-gateway.ts'
import { until } from '../support/until.ts'

const DOCUMENTS = readFileSync(join(root, 'catalog/documents.json'), 'utf8')

describe('a change of the catalog or of plugin code', () => {
  let live: LiveGateway
  let logged = ''
  const version = async (): Promise<string | null> => (await live.get('/pricing.json')).headers.get('x-catalog-version')
  const price = (): bigint | null | undefined => live.gateway.current.catalog.operations.get('getGold')?.price

  beforeEach(async () => {
    logged = ''
    live = await openLiveGateway({
      catalog: { 'documents.json': DOCUMENTS, 'gold.json': gold() },
      plugins: ['gold'],
      overrides: { log: createLog('warn', { write: (line) => void (logged += line) }) },
    })
  })
  afterEach(() => live.close())

  it('gives the documents a new version only if it changes what the catalog says', async () => {
    const first = await version()
    const etag = (await live.get('/openapi.json')).headers.get('etag')
    const before = live.gateway.current
    live.writeCatalog('gold.json', JSON.stringify(gold()))
    await until(() => live.gateway.current !== before)
    expect(await version()).to.equal(first)
    expect((await live.get('/openapi.json')).headers.get('etag')).to.equal(etag)
    live.writeCatalog('gold.json', gold({ summary: 'What gold costs.' }))
    await until(async () => (await version()) !== first)
    expect((await live.get('/openapi.json')).headers.get('etag')).not.to.equal(etag)
    live.writeCatalog('gold.json', gold())
    await until(async () => (await version()) === first)
  })

  it('that adds a product shows it in every document, and notifies connected MCP clients', async () => {
    const client = new Client({ name: 'agent', version: '1.0.0' })
    let notifications = 0
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => void (notifications += 1))
    await client.connect(new StreamableHTTPClientTransport(new URL(`${live.url}/mcp`)))
    const names = async () => (await client.listTools()).tools.map(({ name }) => name)
    expect(await names()).not.to.include('get_thing')
    live.copyPlugin('throws')
    live.writeCatalog('x/throws.json', thing('throws', { route: 'GET /v1/x/throws', tool: true }, { family: 'x' }))
    await until(() => notifications > 0)
    expect(await names()).to.include('get_thing')
    expect(JSON.stringify(await live.json('/pricing.json'))).to.contain('GET /v1/x/throws')
    expect(JSON.stringify(await live.json('/.well-known/x402'))).to.contain('/v1/x/throws')
    expect(await live.json('/openapi.json')).to.have.nested.property('paths./v1/x/throws')
    expect(JSON.stringify(await live.json('/v1/x'))).to.contain('/v1/x/throws')
    expect(await (await live.get('/llms.txt')).text()).to.contain('/v1/x/throws')
    expect((await live.get('/v1/x/throws')).status).to.equal(402)
    await client.close()
  })

  const broken: readonly (readonly [string, string, unknown, string, string])[] = [
    ['half a document', 'gold.json', '{ "product": "gold",', '', 'syntax'],
    ['an unknown field', 'gold.json', gold({ colour: 1 }), '/operations/getGold/colour', 'additionalProperties'],
    ['a price with seven decimals', 'gold.json', gold({ price: '0.0000001' }), '/operations/getGold/price', 'pattern'],
    ['a route that is taken', 'gold.json', gold({ route: 'GET /health' }), '/operations/getGold/route', 'route-taken'],
    [
      'a reference to a missing schema',
      'gold.json',
      gold({ response: { $ref: 'nowhere.json' } }),
      '/operations/getGold/response',
      'reference',
    ],
    ['a service without a name', 'service.json', { ...SERVICE, name: '' }, '/name', 'minLength'],
  ]
  for (const [title, file, content, pointer, rule] of broken)
    it(`with ${title} is not applied: the product is sold as before, and file, pointer and rule of the error are reported`, async () => {
      live.writeCatalog(file, content)
      await until(() => live.gateway.issues.length > 0)
      const issues = live.gateway.issues.map((issue) => [issue.file, issue.pointer, issue.rule])
      expect(issues).to.deep.include([file, pointer, rule])
      const health = await live.json('/health')
      expect(health).to.include({ status: 'degraded' })
      expect(health['mistakes']).to.deep.equal(live.gateway.issues)
      expect(health['withheld']).to.deep.equal([])
      const { status, reason } = (health['products'] as { product: string; status: string; reason?: string }[]).find(
        ({ product }) => product === 'gold',
      ) as { status: string; reason?: string }
      expect(status).to.equal('ok')
      if (file === 'gold.json')
        expect(reason).to.match(/^The last valid version is served, because gold.json has errors: /)
      else expect(reason).to.equal(undefined)
      const lines = logged.split('\n').filter(Boolean)
      const entries = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
      expect(entries.map((line) => [line['file'], line['pointer'], line['rule']])).to.deep.include([
        file,
        pointer,
        rule,
      ])
      expect(entries.at(-1)?.['msg']).to.equal(
        file === 'service.json'
          ? 'the edition stays as it was because of the errors above'
          : 'a new edition is served, with gold as before because of the errors above',
      )
      const answer = await buy(`${live.url}/v1/gold`, live.wallet)
      expect([answer.status, (await json(answer))['price']]).to.deep.equal([200, 1900])
      live.writeCatalog(file, file === 'service.json' ? SERVICE : gold({ price: '0.007' }))
      await until(() => live.gateway.issues.length === 0)
      if (file !== 'service.json') expect(price()).to.equal(7000n)
      expect(await live.json('/health')).to.include({ status: 'ok' })
    })

  it('of the settings of a product sets it up again', async () => {
    live.writeCatalog('gold.json', gold({}, { settings: { unit: 'gram' } }))
    await until(async () => (await json(await buy(`${live.url}/v1/gold`, live.wallet)))['unit'] === 'gram')
  })

  it('of code stops the jobs of the old code at once, and lets its calls finish', async () => {
    const state: { ticks: string[]; open: (() => void) | null } = { ticks: [], open: null }
    Object.assign(globalThis, { state })
    const ticking = (name: string): string => `import { definePlugin } from 'tollgate/plugin'
      export default definePlugin({ name: 'parrot', setup: () => ({
        handlers: { async getWord() {
          await new Promise((done) => { globalThis.state.open = done })
          return { word: '${name}' }
        } },
        jobs: [{ name: 'tick', everySeconds: 0.01, async run() { globalThis.state.ticks.push('${name}') } }],
      }) })`
    live.writePlugin('parrot/index.ts', ticking('old'))
    live.writeCatalog('parrot.json', wordProduct('parrot'))
    await until(() => state.ticks.includes('old'))
    const answerOfOldCode = live.json('/v1/parrot')
    await until(() => state.open !== null)
    live.writePlugin('parrot/index.ts', ticking('new'))
    await until(() => state.ticks.includes('new'))
    const ticksSinceSwap = () => state.ticks.slice(state.ticks.indexOf('new'))
    await until(() => ticksSinceSwap().length > 5)
    expect(ticksSinceSwap()).not.to.include('old')
    state.open?.()
    expect(await answerOfOldCode).to.deep.equal({ word: 'old' })
  })

  it('is applied together with others made at the same time', async () => {
    const editions = new Set([live.gateway.current])
    for (let count = 0; count < 20; count++) {
      live.writePlugin(`parrot-${count}/index.ts`, wordPlugin(`parrot-${count}`))
      live.writePlugin(`parrot-${count}/word.ts`, `export const word = ${count}`)
      const { getWord } = wordProduct('parrot').operations
      live.writeCatalog(`parrot-${count}.json`, {
        ...wordProduct(`parrot-${count}`),
        operations: { [`getWord${count}`]: { ...getWord, route: `GET /v1/parrot/${count}`, handler: 'getWord' } },
      })
    }
    await until(async () => {
      editions.add(live.gateway.current)
      return (await live.get('/v1/parrot/19')).status === 200
    })
    expect(editions.size).to.be.at.most(3)
  })
})
