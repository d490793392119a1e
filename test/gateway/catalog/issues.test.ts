import { expect } from 'chai'
import { createCatalog } from '../../../gateway/catalog/resolve.ts'
import { CatalogError } from '../../../gateway/validation/issue.ts'
import { gold, PLANS, TELLER, thing } from '../../support/catalog.ts'
import { at, type Contents, create, documentsOf, free, params, SCHEMAS } from './catalog-objects.ts'

/** Lists [file, pointer, rule] of every issue, also if the catalog is refused. */
function issuesOf(contents: Contents): (readonly [string, string, string])[] {
  try {
    return create(contents).issues.map(({ file, pointer, rule }) => [file, pointer, rule] as const)
  } catch (error) {
    return (error as CatalogError).issues.map(({ file, pointer, rule }) => [file, pointer, rule] as const)
  }
}

/** A product of an upstream, whose operation calls it in its own way. */
const upstream = (called: Readonly<Record<string, unknown>>) => ({
  ...thing('up', { upstream: called }),
  plugin: undefined,
  upstream: { url: 'http://internal/' },
})

describe('issues of a catalog', () => {
  it('are reported all at once, and leave out only the products that have them', () => {
    const wrong = gold({ price: '0.0000001', prise: '1', summary: undefined, body: {} })
    const { catalog, issues } = create({ 'gold.json': wrong, 'tin.json': thing('tin') })
    expect(issues.map(({ pointer, rule }) => [pointer, rule])).to.deep.include.members([
      ['/operations/getGold/price', 'pattern'],
      ['/operations/getGold/prise', 'additionalProperties'],
      ['/operations/getGold/summary', 'required'],
      ['/operations/getGold/body', 'body'],
    ])
    expect(catalog.products.map(({ id }) => id)).to.deep.equal(['tin'])
  })

  it('say what to write instead', () => {
    const { issues } = create({ 'gold.json': gold({ price: '0.0000001' }) })
    expect(issues[0]?.message).to.equal(
      'Is "0.0000001". Write "free", or US dollars as a decimal string with at most six decimals, e.g. "0.005". ' +
        'Required, unless internal.',
    )
  })

  const cases: readonly (readonly [string, Contents, readonly [string, string, string]])[] = [
    [
      'a free operation that says when it is sold',
      { 'gold.json': gold({ price: 'free', fresh: { sources: 1 } }) },
      ['gold.json', '/operations/getGold/fresh', 'fresh'],
    ],
    [
      'a free operation that says which answers are sold',
      { 'gold.json': gold({ price: 'free', sell_empty: false }) },
      ['gold.json', '/operations/getGold/sell_empty', 'fresh'],
    ],
    [
      'rows that are no list of the answer',
      { 'gold.json': gold({ rows: 'price' }) },
      ['gold.json', '/operations/getGold/rows', 'answer'],
    ],
    [
      'a chart of rows that the answer has not',
      { 'gold.json': gold({ chart: { title: 'Price', y: ['price'] } }) },
      ['gold.json', '/operations/getGold/chart/y', 'answer'],
    ],
    [
      'a chart of parts that the answer has not',
      { 'gold.json': gold({ chart: { title: 'Parts', parts: 'nothing' } }) },
      ['gold.json', '/operations/getGold/chart/parts', 'answer'],
    ],
    [
      'a trial of what is free',
      { 'gold.json': gold({ price: 'free', trial: { calls: 5, per: 'day', by: 'ip' } }) },
      ['gold.json', '/operations/getGold/trial', 'sale'],
    ],
    [
      'a limit of buyers of what is free',
      { 'gold.json': gold({ price: 'free', limit: { calls: 60, per: 'minute', by: 'buyer' } }) },
      ['gold.json', '/operations/getGold/limit', 'sale'],
    ],
    [
      'an upstream whose answers are sold only while its data are fresh',
      {
        'gold.json': {
          ...thing('up', { fresh: { sources: 1 } }),
          plugin: undefined,
          upstream: { url: 'http://internal/' },
        },
      },
      ['gold.json', '/operations/getThing/fresh', 'fresh'],
    ],
    [
      'a mapping of fields to an upstream that the product does not have',
      { 'gold.json': gold({ upstream: { url: '/gold' } }) },
      ['gold.json', '/operations/getGold/upstream', 'maker'],
    ],
    [
      'a mapping of a field that the operation does not have',
      { 'gold.json': upstream({ parameters: [{ name: 'X-Day', field: 'day', in: 'header' }] }) },
      ['gold.json', '/operations/getThing/upstream/parameters/0', 'parameters'],
    ],
    [
      'a path of an operation below its upstream with a parameter that the route does not have',
      { 'gold.json': upstream({ url: '/gold/{day}' }) },
      ['gold.json', '/operations/getThing/upstream/url', 'parameters'],
    ],
    [
      'an address of an operation whose host the caller chooses',
      { 'gold.json': upstream({ url: 'http://{host}/gold' }) },
      ['gold.json', '/operations/getThing/upstream/url', 'address'],
    ],
    [
      'an address of an operation with credentials',
      { 'gold.json': upstream({ url: 'http://user:secret@internal/gold' }) },
      ['gold.json', '/operations/getThing/upstream/url', 'address'],
    ],
    [
      'a style that OpenAPI does not have',
      { 'gold.json': upstream({ parameters: [{ name: 'days', style: 'commas' }] }) },
      ['gold.json', '/operations/getThing/upstream/parameters/0/style', 'enum'],
    ],
    ['a promise of nothing', { 'gold.json': gold({ fresh: {} }) }, ['gold.json', '/operations/getGold/fresh', 'anyOf']],
    ['a price of zero', { 'gold.json': gold({ price: '0.00' }) }, ['gold.json', '/operations/getGold/price', 'price']],
    [
      'an operation without a price',
      { 'gold.json': gold({ price: undefined }) },
      ['gold.json', '/operations/getGold', 'price'],
    ],
    [
      'a price that is a number',
      { 'gold.json': gold({ price: 0.005 }) },
      ['gold.json', '/operations/getGold/price', 'type'],
    ],
    [
      'an operation without a route',
      { 'gold.json': gold({ route: undefined }) },
      ['gold.json', '/operations/getGold', 'route'],
    ],
    [
      'a route with a trailing slash',
      { 'gold.json': gold({ route: 'GET /v1/gold/' }) },
      ['gold.json', '/operations/getGold/route', 'route'],
    ],
    [
      'a route that steps to a parent path',
      { 'gold.json': gold({ route: 'GET /v1/../gold' }) },
      ['gold.json', '/operations/getGold/route', 'route'],
    ],
    [
      'a product with both a plugin and an upstream',
      { 'gold.json': gold({}, { upstream: { url: 'http://gold' } }) },
      ['gold.json', '/upstream', 'maker'],
    ],
    [
      'a product with neither a plugin nor an upstream',
      { 'gold.json': gold({}, { plugin: undefined }) },
      ['gold.json', '', 'maker'],
    ],
    [
      'a page with a price',
      { 'gold.json': gold({ view: 'gold', response: undefined, tool: false }) },
      ['gold.json', '/operations/getGold/view', 'view'],
    ],
    [
      'a priced operation without a response schema',
      { 'gold.json': gold({ response: undefined }) },
      ['gold.json', '/operations/getGold', 'answer'],
    ],
    [
      'a path parameter without a schema',
      { 'gold.json': gold({ route: 'GET /v1/gold/{day}' }) },
      ['gold.json', '/operations/getGold/params', 'parameters'],
    ],
    [
      'a parameter that is not in the route',
      { 'gold.json': gold({ params: params('day') }) },
      ['gold.json', '/operations/getGold/params/properties/day', 'parameters'],
    ],
    [
      'a path parameter that occurs twice',
      { 'gold.json': gold({ route: 'GET /v1/{day}/{day}', params: params('day') }) },
      ['gold.json', '/operations/getGold/route', 'parameters'],
    ],
    [
      'a reference to a definition that does not exist',
      { 'gold.json': gold({ response: { $ref: 'gold.json#/$defs/Prise' } }) },
      ['gold.json', '/operations/getGold/response', 'reference'],
    ],
    [
      'a reference to a file that does not exist',
      { 'gold.json': gold({ response: { items: { $ref: 'tin.json' } } }) },
      ['gold.json', '/operations/getGold/response', 'reference'],
    ],
    [
      'two tool arguments with the same name',
      { 'gold.json': gold({ route: 'GET /v1/gold/{days}', params: params('days') }) },
      ['gold.json', '/operations/getGold/tool', 'tool-arguments'],
    ],
    [
      'a tool argument that has the name of the payment argument',
      { 'gold.json': gold({ query: { properties: { payment_signature: {} } } }) },
      ['gold.json', '/operations/getGold/tool', 'tool-arguments'],
    ],
    [
      'a route outside its family',
      { 'gold.json': gold({}, { family: 'x' }) },
      ['gold.json', '/operations/getGold/route', 'family'],
    ],
    [
      'a retired route without replacement',
      { 'gold.json': gold({ retired: true }) },
      ['gold.json', '/operations/getGold', 'retired'],
    ],
    [
      'a replacement that is not served',
      { 'gold.json': gold({ retired: true, replacement: 'GET /v1/tin' }) },
      ['gold.json', '/operations/getGold/replacement', 'retired'],
    ],
    [
      'a form in a media type that no browser sends',
      { 'gold.json': gold({ route: 'POST /v1/gold', body: {}, form: { success: '/', failure: '/' } }) },
      ['gold.json', '/operations/getGold/form', 'form'],
    ],
    [
      'an internal operation with a price',
      { 'gold.json': gold({ internal: true, route: undefined, tool: undefined }) },
      ['gold.json', '/operations/getGold/price', 'internal'],
    ],
    [
      'a stream that is offered as a tool',
      { 'gold.json': gold({}, { plugin: undefined, upstream: { url: 'http://gold', stream: true } }) },
      ['gold.json', '/operations/getGold/tool', 'stream'],
    ],
    [
      'an answer in server-sent events that is offered as a tool',
      { 'gold.json': gold({ response: { type: 'string', contentMediaType: 'text/event-stream' } }) },
      ['gold.json', '/operations/getGold/tool', 'stream'],
    ],
    [
      'an upstream parameter without a route',
      { 'gold.json': gold({}, { plugin: undefined, upstream: { url: 'http://gold/{day}' } }) },
      ['gold.json', '/upstream/url', 'parameters'],
    ],
    [
      'an operation id that is used twice',
      { 'gold.json': gold(), 'tin.json': { ...thing('tin'), operations: { getGold: { ...free('/v1/tin') } } } },
      ['tin.json', '/operations/getGold', 'operation-taken'],
    ],
    [
      'a route that is used twice, whatever its parameters are called',
      {
        'a.json': thing('a', at('GET /v1/{x}', 'x')),
        'b.json': { ...thing('b'), operations: { getB: { ...free('/v1/{y}'), params: params('y') } } },
      },
      ['b.json', '/operations/getB/route', 'route-taken'],
    ],
    [
      'a route of the probes',
      { 'gold.json': gold({ route: 'GET /readyz' }) },
      ['gold.json', '/operations/getGold/route', 'route-taken'],
    ],
    [
      'a tool name that is used twice',
      {
        'a.json': { ...thing('a'), operations: { getAB: { ...free('/v1/a'), tool: true } } },
        'b.json': { ...thing('b'), operations: { getAb: { ...free('/v1/b'), tool: true } } },
      },
      ['b.json', '/operations/getAb', 'tool-taken'],
    ],
    [
      'a product that is declared twice',
      { 'a.json': thing('a'), 'b.json': { ...thing('a'), operations: { getB: free('/v1/b') } } },
      ['b.json', '/product', 'product-taken'],
    ],
    ['a product that uses an unknown operation', { 'teller.json': TELLER }, ['teller.json', '/uses/0', 'uses-unknown']],
    [
      'a product that uses its own operation',
      { 'gold.json': gold({}, { uses: ['getGold'] }) },
      ['gold.json', '/uses/0', 'uses-own'],
    ],
    [
      'products that use each other in a circle',
      { 'gold.json': gold({}, { uses: ['askFor'] }), 'teller.json': TELLER },
      ['gold.json', '/uses', 'uses-circle'],
    ],
    [
      'a plan that opens an unknown operation',
      { 'plans.json': PLANS },
      ['plans.json', '/plans/0/authorizes/0', 'authorizes'],
    ],
    [
      'a plan that opens a free operation',
      { 'gold.json': gold({ price: 'free' }), 'plans.json': PLANS },
      ['plans.json', '/plans/0/authorizes/0', 'authorizes'],
    ],
    [
      'a plan at a route that is taken',
      { 'gold.json': gold({ route: 'POST /v1/plans/live/24h' }), 'plans.json': PLANS },
      ['plans.json', '/plans/0/route', 'route-taken'],
    ],
    [
      'a plan that demands more data than there can be',
      { 'gold.json': gold(), 'plans.json': { ...PLANS, plans: [{ ...PLANS.plans[0], fresh: { coverage: 1.5 } }] } },
      ['plans.json', '/plans/0/fresh/coverage', 'maximum'],
    ],
    [
      'a plan that another file has',
      {
        'gold.json': gold(),
        'gold/more.plans.json': { plans: [{ ...PLANS.plans[0], route: 'POST /v1/plans/more' }] },
        'plans.json': PLANS,
      },
      ['gold/more.plans.json', '/plans/0/plan', 'plan-taken'],
    ],
    [
      'a second list of plans',
      { 'gold.json': gold(), 'more.plans.json': { path: '/v1/more', plans: [] }, 'plans.json': PLANS },
      ['plans.json', '/path', 'operation-taken'],
    ],
    [
      'a second note for all plans',
      { 'gold.json': gold(), 'more.plans.json': { note: 'Another.', plans: [] }, 'plans.json': PLANS },
      ['more.plans.json', '/note', 'plan-taken'],
    ],
    [
      'a tier that is no word',
      { 'gold.json': gold(), 'plans.json': { ...PLANS, plans: [{ ...PLANS.plans[0], tier: 'Gold members' }] } },
      ['plans.json', '/plans/0/tier', 'pattern'],
    ],
    [
      'plans without a route that lists them',
      { 'gold.json': gold(), 'plans.json': { ...PLANS, path: null } },
      ['plans.json', '/path', 'path'],
    ],
    [
      'a plan that lasts longer than any date',
      { 'gold.json': gold(), 'plans.json': { ...PLANS, plans: [{ ...PLANS.plans[0], duration_seconds: 1e15 }] } },
      ['plans.json', '/plans/0/duration_seconds', 'maximum'],
    ],
    [
      'a plan with a price of zero',
      { 'gold.json': gold(), 'plans.json': { ...PLANS, plans: [{ ...PLANS.plans[0], price: '0' }] } },
      ['plans.json', '/plans/0/price', 'price'],
    ],
    [
      'a service without words in its title',
      { 'service.json': { title: '' } },
      ['service.json', '/title', 'minLength'],
    ],
  ]
  for (const [title, contents, expected] of cases)
    it(`are reported for ${title}`, () => {
      expect(issuesOf(contents)).to.deep.include(expected)
    })

  it('name each product whose route shares an address with that of another, wherever the parameters are', () => {
    const paths = ['/v1/{x}/b', '/v1/a/{x}', '/v1/c/b', '/v1/c/d', '/v1/{x}/{y}/b', '/v1/a/b/{x}']
    const contents = Object.fromEntries(
      paths.map((path, at): [string, object] => {
        const names = [...path.matchAll(/\{(\w)\}/g)].map(([, name = '']) => name)
        const schema = {
          type: 'object',
          required: names,
          properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
        }
        const operation = { ...free(path), ...(names.length > 0 ? { params: schema } : {}) }
        return [`p${at}.json`, { ...thing(`p${at}`), operations: { [`get${at}`]: operation } }]
      }),
    )
    const messages = create(contents).issues.map(({ file, message }) => [file, /at (p\d\.json)/.exec(message)?.[1]])
    expect(messages).to.deep.equal([
      ['p1.json', 'p0.json'],
      ['p2.json', 'p0.json'],
      ['p5.json', 'p4.json'],
    ])
  })

  it('refuse the whole catalog if service.json or plans.json has one, and are listed for all documents', () => {
    const refused = () =>
      create({ 'service.json': { name: '' }, 'gold.json': gold({ price: 'dear' }), 'plans.json': { plans: [{}] } })
    expect(refused).to.throw(CatalogError)
    const files = issuesOf({
      'service.json': { name: '' },
      'gold.json': gold({ price: 'dear' }),
      'plans.json': { plans: [{}] },
    })
    expect(new Set(files.map(([file]) => file))).to.deep.equal(new Set(['service.json', 'gold.json', 'plans.json']))
  })

  it('include names that are not strings', () => {
    const name = { toString: 1, valueOf: 1 }
    const issues = issuesOf({
      'gold.json': gold({}, { upstream: { url: name } }),
      'plans.json': { path: '/v1/plans', plans: [{ plan: name, route: name, price: name }] },
    })
    expect(new Set(issues.map(([file]) => file))).to.deep.equal(new Set(['gold.json', 'plans.json']))
  })

  it('are reported for uses that are neither an id nor an id with *, instead of ending the reading of the catalog', () => {
    const found = issuesOf({ 'gold.json': gold(), 'teller.json': { ...TELLER, uses: ['get(*', '[*', 'getGold'] } })
    expect(found).to.deep.equal([
      ['teller.json', '/uses/0', 'pattern'],
      ['teller.json', '/uses/1', 'pattern'],
    ])
  })

  it('are not reported for a product whose uses name a product that is left out', () => {
    const { issues } = createCatalog(documentsOf({ 'gold.json': gold(), 'teller.json': TELLER }), SCHEMAS, {
      without: new Set(['gold.json']),
    })
    expect(issues).to.deep.equal([])
  })
})
