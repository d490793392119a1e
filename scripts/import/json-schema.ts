/**
 * Writes schemas of OpenAPI 3.0 and 3.1 as JSON Schema 2020-12, as the catalog has it. Whatever only a validator of OpenAPI
 * understands is left out, and where the two disagree the result is the more lenient one: the upstream checks its input
 * itself, and a request that it refuses is not charged.
 */
import type { JsonSchema } from '../../gateway/plugin/catalog.ts'
import { isObject } from '../../gateway/validation/json.ts'
import { entriesOf, followed, itemsOf, type Json, type OpenApi, pointed } from './read-openapi.ts'

const TYPES: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean', 'array', 'object', 'null'])
/** Formats that the gateway checks. Another one would not compile. */
const FORMATS: ReadonlySet<unknown> = new Set(
  (
    'date time date-time duration uri uri-reference email hostname ipv4 ipv6 uuid ' +
    'int32 int64 float double byte binary password'
  ).split(' '),
)
const NUMBERS = (
  'minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength ' +
  'minItems maxItems minProperties maxProperties'
).split(' ')
const BOOLEANS = ['uniqueItems', 'deprecated', 'readOnly', 'writeOnly']
const TEXTS = ['title', 'description', 'contentMediaType', 'contentEncoding']
const SCHEMAS = ['items', 'not', 'contains', 'propertyNames', 'additionalProperties', 'unevaluatedProperties']
const LISTS = ['allOf', 'anyOf', 'prefixItems']
const MAPS = ['patternProperties', 'dependentSchemas']

/** The schemas of one part of an operation: what they refer to comes with them, in `$defs`. */
export class PartSchemas {
  readonly #openapi: OpenApi
  /** The flag of properties that do not occur in this part. */
  readonly #hidden: 'readOnly' | 'writeOnly'
  readonly #names = new Map<string, string>()
  readonly #defs: Record<string, JsonSchema> = {}

  constructor(openapi: OpenApi, part: 'request' | 'response') {
    this.#openapi = openapi
    this.#hidden = part === 'request' ? 'readOnly' : 'writeOnly'
  }

  /** Returns a schema that stands by itself. */
  whole(schema: JsonSchema): JsonSchema {
    return Object.keys(this.#defs).length === 0 ? schema : { ...schema, $defs: { ...this.#defs } }
  }

  /** Writes a schema. Its references lead to the `$defs` that `whole` adds. */
  write(schema: unknown): JsonSchema {
    if (schema === false) return { not: {} }
    if (!isObject(schema)) return {}
    if (typeof schema['$ref'] === 'string') return this.#reference(schema['$ref'], schema)
    return this.#nullable(schema, this.#keywords(schema))
  }

  #reference(ref: string, { $ref: _, ...beside }: Json): JsonSchema {
    const target = { $ref: `#/$defs/${this.#define(ref)}` }
    // OpenAPI 3.0 ignores what stands beside a reference.
    const own = this.#openapi.is30 ? {} : this.#nullable(beside, this.#keywords(beside))
    return Object.keys(own).length === 0 ? target : { allOf: [target, own] }
  }

  #define(ref: string): string {
    const known = this.#names.get(ref)
    if (known !== undefined) return known
    const last = decodeURIComponent(ref.split('/').at(-1) ?? '').replace(/[^A-Za-z0-9_]+/g, '_')
    const base = /^[A-Za-z]/.test(last) ? last : `Schema_${last}`
    let name = base
    for (let count = 2; name in this.#defs; count += 1) name = `${base}_${count}`
    this.#names.set(ref, name)
    // What refers to itself finds its name taken.
    this.#defs[name] = {}
    this.#defs[name] = this.write(pointed(this.#openapi.root, ref))
    return name
  }

