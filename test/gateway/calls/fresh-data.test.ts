import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { expect } from 'chai'
import { openLiveGateway, type LiveGateway, root } from '../../dynamic/live-gateway.ts'
import { ask, buy, json, offer, payment, send } from '../../support/agent.ts'
import { newWallet } from '../../support/gateway.ts'
import { until, untilFound } from '../../support/until.ts'

const FRESH = { newest_seconds: 60, sources: 2, coverage: 0.9 }
const GOOD = { age_seconds: 5, sources: 2, coverage: 1 }

const DAY = { type: 'object', properties: { day: { type: 'string' } } }
const documents = JSON.parse(readFileSync(join(root, 'catalog/documents.json'), 'utf8')) as object

const feed = {
  product: 'feed',
  title: 'A feed',
  summary: 'News.',
  plugin: 'feed',
  fresh: FRESH,
  operations: {
    getFeed: {
      route: 'GET /v1/feed',
      summary: 'The news.',
      price: '0.01',
      query: DAY,
      response: { type: 'object' },
      tool: true,
    },
    getFeedOnce: {
      route: 'GET /v1/feed/once',
      summary: 'The news, unless there are none.',
      price: '0.01',
      fresh: { newest_seconds: 60 },
      max_freshness_seconds: 3600,
      sell_empty: false,
      response: { type: 'object' },
    },
    followFeed: {
      route: 'GET /v1/feed/live',
      summary: 'Follows the news.',
      price: '0.02',
      query: DAY,
      response: { type: 'string', contentMediaType: 'text/event-stream' },
    },
    setFeed: { route: 'POST /v1/feed', summary: 'Sets it.', price: 'free', body: { type: 'object' } },
  },
}

const plans = {
  path: '/v1/passes',
  plans: [
    {
      plan: 'news-1h',
      label: 'News, one hour',
      tier: 'live',
      max_freshness_seconds: 0,
      duration_seconds: 3600,
      route: 'POST /v1/passes/news/1h',
      price: '1.50',
      authorizes: ['getFeed', 'followFeed', 'getFeedOnce'],
    },
    ...(['late', 'live'] as const).map((name) => ({
      plan: `${name}-1h`,
      label: `News, ${name}`,
      tier: 'live',
      max_freshness_seconds: 0,
      duration_seconds: 3600,
      route: `POST /v1/passes/${name}/1h`,
      price: '1.00',
      authorizes: [name === 'late' ? 'getFeedOnce' : 'followFeed'],
    })),
    {
      plan: 'whole-1h',
      label: 'Whole news, one hour',
      tier: 'live',
      max_freshness_seconds: 0,
      duration_seconds: 3600,
      route: 'POST /v1/passes/whole/1h',
      price: '3.00',
      authorizes: ['getFeed', 'getFeedOnce'],
      // Its first demand is stricter than that of each operation, and its second is not.
      fresh: { coverage: 0.95, newest_seconds: 300 },
    },
  ],
}

