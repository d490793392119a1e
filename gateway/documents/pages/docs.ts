/** The documentation, made from the OpenAPI document: an index of all operations and a page for each. */
import type { Recipients } from '../../config/pay-to.ts'
import { type Call, type Catalog, NotFound, type Product, Reply } from '../../plugin/plugin.ts'
import { type Article, articleOf, type Entry } from './docs-operation.ts'
import { anchorOf, ask, byPrice, clientLimitOf, tools } from './page-data.ts'
import type { OpenApi } from './openapi-types.ts'
import type { WalletTerms } from './wallet-terms.ts'

/** The values of `retry`, as in the error schema. */
const RETRIES = [
  { name: 'never', meaning: 'Do not retry. The same request cannot succeed.' },
  { name: 'after_fix', meaning: 'Correct the request, then send it again.' },
  { name: 'after_delay', meaning: 'Wait for the time in Retry-After, then send the same request.' },
  { name: 'new_quote', meaning: 'Sign a new payment for the requirements in this response.' },
  {
    name: 'same_payment',
    meaning: 'The payment is pending. Repeat the same request with the same payment.',
  },
] as const

/** Search engines show about this many characters of a description. */
const MAX_SEARCH_TEXT = 160

/** The index, built once per OpenAPI document. */
const built = new WeakMap<OpenApi, ReturnType<typeof reference>>()

/** The pages by catalog: the index under "", and one of each operation under its id. */
const pages = new WeakMap<Catalog, Map<string, Reply>>()

async function oncePerCatalog(catalog: Catalog, name: string, make: () => Promise<object>): Promise<Reply> {
  const ofCatalog = pages.get(catalog) ?? new Map<string, Reply>()
  pages.set(catalog, ofCatalog)
  const page = ofCatalog.get(name) ?? Reply.constant(await make())
  ofCatalog.set(name, page)
  return page
}

/** The pages, for the networks and wallets that are paid with. */
export interface DocsPages {
  /** Returns the index, with one free operation to try. */
  docs(call: Call): Promise<Reply>
  /** Returns one operation with its form, its code and all fields of its response. Throws NotFound. */
  docsOf(call: Call): Promise<Reply>
}

export function createDocs(recipients: Recipients, wallet: WalletTerms): DocsPages {
  return {
    docs: (call) => oncePerCatalog(call.catalog, '', () => indexPage(call, recipients)),
    docsOf(call) {
      const id = call.input.params['operation'] as string
      return oncePerCatalog(call.catalog, id, async () => ({ ...(await operationPage(call, id, recipients)), wallet }))
    },
  }
}

async function indexPage(call: Call, recipients: Recipients) {
  const { groups, articles, version, basics } = await read(call, recipients)
  const lines = groups.flatMap(({ operations }) => operations)
  const first = lines.map(({ id }) => articles.get(id)).find((article) => article && isReady(article))
  return { groups, version, basics, tools: tools(call.catalog), retries: RETRIES, first: first ?? null }
}

async function operationPage(call: Call, id: string, recipients: Recipients) {
  const { groups, articles } = await read(call, recipients)
  const operation = articles.get(id)
  const group = groups.find(({ operations }) => operations.some(({ id }) => id === operation?.id))
  if (!operation || !group) throw new NotFound('This operation does not exist. /docs lists all operations.')
  return { group, operation, searchText: searchTextOf(operation) }
}

/** True if the operation can be tried without any input and without a script. */
function isReady({ form, price, method }: Article): boolean {
  const isFilled = !form.controls.some(({ part, required, filled }) => part === 'path' || (required && filled === ''))
  return price === null && method === 'GET' && isFilled
}

/** Returns the text for search engines: as many whole sentences as fit. */
function searchTextOf({ summary, description }: Article): string {
  const sentences = `${summary} ${description}`.replaceAll('`', '').split(/(?<=\.) /)
  let text = sentences[0] ?? summary
  for (const sentence of sentences.slice(1)) {
    if (text.length + 1 + sentence.length > MAX_SEARCH_TEXT) break
    text += ` ${sentence}`
  }
  return text.length <= MAX_SEARCH_TEXT ? text : `${text.slice(0, MAX_SEARCH_TEXT - 1)}…`
}

async function read(call: Call, recipients: Recipients) {
  const openapi = await ask<OpenApi>(call, 'getOpenapi')
  const page = built.get(openapi) ?? reference(openapi, call.catalog, recipients)
  built.set(openapi, page)
  return page
}

function reference(openapi: OpenApi, catalog: Catalog, recipients: Recipients) {
  const context = { schemas: openapi.components.schemas, catalog, baseUrl: openapi.servers[0]?.url ?? '', recipients }
  const entries = Object.entries(openapi.paths)
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
    )
    .filter(({ operation }) => !('text/html' in (operation.responses['200']?.content ?? {})))
  return {
    version: openapi.info.version,
    basics: openapi.info.description.split('\n\n').slice(1).map(basic),
    articles: new Map(entries.map((entry) => [entry.operation.operationId, articleOf(entry, context)])),
    groups: openapi.tags
      .map(({ name, description }) => {
        const product = catalog.products.find(({ title }) => title === name)
        return {
          id: anchorOf(product?.id ?? name),
          title: name,
          summary: description,
          whenToUse: product?.whenToUse ?? '',
          task: taskOf(product),
          operations: entries.filter(({ operation }) => operation.tags.includes(name)).map((one) => line(one, catalog)),
        }
      })
      .filter(({ operations }) => operations.length > 0)
      .sort((one, other) => byPrice(one.operations, other.operations)),
  }
}

/** What a product is for: the beginning of its `when_to_use`, up to the end of its first clause, or its summary. */
function taskOf(product: Product | undefined): string {
  const text = product?.whenToUse || product?.summary || ''
  const end = text.search(/[.:;](?:\s|$)/)
  return end === -1 ? text : `${text.slice(0, end)}.`
}

/** Returns an operation for the index, short enough that hundreds fit on the page. */
function line({ path, method, operation: { operationId: id, summary } }: Entry, { operations }: Catalog) {
  return { id, path, method, summary, price: operations.get(id)?.price ?? null }
}

/** Replaces the list of routes above a client's limit by their number. The price page lists them. */
function basic(paragraph: string): string {
  const { rule, routes } = clientLimitOf(paragraph)
  return routes.length === 0 ? rule : `${rule} ${routes.length} routes are above that limit; the price page lists them.`
}
