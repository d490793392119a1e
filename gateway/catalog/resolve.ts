/** Resolves catalog documents into the catalog that the gateway serves. */
import { isUnusable, validateCatalog, type ValidateOptions } from './validate.ts'
import { createHash } from 'node:crypto'
import type {
  Catalog,
  Example,
  Operation,
  OperationUpstream,
  Product,
  Service,
  Upstream,
  UpstreamParameter,
} from '../plugin/catalog.ts'
import {
  type Draft,
  type OperationDraft,
  parseCatalog,
  type ParsedCatalog,
  parsePrice,
  pluginNameOf,
  strings,
} from './product-drafts.ts'
import { frozen, frozenMap } from '../plugin/immutable.ts'
import { Remembered } from './remembered.ts'
import { CatalogError, type Issue } from '../validation/issue.ts'
import { NO_PLANS, planProduct, readPlans, routeFields } from './plans.ts'
import type { CatalogDocument } from './documents.ts'
import { readFresh } from './fresh-data.ts'
import { isObject } from '../validation/json.ts'
import { filesOf } from './schemas.ts'
import type { Schemas } from '../validation/json-schema.ts'

export interface ResolveOptions {
  /** Files of product documents to leave out. Other documents may still refer to their operations. */
  readonly without?: ReadonlySet<string>
}

const DEFAULT_TIMEOUT_SECONDS = 10
/** 1 USD. From this price on, an answer is sent only when the payment is final, unless the document says otherwise. */
const CONFIRMED_FROM = 1_000_000n
const DEFAULT_MAX_BYTES = 1_000_000

/**
 * Resolves valid documents into the frozen catalog: fields become operations, plans become purchase routes, and every
 * default is applied. Validate the documents first and name the files that have issues in `without`.
 *
 * @throws Error if there is no service.json
 */
export function resolveCatalog(
  parsed: ParsedCatalog,
  schemas: Schemas,
  { without = new Set() }: ResolveOptions = {},
): Catalog {
  const { documents, plans } = parsed
  if (!parsed.service) throw new Error('The catalog has no service.json.')
  const drafts = parsed.drafts.filter(({ file }) => !without.has(file))
  const service = serviceOf(parsed.service.content)
  const products = drafts.map((draft) => resolved.get(draft, [], () => productOf(draft)))
  const served = new Set(products.flatMap(({ operations }) => operations.map(({ id }) => id)))
  const planCatalog = plans.length > 0 ? readPlans(plans, served) : NO_PLANS
  const isSold = !plans.some(({ file }) => without.has(file))
  const sale = isSold ? planProduct(plans, planCatalog, products) : null
  const all = (sale ? [...products, sale] : products).map((product) => withNetworks(product, service.accepts))
  const files = new Set(['service.json', ...plans.map(({ file }) => file), ...drafts.map(({ file }) => file)])
  const catalog: Catalog = {
    version: versionOf(
      documents.filter(({ file }) => files.has(file)),
      all,
      schemas,
    ),
    service,
    products: frozen(all),
    operations: frozenMap(all.flatMap(({ operations }) => operations.map((operation) => [operation.id, operation]))),
    plans: frozen(planCatalog),
    schemas: frozenMap(schemas),
  }
  return Object.freeze(catalog)
}

/**
 * Parses and validates the documents, and resolves the ones without issues.
 *
 * @throws CatalogError with the issues of all documents if service.json, plans.json or networks.json has one
 */
export function createCatalog(
  documents: readonly CatalogDocument[],
  schemas: Schemas,
  options: ValidateOptions & ResolveOptions = {},
): { readonly catalog: Catalog; readonly issues: readonly Issue[] } {
  const parsed = parseCatalog(documents)
  const issues = validateCatalog(parsed, schemas, options)
  const invalid = new Set(issues.map(({ file }) => file))
  if (isUnusable(parsed, invalid)) throw new CatalogError(issues)
  const without = new Set([...invalid, ...(options.without ?? [])])
  return { catalog: resolveCatalog(parsed, schemas, { without }), issues }
}

/** Gives the networks of service.json to every operation that names none of its own. */
function withNetworks(product: Product, accepts: readonly string[] | undefined): Product {
  if (accepts === undefined) return product
  return withAccepts.get(product, [accepts.join()], () => ({
    ...product,
    operations: product.operations.map((each) => ({ ...each, accepts: each.accepts ?? accepts })),
  }))
}

const withAccepts = new Remembered<Product>()

/** Hashes the documents and the schemas they use. White space does not change the version. */
function versionOf(documents: readonly CatalogDocument[], products: readonly Product[], schemas: Schemas): string {
  const used = filesOf(
    products.flatMap(({ operations }) => operations),
    schemas,
  )
  const parts = [
    ...documents.map(({ file, content }) => texts.get(content, [file], () => textOf(file, content))),
    ...used.map((file) => JSON.stringify([file, schemas.get(file)])),
  ]
  return createHash('sha256')
    .update(`[${parts.join(',')}]`)
    .digest('hex')
    .slice(0, 16)
}

