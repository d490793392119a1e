/**
 * The parameters of an OpenAPI operation as it is sold: path parameters stay in the path, and every other one becomes a
 * field of the query. `parameters` of the catalog says how the upstream gets them.
 */
import type { JsonSchema, UpstreamParameter } from '../../gateway/plugin/catalog.ts'
import { isObject } from '../../gateway/validation/json.ts'
import { exampleOf } from './example.ts'
import { PartSchemas } from './json-schema.ts'
import { entriesOf, followed, itemsOf, type Json, type OpenApi, textOf } from './read-openapi.ts'

/** An operation that cannot be sold. The message says why. */
export class LeftOut extends Error {}

export interface SoldParameters {
  /** Path of the route below where routes begin: "/pets/{petId}". */
  readonly path: string
  /** Path of the upstream, with the names of the route's parameters. */
  readonly url: string
  /** Null if there are none. */
  readonly params: JsonSchema | null
  readonly query: JsonSchema | null
  readonly examples: { readonly params: Json; readonly query: Json }
  readonly mapped: readonly Partial<UpstreamParameter>[]
  /** What is not carried over, and why. */
  readonly lost: readonly string[]
}

/** Parameters that HTTP, the gateway or the security of the operation sets. */
const OWN_HEADERS =
  /^(accept|authorization|connection|content-length|content-type|cookie|host|te|transfer-encoding|upgrade)$/i
const SCALARS = ['string', 'number', 'integer', 'boolean']

/** Gives each field of an operation a name of its own, which URLs, MCP clients and the catalog can hold. */
export class FieldNames {
  readonly #taken: Set<string>

  /** @param taken the fields of the body, and other names that no parameter can have */
  constructor(taken: Iterable<string>) {
    this.#taken = new Set(taken)
  }

