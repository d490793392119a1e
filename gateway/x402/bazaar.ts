/**
 * Tells indexers and agents in a 402 how to call the operation: the `bazaar` extension of x402 v2 (spec:
 * extensions/bazaar) and `outputSchema` of v1.
 */
import type { Catalog, Operation } from '../plugin/catalog.ts'
import { dereference, fieldsOf } from '../catalog/schemas.ts'
import type { JsonSchema } from '../plugin/plugin.ts'
import { isObject } from '../validation/json.ts'

/**
 * How much of a schema is shown: all, without descriptions, names and types, those of its own fields, of the first of
 * these, or its type.
 */
type SchemaDetail = 'full' | 'rules' | 'types' | 'fields' | 'first' | 'none'

/** How much of an example is shown: all, the first item of each list, its own fields, the first of these, or nothing. */
type ExampleDetail = 'whole' | 'short' | 'outline' | 'first' | 'none'

/** How much the extension includes: a header has little room. */
export interface Detail {
  readonly answer: ExampleDetail
  readonly output: SchemaDetail
  readonly request: ExampleDetail
  readonly input: SchemaDetail
}

type Fields = Readonly<Record<string, unknown>>

const DIALECT = 'https://json-schema.org/draft/2020-12/schema'
const DESCRIPTIVE = new Set(['title', 'description', 'examples', '$comment'])
const STRUCTURAL = new Set(['type', 'properties', 'required', 'items', 'enum', 'const'])

export interface Bazaar {
  readonly info: { readonly input: Fields; readonly output: Fields }
  readonly schema: Fields
  readonly routeTemplate?: string
}

/** The extension. `info` is an example call; `schema` (JSON Schema 2020-12) describes `info`, which is valid by it. */
export function bazaar(operation: Operation, catalog: Catalog, detail: Detail): Bazaar {
  const { method, params, query, body, response, example } = operation
  const request = detail.request === 'none' ? {} : shortened(example?.request ?? {}, detail.request, REQUEST_DEPTH)
  const schemaOf = (schema: JsonSchema, value: unknown): JsonSchema =>
    reduce(allowAnything(dereference(schema, catalog.schemas), value), detail.input)
  const takesBody = method !== 'GET' && method !== 'DELETE'
  // Indexers look for a body or a query, also where there is nothing to send. Some register no route without either.
  const takesQuery = query !== null || !takesBody
  const exampleInput = {
    ...(params === null ? {} : { pathParams: texts(request.params ?? {}) }),
    ...(takesQuery ? { queryParams: request.query ?? {} } : {}),
    ...(takesBody ? { bodyType: bodyTypeOf(operation), body: request.body ?? {} } : {}),
  }
  const inputSchemas = {
    ...(params === null ? {} : { pathParams: { type: 'object', additionalProperties: { type: 'string' } } }),
    ...(takesQuery ? { queryParams: schemaOf(query ?? {}, request.query) } : {}),
    ...(takesBody ? { bodyType: { const: bodyTypeOf(operation) }, body: schemaOf(body ?? {}, request.body) } : {}),
  }
  const output = response === null ? {} : { example: outputOf(dereference(response, catalog.schemas), detail.output) }
  const answer =
    detail.answer === 'none' || example?.response === undefined
      ? {}
      : { example: shortened(example.response, detail.answer, 1) }
  const template = operation.path.replace(/\{([^}]+)\}/g, ':$1')
  return {
    info: { input: { type: 'http', method, ...exampleInput }, output: { type: 'json', ...answer } },
    schema: {
      $schema: DIALECT,
      type: 'object',
      properties: {
        input: {
          type: 'object',
          properties: { type: { const: 'http' }, method: { enum: [method] }, ...inputSchemas },
          required: ['type', 'method', ...(takesBody ? ['bodyType', 'body'] : [])],
          additionalProperties: false,
        },
        output: { type: 'object', properties: { type: { type: 'string' }, ...output }, required: ['type'] },
      },
      required: ['input'],
    },
    ...(template === operation.path ? {} : { routeTemplate: template }),
  }
}

/** The extension, with the path parameters of one address in its example call. */
export function withPathParams({ info, ...rest }: Bazaar, pathParams: Fields): Bazaar {
  return { info: { ...info, input: { ...info.input, pathParams } }, ...rest }
}

/** An address holds text. The types are in the OpenAPI document. */
function texts(params: Fields): Fields {
  return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value)]))
}

/** `outputSchema` of v1: each field of the request with its type and description, as v1 indexers read them. */
export function outputSchema(operation: Operation, catalog: Catalog): Fields {
  const { method, params, query, body, example } = operation
  const fields = (schema: JsonSchema | null): Fields | null => (schema === null ? null : fieldsOfV1(schema, catalog))
  const [pathParams, queryParams, bodyFields] = [fields(params), fields(query), fields(body)]
  return {
    input: {
      type: 'http',
      method,
      discoverable: true,
      ...(pathParams ? { pathParams } : {}),
      ...(queryParams ? { queryParams } : {}),
      ...(bodyFields ? { bodyType: bodyTypeOf(operation), bodyFields } : {}),
    },
    ...(example?.response === undefined ? {} : { output: { example: example.response } }),
  }
}

