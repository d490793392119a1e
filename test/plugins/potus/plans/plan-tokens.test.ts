/** The three plans: their prices, the routes they open, and the tokens they refuse. */
import { expect } from 'chai'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { base64url, decodeJwt, decodeProtectedHeader, importJWK, SignJWT } from 'jose'
import type { Operation } from '../../../../gateway/plugin/catalog.ts'
import { createKey } from '../../../../gateway/tokens/key-set.ts'
import { proves } from '../../../requirements.ts'
import { ask, buy, json, offer } from '../../../support/agent.ts'
import { openStall, type Stall, stallCatalog } from '../feed-gateway.ts'

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
  let stall: Stall
  const tokens = new Map<string, string>()
  before(async () => {
    const catalog = stallCatalog((name, document) => {
      if (name !== 'potus.json') return
      for (const operation of Object.values(document['operations'] as Record<string, Record<string, unknown>>))
        if (operation['internal'] !== true) operation['tool'] = true
    })
    stall = await openStall(catalog)
    for (const plan of PLANS) tokens.set(plan, await stall.token(plan))
  })
  after(() => stall.close())

  const priced = (): Operation[] =>
    [...stall.gateway.current.catalog.operations.values()].filter(({ price, internal }) => price !== null && !internal)
  const address = ({ path, example }: Operation): string => {
    const filled = path.replace(
      /\{(\w+)\}/g,
      (_, name: string) => (example?.request.params?.[name] as string | undefined) ?? 'x',
    )
    const query = new URLSearchParams(
      Object.entries(example?.request.query ?? {}).map(([name, value]): [string, string] => [name, String(value)]),
    )
    return `${stall.url}${filled}${query.size > 0 ? `?${query.toString()}` : ''}`
  }
  const opens = (plan: string, { displayRoute }: Operation): boolean =>
    plan.startsWith('live') ? FEEDS.includes(displayRoute) : displayRoute === 'GET /v1/potus/archive'
  const call = (operation: Operation, token: string): Promise<Response> => {
    const { method, body, example } = operation
    const sent = body === null ? {} : { body: example?.request.body ?? {} }
    return ask(address(operation), { method, ...sent, headers: { 'x-service-token': token } })
  }

  it('are three, with the promised prices and durations', async () => {
    proves('plan-table', 'feeds-family')
    const list = (await json(await ask(`${stall.url}/v1/potus/subscribe`))) as { plans: Record<string, unknown>[] }
    const rows = list.plans.map(
      ({ plan, tier, max_freshness_seconds: late, duration_seconds: time, route, price_usd: price }) => [
        plan,
        tier,
        late,
        time,
        route,
        price,
      ],
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
    const { prices_usd: prices } = (await json(await ask(`${stall.url}/pricing.json`))) as {
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
    expect(stall.settler.transfers.map(({ amount }) => amount)).to.deep.equal([50_000_000n, 750_000_000n, 100_000_000n])
  })

  it('last exactly as long as they state', () => {
    const times = PLANS.map((plan) => decodeJwt(tokens.get(plan) as string)).map(
      ({ exp, iat }) => (exp as number) - (iat as number),
    )
    expect(times).to.deep.equal([86_400, 2_592_000, 2_592_000])
  })

  it('open exactly the routes they name over HTTP, and are refused with the code token_route on the others', async () => {
    const wrong: string[] = []
    for (const [plan, token] of tokens)
      for (const operation of priced()) {
        const response = await call(operation, token)
        const code = response.status === 402 ? (await json(response))['code'] : null
        const fits = opens(plan, operation)
          ? response.status === 200
          : response.status === 402 && code === 'token_route'
        if (!fits) wrong.push(`${plan} ${operation.route}: ${response.status} ${String(code)}`)
      }
    expect(priced().length).to.be.greaterThan(14)
    expect(wrong).to.deep.equal([])
  })

  it('open exactly the same routes over MCP, with the token as a header', async () => {
    const wrong: string[] = []
    for (const [plan, token] of tokens) {
      const client = new Client({ name: 'test', version: '1' })
      await client.connect(
        new StreamableHTTPClientTransport(new URL(`${stall.url}/mcp`), {
          requestInit: { headers: { 'x-service-token': token } },
        }),
      )
      const named = new Set((await client.listTools()).tools.map(({ name }) => name))
      for (const operation of priced().filter(({ tool }) => tool !== null && named.has(tool))) {
        const { params, query, body } = operation.example?.request ?? {}
        const args = { ...params, ...query, ...(typeof body === 'object' ? body : {}) }
        const result = await client.callTool({ name: operation.tool as string, arguments: args })
        const code = (result.structuredContent as { code?: string } | undefined)?.code
        const fits = opens(plan, operation) ? !result.isError : result.isError && code === 'token_route'
        if (!fits) wrong.push(`${plan} ${operation.tool}: ${JSON.stringify(result).slice(0, 200)}`)
      }
      await client.close()
      expect([...named].filter((name) => name.includes('potus')).length).to.equal(8)
    }
    expect(wrong).to.deep.equal([])
  })

  it('appear as MCP tools only if the catalog says so', async () => {
    const { catalog } = await import('../newsroom.ts')
    expect(
      [...catalog.operations.values()].filter(({ product, tool }) => product === 'potus' && tool !== null),
    ).to.deep.equal([])
  })

  it('are chosen by the route alone, not by body or query', async () => {
    proves('plan-by-route')
    const sent = { method: 'POST', body: { plan: 'live-30d', price_usd: 0.01, duration_seconds: 9e9 } }
    const { v2 } = await offer(`${stall.url}/v1/potus/subscribe/archive/30d?plan=live-24h&price=0`, sent)
    expect(v2.accepts[0]).to.include({ amount: '100000000' })
    const bought = await json(
      await buy(`${stall.url}/v1/potus/subscribe/archive/30d?plan=live-24h`, stall.wallet, 2, sent),
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
    const { keys } = (await json(await ask(`${stall.url}/.well-known/jwks.json`))) as { keys: Record<string, string>[] }
    const publicKey = Buffer.from(JSON.stringify(keys[0]))
    const own = await createKey()
    const ownKey = await importJWK(own, 'EdDSA')
    const signed = (change: object, header: object = { kid }): Promise<string> =>
      new SignJWT({ ...claims, ...change }).setProtectedHeader({ alg: 'EdDSA', ...header }).sign(ownKey)
    const confused = await new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid: String(kid) }).sign(publicKey)
    const raw = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'HS256', kid: String(kid) })
      .sign(Buffer.from(keys[0]?.['x'] ?? '', 'base64url'))
    const forged: Record<string, string> = {
      unsigned: `${encode({ alg: 'none', kid })}.${payload}.`,
      'the public key as a secret': confused,
      'its raw bytes as a secret': raw,
      'another key under our name': await signed({}),
      'a key of its own': await signed({}, { kid: own.kid, jwk: { kty: own.kty, crv: own.crv, x: own.x } }),
      'a longer window': `${token.split('.')[0]}.${encode({ ...claims, exp: 9e9 })}.${signature}`,
      'another plan': `${token.split('.')[0]}.${encode({ ...claims, plan: 'live-30d' })}.${signature}`,
      'no token': 'abc',
      nothing: '..',
    }
    for (const [what, value] of Object.entries(forged)) {
      const response = await ask(`${stall.url}/v1/potus/live`, { headers: { 'x-service-token': value } })
      expect(response.status, what).to.equal(402)
      expect((await json(response))['code'], what).to.equal('token_invalid')
    }
    // A token of another service, valid there.
    const other = await openStall()
    const foreign = await other.token('live/24h')
    await other.close()
    const response = await ask(`${stall.url}/v1/potus/live`, { headers: { 'x-service-token': foreign } })
    expect((await json(response))['code']).to.equal('token_invalid')
  })

  it('refuse a revoked token on every route', async () => {
    const token = await stall.token('live/24h')
    const get = () => ask(`${stall.url}/v1/potus/feeds`, { headers: { 'x-service-token': token } })
    expect((await get()).status).to.equal(200)
    await stall.gateway.revocations.revoke(String(decodeJwt(token).jti), 'a test')
    const response = await get()
    expect(response.status).to.equal(402)
    expect((await json(response))['code']).to.equal('token_invalid')
  })
})