  take(wish: string, otherwise: string): string {
    const clean =
      wish
        .replace(/[^\w.-]+/g, '_')
        .replace(/^[_.-]+|[_.-]+$/g, '')
        .slice(0, 60) || 'field'
    const wishes = [clean, otherwise]
    for (let count = 2; wishes.every((name) => this.#taken.has(name)); count += 1) wishes.push(`${otherwise}_${count}`)
    const name = wishes.find((each) => !this.#taken.has(each)) as string
    this.#taken.add(name)
    return name
  }
}

/** One value that a caller sends: a parameter, or a property of one that is an object. */
interface Leaf {
  readonly name: string
  readonly schema: unknown
  readonly isRequired: boolean
  readonly isList: boolean
  readonly example: unknown
}

/**
 * Reads the parameters of an operation.
 *
 * @param own the parameters of path item and operation, the operation's last
 * @param fixed names of parameters that the catalog sets itself, such as a key: "query:api_key"
 * @throws LeftOut if a required parameter cannot be carried over
 */
export function soldParameters(
  openapi: OpenApi,
  {
    path,
    own,
    fixed,
    names,
  }: {
    readonly path: string
    readonly own: readonly unknown[]
    readonly fixed: ReadonlySet<string>
    readonly names: FieldNames
  },
): SoldParameters {
  const { root } = openapi
  const parameters = new Map(
    own.map((each) => {
      const parameter = followed(root, each)
      return [`${textOf(parameter['in'])}:${textOf(parameter['name'])}`, parameter] as const
    }),
  )
  const lost: string[] = []
  const mapped: Partial<UpstreamParameter>[] = []
  const inPath = new FieldList(openapi)
  const inQuery = new FieldList(openapi)

  const template = path.replace(/#.*$/, '')
  const renamed = new Map<string, string>()
  const segments = template.split(/[/?]/)
  for (const [, name = ''] of template.matchAll(/\{([^}]*)\}/g)) {
    if (renamed.has(name)) continue
    const before = segments[segments.findIndex((segment) => segment.includes(`{${name}}`)) - 1] ?? ''
    const parameter = parameters.get(`path:${name}`) ?? {}
    const owner = before.replace(/\W+/g, '_').replace(/s$/, '')
    const field = names.take(paramName(name), paramName(owner === '' ? `${name}_path` : `${owner}_${name}`))
    renamed.set(name, field)
    const { schema, example: given } = valueOf(openapi, parameter)
    // The gateway refuses an encoded slash in a path, because others on the way may read it as a slash.
    const example = typeof given === 'string' && /[/\\]/.test(given) ? undefined : given
    if (example !== given) lost.push(`values of {${name}} with a slash, which no path of a route holds`)
    const kinds = kindsOf(openapi, schema)
    if (kinds.has('object')) throw new LeftOut(`{${name}} of its path is an object, which no path of a route can hold`)
    const style = textOf(parameter['style']) || 'simple'
    const isList = kinds.has('array')
    if (isList) {
      const list =
        itemsOf(example).length > 0
          ? itemsOf(example)
          : itemsOf(exampleOf(new PartSchemas(openapi, 'request').write(schema)))
      const words = [textOf(parameter['description']), 'Several values are joined by commas.'].filter(Boolean).join(' ')
      inPath.add(
        field,
        { type: 'string', minLength: 1, description: words, examples: [list.map(String).join() || 'text'] },
        true,
      )
    } else inPath.add(field, schema, true, { description: parameter['description'], example })
    if (isList || style !== 'simple') {
      const exploded = parameter['explode'] === true ? { explode: true } : {}
      mapped.push({ name, field, in: 'path', style: style as UpstreamParameter['style'], ...exploded })
    }
  }

  for (const [key, parameter] of parameters) {
    const name = textOf(parameter['name'])
    const place = textOf(parameter['in'])
    if (name === '' || !['query', 'header', 'cookie'].includes(place) || fixed.has(key.toLowerCase())) continue
    if (place === 'header' && OWN_HEADERS.test(name)) continue
    const usual = place === 'header' ? 'simple' : 'form'
    const style = (textOf(parameter['style']) || usual) as UpstreamParameter['style']
    const explode = typeof parameter['explode'] === 'boolean' ? parameter['explode'] : style === 'form'
    const found = leavesOf(openapi, parameter, { place, style, explode })
    for (const why of found.lost) {
      if (why.isRequired) throw new LeftOut(`its ${place} parameter ${why.name} is required, and ${why.reason}`)
      lost.push(`${place} parameter ${why.name}, which ${why.reason}`)
    }
    for (const leaf of found.leaves) {
      const clean = leaf.name.replace(/[^\w.-]+/g, '_').replace(/^[_.-]+|[_.-]+$/g, '')
      const field = names.take(leaf.name, `${clean}_${place}`)
      const description = leaf.name === name ? parameter['description'] : undefined
      inQuery.add(field, leaf.schema, leaf.isRequired, {
        description,
        example: leaf.example,
        deprecated: parameter['deprecated'],
      })
      const isPlain = !leaf.isList || (style === 'form' && explode)
      if (place === 'query' && field === leaf.name && isPlain) continue
      mapped.push({
        name: leaf.name,
        ...(field === leaf.name ? {} : { field }),
        ...(place === 'query' ? {} : { in: place as 'header' | 'cookie' }),
        ...(isPlain || style === usual ? {} : { style }),
        ...(leaf.isList && explode !== (style === 'form') && place === 'query' ? { explode } : {}),
      })
    }
  }
  return {
    path: soldPath(template, renamed),
    url: template.replace(/\{([^}]*)\}/g, (_, name: string) => `{${renamed.get(name)}}`),
    params: inPath.schema(),
    query: inQuery.schema(),
    examples: { params: inPath.examples(), query: inQuery.examples() },
    mapped,
    lost,
  }
}

/** A name that a route can have in braces: it begins with a small letter. */
function paramName(name: string): string {
  const clean = name.replace(/\W+/g, '_').replace(/^[^A-Za-z]+|_+$/g, '')
  return clean === ''
    ? 'value'
    : clean.replace(/^([A-Z]+(?=[A-Z][a-z]|$|[^A-Za-z])|[A-Z])/, (capitals) => capitals.toLowerCase())
}

/** The path of the route: each parameter has a segment of its own, as routes of the gateway do. */
function soldPath(template: string, renamed: ReadonlyMap<string, string>): string {
  const [path = ''] = template.split('?')
  const pieces = path.split('/').flatMap((segment) => segment.split(/(\{[^}]*\})/))
  return pieces
    .map((piece) => {
      if (piece.startsWith('{')) return `/{${renamed.get(piece.slice(1, -1))}}`
      const clean = piece.replace(/[^\w.~-]+/g, '-').replace(/^[.~-]+|[.~-]+$/g, '')
      return clean === '' ? '' : `/${clean}`
    })
    .join('')
}

/** The schema of a parameter and its example. One with a media type is sent as JSON text. */
function valueOf(openapi: OpenApi, parameter: Json): { readonly schema: unknown; readonly example: unknown } {
  const [content] = entriesOf(parameter['content'])
  if (!content) return { schema: parameter['schema'] ?? { type: 'string' }, example: givenExample(openapi, parameter) }
  const [media, described] = content
  const inner = followed(openapi.root, described)
  const part = new PartSchemas(openapi, 'request')
  const example = givenExample(openapi, inner) ?? exampleOf(part.whole(part.write(inner['schema'])))
  const text = typeof example === 'string' ? example : JSON.stringify(example)
  return { schema: { type: 'string', contentMediaType: media }, example: text }
}

/** The example that a parameter or a media type gives. */
export function givenExample({ root }: OpenApi, { example, examples }: Json): unknown {
  if (example !== undefined) return example
  const [first] = entriesOf(examples)
  return first ? followed(root, first[1])['value'] : undefined
}

/** A schema with its references followed and its `allOf` merged, as far as types and properties go. */
function merged(openapi: OpenApi, schema: unknown, depth = 0): Json {
  const own = followed(openapi.root, schema)
  const parts = depth > 8 ? [] : itemsOf(own['allOf']).map((part) => merged(openapi, part, depth + 1))
  if (parts.length === 0) return own
  const properties = Object.assign(
    {},
    ...parts.map((part) => part['properties'] ?? {}),
    own['properties'] ?? {},
  ) as Json
  const required = [...parts, own].flatMap((part) => itemsOf(part['required']))
  const type = own['type'] ?? parts.find((part) => part['type'] !== undefined)?.['type']
  const items = own['items'] ?? parts.find((part) => part['items'] !== undefined)?.['items']
  return { ...Object.assign({}, ...parts), ...own, properties, required, type, items } as Json
}

const choicesOf = (schema: Json): unknown[] => [...itemsOf(schema['anyOf']), ...itemsOf(schema['oneOf'])]

/** The types that a value may have. */
function kindsOf(openapi: OpenApi, schema: unknown, depth = 0): ReadonlySet<unknown> {
  const { type, properties, items, enum: listed, ...rest } = merged(openapi, schema)
  if (type !== undefined) return new Set([type].flat())
  if (items !== undefined) return new Set(['array'])
  if (Array.isArray(listed)) return new Set(listed.map((value) => typeof value))
  if (isObject(properties) && Object.keys(properties).length > 0) return new Set(['object'])
  if (depth > 8) return new Set()
  return new Set(choicesOf(rest).flatMap((choice) => [...kindsOf(openapi, choice, depth + 1)]))
}

interface Lost {
  readonly name: string
  readonly reason: string
  readonly isRequired: boolean
}

interface Form {
  readonly place: string
  readonly style: string
  readonly explode: boolean
}

const MAX_DEPTH = 4

/** The values of a parameter. An object of the query is sent as one field for each of its properties. */
function leavesOf(openapi: OpenApi, parameter: Json, form: Form): { leaves: Leaf[]; lost: Lost[] } {
  const leaves: Leaf[] = []
  const lost: Lost[] = []
  const { schema: whole, example: given } = valueOf(openapi, parameter)
  const isFlat = form.style === 'form' && form.explode

  function walk(name: string, schema: unknown, isRequired: boolean, example: unknown, depth: number): void {
    const lose = (reason: string): void => void lost.push({ name, reason, isRequired })
    const kinds = kindsOf(openapi, schema)
    const described = merged(openapi, schema)
    if (kinds.has('object')) {
      const objects = [described, ...choicesOf(described).map((each) => merged(openapi, each))].filter(
        ({ properties }) => isObject(properties) && Object.keys(properties).length > 0,
      )
      if (form.place !== 'query') return lose(`is an object, which no ${form.place} of a sold call holds`)
      if (form.style !== 'deepObject' && !(isFlat && depth === 0))
        return lose('is an object in a form whose fields cannot be told apart')
      if (objects.length === 0) return lose('is an object of any fields, and a query has those that are described')
      if (depth >= MAX_DEPTH) return lose('is an object too deep for a query')
      const others = choicesOf(described).filter((each) => !kindsOf(openapi, each).has('object'))
      for (const object of objects) {
        const required = new Set(itemsOf(object['required']))
        for (const [property, inner] of entriesOf(object['properties'])) {
          const isNeeded = isRequired && others.length === 0 && required.has(property)
          const part = isObject(example) ? example[property] : undefined
          walk(isFlat ? property : `${name}[${property}]`, inner, isNeeded, part, depth + 1)
        }
      }
      if (others.length > 0)
        leaves.push({ name, schema: { anyOf: others }, isRequired: false, isList: false, example: undefined })
      return
    }
    const isList = kinds.has('array')
    if (
      isList &&
      [...kindsOf(openapi, described['items'])].some((kind) => !SCALARS.includes(String(kind)) && kind !== 'null')
    )
      return lose('is a list of objects or lists, which no query holds')
    leaves.push({ name, schema, isRequired, isList, example })
  }

  walk(textOf(parameter['name']), whole, parameter['required'] === true, given, 0)
  return { leaves, lost }
}

/** The fields of path or query. */
class FieldList {
  readonly #part: PartSchemas
  readonly #properties: Record<string, JsonSchema> = {}
  readonly #required: string[] = []
  readonly #examples: Record<string, unknown> = {}

