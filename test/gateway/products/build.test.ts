import { join } from 'node:path'
import { expect } from 'chai'
import { JsonFiles } from '../../../gateway/catalog/documents.ts'
import { loadAhead } from '../../../gateway/products/build.ts'
import type { Copy } from '../../../gateway/plugin-code/copies.ts'
import { CatalogError } from '../../../gateway/validation/issue.ts'
import type { Freshness, Input } from '../../../gateway/plugin/plugin.ts'
import { callOperation } from '../../../gateway/testing/testing.ts'
import { log } from '../../fixtures/plugins/gold/index.ts'
import { stops } from '../../fixtures/plugins/surplus-handler/index.ts'
import { gold, openCatalog, openEditionBuilder, PLANS, PLUGINS, TELLER, thing } from '../../support/catalog.ts'
import { until } from '../../support/until.ts'
import { idsOf, useEditions } from './edition-fixture.ts'

const HOST = { type: 'object', properties: { host: { type: 'string' } } }

/** A second product of the plugin gold. */
function secondGold(): object {
  const { operations } = gold()
  return {
    ...gold({}, { product: 'gold-2' }),
    operations: {
      getMoreGold: { ...operations.getGold, route: 'GET /v1/more', handler: 'getGold', tool: false },
      getMoreColumns: { ...operations.getGoldColumns, handler: 'getGoldColumns' },
    },
  }
}

