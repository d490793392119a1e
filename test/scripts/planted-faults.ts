/** Faults that tests plant into a service with "GET /v1/gold" and "POST /v1/throws", each with the rule that finds it. */
import type { ProxiedAnswer, Tampering } from './tampering-proxy.ts'

type Change = (answer: ProxiedAnswer) => unknown
type Fields = Record<string, unknown>

/** Returns the object or list at a path inside a value. */
const at = (value: unknown, ...steps: readonly (string | number)[]): Fields =>
  steps.reduce((node, step) => (node as Fields)[step], value) as Fields

/** Returns a change of a JSON body. */
const json =
  (change: (body: unknown) => unknown): Change =>
  (answer) => {
    const body: unknown = JSON.parse(answer.body)
    change(body)
    answer.body = JSON.stringify(body)
  }

/** Returns a change of the object in the PAYMENT-REQUIRED header. */
const v2 =
  (change: (offer: unknown) => unknown): Change =>
  ({ headers }) => {
    const offer: unknown = JSON.parse(Buffer.from(headers['payment-required'] ?? '', 'base64').toString())
    change(offer)
    headers['payment-required'] = Buffer.from(JSON.stringify(offer)).toString('base64')
  }

/** Returns a tampering that changes the answers at one path: those of one method, or all but those to OPTIONS. */
export const on =
  (path: string, change: Change, method?: string): Tampering =>
  (answer, request) => {
    const isAffected = method === undefined ? request.method !== 'OPTIONS' : request.method === method
    if (request.path.split('?')[0] === path && isAffected) change(answer)
  }

const GOLD = 'GET /v1/gold'
const THROWS = 'POST /v1/throws'
const gold = (change: Change, method?: string): Tampering => on('/v1/gold', change, method)
const replaced =
  (text: string, by: string): Change =>
  (answer) =>
    (answer.body = answer.body.replace(text, by))

export interface PlantedFault {
  readonly title: string
  readonly tampering: Tampering
  readonly rule: string
  readonly where: string
}

const plant = (rule: string, where: string, title: string, tampering: Tampering): PlantedFault => ({
  title,
  tampering,
  rule,
  where,
})

