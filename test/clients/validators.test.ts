/** What indexers check before they list a route, by their own programs. */
import { execFile } from 'node:child_process'
import { resolve } from 'node:path'
import { promisify } from 'node:util'
import * as discovery from '@agentcash/discovery'
import { expect } from 'chai'
import { type LiveGateway, openLiveGateway } from '../dynamic/live-gateway.ts'
import { PRICED } from '../support/catalog.ts'

const MPPX = resolve(import.meta.dirname, '../../node_modules/mppx/dist/bin.js')
const HEADER_CHARACTERS = 3200
const BODY_BYTES = 16_384

interface Route {
  readonly method: discovery.HttpMethod
  readonly path: string
  readonly operation: Operation
}
interface Operation {
  readonly 'x-payment-info'?: object
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly example?: unknown }[]
  readonly requestBody?: {
    readonly required: boolean
    readonly content: Readonly<Record<string, { readonly example?: unknown }>>
  }
}

/** A dropped-in product: a query, a path parameter, a body, and an operation that its author described no further. */
const METALS = {
  product: 'metals',
  title: 'Metals',
  summary: 'Prices of metals.',
  plugin: 'metals',
  operations: {
    getMetal: {
      route: 'GET /v1/metal',
      summary: 'A price.',
      price: '0.01',
      query: { type: 'object', properties: { days: { type: 'integer', minimum: 1, default: 7 } } },
      response: PRICED,
      example: { request: { query: { days: 7 } }, response: { price: 1900 } },
    },
    getMetalOfDay: {
      route: 'GET /v1/metal/{day}',
      summary: 'A price of a day.',
      price: '0.01',
      params: { type: 'object', required: ['day'], properties: { day: { type: 'string' } } },
      response: PRICED,
      example: { request: { params: { day: 'today' } }, response: { price: 1900 } },
    },
    weighMetal: {
      route: 'POST /v1/metal/weigh',
      summary: 'What a weight costs.',
      price: '0.01',
      body: { type: 'object', required: ['grams'], properties: { grams: { type: 'number' } } },
      response: PRICED,
      example: { request: { body: { grams: 1 } }, response: { price: 61 } },
    },
    getPlainMetal: { route: 'GET /v1/metal-plain', summary: 'A price.', price: '0.01', response: PRICED },
    meltMetal: { route: 'POST /v1/metal/melt', summary: 'What melting costs.', price: '0.01', response: PRICED },
  },
}
const METALS_PLUGIN = `
  import { definePlugin } from 'tollgate/plugin'
  const price = () => ({ price: 1900 })
  export default definePlugin({
    name: 'metals',
    setup: () => ({
      handlers: { getMetal: price, getMetalOfDay: price, weighMetal: price, getPlainMetal: price, meltMetal: price },
    }),
  })`
const WITHOUT_EXAMPLE = ['/v1/metal-plain', '/v1/metal/melt']

