/** Flattens a JSON Schema into a list of fields. Nested fields have dotted paths. */
import { once } from '../../plugin/plugin.ts'
import type { Schema } from './openapi-types.ts'

export interface Field {
  readonly name: string
  readonly required: boolean
  readonly type: string
  /** "1 to 10,000", "at most 64 characters", or "". */
  readonly limits: string
  readonly description: string
  readonly default: string
}

export type Schemas = Readonly<Record<string, Schema>>

const MAX_DEPTH = 3

/** Returns the fields of an object schema. The fields of array items are at `name[]`. */
export function fieldsOf(schema: Schema, schemas: Schemas, prefix = '', depth = 0): readonly Field[] {
  const whole = wholeOf(schema, schemas)
  if (whole.items && depth === 0 && Object.keys(whole.properties ?? {}).length === 0)
    return fieldsOf(whole.items, schemas, '[].', depth + 1)
  const required = new Set(whole.required ?? [])
  return Object.entries(whole.properties ?? {}).flatMap(([name, inner]) => {
    const row = fieldOf(prefix + name, inner, required.has(name), schemas)
    if (depth >= MAX_DEPTH) return [row]
    const property = resolve(inner, schemas)
    const nested = property.items
      ? fieldsOf(property.items, schemas, `${prefix}${name}[].`, depth + 1)
      : fieldsOf(property, schemas, `${prefix}${name}.`, depth + 1)
    return [row, ...nested]
  })
}

/** Returns one field for a schema. */
export function fieldOf(name: string, schema: Schema, required: boolean, schemas: Schemas): Field {
  const whole = wholeOf(schema, schemas)
  return {
    name,
    required,
    type: typeOf(whole, schemas),
    limits: limitsOf(whole),
    description: schema.description ?? whole.description ?? '',
    default: whole.default === undefined || whole.default === '' ? '' : JSON.stringify(whole.default),
  }
}

/** Resolves a schema, and joins it with the parts of its `allOf`. */
export function wholeOf(schema: Schema, schemas: Schemas): Schema {
  const { allOf = [], ...own } = resolve(schema, schemas)
  const parts = [...allOf.map((part) => wholeOf(part, schemas)), own]
  const properties = Object.assign({}, ...parts.map((part) => part.properties)) as Schemas
  const required = parts.flatMap((part) => part.required ?? [])
  return { ...(Object.assign({}, ...parts) as Schema), properties, required }
}

/** Resolves a reference and keeps the keywords next to it. Follows a chain of at most three references. */
function resolve(schema: Schema, schemas: Schemas): Schema {
  let found = schema
  for (let step = 0; step < MAX_DEPTH && found.$ref !== undefined; step += 1) {
    const { $ref, ...beside } = found
    const [, , , name = '', ...rest] = $ref.split('/')
    const target = rest.reduce<unknown>(
      (at, token) => (at as Record<string, unknown> | undefined)?.[token],
      schemas[name],
    )
    found = { ...(target as Schema | undefined), ...beside }
  }
  return found
}

function typeOf(schema: Schema, schemas: Schemas): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum)
    return schema.enum.map((value) => (typeof value === 'string' ? value : JSON.stringify(value))).join(' | ')
  const choices = schema.oneOf ?? schema.anyOf
  if (choices) return [...new Set(choices.map((choice) => typeOf(resolve(choice, schemas), schemas)))].join(' | ')
  if (schema.items) return `array of ${typeOf(resolve(schema.items, schemas), schemas)}`
  const type = typeof schema.type === 'string' ? schema.type : (schema.type ?? ['any']).join(' | ')
  return schema.format === undefined ? type : `${type}, ${schema.format}`
}

function limitsOf(schema: Schema): string {
  const { minimum, maximum, exclusiveMinimum, pattern } = schema
  return [
    ...range(minimum, maximum, ''),
    ...(exclusiveMinimum === undefined ? [] : [`above ${limit().format(exclusiveMinimum)}`]),
    ...range(schema.minLength, schema.maxLength, ' characters'),
    ...range(schema.minItems, schema.maxItems, ' items'),
    ...(pattern === undefined ? [] : [`matches ${pattern}`]),
  ].join(', ')
}

/** All digits of a limit, with thousands separators. */
const limit = once(() => new Intl.NumberFormat('en-US', { maximumFractionDigits: 20 }))

function range(least: number | undefined, most: number | undefined, unit: string): readonly string[] {
  if (least !== undefined && most !== undefined) return [`${limit().format(least)} to ${limit().format(most)}${unit}`]
  if (least !== undefined) return [`at least ${limit().format(least)}${unit}`]
  return most === undefined ? [] : [`at most ${limit().format(most)}${unit}`]
}