const texts = new Remembered<string>()

const textOf = (file: string, content: CatalogDocument['content']): string =>
  JSON.stringify([file, Object.entries(content).filter(([name]) => name !== '$schema')])

function serviceOf(content: Readonly<Record<string, unknown>>): Service {
  const { $schema: _, notes, ...fields } = content
  return frozen({ ...(fields as unknown as Omit<Service, 'notes'>), notes: strings(notes) })
}

const resolved = new Remembered<Product>()

function productOf({ file, product, content, uses, operations }: Draft): Product {
  const { plugin, upstream } = content
  const named = typeof plugin === 'string' ? pluginNameOf(plugin) : null
  const shared = { product, family: (content['family'] as string | undefined) ?? null, tags: strings(content['tags']) }
  return {
    id: product,
    title: content['title'] as string,
    summary: content['summary'] as string,
    whenToUse: (content['when_to_use'] as string | undefined) ?? '',
    family: shared.family,
    tags: shared.tags,
    plugin: named && { name: named.name, version: named.version },
    upstream: isObject(upstream) ? upstreamOf(upstream) : null,
    settings: isObject(content['settings']) ? content['settings'] : {},
    uses,
    operations: operations.map((draft) => ({ ...operationOf(draft, content['fresh']), ...shared })),
    file,
  }
}

function upstreamOf(fields: Readonly<Record<string, unknown>>): Upstream {
  return {
    url: fields['url'] as string,
    headers: (fields['headers'] as Record<string, string> | undefined) ?? {},
    query: (fields['query'] as Record<string, string> | undefined) ?? {},
    timeoutSeconds: (fields['timeout_seconds'] as number | undefined) ?? DEFAULT_TIMEOUT_SECONDS,
    maxBytes: (fields['max_bytes'] as number | undefined) ?? DEFAULT_MAX_BYTES,
    stream: fields['stream'] === true,
  }
}

type Written<Part> = { readonly [Name in keyof Part]?: Part[Name] }

function operationUpstreamOf(fields: Written<OperationUpstream>): OperationUpstream {
  const parameters = (fields.parameters ?? []) as readonly Written<UpstreamParameter>[]
  return {
    url: fields.url ?? null,
    headers: fields.headers ?? {},
    query: fields.query ?? {},
    parameters: parameters.map(({ field, name, in: place = 'query', style, explode }) => {
      const usual = place === 'query' || place === 'cookie' ? 'form' : 'simple'
      const chosen = style ?? usual
      return {
        field: field ?? (name as string),
        name: name as string,
        in: place,
        style: chosen,
        explode: explode ?? chosen === 'form',
      }
    }),
  }
}

/** @param fresh the default of the product */
function operationOf(draft: OperationDraft, fresh: unknown): Omit<Operation, 'product' | 'family' | 'tags'> {
  const { id, fields, route, isInternal, isRetired } = draft
  const field = <Value>(name: string, missing: Value): Value => (fields[name] as Value | undefined) ?? missing
  const priceText = field('price', 'free')
  const body = field('body', null)
  return {
    ...(route ? routeFields(route) : { method: 'GET', path: '', route: '', displayRoute: '' }),
    id,
    summary: field('summary', ''),
    description: field('description', ''),
    price: parsePrice(priceText),
    priceText,
    params: field('params', null),
    query: field('query', null),
    body,
    bodyMedia: body === null ? [] : [field<string | string[]>('body_media', 'application/json')].flat(),
    response: field('response', null),
    rows: field('rows', null),
    chart: field('chart', null),
    view: field('view', null),
    viewRefusals: field('view_refusals', false),
    form: field('form', null),
    tool: isRetired ? null : draft.tool,
    readOnly: field('read_only', (route?.method ?? 'GET') === 'GET'),
    maxFreshnessSeconds: field('max_freshness_seconds', 0),
    fresh: readFresh(field('fresh', parsePrice(priceText) === null ? null : (fresh ?? null))),
    sellEmpty: field('sell_empty', true),
    trial: field('trial', null),
    limit: field('limit', null),
    timeoutSeconds: field('timeout_seconds', DEFAULT_TIMEOUT_SECONDS),
    queue: field('queue', parsePrice(priceText) === null ? 'free' : 'paid'),
    costPerMegabyte: field('cost_per_megabyte', 0),
    maxBytes: field('max_bytes', DEFAULT_MAX_BYTES),
    cacheSeconds: field('cache_seconds', 0),
    handler: field('handler', id),
    upstream: isObject(fields['upstream']) ? operationUpstreamOf(fields['upstream']) : null,
    listed: field('listed', true) && !isInternal,
    internal: isInternal,
    example: field<Example | null>('example', null),
    wait: field('wait', (parsePrice(priceText) ?? 0n) < CONFIRMED_FROM ? 'mined' : 'confirmed'),
    identifier: field('identifier', 'optional'),
    accepts: field('accepts', null),
    retired: isRetired,
    replacement: field('replacement', null),
    plan: null,
  }
}