describe('an operation that is sold only while its data are fresh', () => {
  let shop: LiveGateway
  let url: string
  let token: string
  let isPaid: number

  /** Sets the state of the feed. Calls with an input that is new are answered by it at once, others within a second. */
  async function set(state: object): Promise<{ reports: number; runs: number }> {
    const answer = await json(await ask(`${url}/v1/feed`, { method: 'POST', body: state }))
    return answer as { reports: number; runs: number }
  }
  /** An address with an input that was not used before. */
  let days = 0
  const anew = (path = '/v1/feed'): string => `${url}${path}?day=day-${++days}`
  /** What /health says about an operation, once its status is that. */
  async function stateOnce(operation: string, status: string): Promise<Record<string, unknown>> {
    return untilFound(async () => {
      const { freshness } = (await shop.json('/health')) as { freshness: Record<string, unknown>[] }
      return freshness.find((state) => state['operation'] === operation && state['status'] === status)
    })
  }
  const charged = (): number => shop.settler.transfers.length - isPaid

  before(async () => {
    shop = await openLiveGateway({
      catalog: { 'feed.json': feed, 'plans.json': plans, 'documents.json': documents },
      plugins: ['feed'],
    })
    url = shop.url
    expect(shop.gateway.issues).to.deep.equal([])
    const bought = await buy(`${url}/v1/passes/news/1h`, shop.wallet, 2, { method: 'POST' })
    expect(bought.status).to.equal(200)
    token = String((await json(bought))['token'])
  })
  beforeEach(() => {
    isPaid = shop.settler.transfers.length
  })
  after(() => shop.close())

  it('is sold while everything is there', async () => {
    await set(GOOD)
    expect((await buy(anew(), newWallet())).status).to.equal(200)
    expect(charged()).to.equal(1)
    await set({ ...GOOD, sources: null })
    expect((await buy(anew(), newWallet())).status, 'nothing to count').to.equal(200)
  })

  const lacks: readonly (readonly [state: object, missing: readonly string[], message: RegExp])[] = [
    [
      { ...GOOD, age_seconds: 61 },
      ['newest'],
      /The newest data are \d+ seconds old, more than 60\. Nothing was charged/,
    ],
    [{ ...GOOD, age_seconds: null }, ['newest'], /There are no data yet/],
    [{ ...GOOD, sources: 1 }, ['sources'], /1 of at least 2 sources deliver data/],
    [{ ...GOOD, coverage: 0.899 }, ['coverage'], /89% of the expected data are there, of at least 90%/],
    [{ age_seconds: 900, sources: 0, coverage: 0 }, ['newest', 'sources', 'coverage'], /Nothing was charged/],
    [{ ...GOOD, fault: 'throw' }, ['report'], /could not say how fresh its data are/],
    [{ ...GOOD, fault: 'hang' }, ['report'], /could not say how fresh its data are/],
  ]
  for (const [state, missing, message] of lacks)
    it(`refuses a payment with 503 and charges nothing while ${JSON.stringify(state)} is reported`, async () => {
      await set(state)
      const { runs } = await set(state)
      const refused = await buy(anew(), newWallet())
      const body = await json(refused)
      expect(refused.status).to.equal(503)
      expect(refused.headers.get('retry-after')).to.equal('30')
      expect(body).to.deep.include({ code: 'data_stale', retry: 'after_delay', missing, required: FRESH })
      expect(body['message']).to.match(message)
      expect(charged()).to.equal(0)
      expect((await set(GOOD)).runs, 'no handler ran').to.equal(runs)
    })

  it('passes on how the product itself refuses the call', async () => {
    await set({ ...GOOD, fault: 'refuse' })
    const refused = await buy(anew(), newWallet())
    expect(refused.status).to.equal(503)
    expect(refused.headers.get('retry-after')).to.equal('7')
    expect(await json(refused)).to.include({ code: 'product_suspended', progress: 0.4 })
  })

  it('takes the same payment once the data are fresh again, and answers it again while they are not', async () => {
    await set({ ...GOOD, sources: 0 })
    const headers = { 'idempotency-key': 'a-purchase-of-news' }
    const address = anew()
    const header = await payment(address, shop.wallet)
    expect((await send(address, header, 2, { headers })).status).to.equal(503)
    await set(GOOD)
    const bought = await untilFound(async () => {
      const answer = await send(address, header, 2, { headers })
      return answer.status === 200 ? answer : undefined
    })
    await set({ ...GOOD, sources: 0 })
    expect(await json(await buy(anew(), newWallet()))).to.include({ code: 'data_stale' })
    const again = await send(address, header, 2, { headers })
    expect(again.status).to.equal(200)
    expect(await again.text()).to.equal(await bought.text())
    expect(charged()).to.equal(1)
  })

  it('refuses a call with an access token, and a stream', async () => {
    await set({ ...GOOD, sources: 0 })
    const withToken = { headers: { 'x-service-token': token } }
    expect(await json(await ask(anew(), withToken))).to.include({ code: 'data_stale' })
    const accept = { accept: 'text/event-stream' }
    const stream = await ask(anew('/v1/feed/live'), { headers: { ...withToken.headers, ...accept } })
    expect(await json(stream)).to.include({ code: 'data_stale' })
    const paid = await buy(anew('/v1/feed/live'), newWallet(), 2, { headers: accept })
    expect(await json(paid)).to.include({ code: 'data_stale' })
    expect(charged()).to.equal(0)
  })

  it('refuses a tool call over MCP with the same error', async () => {
    await set(GOOD)
    const client = new Client({ name: 'agent', version: '1.0.0' })
    await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)))
    const signed = await payment(`${url}/v1/feed`, newWallet())
    await set({ ...GOOD, sources: 1 })
    await stateOnce('getFeed', 'stale')
    const unpaid = await client.callTool({ name: 'get_feed', arguments: {} })
    expect(unpaid.structuredContent).to.deep.include({ code: 'payment_required', freshness: STALE_402 })
    const refused = await client.callTool({ name: 'get_feed', arguments: { day: 'mcp', payment_signature: signed } })
    expect(refused.isError).to.equal(true)
    expect(refused.structuredContent).to.deep.include({
      code: 'data_stale',
      missing: ['sources'],
      retry_after_seconds: 30,
    })
    expect(charged()).to.equal(0)
    await client.close()
  })

  const STALE_402 = { status: 'stale', missing: ['sources'], required: FRESH }

  it('tells it in the 402, which an unpaid call gets in any case', async () => {
    await set(GOOD)
    const freshness = async (path: string, method = 'GET'): Promise<{ status: string } | undefined> =>
      ((await offer(`${url}${path}`, { method })).v1 as unknown as { freshness?: { status: string } }).freshness
    const untilItIs = (status: string) => until(async () => (await freshness('/v1/feed'))?.status === status)
    await untilItIs('fresh')
    await set({ ...GOOD, sources: 1 })
    await untilItIs('stale')
    const { response, v1, v2 } = await offer(`${url}/v1/feed?day=today`)
    expect(response.status).to.equal(402)
    expect(v1).to.deep.include({ code: 'payment_required', freshness: STALE_402 })
    expect((v1 as unknown as { message: string }).message).to.contain('do not pay now')
    expect((v2 as unknown as { extensions: object }).extensions).to.deep.include({ freshness: { info: STALE_402 } })
    const ofPlan = () => freshness('/v1/passes/news/1h', 'POST')
    expect(await untilFound(async () => ((await ofPlan())?.status === 'stale' ? ofPlan() : undefined))).to.deep.equal({
      status: 'stale',
      missing: ['sources'],
    })
    await set(GOOD)
    await untilItIs('fresh')
    await until(async () => (await ofPlan())?.status === 'fresh')
  })

  it('keeps the plans that open it from being sold', async () => {
    await set({ ...GOOD, age_seconds: 600 })
    await stateOnce('getFeed', 'stale')
    // Without the delay that the route itself has.
    const refused = await untilFound(async () => {
      const answer = await json(await buy(`${url}/v1/passes/news/1h`, newWallet(), 2, { method: 'POST' }))
      return String(answer['message']).includes('GET /v1/feed/once') ? answer : undefined
    })
    expect(refused).to.deep.include({ code: 'data_stale', missing: ['newest'] })
    expect(refused['message']).to.match(/GET \/v1\/feed[:,]/)
  })

  it('is measured without its delay for a plan that opens it, which has a state of its own in /health then', async () => {
    await set({ ...GOOD, age_seconds: 600 })
    const state = await stateOnce('purchasePlanLate1h', 'stale')
    expect(state).to.deep.include({ route: 'POST /v1/passes/late/1h', missing: ['newest'], required: {} })
    expect(state['reason']).to.match(/^GET \/v1\/feed\/once: The newest data are \d+ seconds old, more than 60\.$/)
    const { freshness } = (await shop.json('/health')) as { freshness: { operation: string; status: string }[] }
    expect(freshness.find(({ operation }) => operation === 'getFeedOnce')).to.include({ status: 'fresh' })
    // What a plan of operations without delay lacks, their own lines say.
    expect(freshness.map(({ operation }) => operation)).not.to.include('purchasePlanLive1h')
  })

  describe('and is opened by a plan that demands more', () => {
    const WHOLE = '/v1/passes/whole/1h'
    const buyPlan = (path: string): Promise<Response> => buy(`${url}${path}`, newWallet(), 2, { method: 'POST' })
    const demands = { coverage: 0.95, newest_seconds: 300 }
    /** What /health says about the plan, once it lacks that. */
    const planOnce = (...missing: string[]): Promise<Record<string, unknown>> =>
      untilFound(async () => {
        const state = await stateOnce('purchasePlanWhole1h', missing.length === 0 ? 'fresh' : 'stale')
        return String(state['missing']) === String(missing) ? state : undefined
      })

    it('is sold while the plan is not, which its 402 and /health say', async () => {
      await set({ ...GOOD, coverage: 0.92 })
      const state = await planOnce('coverage')
      expect(state).to.deep.include({
        route: `POST ${WHOLE}`,
        missing: ['coverage'],
        required: demands,
        reason: 'GET /v1/feed, GET /v1/feed/once: 92% of the expected data are there, of at least 95%.',
      })
      expect(state['found']).to.deep.include({ sources: 2, coverage: 0.92 })
      expect((await shop.json('/health'))['status']).to.equal('degraded')
      const { v1 } = await offer(`${url}${WHOLE}`, { method: 'POST' })
      expect(v1).to.deep.include({ freshness: { status: 'stale', missing: ['coverage'], required: demands } })
      const refused = await json(await buyPlan(WHOLE))
      expect(refused).to.deep.include({ code: 'data_stale', missing: ['coverage'] })
      expect(refused['message']).to.contain('92% of the expected data are there, of at least 95%. Nothing was charged.')
      expect(charged()).to.equal(0)
      expect((await buy(anew(), newWallet())).status).to.equal(200)
      expect((await buyPlan('/v1/passes/news/1h')).status).to.equal(200)
    })

    it('counts its own demand where that is the stricter one', async () => {
      await set({ ...GOOD, age_seconds: 100 })
      await planOnce('newest')
      const refused = await json(await buyPlan(WHOLE))
      expect(refused).to.deep.include({ code: 'data_stale', missing: ['newest'] })
      expect(refused['message']).to.contain('seconds old, more than 60.')
    })

    it('is named in the answer to the purchase with the freshness at which the plan was sold', async () => {
      await set({ ...GOOD, coverage: 0.97 })
      await planOnce()
      const sold = await json(await buyPlan(WHOLE))
      const rows = sold['freshness'] as { newest: string }[]
      expect(rows.map(({ newest, ...row }) => row)).to.deep.equal([
        { route: 'GET /v1/feed', sources: 2, coverage: 0.97 },
        { route: 'GET /v1/feed/once', sources: 2, coverage: 0.97 },
      ])
      for (const { newest } of rows) expect(Date.now() - Date.parse(newest)).to.be.within(0, 60_000)
    })

    it('is promised with the plan in the documents', async () => {
      expect(((await shop.json('/pricing.json')) as { fresh: object }).fresh).to.deep.include({
        [`POST ${WHOLE}`]: demands,
      })
      const { paths } = (await shop.json('/openapi.json')) as {
        paths: Record<string, { post: Record<string, unknown> }>
      }
      expect(paths[WHOLE]?.post).to.deep.include({ 'x-fresh': demands })
      expect(paths[WHOLE]?.post['description']).to.contain('on every route that it opens')
    })
  })

  it('is measured at the moment that the caller may see', async () => {
    // The delayed route shows what was known an hour ago, and the feed has reached that.
    const codeOf = async () => (await json(await buy(`${url}/v1/feed/once`, newWallet())))['code']
    await set({ ...GOOD, age_seconds: 3_000 })
    await until(async () => (await codeOf()) === 'empty_not_sold')
    await set({ ...GOOD, age_seconds: 3_700 })
    await until(async () => (await codeOf()) === 'data_stale')
  })

  it('asks the plugin at most once a second for calls with the same input', async () => {
    const { reports } = await set(GOOD)
    const began = performance.now()
    const address = anew()
    const answers = await Promise.all(Array.from({ length: 12 }, () => buy(address, newWallet())))
    expect(answers.map(({ status }) => status)).to.deep.equal(Array(12).fill(200))
    const seconds = Math.floor((performance.now() - began) / 1000) + 1
    const after = await set(GOOD)
    // Three operations, one of them with and without its delay, are looked at for their 402, and one input is asked about.
    expect(after.reports - reports).to.be.at.most(5 * (seconds + 1))
  })

  it('is reported by /health, degraded and with the reason', async () => {
    await set({ ...GOOD, sources: 1 })
    const state = await stateOnce('getFeed', 'stale')
    expect(state).to.deep.include({ route: 'GET /v1/feed', ...STALE_402 })
    expect(state['found']).to.deep.include({ sources: 1, coverage: 1 })
    expect(state['reason']).to.match(/1 of at least 2 sources/)
    expect((await shop.json('/health'))['status']).to.equal('degraded')
    await set(GOOD)
    await until(async () => (await shop.json('/health'))['status'] === 'ok')
  })
})

