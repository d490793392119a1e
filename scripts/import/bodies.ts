/** The body and the answer of an OpenAPI operation as it is sold. */
import type { JsonSchema } from '../../gateway/plugin/catalog.ts'
import { isObject } from '../../gateway/validation/json.ts'
import { exampleOf } from './example.ts'
import { PartSchemas } from './json-schema.ts'
import { givenExample, LeftOut } from './parameters.ts'
import { entriesOf, followed, type Json, type OpenApi, textOf } from './read-openapi.ts'

const JSON_MEDIA = 'application/json'
const URL_ENCODED = 'application/x-www-form-urlencoded'
const MULTIPART = 'multipart/form-data'
const CONCRETE = /^[a-z]+\/[a-z0-9][a-z0-9.+-]*$/
const isJson = (media: string): boolean => media === JSON_MEDIA || /^application\/[\w.-]+\+json$/.test(media)
const isAny = (media: string): boolean => media === '*/*' || media === 'application/*' || media === ''

export interface SoldBody {
  readonly body: JsonSchema
  /** Undefined for JSON, the default. */
  readonly media: string | undefined
  /** The media type that the upstream wants, if the gateway reads the body as another. */
  readonly contentType: string | undefined
  readonly example: unknown
  readonly lost: readonly string[]
}

/** The media types of a body or an answer, without their parameters. */
function mediaOf(content: unknown): readonly (readonly [media: string, described: unknown])[] {
  return entriesOf(content).map(([media, described]) => [(media.split(';')[0] ?? '').trim().toLowerCase(), described])
}

/** Reads the body of an operation. Null if it has none. Throws LeftOut if it is required and cannot be sold. */
export function soldBody(
  openapi: OpenApi,
  method: string,
  given: unknown,
): SoldBody | { readonly lost: readonly string[] } {
  const requestBody = followed(openapi.root, given)
  const all = mediaOf(requestBody['content'])
  if (all.length === 0) return { lost: [] }
  if (method === 'GET' || method === 'DELETE') {
    if (requestBody['required'] === true)
      throw new LeftOut(`${method} with a body, which many proxies and clients drop`)
    return { lost: ['the body, which is optional: GET and DELETE are sold without one'] }
  }
  const chosen =
    all.find(([media]) => isJson(media)) ??
    all.find(([media]) => isAny(media)) ??
    all.find(([media]) => media === URL_ENCODED || media === MULTIPART) ??
    all.find(([media]) => CONCRETE.test(media))
  if (!chosen) throw new LeftOut(`its body is ${all[0]?.[0]}, which is no media type that a caller could send`)
  const [media, described] = chosen
  const others = all.flatMap(([each]) => (each === media ? [] : [each]))
  const lost = [
    ...(others.length === 0
      ? []
      : [`a body of ${others.join(' or ')}: it is sold as ${isAny(media) ? JSON_MEDIA : media}`]),
    ...(requestBody['required'] === true || !isJson(media)
      ? []
      : ['that the body is optional: a call without fields sends {}']),
  ]
  const type = followed(openapi.root, described)
  const part = new PartSchemas(openapi, 'request')
  const words = textOf(requestBody['description'])
  const described_ = words === '' ? {} : { description: words }
  if (media === URL_ENCODED || media === MULTIPART) {
    const form = formSchema(openapi, part, type, media)
    const body = part.whole({ ...described_, ...form })
    return { body, media, contentType: undefined, example: formExample(body, givenExample(openapi, type), media), lost }
  }
  if (!isJson(media) && !isAny(media)) {
    const file = { type: 'string', format: 'binary', description: `The content, as ${media}.` }
    const given = givenExample(openapi, type)
    const example = { file: typeof given === 'string' ? given : textExample(media) }
    const body = { ...described_, type: 'object', required: ['file'], properties: { file } }
    return { body, media, contentType: undefined, example, lost }
  }
  const body = part.whole({ ...part.write(type['schema']), ...described_ })
  const example = givenExample(openapi, type) ?? exampleOf(body)
  return {
    body,
    media: undefined,
    contentType: media === JSON_MEDIA || isAny(media) ? undefined : media,
    example,
    lost,
  }
}

const textExample = (media: string): string => (/xml/.test(media) ? '<example/>' : 'text')

/** The schema of a form: each field is text or a file. */
function formSchema(openapi: OpenApi, part: PartSchemas, type: Json, media: string): JsonSchema {
  const whole = part.whole(part.write(type['schema']))
  const defs = (whole['$defs'] ?? {}) as Record<string, JsonSchema>
  const followDefs = (schema: JsonSchema): JsonSchema =>
    typeof schema['$ref'] === 'string' ? followDefs(defs[schema['$ref'].slice('#/$defs/'.length)] ?? {}) : schema
  const properties: Record<string, JsonSchema> = {}
  const required: string[] = []
  const collect = (schema: JsonSchema, before: string, isNeeded: boolean, depth: number): void => {
    const node = followDefs(schema)
    for (const piece of (node['allOf'] ?? []) as JsonSchema[]) collect(piece, before, isNeeded, depth)
    const needed = new Set((node['required'] ?? []) as string[])
    for (const [name, property] of Object.entries((node['properties'] ?? {}) as Record<string, JsonSchema>)) {
      const field = before === '' ? name : `${before}[${name}]`
      const inner = followDefs(property)
      const isPart =
        inner['type'] === 'object' ||
        isObject(inner['properties']) ||
        (inner['type'] === 'array' && isPlainObject(inner['items']))
      if (isPart && media === URL_ENCODED && depth < 4 && isObject(inner['properties'])) {
        collect(inner, field, isNeeded && needed.has(name), depth + 1)
        continue
      }
      properties[field] = isPart ? asJsonText(inner, defs) : fileOrText(property, inner)
      if (isNeeded && needed.has(name)) required.push(field)
    }
  }
  collect(whole, '', true, 0)
  return { type: 'object', ...(required.length > 0 ? { required } : {}), properties }

  function isPlainObject(items: unknown): boolean {
    return isObject(items) && (followDefs(items)['type'] === 'object' || isObject(followDefs(items)['properties']))
  }
}

