/** Strings of a query, a path or a form, turned into what their schema wants. JSON bodies are never coerced. */
import type { JsonSchema } from '../plugin/plugin.ts'

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i
const BOOLEANS: Readonly<Record<string, boolean>> = { true: true, false: false, 1: true, 0: false }

type Fields = Readonly<Record<string, JsonSchema>>

/**
 * A copy with each string as number, boolean or list where the field's schema allows no string, and without empty
 * strings, which mean the default. What cannot be turned stays as it is, for the schema to refuse.
 * @example coerceFields({ limit: '10', end: '' }, { limit: { type: 'integer' } }) → { limit: 10 }
 */
export function coerceFields(values: Readonly<Record<string, unknown>>, fields: Fields): Record<string, unknown> {
  const filled = Object.entries(values).filter(([, value]) => value !== '' && value !== undefined)
  return Object.fromEntries(
    filled.map(([name, value]) => [
      name,
      Object.hasOwn(fields, name) ? coerce(value, fields[name] as JsonSchema) : value,
    ]),
  )
}

function coerce(value: unknown, schema: JsonSchema): unknown {
  const types = typesOf(schema)
  if (types.has('array') && (Array.isArray(value) || !types.has('string'))) {
    const items = (schema['items'] ?? {}) as JsonSchema
    return [value].flat().map((item: unknown) => coerce(item, items))
  }
  if (typeof value !== 'string' || types.size === 0 || types.has('string')) return value
  if ((types.has('integer') || types.has('number')) && NUMBER.test(value) && Number.isFinite(Number(value)))
    return Number(value)
  if (types.has('boolean') && Object.hasOwn(BOOLEANS, value)) return BOOLEANS[value]
  return value
}

/** The JSON types a schema lets through; empty where it does not say. */
function typesOf(schema: JsonSchema): ReadonlySet<string> {
  if (schema['type'] !== undefined) return new Set([schema['type']].flat() as string[])
  const values = Array.isArray(schema['enum']) ? schema['enum'] : 'const' in schema ? [schema['const']] : []
  const branches = ['anyOf', 'oneOf', 'allOf'].flatMap((word) => (schema[word] ?? []) as JsonSchema[])
  return new Set([...values.map(typeOf), ...branches.flatMap((branch) => [...typesOf(branch)])])
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}
