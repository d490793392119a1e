/** The documentation: an index of every operation in a line each, and a page for each, from the OpenAPI document. */
import { type Call, type Catalog, NotFound } from 'tollgate/plugin'
import { type Article, articleOf, type Entry } from './article.ts'
import { anchorOf, ask, byPrice, capOf, tools } from './asking.ts'
import type { OpenApi } from './openapi.ts'

/** What `retry` tells a caller, in the words of the error schema. */
const RETRIES = [
  { name: 'never', meaning: 'Stop: the same request cannot succeed.' },
  { name: 'after_fix', meaning: 'Correct the request, then send it again.' },
  { name: 'after_delay', meaning: 'Wait as long as Retry-After says, then send the same request.' },
  { name: 'new_quote', meaning: 'Sign a fresh payment for the offer in this answer.' },
  {
    name: 'same_payment',
    meaning: 'The payment is on its way. Repeat the very same request with the very same payment.',
  },
] as const

/** Of a description, search engines show about so many letters. */
const LONGEST_WORDS = 160

/** The index made of an OpenAPI document, once for all who read it. */
const built = new WeakMap<OpenApi, ReturnType<typeof reference>>()

/** The index, with one free operation to try at once. */
export async function docs(call: Call) {
  const { groups, articles, version, basics } = await read(call)
  const lines = groups.flatMap(({ operations }) => operations)
  const first = lines.map(({ id }) => articles.get(id)).find((article) => article && isReady(article))
  return { groups, version, basics, tools: tools(call.catalog), retries: RETRIES, first: first ?? null }
}

/** One operation with every field of its answer, among those of its product. Throws NotFound. */
export async function docsOf(call: Call) {
  const { groups, articles } = await read(call)
  const operation = articles.get(call.input.params['operation'] as string)
  const group = groups.find(({ operations }) => operations.some(({ id }) => id === operation?.id))
  if (!operation || !group) throw new NotFound('There is no such operation; /docs lists them all.')
  return { group, operation, words: wordsOf(operation) }
}

/** Can be tried without filling in anything. */
function isReady({ trial }: Article): boolean {
  return trial !== null && !trial.inputs.some(({ required, value }) => required && value === '')
}

/** What search engines show of an operation: as many whole sentences as fit. */
function wordsOf({ summary, description }: Article): string {
  const sentences = `${summary} ${description}`.replaceAll('`', '').split(/(?<=\.) /)
  let words = sentences[0] ?? summary
  for (const sentence of sentences.slice(1)) {
    if (words.length + 1 + sentence.length > LONGEST_WORDS) break
    words += ` ${sentence}`
  }
  return words.length <= LONGEST_WORDS ? words : `${words.slice(0, LONGEST_WORDS - 1)}…`
}

async function read(call: Call) {
  const openapi = await ask<OpenApi>(call, 'getOpenapi')
  const page = built.get(openapi) ?? reference(openapi, call.catalog)
  built.set(openapi, page)
  return page
}

function reference(openapi: OpenApi, catalog: Catalog) {
  const surroundings = { schemas: openapi.components.schemas, catalog, baseUrl: openapi.servers[0]?.url ?? '' }
  const entries = Object.entries(openapi.paths)
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
    )
    .filter(({ operation }) => !('text/html' in (operation.responses['200']?.content ?? {})))
  return {
    version: openapi.info.version,
    basics: openapi.info.description.split('\n\n').slice(1).map(basic),
    articles: new Map(entries.map((entry) => [entry.operation.operationId, articleOf(entry, surroundings)])),
    groups: openapi.tags
      .map(({ name, description }) => ({
        id: anchorOf(catalog.products.find(({ title }) => title === name)?.id ?? name),
        title: name,
        summary: description,
        operations: entries.filter(({ operation }) => operation.tags.includes(name)).map((one) => line(one, catalog)),
      }))
      .filter(({ operations }) => operations.length > 0)
      .sort((one, other) => byPrice(one.operations, other.operations)),
  }
}

/** An operation in the index: no more of it, so that a hundred products fit on the page. */
function line({ path, method, operation: { operationId: id, summary } }: Entry, { operations }: Catalog) {
  return { id, path, method, summary, price: operations.get(id)?.price ?? null }
}

/** The routes above a client's limit are listed on the price page; here their number will do. */
function basic(paragraph: string): string {
  const { rule, routes } = capOf(paragraph)
  return routes.length === 0 ? rule : `${rule} ${routes.length} routes are above that limit; the price page names them.`
}
