/**
 * Packs the gateway, installs it in an empty folder, makes a shop there, and buys from it, as a stranger would; and from
 * shops that earlier releases have made.
 */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { freePort } from '../../gateway/sandbox/anvil.ts'
import { skipWithoutAnvil } from '../gateway/sandbox/usdc-client.ts'
import { installPacked, type Packed, run } from '../support/packed.ts'
import { type Started, startNode } from '../support/process.ts'

const root = resolve(import.meta.dirname, '../..')
const SHOPS = join(root, 'test/fixtures/shops')

/** Words of the service that is sold by this repository, which no other shop may show. */
const OTHER_SHOP =
  /\b(regimes?|potus|president|backtests?|sharpe|volatil\w*|preflight|founding|perp\w*|ohlcv|market\w*|trad(?:e|es|ing)|audits?)\b/i

/** The API that the shops of earlier releases have imported. */
const RATES = `import { createServer } from 'node:http'
const server = createServer(({ url }, response) =>
  response.setHeader('content-type', 'application/json').end(JSON.stringify({ url, rates: { USD: 1.1 } })))
server.listen(0, '127.0.0.1', () => console.log('open at ' + server.address().port))`

describe('the package in an empty folder', function () {
  this.timeout(300_000)
  let folder: string
  let shop: string
  let packed: Packed
  const tollgate = (cwd: string, ...args: readonly string[]): string =>
    run(cwd, process.execPath, join(shop, 'node_modules/tollgate/scripts/tollgate.mjs'), ...args)
  const compile = (): string => run(shop, process.execPath, 'node_modules/typescript/bin/tsc')
  const textOf = (file: string): string => readFileSync(join(shop, file), 'utf8')

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-package-'))
    shop = join(folder, 'my-shop')
    mkdirSync(shop)
    packed = installPacked(shop, join(root, 'test/fixtures/packages/tides'))
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  it('is small, and has neither tests nor anything of the shop in this repository', () => {
    expect(packed.size).to.be.below(5_000_000)
    expect(packed.entryCount).to.be.below(500)
    const paths = packed.files.map(({ path }) => path)
    expect(paths.filter((path) => /^(test|plugins|catalog|docs|gateway)\//.test(path))).to.deep.equal([])
    const views = paths.filter((path) => path.startsWith('views/') && /\.(pug|js)$/.test(path))
    expect(views).to.include('views/layout.pug')
    const words = views.filter((path) => OTHER_SHOP.test(readFileSync(join(root, path), 'utf8')))
    expect(words).to.deep.equal([])
  })

  it('writes a shop that has no error, with types that compile and tests that pass', () => {
    const written = tollgate(shop, 'init', '--yes')
    for (const file of ['.env.example', 'Dockerfile', 'plugins/hourly-values/index.ts', 'test/catalog.test.ts'])
      expect(written).to.contain(`  ${file}\n`)
    expect(written).to.contain('npx tollgate pay GET /v1/x/hourly-values')
    expect(JSON.parse(textOf('package.json'))).to.have.nested.property('scripts.start', 'tollgate start')
    expect(tollgate(shop, 'check')).to.match(/\$0\.005 +GET \/v1\/x\/hourly-values .*No errors\./s)
    tollgate(shop, 'types', '--check')
    expect(textOf('schemas/types.d.ts')).to.contain('getHourlyValues')
    compile()
    const tests = ['test/catalog.test.ts', 'test/hourly-values.test.ts']
    const tested = run(shop, process.execPath, '--import', 'tsx/esm', '--test', ...tests)
    expect(tested).to.match(/# fail 0/)
    expect(() => tollgate(shop, 'init', '--yes')).to.throw('exists already: this is a shop.')
  })

  it('writes types that name a handler that is missing', () => {
    const plugin = textOf('plugins/hourly-values/index.ts')
    const file = join(shop, 'plugins/hourly-values/index.ts')
    writeFileSync(file, plugin.replace('getHourlyValues(', 'getOther('))
    expect(() => compile()).to.throw('setup returns no handler getHourlyValues')
    writeFileSync(file, plugin)
  })

  it('sells the plugin of a package, with its schemas and its types', () => {
    const response = { $ref: 'tides.json#/$defs/TideLevel' }
    const getTide = { route: 'GET /v1/x/tide', summary: 'The level in a harbour.', price: '0.02', response }
    const about = { product: 'tide', family: 'x', title: 'Tide', summary: 'The level in a harbour.' }
    const document = { ...about, plugin: 'npm:@acme/tides', settings: { harbour: 'Hull' }, operations: { getTide } }
    const write = (content: object): void => writeFileSync(join(shop, 'catalog/tide.json'), JSON.stringify(content))
    write({ ...document, plugin: 'npm:@acme/nothing' })
    expect(() => tollgate(shop, 'check')).to.throw('There is no package @acme/nothing. Run: npm install @acme/nothing')
    write(document)
    expect(tollgate(shop, 'check')).to.match(/\$0\.02 +GET \/v1\/x\/tide .*No errors\./s)
    tollgate(shop, 'types')
    expect(textOf('schemas/types.d.ts')).to.contain('export type TideLevel = {')
    compile()
  })

  describe('with a shop that is open', () => {
    let gateway: Started
    let url: string
    before(async function () {
      skipWithoutAnvil(this)
      const port = await freePort()
      url = `http://127.0.0.1:${port}`
      writeFileSync(join(shop, '.env'), `PORT=${port}\nLOG_LEVEL=warn\n`)
      gateway = await startNode(['node_modules/tollgate/scripts/tollgate.mjs', 'start'], /Tollgate is open/, {}, shop)
    })
    after(() => gateway?.stop())

    it('says what to try, and sells its first call', () => {
      expect(gateway.output()).to.contain('npx tollgate pay GET /v1/x/hourly-values')
      const bought = JSON.parse(tollgate(shop, 'pay', 'GET', '/v1/x/hourly-values', '--json')) as object
      expect(bought).to.include({ status: 200 })
      expect(bought).to.have.nested.property('answer.items').with.length(10)
      for (const read of [1, 2]) {
        const tide = JSON.parse(tollgate(shop, 'pay', 'GET', '/v1/x/tide', '--json')) as { answer: object }
        expect(tide.answer).to.deep.equal({ harbour: 'Hull', metres: 2, read })
      }
      expect(tollgate(shop, 'ledger', 'owed')).to.equal('Nothing is owed.\n')
    })

    it('has every document and page, and none has a word of another shop', async () => {
      const { operations } = JSON.parse(tollgate(shop, 'check', '--json')) as {
        operations: { operation: string; route: string; price: string }[]
      }
      const free = operations.filter(({ route, price }) => price === 'free' && /^GET [^{]+$/.test(route))
      const paths = [
        ...free.map(({ route }) => route.slice('GET '.length)),
        '/docs/getHourlyValues',
        '/docs/getPricing',
        '/assets/base.css',
        '/assets/favicon.svg',
      ]
      expect(paths).to.include.members(['/', '/pricing', '/docs', '/receipt', '/health', '/openapi.json', '/llms.txt'])
      const wrong: string[] = []
      for (const path of paths) {
        const response = await fetch(url + path, { headers: { accept: 'text/html, */*' } })
        const [word] = OTHER_SHOP.exec(await response.text()) ?? []
        if (response.status !== 200 || word !== undefined) wrong.push(`${path} ${response.status} ${word}`)
      }
      for (const path of ['/v1/x/hourly-values', '/nowhere']) {
        const page = await (await fetch(url + path, { headers: { accept: 'text/html' } })).text()
        if (OTHER_SHOP.test(page)) wrong.push(path)
      }
      expect(wrong).to.deep.equal([])
    })

    it('calls itself what package.json says, and lists its product as a tool', async () => {
      expect(await (await fetch(`${url}/llms.txt`)).text()).to.match(/^# My shop\n/)
      const answer = await fetch(`${url}/mcp`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
      })
      const text = await answer.text()
      expect(text).to.contain('get_hourly_values')
      expect(text).not.to.match(OTHER_SHOP)
    })
  })

  describe('with a shop that passes calls on', () => {
    let upstream: Server
    let other: string
    before((done) => {
      other = join(shop, 'other-shop')
      upstream = createServer((_, response) => response.setHeader('content-type', 'application/json').end('{}'))
      upstream.listen(0, '127.0.0.1', done)
    })
    after(() => void upstream.close())

    it('is written from one address', () => {
      const { port } = upstream.address() as AddressInfo
      const address = `http://127.0.0.1:${port}/tides/{day}`
      tollgate(shop, 'init', 'other-shop', '--yes', '--upstream', address, '--price', '0.02')
      expect(tollgate(other, 'check')).to.match(/\$0\.02 +GET \/v1\/x\/\S+\/\{day\}/)
    })

    it('sells the API of an OpenAPI document', () => {
      const source = join(root, 'test/fixtures/openapi/rates.yaml')
      expect(tollgate(other, 'import', source, '--price', '0.03')).to.contain('currency-rates.json: 2 operations')
      expect(tollgate(other, 'check')).to.match(
        /\$0\.03 +GET \/v1\/x\/currency-rates\/convert\/\{pairs\} .*No errors\./s,
      )
    })
  })

  for (const release of readdirSync(SHOPS))
    describe(`with a shop that ${release} has made`, () => {
      let former: string
      let upstream: Started
      let gateway: Started
      before(async function () {
        skipWithoutAnvil(this)
        former = join(folder, release)
        cpSync(join(SHOPS, release), former, { recursive: true })
        symlinkSync(join(shop, 'node_modules'), join(former, 'node_modules'))
        // In a process of its own, because this one waits for each command.
        upstream = await startNode(['--input-type=module', '-e', RATES], /open at \d+/, {})
        const port = /open at (\d+)/.exec(upstream.output())?.[1]
        const imported = join(former, 'catalog/x/currency-rates.json')
        writeFileSync(imported, readFileSync(imported, 'utf8').replaceAll('127.0.0.1:8080', `127.0.0.1:${port}`))
        writeFileSync(join(former, '.env'), `PORT=${await freePort()}\nLOG_LEVEL=warn\n`)
        gateway = await startNode(
          ['node_modules/tollgate/scripts/tollgate.mjs', 'start'],
          /Tollgate is open/,
          {},
          former,
        )
      })
      after(async () => {
        await gateway?.stop()
        await upstream?.stop()
      })

      it('finds no error in it, and neither do its tests', () => {
        expect(tollgate(former, 'check')).to.contain('No errors.')
        tollgate(former, 'types')
        run(former, process.execPath, 'node_modules/typescript/bin/tsc')
        expect(run(former, 'npm', 'test')).to.match(/# fail 0/)
      })

      it('sells what its plugin and its import answer', async () => {
        const buy = (path: string): object => JSON.parse(tollgate(former, 'pay', 'GET', path, '--json')) as object
        expect(buy('/v1/x/hourly-values')).to.have.nested.property('answer.items').with.length(10)
        const rates = buy('/v1/x/currency-rates/latest/EUR/USD')
        expect(rates).to.deep.include({ status: 200, answer: { url: '/latest/;base=EUR/.USD', rates: { USD: 1.1 } } })
      })
    })
})