function fieldsOfV1(schema: JsonSchema, catalog: Catalog): Fields {
  const required = (dereference(schema, catalog.schemas)['required'] ?? []) as readonly string[]
  return Object.fromEntries(
    Object.entries(fieldsOf(schema, catalog.schemas)).map(([name, { type, description, enum: values }]) => [
      name,
      {
        type: typeof type === 'string' ? type : 'string',
        required: required.includes(name),
        ...(typeof description === 'string' ? { description } : {}),
        ...(Array.isArray(values) ? { enum: values.map(String) } : {}),
      },
    ]),
  )
}

function bodyTypeOf({ bodyMedia: [media = 'application/json'] }: Operation): 'json' | 'form-data' | 'text' {
  if (media.endsWith('json')) return 'json'
  return media.startsWith('multipart/') || media.endsWith('form-urlencoded') ? 'form-data' : 'text'
}

/** How deep the outline of a request goes: its query or body, and their fields. */
const REQUEST_DEPTH = 2
const MAX_TEXT = { short: 80, outline: 40, first: 24 } as const
/** How many fields of an example, and of a schema, "the first" are. */
const MAX_FIRST = 10
const MAX_FIRST_TYPES = 3

/** An example in less room. Deeper than `depth`, lists and objects of an outline are empty. */
function shortened<Value>(value: Value, to: Exclude<ExampleDetail, 'none'>, depth: number): Value
function shortened(value: unknown, to: Exclude<ExampleDetail, 'none'>, depth: number): unknown {
  if (to === 'whole') return value
  if (typeof value === 'string') return value.length > MAX_TEXT[to] ? `${value.slice(0, MAX_TEXT[to] - 1)}…` : value
  const isCut = to !== 'short' && depth === 0
  if (Array.isArray(value)) return isCut ? [] : value.slice(0, 1).map((item) => shortened(item, to, depth - 1))
  if (!isObject(value)) return value
  const fields = isCut ? [] : Object.entries(value).slice(0, to === 'first' ? MAX_FIRST : undefined)
  return Object.fromEntries(fields.map(([name, field]) => [name, shortened(field, to, depth - 1)]))
}

/** Without an example, `info` has no value here, so the schema must require nothing. */
function allowAnything(schema: JsonSchema, value: unknown): JsonSchema {
  if (value !== undefined) return schema
  return { type: 'object', ...(schema['properties'] === undefined ? {} : { properties: schema['properties'] }) }
}

/** The names of an answer's own fields are enough: a list of those that are always there would say them twice. */
function outputOf(schema: JsonSchema, to: SchemaDetail): JsonSchema {
  const { required, ...rest } = reduce(schema, to)
  return to === 'fields' || to === 'first' || required === undefined ? rest : { ...rest, required }
}

/** A schema without titles, descriptions and examples. */
export const withoutWords = (schema: JsonSchema): JsonSchema => reduce(schema, 'rules')

/** Drops keywords from a schema. Names of properties are data and stay. */
function reduce(schema: JsonSchema, to: SchemaDetail): JsonSchema {
  if (to === 'full') return schema
  if (to === 'none') return { type: schema['type'] ?? 'object' }
  const entries = Object.entries(schema)
    .filter(([keyword]) => (to === 'rules' ? !DESCRIPTIVE.has(keyword) : STRUCTURAL.has(keyword)))
    .map(([keyword, value]) => {
      if (keyword === 'properties' || keyword === 'patternProperties')
        return [keyword, reduceEach(value as Readonly<Record<string, JsonSchema>>, to)] as const
      if (['items', 'additionalProperties', 'not'].includes(keyword) && isObject(value))
        return [keyword, reduce(value, to)] as const
      if (['allOf', 'anyOf', 'oneOf', 'prefixItems'].includes(keyword) && Array.isArray(value))
        return [keyword, value.map((item) => (isObject(item) ? reduce(item, to) : item))] as const
      return [keyword, value] as const
    })
  return Object.fromEntries(entries)
}

function reduceEach(schemas: Readonly<Record<string, JsonSchema>>, to: SchemaDetail): Fields {
  const isShallow = to === 'fields' || to === 'first'
  const each = (schema: JsonSchema): JsonSchema => (isShallow ? ownType(schema) : reduce(schema, to))
  const fields = Object.entries(schemas).slice(0, to === 'first' ? MAX_FIRST_TYPES : undefined)
  return Object.fromEntries(fields.map(([name, schema]) => [name, isObject(schema) ? each(schema) : schema]))
}

/** The type and the values of a field, without what is in it. */
function ownType(schema: JsonSchema): JsonSchema {
  return Object.fromEntries(Object.entries(schema).filter(([keyword]) => ['type', 'enum', 'const'].includes(keyword)))
}
