/** The documents of every catalog are valid, complete and consistent. */
import { expect } from 'chai'
import { recipientsOf } from '../../gateway/config/pay-to.ts'
import { createExactEvm } from '../../gateway/methods/exact-evm/exact-evm.ts'
import { apiCatalog } from '../../gateway/documents/api-catalog.ts'
import { discovery } from '../../gateway/documents/discovery.ts'
import { family } from '../../gateway/documents/family-index.ts'
import { llms } from '../../gateway/documents/llms.ts'
import { llmsFull } from '../../gateway/documents/llms-full.ts'
import { openapi } from '../../gateway/documents/openapi.ts'
import type { DocumentContext } from '../../gateway/documents/document.ts'
import { priceList } from '../../gateway/documents/pricing.ts'
import { robots } from '../../gateway/documents/sitemap.ts'
import { serverJson } from '../../gateway/documents/server-json.ts'
import { sitemap } from '../../gateway/documents/sitemap.ts'
import type { Catalog, Operation } from '../../gateway/plugin/catalog.ts'
import { dereference, fieldsOf } from '../../gateway/catalog/schemas.ts'
import { createValidators } from '../../gateway/catalog/operation-validators.ts'
import { ServiceError } from '../../gateway/errors.ts'
import { createChallenges } from '../../gateway/x402/challenge.ts'
import { type Description, lint, invalidExamples, operationsOf, pricesIn } from './openapi.ts'

const atomic = (dollars: string | number): bigint => BigInt(Math.round(Number(dollars) * 1e6))

const pricesOf = <Value>(values: Readonly<Record<string, Value>>, price: (value: Value) => bigint) =>
  Object.fromEntries(Object.entries(values).map(([route, value]) => [route, price(value)]))