describe('an edition', () => {
  const { open, build, write } = useEditions()

  it('answers with the handlers of the plugins that the catalog names', async () => {
    const { edition, issues } = await open({ 'gold.json': gold() })
    expect(issues).to.deep.equal([])
    const answer = await callOperation(edition, 'getGold', { query: { days: '3' }, asOf: new Date(0) })
    expect(answer).to.include({ as_of: '1970-01-01T00:00:00.000Z', price: 1900, days: 3, unit: 'ounce' })
    expect(await edition.facts()).to.deep.equal({ gold: { prices: 2 } })
    expect(edition.status()).to.deep.equal([{ product: 'gold', status: 'ok' }])
  })

  it('reports how current the data of an operation are, if the plugin says so', async () => {
    const { edition } = await open({ 'gold.json': gold(), 'thing.json': thing('counter') })
    const bound = edition.bound.get('getGold')
    const input = bound?.validate({ params: {}, query: {}, body: undefined }) as Input
    const asOf = new Date('2026-06-01T12:00:00Z')
    const freshness: Freshness | null | undefined = await bound?.freshness?.(input, asOf)
    expect(freshness).to.deep.equal({ newest: asOf, sources: 1, coverage: 1 })
    expect(edition.bound.get('getThing')?.freshness).to.equal(undefined)
  })

  it('sets a plugin up once per product and runs its migrations once', async () => {
    const { issues } = await open({ 'a.json': gold(), 'b.json': secondGold() })
    expect(issues).to.deep.equal([])
    expect(log).to.deep.equal(['migrated', 'set up gold', 'set up gold-2'])
  })

  it('takes over the plugins that have begun to load ahead, each of them once', async () => {
    const catalog = openCatalog({ 'a.json': gold(), 'b.json': secondGold(), 'c.json': thing('throws-on-import') })
    const builder = await openEditionBuilder(catalog)
    const copied: string[] = []
    const copy: Copy = async (dir, folder) => {
      copied.push(folder)
      return join(dir, folder)
    }
    const options = { catalogDir: catalog.catalogDir, pluginDirs: [PLUGINS], copy, files: new JsonFiles() }
    const ofItsOwn = loadAhead({ ...options, builtinNames: new Set(['gold', 'throws-on-import']) })
    const ahead = loadAhead({ ...options, builtinNames: new Set() })
    await until(() => copied.length === 2)
    expect(ahead.size).to.equal(2)
    expect(ofItsOwn.size).to.equal(0)
    expect(copied).to.have.members(['gold', 'throws-on-import'])
    const { edition, issues } = await builder.build({ ahead, copy })
    expect(idsOf(edition)).to.deep.equal(['gold', 'gold-2'])
    expect(issues.map(({ file }) => file)).to.deep.equal(['c.json'])
    expect(issues[0]?.message).to.contain('does not load: the file of prices is missing')
    expect(copied).to.have.length(2)
    await edition.stop()
    await builder.close()
    catalog.close()
  })

  it('prefers a plugin of the gateway itself to one that has loaded ahead', async () => {
    const ahead = new Map([['plans', Promise.reject(new Error('there is no such folder'))]])
    ahead.get('plans')?.catch(() => {})
    await open({ 'gold.json': gold() })
    write('plans.json', PLANS)
    const { issues } = await build(undefined, { ahead })
    expect(issues).to.deep.equal([])
  })

  it('uses the version of a plugin that the document names', async () => {
    const { edition } = await open({ 'gold.json': gold({}, { plugin: 'gold@2' }) })
    expect(await callOperation(edition, 'getGold', { asOf: new Date(0) })).to.include({ price: 2 })
  })

  it('gives plugins their settings with defaults and secrets filled in', async () => {
    const settings = { key: 'env:GOLD_KEY' }
    const { edition } = await open({ 'gold.json': gold({}, { settings }) }, { GOLD_KEY: 's3cret' })
    expect(await callOperation(edition, 'getGold', { asOf: new Date(0) })).to.include({ unit: 'ounce', key: 's3cret' })
    expect(edition.catalog.products[0]?.settings).to.deep.equal(settings)
  })

  const faulty: readonly (readonly [string, object, string, RegExp])[] = [
    [
      'names a plugin that does not load',
      thing('throws-on-import'),
      '/plugin',
      /does not load: the file of prices is missing/,
    ],
    [
      'names a plugin that throws in its set-up',
      thing('throws-in-setup'),
      '/plugin',
      /could not be set up: the source asks for a key/,
    ],
    ['lacks a handler for one of its operations', thing('missing-handler'), '/plugin', /no handler for getThing\./],
    [
      'has a handler that no operation names',
      thing('surplus-handler'),
      '/plugin',
      /handles getNobody, which no operation names/,
    ],
    [
      'names a plugin whose views are no address',
      thing('views-as-text'),
      '/plugin',
      /The plugin views-as-text has views that are no folder\. Write views: new URL/,
    ],
    [
      'names a plugin whose schemas are none',
      thing('schemas-as-text'),
      '/plugin',
      /The plugin schemas-as-text has schemas that are no list of JSON Schemas/,
    ],
    [
      'names a plugin that was written for an older plugin API',
      thing('written-for-older-api'),
      '/plugin',
      /was written for version 1 of the plugin API, and this gateway has version 2\. Make the changes .* docs\/plugins\.md .* apiVersion: 2\./,
    ],
    [
      'names a plugin that was written for a newer plugin API',
      thing('written-for-newer-api'),
      '/plugin',
      /was written for version 99 of the plugin API, and this gateway has version 2\. Update the gateway/,
    ],
    [
      'names a plugin whose set-up returns nothing',
      thing('sets-up-nothing'),
      '/plugin',
      /has returned no handlers from setup\. Return \{ handlers: \{ \.\.\. \} \}\./,
    ],
    [
      'has a job that does not say when it runs',
      thing('jobs-as-set', {}, { settings: { jobs: [{ name: 'read' }] } }),
      '/plugin',
      /The job read of the plugin jobs-as-set has no interval\. Write everySeconds, a number above 0\./,
    ],
    [
      'has a job that would run without a pause',
      thing('jobs-as-set', {}, { settings: { jobs: [{ name: 'read', everySeconds: 0 }] } }),
      '/plugin',
      /has no interval/,
    ],
    [
      'has a job whose interval is text',
      thing('jobs-as-set', {}, { settings: { jobs: [{ name: 'read', everySeconds: '60' }] } }),
      '/plugin',
      /has no interval/,
    ],
    [
      'has a job without a name',
      thing('jobs-as-set', {}, { settings: { jobs: [{ everySeconds: 60 }] } }),
      '/plugin',
      /A job of the plugin jobs-as-set has no name/,
    ],
    [
      'has a job without work',
      thing('jobs-as-set', {}, { settings: { jobs: [{ name: 'read', everySeconds: 60, run: null }] } }),
      '/plugin',
      /The job read of the plugin jobs-as-set has no function run/,
    ],
    [
      'has two jobs of one name',
      thing(
        'jobs-as-set',
        {},
        { settings: { jobs: [60, 90].map((everySeconds) => ({ name: 'read', everySeconds })) } },
      ),
      '/plugin',
      /has two jobs with the name read/,
    ],
    [
      'names a plugin that does not exist',
      thing('nowhere'),
      '/plugin',
      /There is no plugin nowhere\. Put its index\.ts into/,
    ],
    [
      'says when an answer is sold though its plugin does not report how fresh its data are',
      thing('throws', { fresh: { newest_seconds: 60 } }),
      '/plugin',
      /says in "fresh" when getThing is sold, but the plugin throws has no function freshness/,
    ],
    ['names a module that is not a plugin', thing('not-a-plugin'), '/plugin', /export default definePlugin/],
    ['names a plugin that has another name than its folder', thing('misnamed'), '/plugin', /has the name silver/],
    [
      'has an invalid setting',
      gold({}, { settings: { unit: 'stone' } }),
      '/settings/unit',
      /Must be one of ounce, gram/,
    ],
    ['has an unknown setting', gold({}, { settings: { colour: 1 } }), '/settings/colour', /not known here/],
    [
      'has a setting whose secret is missing',
      gold({}, { settings: { key: 'env:NO_KEY' } }),
      '/settings/key',
      /has no NO_KEY/,
    ],
    [
      'has a setting whose secret is empty',
      gold({}, { settings: { key: 'env:EMPTY_KEY' } }),
      '/settings/key',
      /The environment variable EMPTY_KEY is empty\. Set it, or remove this field\./,
    ],
    [
      'has an upstream whose secret is blank',
      { ...thing('up'), plugin: undefined, upstream: { url: 'http://a', headers: { key: 'env:BLANK_KEY' } } },
      '/upstream/headers/key',
      /The environment variable BLANK_KEY is empty/,
    ],
    [
      'has settings though its plugin takes none',
      thing('throws', {}, { settings: { a: 1 } }),
      '/settings',
      /takes no settings/,
    ],
    ['has an invalid schema', gold({ response: { tpye: 'object' } }), '/operations/getGold/response', /tpye/],
    [
      'has an example with an invalid request',
      gold({ example: { request: { query: { days: 99 } } } }),
      '/operations/getGold/example/request/query/days',
      /at most 30/,
    ],
    [
      'has an example with an invalid answer',
      gold({ example: { request: {}, response: {} } }),
      '/operations/getGold/example/response',
      /price: Is required/,
    ],
    [
      'lets the caller choose the host of its upstream',
      {
        ...thing('up', { route: 'GET /v1/up/{host}', params: HOST }),
        plugin: undefined,
        upstream: { url: 'http://{host}/' },
      },
      '/upstream/url',
      /Write the host, and/,
    ],
    [
      'has credentials in the address of its upstream',
      { ...thing('up'), plugin: undefined, upstream: { url: 'http://user:word@internal/' } },
      '/upstream/url',
      /credentials as a header/,
    ],
    [
      'accepts a media type that the gateway cannot read',
      thing('throws', { route: 'POST /v1/throws', body: {}, body_media: ['image/png'] }),
      '/operations/getThing/body_media/0',
      /Write one of these/,
    ],
    [
      'has an upstream whose secret is missing',
      { ...thing('up'), plugin: undefined, upstream: { url: 'http://a', headers: { key: 'env:NO_KEY' } } },
      '/upstream/headers/key',
      /has no NO_KEY/,
    ],
  ]
  for (const [title, document, pointer, message] of faulty)
    it(`disables a product that ${title}, and serves the others`, async () => {
      const good = { ...thing('throws', { route: 'GET /v1/good' }), product: 'good', operations: {} as object }
      good.operations = {
        getGood: { route: 'GET /v1/good', summary: 'Good.', price: 'free', response: {}, handler: 'getThing' },
      }
      const { edition, issues } = await open(
        { 'bad.json': document, 'good.json': good },
        { EMPTY_KEY: '', BLANK_KEY: ' ' },
      )
      expect(issues).to.have.length(1)
      expect(issues[0]).to.include({ file: 'bad.json', pointer })
      expect(issues[0]?.message).to.match(message)
      expect(idsOf(edition)).to.deep.equal(['good'])
      expect([...edition.bound.keys()]).to.deep.equal(['getGood'])
      const { product } = document as { product: string }
      expect(edition.disabled).to.have.length(1)
      expect(edition.disabled[0]).to.include({ product, file: 'bad.json' })
      expect(edition.disabled[0]?.reason).to.match(message)
      expect(edition.status()).to.deep.include({ product, status: 'withheld', reason: edition.disabled[0]?.reason })
    })

  it('stops a plugin that it refuses after its set-up', async () => {
    const before = stops.count
    await open({ 'bad.json': thing('surplus-handler') })
    expect(stops.count).to.equal(before + 1)
  })

  it('does not wait for the end of a plugin that it refuses', async () => {
    const { edition, issues } = await open({ 'bad.json': thing('hangs-in-stop'), 'gold.json': gold() })
    expect(issues.map(({ file, rule }) => [file, rule])).to.deep.equal([['bad.json', 'handlers']])
    expect(idsOf(edition)).to.deep.equal(['gold'])
  })

  it('never imports a plugin that the catalog does not name', async () => {
    const { issues } = await open({ 'gold.json': gold() })
    expect(issues).to.deep.equal([])
  })

  it('disables a product whose document cannot be parsed, and names it by its file', async () => {
    const { edition } = await open({ 'x/tin.json': '{', 'gold.json': gold() })
    expect(edition.disabled.map(({ product, file }) => [product, file])).to.deep.equal([['x/tin', 'x/tin.json']])
    expect(idsOf(edition)).to.deep.equal(['gold'])
  })

  it('needs no handler for a retired operation, and answers it with 410', async () => {
    const document = gold()
    const old = { route: 'GET /v1/old', summary: 'Old.', price: '0.01', retired: true, replacement: 'GET /v1/gold' }
    const { edition, issues } = await open({
      'gold.json': { ...document, operations: { ...document.operations, getOld: old } },
    })
    expect(issues).to.deep.equal([])
    const failure = await callOperation(edition, 'getOld', { asOf: new Date(0) }).catch((error: unknown) => error)
    expect(failure).to.include({ code: 'retired' })
  })

  it('cannot be built if service.json has an issue, and every issue is listed', async () => {
    const wrong = { 'service.json': { name: '' }, 'gold.json': gold({ price: 'dear' }), 'tin.json': '{' }
    const refusal = await open(wrong).catch((error: unknown) => error)
    expect(refusal).to.be.instanceOf(CatalogError)
    const files = (refusal as CatalogError).issues.map(({ file }) => file)
    expect(new Set(files)).to.deep.equal(new Set(['service.json', 'gold.json', 'tin.json']))
  })

  const plan = {
    plan: 'day',
    label: 'A day',
    tier: 'live',
    max_freshness_seconds: 0,
    duration_seconds: 86400,
    route: 'POST /v1/plans/day',
    price: '1',
    authorizes: ['getGold'],
  }

  it('does not sell a plan while a product that it opens is disabled', async () => {
    const { edition } = await open({
      'gold.json': gold({}, { plugin: 'throws-in-setup' }),
      'teller.json': TELLER,
      'plans.json': { path: '/v1/plans', plans: [plan] },
    })
    expect(edition.catalog.plans).to.include({ enabled: false })
    expect(() => edition.bound.get('purchasePlanDay')?.assertAvailable()).to.throw(/not sold at the moment/)
  })

  it('does not sell a plan that demands fresh data of an operation whose product does not report how fresh they are', async () => {
    const demanding = { ...plan, fresh: { coverage: 0.9 } }
    const both = { ...demanding, authorizes: ['getGold', 'getThing'] }
    const plans = (sold: object) => ({ path: '/v1/plans', plans: [sold] })
    const documents = { 'gold.json': gold(), 'thing.json': thing('throws'), 'plans.json': plans(both) }
    const { edition, issues } = await open(documents)
    expect(issues.map(({ file, pointer, rule }) => [file, pointer, rule])).to.deep.equal([
      ['plans.json', '/plans/0/fresh', 'fresh'],
    ])
    expect(issues[0]?.message).to.match(/The plan day demands fresh data of getThing, but its product does not report/)
    expect(idsOf(edition)).to.deep.equal(['gold', 'throws'])
    write('plans.json', plans(demanding))
    expect((await build(edition)).issues).to.deep.equal([])
    write('plans.json', plans(both))
    write('thing.json', thing('throws', { fresh: false }))
    expect((await build(edition)).issues).to.deep.equal([])
  })
})