export const PLANTED_FAULTS: readonly PlantedFault[] = [
  plant(
    'cors',
    GOLD,
    'a 402 that web pages cannot read',
    gold(({ headers }) => delete headers['access-control-allow-origin']),
  ),
  plant(
    'cors',
    GOLD,
    'a 402 whose PAYMENT-REQUIRED header web pages cannot read',
    gold(({ headers }) => (headers['access-control-expose-headers'] = 'x-call-id')),
  ),
  plant(
    'cors',
    GOLD,
    'a CORS preflight that does not allow the payment header',
    gold(({ headers }) => (headers['access-control-allow-headers'] = 'accept'), 'OPTIONS'),
  ),
  plant(
    'cache',
    GOLD,
    'a 402 that may be cached',
    gold(({ headers }) => delete headers['cache-control']),
  ),
  plant(
    '402',
    GOLD,
    'a priced route that answers without payment',
    gold((answer) => (answer.status = 200)),
  ),
  plant(
    '402',
    THROWS,
    'a route that validates the input before payment',
    on('/v1/throws', (answer) => (answer.status = 422), 'POST'),
  ),
  plant(
    '402',
    GOLD,
    'a redirect instead of a 402',
    gold((answer) => Object.assign(answer, { status: 308, headers: { location: '/' } })),
  ),
  plant(
    'v2',
    GOLD,
    'a description that is too long',
    gold(v2((offer) => (at(offer, 'resource')['description'] = 'x'.repeat(501)))),
  ),
  plant(
    'header-size',
    GOLD,
    'a PAYMENT-REQUIRED header that is too long',
    gold(v2((offer) => (at(offer)['more'] = 'x'.repeat(4000)))),
  ),
  plant('v2', GOLD, 'a v2 requirement without payTo', gold(v2((offer) => delete at(offer, 'accepts', 0)['payTo']))),
  plant(
    'v1',
    GOLD,
    'a v1 requirement with a decimal amount',
    gold(json((body) => (at(body, 'accepts', 0)['maxAmountRequired'] = '0.005'))),
  ),
  plant(
    'offers',
    GOLD,
    'v1 and v2 requirements that differ',
    gold(json((body) => (at(body, 'accepts', 0)['maxAmountRequired'] = '6000'))),
  ),
  plant(
    'discovery',
    THROWS,
    'an example call that breaks its schema',
    on(
      '/v1/throws',
      v2((offer) => (at(offer, 'extensions', 'bazaar', 'info', 'input')['method'] = 'PUT')),
    ),
  ),
  plant(
    'address',
    GOLD,
    'a URL with another base address',
    gold(v2((offer) => (at(offer, 'resource')['url'] = 'http://internal/v1/gold'))),
  ),
  plant(
    'price',
    '/pricing.json',
    'a wrong price in the price list',
    on(
      '/pricing.json',
      json((body) => (at(body, 'prices_usd')[GOLD] = 0.006)),
    ),
  ),
  plant(
    'discovery',
    GOLD,
    'a 402 without the extension that indexers read',
    gold(v2((offer) => delete at(offer, 'extensions')['bazaar'])),
  ),
  plant(
    'discovery',
    GOLD,
    'a 402 that says nothing of its answer',
    gold(
      v2((offer) => {
        delete at(offer, 'extensions', 'bazaar', 'info', 'output')['example']
        delete at(offer, 'extensions', 'bazaar', 'schema', 'properties', 'output', 'properties')['example']
      }),
    ),
  ),
  plant(
    'discovery',
    THROWS,
    'a 402 that says nothing of the body it needs',
    on(
      '/v1/throws',
      v2((offer) => {
        const input = at(offer, 'extensions', 'bazaar', 'schema', 'properties', 'input')
        delete at(input, 'properties')['body']
        input['additionalProperties'] = true
      }),
    ),
  ),
  plant(
    'body-size',
    GOLD,
    'a body of a 402 that is too long for indexers',
    gold(json((body) => (at(body)['more'] = 'x'.repeat(17_000)))),
  ),
  plant(
    'price',
    '/.well-known/x402',
    'a wrong price in the discovery document',
    on(
      '/.well-known/x402',
      json((body) => (at(body, 'paid_endpoints')[GOLD] = '$0.05')),
    ),
  ),
  plant('price', '/llms.txt', 'a wrong price in llms.txt', on('/llms.txt', replaced('): $0.005.', '): $0.05.'))),
  plant(
    'agreement',
    '/pricing.json',
    'a route that is missing in the price list',
    on(
      '/pricing.json',
      json((body) => delete at(body, 'prices_usd')[GOLD]),
    ),
  ),
  plant(
    'resources',
    '/.well-known/x402',
    'a resource that the service does not sell',
    on(
      '/.well-known/x402',
      json((body) => (at(body, 'resources')[2] = 'http://lead.example/')),
    ),
  ),
  plant(
    'schema',
    GOLD,
    'an answer without a schema',
    on(
      '/openapi.json',
      json(
        (body) => (at(body, 'paths', '/v1/gold', 'get', 'responses', '200')['content'] = { 'application/json': {} }),
      ),
    ),
  ),
  plant(
    'example',
    THROWS,
    'a body without an example',
    on(
      '/openapi.json',
      json(
        (body) =>
          delete at(body, 'paths', '/v1/throws', 'post', 'requestBody', 'content', 'application/json')['example'],
      ),
    ),
  ),
  plant('tools', '/mcp', 'a missing MCP tool', on('/mcp', replaced('"name":"get_gold"', '"name":"get_lead"'), 'POST')),
  plant(
    'price',
    '/mcp',
    'an MCP tool with a wrong price',
    on('/mcp', replaced('"amount":"5000"', '"amount":"6000"'), 'POST'),
  ),
  plant(
    'document',
    '/.well-known/jwks.json',
    'a missing document',
    on('/.well-known/jwks.json', (answer) => (answer.status = 404)),
  ),
  plant(
    'document',
    '/sitemap.xml',
    'a document of the wrong type',
    on('/sitemap.xml', ({ headers }) => (headers['content-type'] = 'text/plain')),
  ),
  plant(
    'robots',
    '/robots.txt',
    'a robots.txt that keeps crawlers out',
    on('/robots.txt', (answer) => (answer.body = 'User-agent: *\nDisallow: /v1\n')),
  ),
  plant('anchor', '/guide#mcp', 'a link to a part of a page that is not there', (answer, request) => {
    on('/llms.txt', replaced('/openapi.json#mcp', '/guide#mcp'))(answer, request)
    on('/guide', (page) => {
      Object.assign(page, { status: 200, body: '<h1 id="start">Guide</h1><p data-id="mcp">' })
      page.headers['content-type'] = 'text/html; charset=utf-8'
    })(answer, request)
  }),
  plant(
    'link',
    '/v1/prices/history',
    'a dead link',
    on('/v1/prices/history', (answer) => (answer.status = 500)),
  ),
  plant(
    'health',
    '/health',
    'a degraded service',
    on(
      '/health',
      json((body) => (at(body)['status'] = 'degraded')),
    ),
  ),
  plant(
    'health',
    '/health',
    'a journal that cannot be written',
    on(
      '/health',
      json((body) => Object.assign(at(body), { status: 'degraded', journal: { ready: false } })),
    ),
  ),
  plant(
    'stale',
    '/health',
    'an operation whose data are stale',
    on(
      '/health',
      json((body) =>
        Object.assign(at(body), {
          status: 'degraded',
          freshness: [
            {
              operation: 'getGold',
              route: GOLD,
              status: 'stale',
              missing: ['sources'],
              required: { sources: 2 },
              found: { newest: '2026-11-20T10:00:00.000Z', sources: 1, coverage: 1 },
              reason: '1 of at least 2 sources deliver data.',
            },
          ],
        }),
      ),
    ),
  ),
]
