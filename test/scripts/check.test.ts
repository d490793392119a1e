import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { NETWORKS } from '../../gateway/config/networks.ts'
import type { Issue } from '../../gateway/validation/issue.ts'
import { startChain, type TestChain } from '../support/chain.ts'
import { putGasPriceOracle } from '../support/gas-price-oracle.ts'
import { gold, openCatalog, PLUGINS, TELLER, thing } from '../support/catalog.ts'

const root = resolve(import.meta.dirname, '../..')

/** Runs `npm run check` on a catalog of these documents. */
function check(documents: Readonly<Record<string, unknown>>, ...flags: readonly string[]) {
  return checkWith(documents, {}, ...flags)
}

function checkWith(
  documents: Readonly<Record<string, unknown>>,
  environment: Readonly<Record<string, string>>,
  ...flags: readonly string[]
) {
  const catalog = openCatalog(documents)
  try {
    return spawnSync(process.execPath, [join(root, 'scripts/tollgate.mjs'), 'check', ...flags], {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], CATALOG_DIR: catalog.catalogDir, PLUGIN_DIRS: PLUGINS, ...environment },
      timeout: 45_000,
    })
  } finally {
    catalog.close()
  }
}

/** Documents with an error of each kind in PLANTED. */
const FAULTY = {
  'gold.json': gold({ price: '0.0000001' }),
  'tin.json': '{ "product": "tin",\n  "title": }',
  'x/lead.json': { ...thing('surplus-handler', {}, { family: 'x' }), operations: { getThing: free('/v1/x/lead') } },
  'copper.json': {
    ...thing('hangs'),
    operations: { getCopper: { ...free('/v1/hangs'), response: { $ref: 'copper.json' } } },
  },
  'teller.json': { ...TELLER, uses: ['getSilver'] },
  'zinc.json': { ...thing('throws'), operations: { getGold: free('/v1/zinc') } },
  'iron.json': {
    ...thing('throws', {}, { product: 'iron' }),
    operations: { getIron: { ...free('/v1/iron'), colour: 'grey' } },
  },
  'nickel.json': {
    ...thing('throws', {}, { product: 'nickel' }),
    operations: { getNickel: free('/v1/gold') },
  },
  'plans.json': {
    path: '/v1/plans',
    plans: [
      {
        plan: 'day',
        label: 'A day',
        tier: 'live',
        max_freshness_seconds: 0,
        duration_seconds: 86_400,
        route: 'POST /v1/plans/day',
        price: '1',
        authorizes: ['getNothing'],
      },
    ],
  },
}

/** File, pointer and rule of each error. */
const PLANTED = [
  ['gold.json', '/operations/getGold/price', 'pattern'],
  ['tin.json', '', 'syntax'],
  ['copper.json', '/operations/getCopper/response', 'reference'],
  ['teller.json', '/uses/0', 'uses-unknown'],
  ['zinc.json', '/operations/getGold', 'operation-taken'],
  ['iron.json', '/operations/getIron/colour', 'additionalProperties'],
  ['nickel.json', '/operations/getNickel/route', 'route-taken'],
  ['plans.json', '/plans/0/authorizes/0', 'authorizes'],
] as const

function free(path: string) {
  return { route: `GET ${path}`, summary: 'Free.', price: 'free', response: {}, handler: 'getThing' }
}

