import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import { expect } from 'chai'
import { createLog } from '../../gateway/observe/log.ts'
import { gold, SERVICE, thing } from '../support/catalog.ts'
import { buy, json } from '../support/agent.ts'
import { openLiveGateway, type LiveGateway, root, pluginSaying, until, word } from './live-gateway.ts'

const DOCUMENTS = readFileSync(join(root, 'catalog/documents.json'), 'utf8')

describe('a swap of the edition', () => {
  let place: LiveGateway
  let logged = ''
  const version = async (): Promise<string | null> =>
    (await place.get('/pricing.json')).headers.get('x-catalog-version')
  const price = (): bigint | null | undefined => place.gateway.current.catalog.operations.get('getGold')?.price

  beforeEach(async () => {
    logged = ''
    place = await openLiveGateway({
      catalog: { 'documents.json': DOCUMENTS, 'gold.json': gold() },
      plugins: ['gold'],
      overrides: { log: createLog('error', { write: (line) => void (logged += line) }) },
    })
  })
  afterEach(() => place.close())

  it('changes the version of the documents if the catalog changes, and only then', async () => {
    const first = await version()
    const etag = (await place.get('/openapi.json')).headers.get('etag')
    const before = place.gateway.current
    place.catalog('gold.json', JSON.stringify(gold()))
    await until(() => place.gateway.current !== before)
    expect(await version()).to.equal(first)
    expect((await place.get('/openapi.json')).headers.get('etag')).to.equal(etag)
    place.catalog('gold.json', gold({ summary: 'What gold costs.' }))
    await until(async () => (await version()) !== first)
    expect((await place.get('/openapi.json')).headers.get('etag')).not.to.equal(etag)
    place.catalog('gold.json', gold())
    await until(async () => (await version()) === first)
  })

  it('shows a new product in every document, and notifies connected MCP clients', async () => {
    const client = new Client({ name: 'agent', version: '1.0.0' })
    let told = 0
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => void (told += 1))
    await client.connect(new StreamableHTTPClientTransport(new URL(`${place.url}/mcp`)))
    const names = async () => (await client.listTools()).tools.map(({ name }) => name)
    expect(await names()).not.to.include('get_thing')
    place.drop('throws')
    place.catalog('x/throws.json', thing('throws', { route: 'GET /v1/x/throws', tool: true }, { family: 'x' }))
    await until(() => told > 0)
    expect(await names()).to.include('get_thing')
    expect(JSON.stringify(await place.json('/pricing.json'))).to.contain('GET /v1/x/throws')
    expect(JSON.stringify(await place.json('/.well-known/x402'))).to.contain('/v1/x/throws')
    expect(await place.json('/openapi.json')).to.have.nested.property('paths./v1/x/throws')
    expect(JSON.stringify(await place.json('/v1/x'))).to.contain('/v1/x/throws')
    expect(await (await place.get('/llms.txt')).text()).to.contain('/v1/x/throws')
    expect((await place.get('/v1/x/throws')).status).to.equal(402)
    await client.close()
  })

  const broken: readonly (readonly [string, string, unknown, string, string])[] = [
    ['half a document', 'gold.json', '{ "product": "gold",', '', 'syntax'],
    ['an unknown field', 'gold.json', gold({ colour: 1 }), '/operations/getGold/colour', 'additionalProperties'],
    ['a seventh decimal', 'gold.json', gold({ price: '0.0000001' }), '/operations/getGold/price', 'pattern'],
    ['a route that is taken', 'gold.json', gold({ route: 'GET /health' }), '/operations/getGold/route', 'route-taken'],
    [
      'a schema that is not there',
      'gold.json',
      gold({ response: { $ref: 'nowhere.json' } }),
      '/operations/getGold/response',
      'reference',
    ],
    ['a service without a name', 'service.json', { ...SERVICE, name: '' }, '/name', 'minLength'],
  ]
  for (const [title, file, content, pointer, rule] of broken)
    it(`does not happen for ${title}: the product stays as it was, and file, pointer and rule are reported`, async () => {
      place.catalog(file, content)
      await until(() => place.gateway.issues.length > 0)
      const places = place.gateway.issues.map((mistake) => [mistake.file, mistake.pointer, mistake.rule])
      expect(places).to.deep.include([file, pointer, rule])
      const health = await place.json('/health')
      expect(health).to.include({ status: 'degraded' })
      expect(health['mistakes']).to.deep.equal(place.gateway.issues)
      expect(health['withheld']).to.deep.equal([])
      const lines = logged.split('\n').filter(Boolean)
      const named = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
      expect(named.map((line) => [line['file'], line['pointer'], line['rule']])).to.deep.include([file, pointer, rule])
      const answer = await buy(`${place.url}/v1/gold`, place.wallet)
      expect([answer.status, (await json(answer))['price']]).to.deep.equal([200, 1900])
      place.catalog(file, file === 'service.json' ? SERVICE : gold({ price: '0.007' }))
      await until(() => place.gateway.issues.length === 0)
      if (file !== 'service.json') expect(price()).to.equal(7000n)
      expect(await place.json('/health')).to.include({ status: 'ok' })
    })

  it('sets a product up again if its settings change', async () => {
    place.catalog('gold.json', gold({}, { settings: { unit: 'gram' } }))
    await until(async () => (await json(await buy(`${place.url}/v1/gold`, place.wallet)))['unit'] === 'gram')
  })

  it('stops the jobs of the old code at once, and lets its calls finish', async () => {
    const state: { ticks: string[]; open: (() => void) | null } = { ticks: [], open: null }
    Object.assign(globalThis, { state })
    const source = (name: string): string => `import { definePlugin } from 'tollgate/plugin'
      export default definePlugin({ name: 'parrot', setup: () => ({
        handlers: { async getWord() {
          await new Promise((done) => { globalThis.state.open = done })
          return { word: '${name}' }
        } },
        jobs: [{ name: 'tick', everySeconds: 0.01, async run() { globalThis.state.ticks.push('${name}') } }],
      }) })`
    place.plugin('parrot/index.ts', source('old'))
    place.catalog('parrot.json', word('parrot'))
    await until(() => state.ticks.includes('old'))
    const inFlight = place.json('/v1/parrot')
    await until(() => state.open !== null)
    place.plugin('parrot/index.ts', source('new'))
    await until(() => state.ticks.includes('new'))
    const after = state.ticks.slice(state.ticks.indexOf('new'))
    await until(() => state.ticks.length > after.length + 5)
    expect(state.ticks.slice(state.ticks.indexOf('new'))).not.to.include('old')
    state.open?.()
    expect(await inFlight).to.deep.equal({ word: 'old' })
  })

  it('happens once for many changes at the same time', async () => {
    const editions = new Set([place.gateway.current])
    for (let count = 0; count < 20; count++) {
      place.plugin(`parrot-${count}/index.ts`, pluginSaying(`parrot-${count}`))
      place.plugin(`parrot-${count}/word.ts`, `export const word = ${count}`)
      const { getWord } = word('parrot').operations
      place.catalog(`parrot-${count}.json`, {
        ...word(`parrot-${count}`),
        operations: { [`getWord${count}`]: { ...getWord, route: `GET /v1/parrot/${count}`, handler: 'getWord' } },
      })
    }
    await until(async () => {
      editions.add(place.gateway.current)
      return (await place.get('/v1/parrot/19')).status === 200
    })
    expect(editions.size).to.be.at.most(3)
  })
})