  #keywords(schema: Json): Record<string, unknown> {
    const made: Record<string, unknown> = {}
    const types = [schema['type']].flat().filter((type) => TYPES.has(type))
    if (schema['type'] === 'file') Object.assign(made, { type: 'string', format: 'binary' })
    else if (types.length > 0) made['type'] = types.length === 1 ? types[0] : types
    for (const word of TEXTS) if (typeof schema[word] === 'string') made[word] = schema[word]
    for (const word of NUMBERS) if (Number.isFinite(schema[word])) made[word] = schema[word]
    for (const word of BOOLEANS) if (schema[word] === true) made[word] = true
    if (FORMATS.has(schema['format'])) made['format'] = schema['format']
    if (isPattern(schema['pattern'])) made['pattern'] = schema['pattern']
    if (itemsOf(schema['enum']).length > 0) made['enum'] = schema['enum']
    if ('const' in schema) made['const'] = schema['const']
    for (const [bound, limit] of [
      ['exclusiveMinimum', 'minimum'],
      ['exclusiveMaximum', 'maximum'],
    ] as const)
      if (schema[bound] === true && limit in made) {
        made[bound] = made[limit]
        delete made[limit]
      }
    for (const word of SCHEMAS)
      if (isObject(schema[word]) || typeof schema[word] === 'boolean') made[word] = this.#inner(schema[word])
    for (const word of MAPS) if (isObject(schema[word])) made[word] = this.#map(entriesOf(schema[word]))
    for (const word of LISTS) {
      const list = itemsOf(schema[word])
      if (list.length > 0) made[word] = list.map((each) => this.write(each))
    }
    this.#properties(schema, made)
    this.#choices(schema, made)
    this.#examples(schema, made)
    return made
  }

  #inner(schema: unknown): JsonSchema | boolean {
    return typeof schema === 'boolean' ? schema : this.write(schema)
  }

  #map(entries: readonly (readonly [string, unknown])[]): Json {
    return Object.fromEntries(entries.map(([name, schema]) => [name, this.#inner(schema)]))
  }

  #properties(schema: Json, made: Record<string, unknown>): void {
    const shown = entriesOf(schema['properties']).filter(
      ([, property]) => followed(this.#openapi.root, property)[this.#hidden] !== true,
    )
    if (isObject(schema['properties'])) made['properties'] = this.#map(shown)
    const described = new Set(entriesOf(schema['properties']).map(([name]) => name))
    const visible = new Set(shown.map(([name]) => name))
    const required = [...new Set(itemsOf(schema['required']))].filter(
      (name) => typeof name === 'string' && (visible.has(name) || !described.has(name)),
    )
    if (required.length > 0) made['required'] = required
  }

  /** A discriminator picks one branch of `oneOf`; without one, a value may fit several. The upstream decides. */
  #choices(schema: Json, made: Record<string, unknown>): void {
    const branches = itemsOf(schema['oneOf'])
    if (branches.length === 0) return
    const { propertyName, mapping } = isObject(schema['discriminator']) ? schema['discriminator'] : {}
    const choices = branches.map((branch) => {
      const written = this.write(branch)
      if (typeof propertyName !== 'string' || !isObject(branch) || typeof branch['$ref'] !== 'string') return written
      const ref = branch['$ref']
      const name = ref.split('/').at(-1)
      const values = entriesOf(mapping).flatMap(([value, target]) => (target === ref || target === name ? [value] : []))
      const one = { enum: values.length > 0 ? values : [name] }
      return { allOf: [written, { type: 'object', required: [propertyName], properties: { [propertyName]: one } }] }
    })
    if (made['anyOf'] === undefined) made['anyOf'] = choices
    else made['allOf'] = [...itemsOf(made['allOf']), { anyOf: choices }]
  }

  /** Defaults are those of the upstream: the gateway shows them, and does not send them. */
  #examples(schema: Json, made: Record<string, unknown>): void {
    const { example, examples, default: usual } = schema
    const shown = example !== undefined ? [example] : itemsOf(examples).length > 0 ? examples : undefined
    if (shown !== undefined || usual !== undefined) made['examples'] = shown ?? [usual]
    if (usual === undefined || usual === null) return
    made['description'] = [made['description'], `Default: ${JSON.stringify(usual)}.`].filter(Boolean).join(' ')
  }

  /** `nullable` of OpenAPI 3.0 is a type of JSON Schema. */
  #nullable({ nullable }: Json, made: Record<string, unknown>): JsonSchema {
    if (!this.#openapi.is30 || nullable !== true) return made
    const list = made['enum'] as unknown[] | undefined
    if (made['type'] === undefined && !list)
      return Object.keys(made).length === 0 ? made : { anyOf: [made, { type: 'null' }] }
    return {
      ...made,
      ...(made['type'] === undefined ? {} : { type: [...new Set([made['type'], 'null'].flat())] }),
      ...(list && !list.includes(null) ? { enum: [...list, null] } : {}),
    }
  }
}

function isPattern(pattern: unknown): boolean {
  if (typeof pattern !== 'string') return false
  try {
    return Boolean(new RegExp(pattern, 'u'))
  } catch {
    return false
  }
}