describe('an operation with inputs that are watched', () => {
  const DAYS = ['friday', 'saturday', 'sunday']
  const watching = { ...feed, settings: { watched: DAYS.map((day) => ({ query: { day } })) } }
  let shop: LiveGateway
  let url: string

  const set = async (state: object) =>
    (await json(await ask(`${url}/v1/feed`, { method: 'POST', body: state }))) as { reports: number }
  const health = async () =>
    (await shop.json('/health')) as { status: string; freshness: { route: string; request?: string; status: string }[] }
  const healthOnce = (status: string) =>
    untilFound(async () => {
      const found = await health()
      return found.status === status ? found : undefined
    })
  /** What the 402 of a call says about the data. */
  const told = async (search: string) =>
    ((await offer(`${url}/v1/feed${search}`)).v1 as unknown as { freshness: { status: string; missing: string[] } })
      .freshness

  before(async () => {
    shop = await openLiveGateway({ catalog: { 'feed.json': watching, 'documents.json': documents }, plugins: ['feed'] })
    url = shop.url
    expect(shop.gateway.issues).to.deep.equal([])
    await set(GOOD)
    await healthOnce('ok')
  })
  after(() => shop.close())

  it('names those whose data are missing in /health, and is degraded until they are back', async () => {
    await set({ ...GOOD, missing: ['sunday'] })
    const { freshness } = await healthOnce('degraded')
    const own = freshness.filter(({ route }) => route === 'GET /v1/feed')
    expect(own.map(({ request, status }) => [request, status])).to.deep.equal([
      [undefined, 'fresh'],
      ...DAYS.map((day) => [`GET /v1/feed?day=${day}`, day === 'sunday' ? 'stale' : 'fresh']),
    ])
    expect(own.at(-1))
      .to.have.property('reason')
      .that.matches(/There are no data yet\./)
    await set(GOOD)
    await healthOnce('ok')
  })

  it('says in the 402 of a call how fresh the input is that its query names', async () => {
    await set({ ...GOOD, missing: ['sunday'] })
    await until(async () => (await told('?day=sunday')).status === 'stale')
    expect((await told('?day=sunday')).missing).to.deep.equal(['newest', 'sources', 'coverage'])
    for (const search of [
      '',
      '?',
      '?day=friday',
      '?day=monday',
      '?day=',
      '?other=sunday',
      `?day=sunday${'0'.repeat(400)}`,
    ])
      expect((await told(search)).status, search).to.equal('fresh')
    expect((await told(`?x=1&day=%73unday`)).status, 'another spelling of the same query').to.equal('stale')
    const client = new Client({ name: 'agent', version: '1.0.0' })
    await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)))
    const { structuredContent } = await client.callTool({ name: 'get_feed', arguments: { day: 'sunday' } })
    expect(structuredContent).to.have.nested.property('freshness.status', 'stale')
    await client.close()
    expect((await buy(`${url}/v1/feed?day=sunday`, newWallet())).status).to.equal(503)
    expect((await buy(`${url}/v1/feed?day=friday`, newWallet())).status).to.equal(200)
  })

  it('asks its product nothing for other inputs of unpaid calls, and once a second for these', async () => {
    const { reports } = await set(GOOD)
    const began = performance.now()
    for (let call = 0; call < 100; call += 1) {
      await told(`?day=${DAYS[call % 3]}`)
      await told(`?day=a-stranger-${call}`)
    }
    const seconds = Math.floor((performance.now() - began) / 1000) + 1
    // Three inputs and the ordinary call. Those of the other two operations may be looked at once, for an alarm.
    expect((await set(GOOD)).reports - reports).to.be.at.most(4 * (seconds + 1) + 6)
  })
})