  constructor(openapi: OpenApi) {
    this.#part = new PartSchemas(openapi, 'request')
  }

  add(
    field: string,
    schema: unknown,
    isRequired: boolean,
    {
      description,
      example,
      deprecated,
    }: { readonly description?: unknown; readonly example?: unknown; readonly deprecated?: unknown } = {},
  ): void {
    const written = exactInteger(this.#part.write(schema))
    const words = [textOf(description), textOf(written['description'])].filter(Boolean)
    const described = words.length === 0 ? {} : { description: [...new Set(words)].join(' ') }
    this.#properties[field] = { ...written, ...described, ...(deprecated === true ? { deprecated: true } : {}) }
    if (isRequired) this.#required.push(field)
    const shown =
      example ?? (isRequired || Array.isArray(written['examples']) ? exampleOf(this.#part.whole(written)) : undefined)
    if (shown !== undefined) this.#examples[field] = written['type'] === 'string' ? textOrList(shown) : shown
  }

  schema(): JsonSchema | null {
    if (Object.keys(this.#properties).length === 0) return null
    const required = this.#required.length > 0 ? { required: this.#required } : {}
    return this.#part.whole({ type: 'object', ...required, properties: this.#properties })
  }

  examples(): Json {
    return this.#examples
  }
}

const textOrList = (value: unknown): unknown => (Array.isArray(value) ? value : String(value))

/** Whole numbers of 64 bits do not fit a number of JavaScript, so they are sold as text. */
function exactInteger(schema: JsonSchema): JsonSchema {
  const { type, format, minimum: _, maximum, ...rest } = schema
  if (
    type !== 'integer' ||
    format !== 'int64' ||
    Number(maximum ?? Number.POSITIVE_INFINITY) <= Number.MAX_SAFE_INTEGER
  )
    return schema
  const examples = itemsOf(schema['examples']).map(String)
  return { ...rest, type: 'string', pattern: '^-?\\d{1,19}$', examples: examples.length > 0 ? examples : ['1'] }
}
