/** Builds the frozen catalog from documents, and says everything that is wrong with them. */
import { createHash } from 'node:crypto'
import { acceptsMistakes } from './accepts.ts'
import type { Catalog, Example, Operation, Product, Service, Upstream } from '../plugin/catalog.ts'
import { type Draft, draftsOf, type OperationDraft, strings } from './operation-drafts.ts'
import { frozen, frozenMap } from './frozen.ts'
import { CatalogError, type Issue } from '../validation/issue.ts'
import { type Held, nameMistakes } from './names.ts'
import { NO_PLANS, planDrafts, planMistakes, planProduct, readPlans, routeFields } from './plans.ts'
import { parsePrice } from './price.ts'
import type { CatalogDocument } from './documents.ts'
import { isObject } from '../validation/json.ts'
import { productMistakes } from './rules.ts'
import { filesOf } from './schemas.ts'
import type { Schemas } from '../validation/json-schema.ts'
import { shapeMistakes } from './shape.ts'

export interface CreateOptions {
  /** Files of product documents to leave out; what they name still exists for the others. */
  readonly without?: ReadonlySet<string>
  /** Who had which name before; else a name belongs to the first document that has it. */
  readonly held?: Held
  /** Names of the networks payments are taken on; absent: any will do. */
  readonly networks?: ReadonlySet<string>
}

const SECONDS = 10
/** 1 USD: whoever pays so much gets an answer only once the payment is final, unless the document says otherwise. */
const CONFIRMED_FROM = 1_000_000n
const BYTES = 1_000_000

/**
 * The catalog of the documents that have no mistake, and the mistakes of the others. Throws CatalogError, with all
 * mistakes, where service.json or plans.json has one: without them nothing can be sold.
 */
export function createCatalog(
  documents: readonly CatalogDocument[],
  schemas: Schemas,
  options: CreateOptions = {},
): { readonly catalog: Catalog; readonly mistakes: readonly Issue[] } {
  const service = documents.find(({ kind }) => kind === 'service')
  const plans = documents.find(({ kind }) => kind === 'plans')
  const drafts = draftsOf(documents.filter(({ kind }) => kind === 'product'))
  const purchases = plans ? planDrafts(plans) : []
  const mistakes = [
    ...documents.flatMap(shapeMistakes),
    ...drafts.flatMap((draft) => productMistakes(draft, schemas)),
    ...nameMistakes(drafts, purchases, options.held),
    ...acceptsMistakes(service, drafts, options.networks),
    ...(plans
      ? planMistakes(
          plans,
          drafts.flatMap((draft) => draft.operations),
        )
      : []),
  ]
  const wrong = new Set(mistakes.map(({ file }) => file))
  const indispensable = documents.some(({ file, kind }) => kind !== 'product' && wrong.has(file))
  if (!service || indispensable) throw new CatalogError(mistakes)

  const sound = drafts.filter(({ file }) => !wrong.has(file) && !options.without?.has(file))
  const words = serviceOf(service.content)
  const products = sound.map(productOf)
  const served = new Set(products.flatMap(({ operations }) => operations.map(({ id }) => id)))
  const planCatalog = plans ? readPlans(plans.content, served) : NO_PLANS
  const isSold = plans && !options.without?.has(plans.file)
  const sale = isSold ? planProduct(plans.content, planCatalog, plans.file, products) : null
  const all = (sale ? [...products, sale] : products).map((product) => accepting(product, words.accepts))
  const files = new Set(['service.json', plans?.file, ...sound.map(({ file }) => file)])
  const catalog: Catalog = {
    version: versionOf(
      documents.filter(({ file }) => files.has(file)),
      all,
      schemas,
    ),
    service: words,
    products: frozen(all),
    operations: frozenMap(all.flatMap(({ operations }) => operations.map((operation) => [operation.id, operation]))),
    plans: frozen(planCatalog),
    schemas: frozenMap(schemas),
  }
  return { catalog: Object.freeze(catalog), mistakes }
}

/** The product with the networks of the service where an operation names none of its own. */
function accepting(product: Product, accepts: readonly string[] | undefined): Product {
  if (accepts === undefined) return product
  return { ...product, operations: product.operations.map((each) => ({ ...each, accepts: each.accepts ?? accepts })) }
}

/** Equal for equal words, prices and schemas in use, whatever the white space. */
function versionOf(documents: readonly CatalogDocument[], products: readonly Product[], schemas: Schemas): string {
  const used = filesOf(
    products.flatMap(({ operations }) => operations),
    schemas,
  )
  const parts = [
    ...documents.map(({ file, content }) => [file, Object.entries(content).filter(([name]) => name !== '$schema')]),
    ...used.map((file) => [file, schemas.get(file)]),
  ]
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 16)
}

function serviceOf(content: Readonly<Record<string, unknown>>): Service {
  const { $schema: _, notes, ...words } = content
  return frozen({ ...(words as unknown as Omit<Service, 'notes'>), notes: strings(notes) })
}

function productOf({ file, product, content, uses, operations }: Draft): Product {
  const { plugin, upstream } = content
  const [name = '', version = null] = typeof plugin === 'string' ? plugin.split('@') : []
  const shared = { product, family: (content['family'] as string | undefined) ?? null, tags: strings(content['tags']) }
  return {
    id: product,
    title: content['title'] as string,
    summary: content['summary'] as string,
    family: shared.family,
    tags: shared.tags,
    plugin: plugin === undefined ? null : { name, version },
    upstream: isObject(upstream) ? upstreamOf(upstream) : null,
    settings: isObject(content['settings']) ? content['settings'] : {},
    uses,
    operations: operations.map((draft) => ({ ...operationOf(draft), ...shared })),
    file,
  }
}

function upstreamOf(fields: Readonly<Record<string, unknown>>): Upstream {
  return {
    url: fields['url'] as string,
    headers: (fields['headers'] as Record<string, string> | undefined) ?? {},
    timeoutSeconds: (fields['timeout_seconds'] as number | undefined) ?? SECONDS,
    maxBytes: (fields['max_bytes'] as number | undefined) ?? BYTES,
    stream: fields['stream'] === true,
  }
}

function operationOf(draft: OperationDraft): Omit<Operation, 'product' | 'family' | 'tags'> {
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
    view: field('view', null),
    form: field('form', null),
    tool: isRetired ? null : draft.tool,
    maxFreshnessSeconds: field('max_freshness_seconds', 0),
    timeoutSeconds: field('timeout_seconds', SECONDS),
    maxBytes: field('max_bytes', BYTES),
    cacheSeconds: field('cache_seconds', 0),
    handler: field('handler', id),
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