describe('an answer that says that nothing happened', () => {
  let shop: LiveGateway
  before(async () => {
    shop = await openLiveGateway({ catalog: { 'feed.json': feed, 'plans.json': plans }, plugins: ['feed'] })
  })
  after(() => shop.close())

  it('is sold, unless the catalog says otherwise', async () => {
    const sold = await buy(`${shop.url}/v1/feed?day=quiet`, newWallet())
    expect(await json(sold)).to.deep.include({ items: [] })
    expect(shop.settler.transfers.length).to.equal(1)
    const refused = await buy(`${shop.url}/v1/feed/once`, newWallet())
    expect(refused.status).to.equal(404)
    expect(await json(refused)).to.include({ code: 'empty_not_sold', retry: 'after_fix' })
    expect(shop.settler.transfers.length).to.equal(1)
  })

  it('is no answer about a window that is not held: that is refused with the nearest one', async () => {
    const refused = await buy(`${shop.url}/v1/feed?day=before`, newWallet())
    expect(refused.status).to.equal(404)
    expect(await json(refused)).to.deep.include({
      code: 'not_held',
      nearest: { start: '1970-01-01T00:00:00.000Z', end: '1970-01-02T00:00:00.000Z' },
    })
    expect(shop.settler.transfers.length).to.equal(1)
  })
})