/** A part that is an object is sent as JSON (OpenAPI, Encoding Object). */
function asJsonText(schema: JsonSchema, defs: JsonSchema): JsonSchema {
  const { description } = schema
  return {
    type: 'string',
    contentMediaType: JSON_MEDIA,
    ...(description === undefined ? {} : { description }),
    examples: [JSON.stringify(exampleOf({ ...schema, $defs: defs }) ?? {})],
  }
}

/** A list of files has no type: the gateway gets them as files. */
function fileOrText(property: JsonSchema, inner: JsonSchema): JsonSchema {
  const items = inner['items']
  if (
    inner['type'] === 'array' &&
    isObject(items) &&
    (items['format'] === 'binary' || items['contentMediaType'] !== undefined)
  )
    return { description: textOf(inner['description']) || 'One or more files.' }
  // A file in OpenAPI 3.1.
  if (
    inner['contentMediaType'] !== undefined &&
    inner['contentEncoding'] === undefined &&
    inner['contentMediaType'] !== JSON_MEDIA
  )
    return {
      type: 'string',
      format: 'binary',
      ...(inner['description'] === undefined ? {} : { description: inner['description'] }),
    }
  return property
}

function formExample(body: JsonSchema, given: unknown, media: string): unknown {
  const made = exampleOf(body)
  if (!isObject(given)) return made
  const texts = Object.entries(given).map(([name, value]) => [name, isObject(value) ? JSON.stringify(value) : value])
  return media === MULTIPART || !Object.values(given).some(isObject)
    ? { ...(isObject(made) ? made : {}), ...Object.fromEntries(texts) }
    : made
}

export interface SoldAnswer {
  readonly response: JsonSchema
  /** What the upstream is asked for, if that is not JSON. */
  readonly accept: string | undefined
  readonly isText: boolean
  readonly example: unknown
}

/** Reads the answers of an operation that say that it went well. Throws LeftOut if none can be sold. */
export function soldAnswer(openapi: OpenApi, given: unknown): SoldAnswer {
  const responses = entriesOf(given).map(
    ([status, response]) => [status.toUpperCase(), followed(openapi.root, response)] as const,
  )
  const successes = responses.filter(([status]) => /^2(\d\d|XX)$/.test(status))
  const others = responses.filter(([status]) => status === 'DEFAULT')
  const chosen = successes.length > 0 ? successes : others
  if (chosen.length === 0 && responses.some(([status]) => status.startsWith('3')))
    throw new LeftOut('it answers with a redirect, which is not followed')
  const isEmpty = successes.some(([status]) => status === '204' || status === '205')
  const contents = chosen.flatMap(([, response]) => mediaOf(response['content']))
  const description = textOf(chosen[0]?.[1]['description'])
  const words = description === '' ? {} : { description }
  const json = contents.filter(([media]) => isJson(media) || isAny(media))
  if (json.length > 0) return jsonAnswer(openapi, json, isEmpty)
  const [other] = contents
  if (other) {
    const [media] = other
    if (media === 'text/event-stream' || /ndjson|jsonl|json-seq/.test(media))
      throw new LeftOut(`it answers with a stream of ${media}, and "stream" of an upstream counts for a whole product`)
    const accept = CONCRETE.test(media) ? media : '*/*'
    return {
      response: { type: 'string', ...words, ...(accept === '*/*' ? {} : { contentMediaType: accept }) },
      accept,
      isText: true,
      example: undefined,
    }
  }
  if (isEmpty && successes.length === 1)
    return { response: { type: 'null', ...words }, accept: undefined, isText: false, example: null }
  // Nothing is said about the content, so whatever comes is passed on.
  return { response: { type: 'string', ...words }, accept: '*/*', isText: true, example: undefined }
}

function jsonAnswer(openapi: OpenApi, contents: readonly (readonly [string, unknown])[], isEmpty: boolean): SoldAnswer {
  const part = new PartSchemas(openapi, 'response')
  const types = contents.map(([, described]) => followed(openapi.root, described))
  const written = types.map((type) => part.write(type['schema']))
  const forms = [...new Map(written.map((schema) => [JSON.stringify(schema), schema])).values()]
  const choices = [...forms, ...(isEmpty ? [{ type: 'null' }] : [])]
  const response = part.whole(choices.length === 1 ? (choices[0] as JsonSchema) : { anyOf: choices })
  const [media = JSON_MEDIA] = contents[0] ?? []
  const accept = media === JSON_MEDIA || isAny(media) ? undefined : media
  // A JSON text is passed on as it was sent, with its quotes, so nothing more can be said of it.
  if (response['type'] === 'string')
    return {
      response: { type: 'string', contentMediaType: JSON_MEDIA },
      accept: accept ?? JSON_MEDIA,
      isText: true,
      example: undefined,
    }
  return { response, accept, isText: false, example: givenExample(openapi, types[0] ?? {}) ?? exampleOf(response) }
}
