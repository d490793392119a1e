import { expect } from 'chai'
import { createCatalog } from '../../../gateway/catalog/resolve.ts'
import { gold, PLANS } from '../../support/catalog.ts'
import { create, documentsOf, params, SCHEMAS } from './catalog-objects.ts'

describe('the catalog', () => {
  it('resolves every operation with its route, price in atomic units, tool name and defaults', () => {
    const { catalog, issues } = create({ 'gold.json': gold({ route: 'GET /v1/gold/{day}', params: params('day') }) })
    expect(issues).to.deep.equal([])
    expect(catalog.operations.get('getGold')).to.include({
      method: 'GET',
      path: '/v1/gold/{day}',
      route: 'GET /v1/gold/{day}',
      displayRoute: 'GET /v1/gold/*',
      price: 5000n,
      priceText: '0.005',
      tool: 'get_gold',
      handler: 'getGold',
      product: 'gold',
      wait: 'mined',
      listed: true,
      internal: false,
      retired: false,
      plan: null,
    })
    expect(catalog.operations.get('getGoldColumns')).to.include({
      route: '',
      price: null,
      internal: true,
      listed: false,
    })
  })

  it('gives what a product promises of its data to its priced operations, unless one says otherwise', () => {
    const freshOf = (change: Parameters<typeof gold>[0], id = 'getGold') =>
      create({ 'gold.json': gold(change, { fresh: { newest_seconds: 60, sources: 2 } }) }).catalog.operations.get(id)
        ?.fresh
    expect(freshOf({})).to.deep.equal({ newestSeconds: 60, sources: 2 })
    expect(freshOf({ fresh: { coverage: 0.5 } })).to.deep.equal({ coverage: 0.5 })
    expect(freshOf({ fresh: false })).to.equal('request')
    expect(freshOf({ price: 'free' })).to.equal(null)
    expect(freshOf({}, 'getGoldColumns')).to.equal(null)
    expect(create({ 'gold.json': gold() }).catalog.operations.get('getGold')?.fresh).to.equal(null)
  })

  it('sells a plan under the conditions that it names itself', () => {
    const [plan] = PLANS.plans
    const plans = { ...PLANS, plans: [{ ...plan, fresh: { coverage: 0.9 } }] }
    const { catalog, issues } = create({ 'gold.json': gold(), 'plans.json': plans })
    expect(issues).to.deep.equal([])
    expect(catalog.operations.get('purchasePlanLive24h')?.fresh).to.deep.equal({ coverage: 0.9 })
    const without = create({ 'gold.json': gold(), 'plans.json': PLANS }).catalog
    expect(without.operations.get('purchasePlanLive24h')?.fresh).to.equal(null)
  })

  it('waits for a final payment from 1 USD on, unless the document says otherwise', () => {
    const waitOf = (change: Parameters<typeof gold>[0]): string | undefined =>
      create({ 'gold.json': gold(change) }).catalog.operations.get('getGold')?.wait
    expect(waitOf({ price: '0.999999' })).to.equal('mined')
    expect(waitOf({ price: '1' })).to.equal('confirmed')
    expect(waitOf({ price: '0.01', wait: 'confirmed' })).to.equal('confirmed')
    expect(waitOf({ price: '50', wait: 'submitted' })).to.equal('submitted')
  })

  it('sells each plan at its own priced route, without query and body', () => {
    const { catalog, issues } = create({ 'gold.json': gold(), 'plans.json': PLANS })
    expect(issues).to.deep.equal([])
    const purchase = catalog.operations.get('purchasePlanLive24h')
    expect(purchase).to.include({
      route: 'POST /v1/plans/live/24h',
      price: 50_000_000n,
      product: 'plans',
      handler: 'purchase',
    })
    expect(purchase).to.include({ query: null, body: null, tool: null })
    expect(purchase?.plan).to.deep.equal(catalog.plans.plans[0])
    expect(catalog.operations.get('getPlans')).to.include({ route: 'GET /v1/plans', price: null })
    expect(catalog.plans.enabled).to.equal(true)
  })

  it('reads plans from several files, with a tier in a word of the shop', () => {
    const more = {
      family: 'gold',
      enabled: false,
      plans: [{ ...PLANS.plans[0], plan: 'club-7d', tier: 'gold-members', route: 'POST /v1/gold/club' }],
    }
    const { catalog, issues } = create({ 'gold.json': gold(), 'gold/club.plans.json': more, 'plans.json': PLANS })
    expect(issues).to.deep.equal([])
    const { path, enabled, plans } = catalog.plans
    expect([path, enabled]).to.deep.equal(['/v1/plans', true])
    expect(plans.map(({ plan, tier, enabled: isSold }) => [plan, tier, isSold])).to.deep.equal([
      ['live-24h', 'live', true],
      ['club-7d', 'gold-members', false],
    ])
    expect(catalog.operations.get('purchasePlanClub7d')).to.include({ product: 'plans', family: 'gold' })
    expect(catalog.operations.get('purchasePlanLive24h')).to.include({ product: 'plans', family: null })
    const alone = create({ 'gold.json': gold(), 'plans.json': PLANS }).catalog
    expect(catalog.version).to.not.equal(alone.version)
  })

  it('does not sell a plan while a product that it opens is left out', () => {
    const { catalog } = createCatalog(documentsOf({ 'gold.json': gold(), 'plans.json': PLANS }), SCHEMAS, {
      without: new Set(['gold.json']),
    })
    expect(catalog.plans.enabled).to.equal(false)
    expect(catalog.plans.plans[0]).to.deep.include({ enabled: false, authorizes: [] })
  })

  it('does not sell a plan that is disabled, or any plan if the list is disabled', () => {
    const off = { ...PLANS, plans: PLANS.plans.map((plan) => ({ ...plan, enabled: false })) }
    expect(create({ 'gold.json': gold(), 'plans.json': off }).catalog.plans.plans[0]?.enabled).to.equal(false)
    expect(create({ 'gold.json': gold(), 'plans.json': { ...PLANS, enabled: false } }).catalog.plans.enabled).to.equal(
      false,
    )
  })

  it('has no product for plans if there is neither a list nor a plan', () => {
    const { catalog } = create({ 'gold.json': gold(), 'plans.json': { path: null, plans: [] } })
    expect(catalog.products.map(({ id }) => id)).to.deep.equal(['gold'])
    expect(catalog.plans).to.include({ path: null, enabled: false })
  })

  it('gets a new version if a price or a schema in use changes, and for nothing else', () => {
    const priced = gold({ response: { $ref: 'gold.json#/$defs/Price' } })
    const { version } = create({ 'gold.json': priced }).catalog
    expect(version).to.match(/^[0-9a-f]{16}$/)
    expect(create({ 'gold.json': { $schema: 'elsewhere', ...priced } }).catalog.version).to.equal(version)
    const unused = new Map([...SCHEMAS, ['unused.json', { $id: 'unused.json', title: 'new' }]])
    expect(create({ 'gold.json': priced }, unused).catalog.version).to.equal(version)
    const used = new Map([...SCHEMAS, ['gold.json', { $id: 'gold.json', $defs: { Price: { type: 'string' } } }]])
    expect(create({ 'gold.json': priced }, used).catalog.version).not.to.equal(version)
    const dearer = gold({ response: { $ref: 'gold.json#/$defs/Price' }, price: '0.006' })
    expect(create({ 'gold.json': dearer }).catalog.version).not.to.equal(version)
  })

  it('is deeply frozen', () => {
    const { catalog } = create({ 'gold.json': gold() })
    const operation = catalog.operations.get('getGold') as { price: bigint }
    expect(() => (operation.price = 1n)).to.throw(TypeError)
    expect(() => (catalog.operations as Map<string, unknown>).delete('getGold')).to.throw(TypeError)
    expect(() => (catalog.products[0] as unknown as { tags: string[] }).tags.push('x')).to.throw(TypeError)
  })
})