describe('a validator of an indexer', function () {
  this.timeout(120_000)
  let live: LiveGateway
  let routes: readonly Route[]
  before(async () => {
    live = await openLiveGateway({
      own: true,
      catalog: { 'metals.json': METALS },
      sources: { 'metals/index.ts': METALS_PLUGIN },
    })
    const { paths } = (await live.json('/openapi.json')) as { paths: Record<string, Record<string, Operation>> }
    routes = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods)
        .filter(([, operation]) => operation['x-payment-info'])
        .map(([method, operation]) => ({ method: method.toUpperCase() as Route['method'], path, operation })),
    )
    expect(routes).to.have.length.above(19 + 4)
  })
  after(() => live.close())

  const urlOf = ({ path, operation }: Route): string =>
    live.url +
    path.replace(/\{([^}]+)\}/g, (_, name: string) =>
      encodeURIComponent(String(operation.parameters?.find((each) => each.name === name)?.example)),
    )

  it('finds nothing wrong with the OpenAPI document (@agentcash/discovery)', async () => {
    const document = (await discovery.getOpenAPI(live.url))._unsafeUnwrap()
    if (document === null || discovery.isOpenApiParseFailure(document)) return expect.fail(JSON.stringify(document))
    const [overview, guidance] = [discovery.checkL2ForOpenAPI(document), discovery.checkL4ForOpenAPI(document)]
    const found = [
      ...discovery.getWarningsForOpenAPI(document),
      ...discovery.getWarningsForL2(overview),
      ...discovery.getWarningsForL4(guidance),
      ...routes.flatMap(({ method, path }) =>
        discovery.getWarningsForL3(discovery.getL3ForOpenAPI(document, path, method)),
      ),
      ...(await discovery.getWarningsForFavicon(live.url))._unsafeUnwrap(),
    ].filter(({ severity }) => severity !== 'info')
    // It advises fewer than 41 routes. The document names them all, because the contract does.
    expect(found.map(({ code }) => code)).to.deep.equal(['L2_ROUTE_COUNT_HIGH'])
  })

  it('finds nothing wrong with the 402 of any priced route (@agentcash/discovery, detailed)', async () => {
    for (const route of routes) {
      const url = urlOf(route)
      const result = await discovery.checkEndpointSchema({ url, probe: true })
      const advised = result.found
        ? result.advisories
            .filter(({ method }) => method === route.method)
            .flatMap((each) => discovery.getWarningsForL3(each))
        : null
      expect(advised, `${route.method} ${route.path}`).to.deep.equal([])
      const { v2 } = await challengeOf(route.method, url)
      const { valid, issues } = discovery.validatePaymentRequiredDetailed(v2)
      expect({ valid, issues }, `${route.method} ${route.path}`).to.deep.equal({ valid: true, issues: [] })
    }
  })

  it('passes every check of mppx validate, without a warning', async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [MPPX, 'validate', live.url, '--output-json'])
    const { discovery: found, endpoints, summary } = JSON.parse(stdout) as MppxReport
    const checks = [...found.checks, ...endpoints.flatMap(({ challenge }) => challenge)]
    expect(checks.filter(({ severity }) => severity === 'warn' || severity === 'fail')).to.deep.equal([])
    expect(summary.passed).to.be.above(2 * routes.length)
    expect(found.endpoints).to.have.length(routes.length)
  })

  it('learns from the header alone how to call a route and what it answers', async () => {
    for (const route of routes) {
      const name = `${route.method} ${route.path}`
      const { status, header, v2, bytes } = await challengeOf(route.method, urlOf(route))
      expect(status, name).to.equal(402)
      expect(header.length, name).to.be.at.most(HEADER_CHARACTERS)
      expect(bytes, name).to.be.at.most(BODY_BYTES)
      expect(v2.resource.url, name).to.equal(urlOf(route))
      const { info, schema, routeTemplate } = v2.extensions.bazaar
      const properties = schema.properties
      expect(properties.output.properties.example, name).to.have.property('properties').that.is.not.empty
      if (!WITHOUT_EXAMPLE.includes(route.path)) expect(info.output.example, name).to.be.an('object').that.is.not.empty
      if (route.path.includes('{')) expect(routeTemplate, name).to.equal(route.path.replace(/\{(\w+)\}/g, ':$1'))
      if (!route.operation.requestBody?.required) continue
      expect(info.input.body, name).to.be.an('object').that.is.not.empty
      expect(properties.input.properties.body, name).to.have.property('properties').that.is.not.empty
    }
  })
})

interface MppxReport {
  readonly discovery: { readonly endpoints: readonly unknown[]; readonly checks: readonly Check[] }
  readonly endpoints: readonly { readonly challenge: readonly Check[] }[]
  readonly summary: { readonly passed: number }
}
interface Check {
  readonly label: string
  readonly severity: string
}

interface V2 {
  readonly resource: { readonly url: string }
  readonly extensions: {
    readonly bazaar: {
      readonly info: { readonly input: { readonly body?: unknown }; readonly output: { readonly example?: unknown } }
      readonly schema: {
        readonly properties: {
          readonly input: { readonly properties: { readonly body?: unknown } }
          readonly output: { readonly properties: { readonly example?: unknown } }
        }
      }
      readonly routeTemplate?: string
    }
  }
}

async function challengeOf(method: string, url: string) {
  const response = await fetch(url, { method })
  const header = response.headers.get('payment-required') ?? ''
  const v2 = JSON.parse(Buffer.from(header, 'base64').toString() || 'null') as V2
  return { status: response.status, header, v2, bytes: (await response.arrayBuffer()).byteLength }
}
