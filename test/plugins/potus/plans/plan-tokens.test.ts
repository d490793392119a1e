/** The three plans: their prices, the routes they open, and the tokens they refuse. */
import { expect } from 'chai'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { base64url, decodeJwt, decodeProtectedHeader, importJWK, SignJWT } from 'jose'
import type { Operation } from '../../../../gateway/plugin/catalog.ts'
import { createKey } from '../../../../gateway/tokens/key-set.ts'
import { proves } from '../../../requirements.ts'
import { ask, buy, json, offer } from '../../../support/agent.ts'
import { openFeedGateway, type FeedGateway, fullCatalog } from '../feed-gateway.ts'

const PLANS = ['live/24h', 'live/30d', 'archive/30d'] as const
const FEEDS = [
  'GET /v1/potus/archive',
  'GET /v1/potus/entities',
  'GET /v1/potus/event/*',
  'GET /v1/potus/events/15m',
  'GET /v1/potus/events/1m',
  'GET /v1/potus/feeds',
  'GET /v1/potus/live',
]

describe('the plans of the feed', () => {
  let gateway: FeedGateway
  const tokens = new Map<string, string>()
  before(async () => {
    const catalog = fullCatalog((name, document) => {
      if (name !== 'potus.json') return
      for (const operation of Object.values(document['operations'] as Record<string, Record<string, unknown>>))
        if (operation['internal'] !== true) operation['tool'] = true
    })
    gateway = await openFeedGateway(catalog)
    for (const plan of PLANS) tokens.set(plan, await gateway.token(plan))
  })
  after(() => gateway.close())

  const priced = (): Operation[] =>
    [...gateway.gateway.current.catalog.operations.values()].filter(
      ({ price, internal }) => price !== null && !internal,
    )
  const address = ({ path, example }: Operation): string => {
    const filled = path.replace(
      /\{(\w+)\}/g,
      (_, name: string) => (example?.request.params?.[name] as string | undefined) ?? 'x',
    )
    const query = new URLSearchParams(
      Object.entries(example?.request.query ?? {}).map(([name, value]): [string, string] => [name, String(value)]),
    )
    return `${gateway.url}${filled}${query.size > 0 ? `?${query.toString()}` : ''}`
  }
  const isOpenTo = (plan: string, { displayRoute }: Operation): boolean =>
    plan.startsWith('live') ? FEEDS.includes(displayRoute) : displayRoute === 'GET /v1/potus/archive'
  const call = (operation: Operation, token: string): Promise<Response> => {
    const { method, body, example } = operation
    const request = body === null ? {} : { body: example?.request.body ?? {} }
    return ask(address(operation), { method, ...request, headers: { 'x-service-token': token } })
  }

  it('are listed in /health with what each demands of the data', async () => {
    const { freshness } = (await json(await ask(`${gateway.url}/health`))) as {
      freshness: { route: string; status: string; required: object }[]
    }
    const states = freshness.filter(({ route }) => route.includes('/subscribe/'))
    expect(states.map(({ route, status, required }) => [route, status, required])).to.deep.equal([
      ['POST /v1/potus/subscribe/live/24h', 'fresh', { coverage: 0.9 }],
      ['POST /v1/potus/subscribe/live/30d', 'fresh', { coverage: 0.9 }],
      ['POST /v1/potus/subscribe/archive/30d', 'fresh', { sources: 2, coverage: 0.9 }],
    ])
  })

  it('are three, with the promised prices and durations', async () => {
    proves('plan-table', 'feeds-family')
    const list = (await json(await ask(`${gateway.url}/v1/potus/subscribe`))) as { plans: Record<string, unknown>[] }
    const rows = list.plans.map(
      ({
        plan,
        tier,
        max_freshness_seconds: delaySeconds,
        duration_seconds: durationSeconds,
        route,
        price_usd: price,
      }) => [plan, tier, delaySeconds, durationSeconds, route, price],
    )
    expect(rows).to.deep.equal([
      ['live-24h', 'live', 0, 86_400, 'POST /v1/potus/subscribe/live/24h', 50],
      ['live-30d', 'live', 0, 2_592_000, 'POST /v1/potus/subscribe/live/30d', 750],
      ['archive-30d', 'archive', 86_400, 2_592_000, 'POST /v1/potus/subscribe/archive/30d', 100],
    ])
    expect(list.plans.map(({ authorized_routes: routes }) => routes)).to.deep.equal([
      FEEDS,
      FEEDS,
      ['GET /v1/potus/archive'],
    ])
    const { prices_usd: prices } = (await json(await ask(`${gateway.url}/pricing.json`))) as {
      prices_usd: Record<string, number>
    }
    expect(Object.fromEntries(FEEDS.map((route) => [route, prices[route]]))).to.deep.equal({
      'GET /v1/potus/live': 2,
      'GET /v1/potus/events/1m': 0.75,
      'GET /v1/potus/events/15m': 0.25,
      'GET /v1/potus/archive': 0.1,
      'GET /v1/potus/event/*': 2,
      'GET /v1/potus/entities': 0.25,
      'GET /v1/potus/feeds': 0.25,
    })
    expect(gateway.settler.transfers.map(({ amount }) => amount)).to.deep.equal([
      50_000_000n,
      750_000_000n,
      100_000_000n,
    ])
  })

  it('last exactly as long as they state', () => {
    const times = PLANS.map((plan) => decodeJwt(tokens.get(plan) as string)).map(
      ({ exp, iat }) => (exp as number) - (iat as number),
    )
    expect(times).to.deep.equal([86_400, 2_592_000, 2_592_000])
  })

  it('open exactly the routes they name over HTTP, and are refused with the code token_route on the others', async () => {
    const mismatches: string[] = []
    for (const [plan, token] of tokens)
      for (const operation of priced()) {
        const response = await call(operation, token)
        const code = response.status === 402 ? (await json(response))['code'] : null
        const isExpected = isOpenTo(plan, operation)
          ? response.status === 200
          : response.status === 402 && code === 'token_route'
        if (!isExpected) mismatches.push(`${plan} ${operation.route}: ${response.status} ${String(code)}`)
      }
    expect(priced().length).to.be.greaterThan(14)
    expect(mismatches).to.deep.equal([])
  })

  it('open exactly the same routes over MCP, with the token as a header', async () => {
    const mismatches: string[] = []
    for (const [plan, token] of tokens) {
      const client = new Client({ name: 'test', version: '1' })
      await client.connect(
        new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), {
          requestInit: { headers: { 'x-service-token': token } },
        }),
      )
      const toolNames = new Set((await client.listTools()).tools.map(({ name }) => name))
      for (const operation of priced().filter(({ tool }) => tool !== null && toolNames.has(tool))) {
        const { params, query, body } = operation.example?.request ?? {}
        const args = { ...params, ...query, ...(typeof body === 'object' ? body : {}) }
        const result = await client.callTool({ name: operation.tool as string, arguments: args })
        const code = (result.structuredContent as { code?: string } | undefined)?.code
        const isExpected = isOpenTo(plan, operation) ? !result.isError : result.isError && code === 'token_route'
        if (!isExpected) mismatches.push(`${plan} ${operation.tool}: ${JSON.stringify(result).slice(0, 200)}`)
      }
      await client.close()
      expect([...toolNames].filter((name) => name.includes('potus')).length).to.equal(8)
    }
    expect(mismatches).to.deep.equal([])
  })

  it('appear as MCP tools only if the catalog says so', async () => {
    const { catalog } = await import('../test-feed.ts')
    expect(
      [...catalog.operations.values()].filter(({ product, tool }) => product === 'potus' && tool !== null),
    ).to.deep.equal([])
  })

  it('are chosen by the route alone, not by body or query', async () => {
    proves('plan-by-route')
    const request = { method: 'POST', body: { plan: 'live-30d', price_usd: 0.01, duration_seconds: 9e9 } }
    const { v2 } = await offer(`${gateway.url}/v1/potus/subscribe/archive/30d?plan=live-24h&price=0`, request)
    expect(v2.accepts[0]).to.include({ amount: '100000000' })
    const bought = await json(
      await buy(`${gateway.url}/v1/potus/subscribe/archive/30d?plan=live-24h`, gateway.wallet, 2, request),
    )
    expect(bought).to.include({
      plan: 'archive-30d',
      tier: 'archive',
      header: 'X-SERVICE-TOKEN',
      duration_seconds: 2_592_000,
    })
    expect(bought).to.include.keys('token', 'expires_at', 'authorized_routes')
  })

  it('refuse tokens that are unsigned, signed with another key, changed or from another service', async () => {
    const token = tokens.get('live/24h') as string
    const claims = decodeJwt(token)
    const { kid } = decodeProtectedHeader(token)
    const [, payload, signature] = token.split('.') as [string, string, string]
    const encode = (value: object): string => base64url.encode(JSON.stringify(value))
    const { keys } = (await json(await ask(`${gateway.url}/.well-known/jwks.json`))) as {
      keys: Record<string, string>[]
    }
    const publicKey = Buffer.from(JSON.stringify(keys[0]))
    const otherKey = await createKey()
    const otherPrivateKey = await importJWK(otherKey, 'EdDSA')
    const signed = (change: object, header: object = { kid }): Promise<string> =>
      new SignJWT({ ...claims, ...change }).setProtectedHeader({ alg: 'EdDSA', ...header }).sign(otherPrivateKey)
    const confused = await new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid: String(kid) }).sign(publicKey)
    const raw = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'HS256', kid: String(kid) })
      .sign(Buffer.from(keys[0]?.['x'] ?? '', 'base64url'))
    const forged: Record<string, string> = {
      unsigned: `${encode({ alg: 'none', kid })}.${payload}.`,
      'the public key as a secret': confused,
      'its raw bytes as a secret': raw,
      'another key under our name': await signed({}),
      'a key of its own': await signed(
        {},
        { kid: otherKey.kid, jwk: { kty: otherKey.kty, crv: otherKey.crv, x: otherKey.x } },
      ),
      'a longer window': `${token.split('.')[0]}.${encode({ ...claims, exp: 9e9 })}.${signature}`,
      'another plan': `${token.split('.')[0]}.${encode({ ...claims, plan: 'live-30d' })}.${signature}`,
      'no token': 'abc',
      nothing: '..',
    }
    for (const [forgery, value] of Object.entries(forged)) {
      const response = await ask(`${gateway.url}/v1/potus/live`, { headers: { 'x-service-token': value } })
      expect(response.status, forgery).to.equal(402)
      expect((await json(response))['code'], forgery).to.equal('token_invalid')
    }
    // A token of another service, valid there.
    const other = await openFeedGateway()
    const foreign = await other.token('live/24h')
    await other.close()
    const response = await ask(`${gateway.url}/v1/potus/live`, { headers: { 'x-service-token': foreign } })
    expect((await json(response))['code']).to.equal('token_invalid')
  })

  it('refuse a revoked token on every route', async () => {
    const token = await gateway.token('live/24h')
    const get = () => ask(`${gateway.url}/v1/potus/feeds`, { headers: { 'x-service-token': token } })
    expect((await get()).status).to.equal(200)
    await gateway.gateway.revocations.revoke(String(decodeJwt(token).jti), 'a test')
    const response = await get()
    expect(response.status).to.equal(402)
    expect((await json(response))['code']).to.equal('token_invalid')
  })
})