describe('npm run check', () => {
  it('prints the price list of a valid catalog', () => {
    const { status, stdout, stderr } = check({ 'gold.json': gold(), 'teller.json': TELLER })
    expect(stderr).to.equal('')
    expect(stdout).to.match(/\$0\.005 +GET \/v1\/gold +gold +getGold +tool\n/)
    expect(stdout).to.match(/26 operations of 5 products, catalog [0-9a-f]{16}\nNo errors\./)
    expect(stdout).not.to.contain('getGoldColumns')
    expect(status).to.equal(0)
  })

  it('says that one PAY_TO needs one journal, unless money is not real', () => {
    const payTo = `0x${'5b'.repeat(20)}`
    const settler = { SETTLE_RPC_URL: 'http://127.0.0.1:1', SETTLE_KEY: `0x${'1'.padStart(64, '0')}` }
    const production = checkWith({ 'gold.json': gold() }, { NETWORK: 'base-sepolia', PAY_TO: payTo, ...settler })
    expect(production.stdout).to.contain(`Paid to ${payTo}. One PAY_TO needs one journal`)
    expect(production.status).to.equal(0)
    expect(check({ 'gold.json': gold() }).stdout).to.not.contain('journal')
  })

  it('says what to do about token keys that are not valid', () => {
    const { status, stdout, stderr } = checkWith({ 'gold.json': gold() }, { TOKEN_KEYS: '{"keys":[]}' })
    const said = 'TOKEN_KEYS is not a JWK set with private Ed25519 keys. Create one with: npm run keys\n'
    expect([status, stdout, stderr]).to.deep.equal([1, '', said])
  })

  it('reports errors of eight kinds at once, each with its file and position', () => {
    const { status, stdout } = check(FAULTY, '--json')
    const { ok, version, mistakes } = JSON.parse(stdout) as { ok: boolean; version: unknown; mistakes: Issue[] }
    expect([status, ok, version]).to.deep.equal([1, false, null])
    const found = mistakes.map(({ file, pointer, rule }) => [file, pointer, rule])
    for (const planted of PLANTED) expect(found).to.deep.include(planted)
    expect(mistakes.every(({ message }) => message.length > 20)).to.equal(true)
  })

  it('reports the errors of a plugin beside those of other documents', () => {
    const { status, stdout } = check({ ...FAULTY, 'plans.json': { plans: [] } })
    expect(status).to.equal(1)
    expect(stdout).to.match(/\n\d+ errors:\n/)
    expect(stdout).to.match(/gold\.json#\/operations\/getGold\/price Is "0\.0000001"\. Write .* \[pattern\]/)
    expect(stdout).to.contain('tin.json Line 2, column 12: Expected a value, found }. [syntax]')
    expect(stdout).to.contain('x/lead.json#/plugin The plugin handles getNobody, which no operation names.')
    expect(stdout).to.contain('teller.json#/uses/0 No product has the operation getSilver.')
    expect(stdout).to.contain(
      'zinc.json#/operations/getGold The operation getGold is already defined at gold.json#/operations/getGold.',
    )
  })
})

describe('npm run check of a product that can say how fresh its data are', () => {
  /** @param fresh of the operation getFeed */
  const feed = (fresh: { readonly fresh?: object | false }) => {
    const free = { summary: 'News.', price: 'free', response: { type: 'object' } }
    const sold = { ...free, price: '0.01' }
    const operations = {
      getFeed: { route: 'GET /v1/feed', ...sold, ...fresh },
      getFeedOnce: { route: 'GET /v1/feed/once', ...sold, fresh: { newest_seconds: 60 } },
      followFeed: { route: 'GET /v1/feed/live', ...free },
      setFeed: { route: 'POST /v1/feed', ...free, body: { type: 'object' } },
    }
    return { 'feed.json': { product: 'feed', title: 'A feed', summary: 'News.', plugin: 'feed', operations } }
  }

  it('warns of an operation that is sold however old they are, says what to write, and exits with 0', () => {
    const { status, stdout } = check(feed({}))
    expect(stdout).to.match(
      /\nNo errors\.\n1 warning:\n {2}feed\.json#\/operations\/getFeed getFeed is sold however old its data are.*"fresh": \{ "newest_seconds": 3600 \}.*"fresh": false.* \[fresh\]\n$/,
    )
    expect(status).to.equal(0)
    const { ok, warnings } = JSON.parse(check(feed({}), '--json').stdout) as { ok: boolean; warnings: Issue[] }
    expect([ok, warnings.map(({ pointer }) => pointer)]).to.deep.equal([true, ['/operations/getFeed']])
  })

  it('warns of none of our own', function () {
    this.timeout(60_000)
    const { stdout } = spawnSync(process.execPath, [join(root, 'scripts/tollgate.mjs'), 'check'], {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'] },
    })
    expect(stdout).to.contain('No errors.').and.not.to.contain('warning')
  })

  it('warns no more once the document says when it is sold, or that it needs no data', () => {
    for (const fresh of [{ coverage: 0.9 }, false] as const) {
      const { stdout } = check(feed({ fresh }))
      expect(stdout).to.contain('No errors.').and.not.to.contain('warning')
    }
  })
})

describe('npm run check of a plugin that never ends', () => {
  let folder: string
  before(() => (folder = mkdtempSync(join(tmpdir(), 'tollgate-check-'))))
  after(() => rmSync(folder, { recursive: true }))

  for (const [name, end] of [
    ['a timer', ''],
    ['a stop() that hangs', ', stop: () => new Promise(() => {})'],
  ] as const)
    it(`ends by itself, though the plugin leaves ${name} behind`, () => {
      mkdirSync(join(folder, 'ticks'), { recursive: true })
      writeFileSync(
        join(folder, 'ticks/index.ts'),
        `import { definePlugin } from 'tollgate/plugin'
export default definePlugin({ name: 'ticks', setup() {
  setInterval(() => {}, 1000)
  return { handlers: { getThing: () => ({ price: 1 }) }${end} }
} })
`,
      )
      const { status, stdout, signal } = checkWith({ 'ticks.json': thing('ticks') }, { PLUGIN_DIRS: folder })
      expect(stdout).to.contain('No errors.')
      expect([status, signal]).to.deep.equal([0, null])
    })
})

describe('npm run check of a page', () => {
  it('reports a view that does not exist, and one with an error', () => {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-check-'))
    try {
      mkdirSync(join(folder, 'page/views'), { recursive: true })
      writeFileSync(join(folder, 'page/views/card.pug'), 'p A card.\np(')
      writeFileSync(
        join(folder, 'page/index.ts'),
        `import { definePlugin } from 'tollgate/plugin'
export default definePlugin({
  name: 'page',
  views: new URL('./views', import.meta.url),
  setup: () => ({ handlers: { getThing: () => ({}) } }),
})
`,
      )
      const page = (view: string) => ({
        'page.json': thing('page', { view, price: 'free', response: undefined }),
      })
      const broken = checkWith(page('card'), { PLUGIN_DIRS: folder })
      expect(broken.stdout).to.match(
        /page\.json#\/operations\/getThing\/view The view has an error: .+ \(card\.pug:2\)/,
      )
      const missing = checkWith(page('table'), { PLUGIN_DIRS: folder })
      expect(missing.stdout).to.contain('page.json#/operations/getThing/view There is no view table.')
      expect([broken.status, missing.status]).to.deep.equal([1, 1])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

describe('npm run check of a gateway that pays gas', () => {
  let chain: TestChain
  before(async function () {
    chain = await startChain(this, { network: NETWORKS.base })
    await chain.rpc.call('anvil_setNextBlockBaseFeePerGas', '0x1')
    await chain.rpc.call('evm_mine')
    await putGasPriceOracle(chain, 10_000_000_000n)
  })
  after(() => chain?.stop())

  const checkOn = (settings: Readonly<Record<string, string>>, ...flags: readonly string[]) =>
    checkWith(
      { 'gold.json': gold({ price: '0.01' }), 'teller.json': TELLER },
      {
        NETWORK: 'base',
        PAY_TO: `0x${'ab'.repeat(20)}`,
        SETTLE_RPC_URL: chain.rpcUrl,
        SETTLE_KEY: `0x${'1'.repeat(64)}`,
        DATA_MODE: 'online',
        BASE_URL: 'https://shop.example',
        ...settings,
      },
      ...flags,
    )

  it('says what a settlement costs now, with its data, and names the operations that sell for less', () => {
    const { stdout, status } = checkOn({ GAS_COIN_USD: '3000' })
    expect(stdout).to.match(
      /Settling one payment alone on base costs \$0\.01\d* now \(86000 gas at .* for its data\)\./,
    )
    expect(stdout).to.match(/That is more than 100 % of these prices: getGold \(\$0\.01\)/)
    expect(status).to.equal(0)
    const { settlements } = JSON.parse(checkOn({ GAS_COIN_USD: '3000' }, '--json').stdout) as { settlements: object[] }
    expect(settlements).to.have.length(1)
    expect(settlements[0]).to.deep.include({ network: 'base', below_cost: ['getGold', 'askFor'] })
  })

  it('names none where the prices suffice', () => {
    expect(checkOn({ GAS_COIN_USD: '1000' }).stdout).to.contain(
      'No price is less than that needs (GAS_MAX_PERCENT=100)',
    )
  })

  it('compares nothing and says so if it is not told what the coin is worth, or if no node answers', () => {
    expect(checkOn({}).stdout).to.contain('Set GAS_COIN_USD to compare that with prices.')
    const unreachable = checkOn({ SETTLE_RPC_URL: 'http://127.0.0.1:9', GAS_COIN_USD: '3000' })
    expect(unreachable.stdout).to.contain('What settling on base costs could not be read: The node cannot be reached')
    expect(unreachable.status).to.equal(0)
  })
})