describe('the documents of an operation that is sold only while its data are fresh', () => {
  let shop: LiveGateway
  before(async function () {
    // The first start of our own catalog computes its history, for as long as a busy machine takes.
    this.timeout(180_000)
    shop = await openLiveGateway({ own: true, catalog: { 'feed.json': feed }, plugins: ['feed'] })
  })
  after(() => shop.close())

  it('say what is promised: price list, discovery, OpenAPI and llms.txt', async () => {
    const prices = (await shop.json('/pricing.json')) as { fresh: Record<string, object> }
    expect(prices.fresh['GET /v1/feed']).to.deep.equal(FRESH)
    expect(prices.fresh['GET /v1/feed/once']).to.deep.equal({ newest_seconds: 60 })
    const discovery = (await shop.json('/.well-known/x402')) as { fresh: Record<string, object> }
    expect(discovery.fresh['GET /v1/feed']).to.deep.equal(FRESH)
    const { paths } = (await shop.json('/openapi.json')) as { paths: Record<string, { get: Record<string, unknown> }> }
    expect(paths['/v1/feed']?.get).to.deep.include({ 'x-fresh': FRESH })
    expect(paths['/v1/feed']?.get['description']).to.contain(
      'Sold only while the newest data are at most 60 seconds old and 2 or more sources deliver and 90% or more of the expected data are there',
    )
    expect(paths['/v1/feed/once']?.get).to.deep.include({ 'x-sell-empty': false })
    expect(await (await shop.get('/llms.txt')).text()).to.contain('2 or more sources deliver')
  })

  it('say on the price page what must be true of the data for a plan to be sold', async () => {
    const page = await (await shop.get('/pricing')).text()
    expect(page).to.contain('Sold while').and.to.contain('90.0% or more of the expected data are there')
  })
})
