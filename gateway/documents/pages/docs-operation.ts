/** Prepares one operation of the OpenAPI document for its documentation page. */
import type { Catalog } from '../../plugin/plugin.ts'
import { curl } from './curl.ts'
import { type Field, fieldOf, fieldsOf } from './schema-fields.ts'
import type { Content, OpenApiOperation, Schema } from './openapi-types.ts'

export interface Entry {
  readonly path: string
  readonly method: string
  readonly operation: OpenApiOperation
}

export interface DocsContext {
  readonly schemas: Readonly<Record<string, Schema>>
  readonly catalog: Catalog
  readonly baseUrl: string
}

export type Article = ReturnType<typeof articleOf>

/** Returns the description, parameters, body, response and curl command, and a form to try the operation if it is free. */
export function articleOf({ path, method, operation }: Entry, { schemas, catalog, baseUrl }: DocsContext) {
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
    /** How long the access lasts that the operation sells; null if it sells one answer. */
    planSeconds: source?.plan?.durationSeconds ?? null,
    parameters: parameters.map(({ name, required, schema }) => fieldOf(name, schema, required, schemas)),
    body: requestBody ? bodyOf(requestBody.content, schemas) : null,
    answer: answerOf(responses['200']?.content ?? {}, schemas),
    curl: source ? curl(source, baseUrl) : null,
    trial: price === null && method === 'GET' && !path.includes('{') ? trial(path, parameters) : null,
  }
}

function bodyOf(content: Content, schemas: DocsContext['schemas']) {
  const [main] = Object.values(content)
  return { media: Object.keys(content).join(' or '), fields: main ? fieldsOf(main.schema, schemas) : [] }
}

function answerOf(content: Content, schemas: DocsContext['schemas']) {
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
