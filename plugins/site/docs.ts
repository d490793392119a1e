/** The documentation: the OpenAPI document, ordered for reading. */
import { type Call, type Catalog, NotFound } from '#gateway'
import { ask, byPrice, capOf, tools } from './asking.ts'
import { curl } from './curl.ts'
import { type Field, fieldOf, fieldsOf } from './fields.ts'
import type { Content, OpenApi, OpenApiOperation, Schema } from './openapi.ts'

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

/** A longer example stands on the operation's own page. */
const LONGEST_EXAMPLE = 600

/** Of a description, search engines show about so many letters. */
const LONGEST_WORDS = 160

const built = new WeakMap<OpenApi, ReturnType<typeof reference>>()

export async function docs(call: Call) {
  return read(call)
}

/** One operation with every field of its answer. Throws NotFound. */
export async function docsOf(call: Call) {
  const { groups } = await read(call)
  const id = call.input.params['operation']
  const found = groups.flatMap(({ title, operations }) => operations.map((operation) => ({ title, operation })))
  const one = found.find(({ operation }) => operation.id === id)
  if (!one) throw new NotFound('There is no such operation; /docs lists them all.')
  return { product: one.title, operation: one.operation, words: wordsOf(one.operation) }
}

/** What search engines show of an operation: as many whole sentences as fit. */
function wordsOf({ summary, description }: { readonly summary: string; readonly description: string }): string {
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
  const baseUrl = openapi.servers[0]?.url ?? ''
  const operations = Object.entries(openapi.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  )
  const shown = operations.filter(({ operation }) => !('text/html' in (operation.responses['200']?.content ?? {})))
  return {
    version: openapi.info.version,
    basics: openapi.info.description.split('\n\n').slice(1).map(basic),
    tools: tools(catalog),
    retries: RETRIES,
    longestExample: LONGEST_EXAMPLE,
    groups: openapi.tags
      .map(({ name, description }) => ({
        id: name.toLowerCase().replace(/[^a-z0-9]+/g, '-'),
        title: name,
        summary: description,
        operations: shown
          .filter(({ operation }) => operation.tags.includes(name))
          .map((entry) => article(entry, { schemas: openapi.components.schemas, catalog, baseUrl })),
      }))
      .filter(({ operations }) => operations.length > 0)
      .sort((one, other) => byPrice(one.operations, other.operations)),
  }
}

/** The routes above a client's limit are listed on the price page; here their number will do. */
function basic(paragraph: string): string {
  const { rule, routes } = capOf(paragraph)
  return routes.length === 0 ? rule : `${rule} ${routes.length} routes are above that limit; the price page names them.`
}

interface Entry {
  readonly path: string
  readonly method: string
  readonly operation: OpenApiOperation
}

interface Surroundings {
  readonly schemas: Readonly<Record<string, Schema>>
  readonly catalog: Catalog
  readonly baseUrl: string
}

function article({ path, method, operation }: Entry, { schemas, catalog, baseUrl }: Surroundings) {
  const { operationId: id, summary, description, parameters = [], requestBody, responses } = operation
  const source = catalog.operations.get(id)
  const price = source?.price ?? null
  return {
    id,
    path,
    method,
    summary,
    description,
    price,
    parameters: parameters.map(({ name, required, schema }) => fieldOf(name, schema, required, schemas)),
    body: requestBody ? bodyOf(requestBody.content, schemas) : null,
    answer: answerOf(responses['200']?.content ?? {}, schemas),
    curl: source ? curl(source, baseUrl) : null,
    trial: price === null && method === 'GET' && !path.includes('{') ? trial(path, parameters) : null,
  }
}

function bodyOf(content: Content, schemas: Surroundings['schemas']) {
  const [main] = Object.values(content)
  return { media: Object.keys(content).join(' or '), fields: main ? fieldsOf(main.schema, schemas) : [] }
}

function answerOf(content: Content, schemas: Surroundings['schemas']) {
  const [[media, main] = ['', undefined]] = Object.entries(content)
  const fields: readonly Field[] = main ? fieldsOf(main.schema, schemas) : []
  return { media, fields, example: main?.example === undefined ? null : JSON.stringify(main.example, null, 2) }
}

function trial(action: string, parameters: NonNullable<OpenApiOperation['parameters']>) {
  return {
    action,
    inputs: parameters.map(({ name, required, schema, example }) => ({
      name,
      required,
      value: example === undefined ? scalar(schema.default) : scalar(example),
    })),
  }
}

function scalar(value: unknown): string {
  if (value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}