export function documentContract(name: string, load: () => Promise<Catalog>, deployment: DocumentContext): void {
  describe(`the documents of ${name}`, () => {
    let catalog: Catalog
    let shown: readonly Operation[]
    let paid: readonly Operation[]
    let description: Description

    before(async () => {
      catalog = await load()
      shown = [...catalog.operations.values()].filter(
        ({ listed, internal, retired }) => listed && !internal && !retired,
      )
      paid = shown.filter(({ price }) => price !== null)
      description = openapi(catalog, deployment) as unknown as Description
    })

    /** Atomic units by display route, from the catalog. */
    const prices = (): Record<string, bigint> =>
      Object.fromEntries(paid.map(({ displayRoute, price }) => [displayRoute, price as bigint]))

    it('state one price for each route: price list, discovery, OpenAPI, text index, families and live quote', () => {
      const list = priceList(catalog, deployment)
      expect(list).to.include({ currency: 'USDC', network: deployment.network.name, pay_to: deployment.payTo })
      expect(pricesOf(list.prices_usd, atomic)).to.deep.equal(prices())
      const found = discovery(catalog, deployment)
      expect(pricesOf(found.paid_endpoints, (text) => atomic(text.replace(/^\$/, '')))).to.deep.equal(prices())
      expect(pricesIn(description)).to.deep.equal(
        Object.fromEntries(paid.map(({ route, price }) => [route, [price, price]])),
      )
      const lines = llms(catalog, deployment).matchAll(/^- \[([A-Z]+ [^\]]+)\]\([^)]*\): \$([\d.]+)\. /gm)
      expect(Object.fromEntries([...lines].map((line) => [line[1], atomic(line[2] as string)]))).to.deep.equal(prices())
      const challenges = createChallenges({
        catalog,
        ...deployment,
        formats: recipientsOf(deployment).map(({ network }) => createExactEvm(network)),
      })
      for (const operation of paid) {
        const { v2 } = challenges.write(
          operation,
          deployment.baseUrl + operation.path,
          new ServiceError('payment_required'),
        )
        const [requirement] = v2['accepts'] as [{ amount: string }]
        expect(BigInt(requirement.amount), operation.route).to.equal(operation.price)
      }
    })

    it('say in the text index how old the data of each delayed route are', () => {
      const delayed = paid.filter(({ maxFreshnessSeconds }) => maxFreshnessSeconds > 0)
      for (const { displayRoute, maxFreshnessSeconds } of delayed) {
        const line = llms(catalog, deployment)
          .split('\n')
          .find((text) => text.startsWith(`- [${displayRoute}]`))
        expect(line).to.contain(`Data at least ${maxFreshnessSeconds / 3600} hours old.`)
      }
    })

    it('describe every listed operation in valid OpenAPI 3.1', async () => {
      expect(await lint(description)).to.deep.equal([])
      expect(description.info.version).to.equal(catalog.service.version)
      expect(description.info['x-catalog-version']).to.equal(catalog.version)
      const described = operationsOf(description).map(({ route }) => route)
      expect(described.sort()).to.deep.equal(shown.map(({ route }) => route).sort())
    })

    it('say of each operation what it takes, what it answers, and how it is paid', () => {
      for (const { route, operation } of operationsOf(description)) {
        const source = catalog.operations.get(operation.operationId) as Operation
        const hasInput = source.params !== null || source.query !== null || source.body !== null
        const statuses = Object.keys(operation.responses)
        expect(statuses, route).to.include('200')
        if (source.price !== null) expect(statuses, route).to.include.members(['402', '422'])
        if (hasInput) expect(statuses, route).to.include('422')
        expect(statuses.includes('303'), route).to.equal(source.form !== null)
        expect('x-payment-info' in operation, route).to.equal(source.price !== null)
        expect(operation.security.length > 0, route).to.equal(source.price !== null)
        const media = Object.keys(operation.requestBody?.content ?? {})
        // Indexers expect a body of every priced POST, also where it is empty.
        const isEmpty = source.price !== null && source.method === 'POST' && source.body === null
        expect(media, route).to.deep.equal(isEmpty ? ['application/json'] : source.bodyMedia)
        const names = (operation.parameters ?? [])
          .filter((parameter) => parameter.in === 'path')
          .map(({ name }) => name)
        expect(names, route).to.have.members([...source.path.matchAll(/\{([^}]+)\}/g)].map((match) => match[1]))
      }
    })

    it('describe files in JSON as text, because a generated client cannot put a file there', () => {
      const { schemas } = description.components as { schemas: Record<string, object> }
      const textOf = (schema: object): string => {
        const { $ref } = schema as { $ref?: string }
        return JSON.stringify($ref === undefined ? schema : schemas[$ref.split('/').at(-1) as string])
      }
      for (const { route, operation } of operationsOf(description))
        for (const [media, { schema }] of Object.entries(operation.requestBody?.content ?? {}))
          if (media.endsWith('json')) expect(textOf(schema), route).to.not.contain('"format":"binary"')
    })

    it('give examples that fit their schemas', () => {
      expect(invalidExamples(description)).to.deep.equal([])
    })

    it('list the absolute address of every paid route, and no other, for indexers', () => {
      const { version, resources } = discovery(catalog, deployment)
      expect(version).to.equal(1)
      expect(resources).to.have.length(paid.length)
      for (const [index, { path }] of paid.entries()) {
        const fixed = path.split(/\{[^}]+\}/)[0] as string
        expect(resources[index]?.startsWith(deployment.baseUrl + fixed), path).to.equal(true)
        expect(() => new URL(resources[index] as string)).not.to.throw()
      }
    })

    it('include an llms.txt whose links lead to routes that answer GET', () => {
      const text = llms(catalog, deployment)
      const prose = text.replaceAll(/^```[\s\S]*?^```$/gm, '').split('\n')
      expect(prose.filter((line) => line.startsWith('# '))).to.deep.equal([`# ${catalog.service.name}`])
      expect(prose.slice(0, 4)).to.deep.equal([`# ${catalog.service.name}`, '', `> ${catalog.service.summary}`, ''])
      expect(prose.filter((line) => /^#{3,} /.test(line))).to.deep.equal([])
      const lists = prose.slice(prose.findIndex((line) => line.startsWith('## '))).filter(Boolean)
      expect(lists.filter((line) => !/^(## .+|- \[[^\]]+\]\(https?:[^)\s]+\): .+)$/.test(line))).to.deep.equal([])
      const routes = new Set([
        deployment.docs,
        ...shown.filter(({ method }) => method === 'GET').map(({ path }) => path),
      ])
      for (const [, link] of text.matchAll(/\]\(([^)]+)\)/g)) {
        const { pathname } = new URL(link as string)
        const fits = [...routes].some((route) =>
          new RegExp(`^${route.replaceAll('.', '\\.').replaceAll(/\{[^}]+\}/g, '[^/]+')}$`).test(pathname),
        )
        expect(fits, link).to.equal(true)
      }
    })

    it('say in llms.txt when to use each product that is sold, with a request of its example', () => {
      const [section = ''] = llms(catalog, deployment).split('## Products\n\n')[1]?.split('\n\n## ') ?? []
      const lines = section.split('\n').filter(Boolean)
      const sold = catalog.products.filter(({ operations }) => operations.some((one) => isSold(one)))
      expect(lines.length).to.equal(sold.length)
      for (const [at, { title, summary, whenToUse, operations }] of sold.entries()) {
        const { method, path, example } = operations.find((one) => isSold(one)) as Operation
        expect(lines[at]).to.match(/^- \[/).and.contain(`[${title}]`).and.contain(summary).and.contain(whenToUse)
        expect(lines[at]).to.contain(`${method} ${deployment.baseUrl}${path.split('{')[0]}`)
        const body = example?.request.body
        if (body !== undefined) expect(lines[at]).to.contain(typeof body === 'string' ? body : JSON.stringify(body))
      }
    })

    it('name in llms.txt each field of the input of what is sold, with its values, and mark what is required', () => {
      const [section = ''] = llms(catalog, deployment).split('## Paid endpoints\n\n')[1]?.split('\n\n## ') ?? []
      for (const { displayRoute, params, query, body } of paid.filter(isSold)) {
        const line = section.split('\n').find((each) => each.startsWith(`- [${displayRoute}]`)) ?? ''
        for (const schema of [params, query, body]) {
          if (schema === null) continue
          const required = (dereference(schema, catalog.schemas)['required'] ?? []) as readonly string[]
          for (const [name, { enum: values }] of Object.entries(fieldsOf(schema, catalog.schemas))) {
            const shown = Array.isArray(values) ? ` (${values.join(' | ')})` : ''
            expect(line, displayRoute).to.contain(` ${name}${required.includes(name) ? '*' : ''}${shown}`)
          }
        }
      }
    })

    const isSold = (one: Operation): boolean => paid.includes(one) && one.plan === null

    it('include an llms-full.txt with all of llms.txt, and the fields and example of every operation', () => {
      const text = llmsFull(catalog, deployment)
      expect(text.startsWith(llms(catalog, deployment).trimEnd())).to.equal(true)
      for (const { method, path, price, response, example } of shown) {
        const [after = ''] = text.split(`\n### ${method} ${path}\n`).slice(1)
        const [part = ''] = after.split(/\n#{2,3} /)
        expect(part, path).to.contain(price === null ? 'Free.' : 'Costs $')
        const fields = Object.keys((response?.['properties'] as object | undefined) ?? {})
        for (const name of fields) expect(part, path).to.contain(`\`${name}\``)
        if (example?.response !== undefined && response?.['type'] !== 'string')
          expect(part, path).to.contain('Example of the answer:')
      }
    })

    it('describe the MCP server as the registry wants it: a name under the domain, and a short description', () => {
      const { name, description: text, remotes, version } = serverJson(catalog, deployment)
      const { hostname } = new URL(deployment.baseUrl)
      expect(name).to.match(/^[a-z0-9.-]+\/[a-z0-9-]+$/)
      expect(name.split('/')[0]?.split('.').toReversed().join('.')).to.equal(hostname)
      expect(text.length).to.be.within(1, 100)
      expect([version, remotes]).to.deep.equal([
        catalog.service.version,
        [{ type: 'streamable-http', url: `${deployment.baseUrl}/mcp` }],
      ])
    })

    it('list every page with a fixed address in the sitemap', () => {
      const addresses = [...sitemap(catalog, deployment).matchAll(/<loc>([^<]+)<\/loc>/g)].map((match) => match[1])
      const pages = shown.filter(({ view, path }) => view !== null && !path.includes('{'))
      expect(addresses).to.have.members(pages.map(({ path }) => deployment.baseUrl + path))
    })

    it('exclude private pages and everything below them from robots, and nothing else', () => {
      const disallowed = [...robots(catalog, deployment).matchAll(/^Disallow: (.+)$/gm)].map(
        (match) => match[1] as string,
      )
      const isPublic = (path: string): boolean => path.startsWith(`${deployment.docs}/`)
      const pages = shown.filter(({ view, path }) => view !== null && path.includes('{') && !isPublic(path))
      const prefixes = pages.map(({ path }) => path.slice(0, path.indexOf('{')))
      for (const { path } of shown)
        expect(
          disallowed.some((prefix) => path.startsWith(prefix)),
          path,
        ).to.equal(prefixes.some((prefix) => path.startsWith(prefix)))
    })

    it('match the response schemas that the catalog declares for them', () => {
      const validators = createValidators(catalog.schemas)
      const answers = {
        getPricing: priceList(catalog, deployment),
        getDiscovery: discovery(catalog, deployment),
        getOpenapi: description,
        getApiCatalog: apiCatalog(catalog, deployment),
        getFamilyX: family(catalog, deployment, '/v1/x'),
      }
      for (const [id, answer] of Object.entries(answers))
        expect(validators(catalog.operations.get(id) as Operation).answer(answer), id).to.equal(null)
    })
  })
}
