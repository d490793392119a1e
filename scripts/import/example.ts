/** Makes an example of a JSON Schema, for operations whose OpenAPI document gives none. */
import type { JsonSchema } from '../../gateway/plugin/catalog.ts'
import { isObject } from '../../gateway/validation/json.ts'

const BY_FORMAT: Readonly<Record<string, string>> = {
  date: '2026-02-01',
  time: '09:30:00Z',
  'date-time': '2026-02-01T09:30:00Z',
  duration: 'P1D',
  uri: 'https://example.com/',
  'uri-reference': '/path',
  email: 'buyer@example.com',
  hostname: 'example.com',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  uuid: '0b5ad5c4-3a5e-4f8e-9a4f-6d0a4c1d2e3f',
  byte: 'dGV4dA==',
}

/** Texts that fit most patterns of codes and identifiers. */
const TEXTS: readonly string[] = (
  'text a A 1 abc ABC 123 en US USD usd en-US abc-123 abc_123 Abc123 12 1234 12345 123456 1234567890 0 1.5 2026 2026-02 ' +
  '12:30 AB12 a1 1,2 id:1 +15555550100 #aabbcc 0x00 1d 1h v1 AAPL x/y'
)
  .split(' ')
  .concat([8, 16, 24, 32, 40, 64].map((length) => 'a'.repeat(length)))
  .concat(Object.values(BY_FORMAT))

const MAX_DEPTH = 12

/** Returns a value that fits a schema, with the fields that it requires. Undefined if none is found. */
export function exampleOf(schema: JsonSchema): unknown {
  return valueOf(schema, { root: schema, depth: 0 })
}

interface Place {
  readonly root: JsonSchema
  readonly depth: number
}

function valueOf(schema: JsonSchema, { root, depth }: Place): unknown {
  const at = { root, depth: depth + 1 }
  if (depth > MAX_DEPTH) return undefined
  const { $ref, examples, anyOf, allOf } = schema
  if (typeof $ref === 'string')
    return valueOf(((root['$defs'] ?? {}) as Record<string, JsonSchema>)[$ref.slice('#/$defs/'.length)] ?? {}, at)
  if ('const' in schema) return schema['const']
  const [given] = (examples ?? []) as unknown[]
  if (given !== undefined) return given
  const [listed] = (schema['enum'] ?? []) as unknown[]
  if (listed !== undefined) return listed
  const choices = [...((anyOf ?? []) as JsonSchema[])].sort((one, other) => Number(isNull(one)) - Number(isNull(other)))
  const picked = choices.map((choice) => valueOf(choice, at)).find((value) => value !== undefined)
  const parts = ((allOf ?? []) as JsonSchema[]).map((part) => valueOf(part, at))
  const own = ownValue(schema, at)
  const known = [...parts, picked, own].filter((value) => value !== undefined)
  if (known.length > 0 && known.every(isObject)) return Object.assign({}, ...known) as unknown
  return known.find((value) => !isObject(value)) ?? known[0]
}

const isNull = ({ type }: JsonSchema): boolean => type === 'null'

function ownValue(schema: JsonSchema, at: Place): unknown {
  const [named] = [schema['type']].flat()
  const type = named ?? (isObject(schema['properties']) ? 'object' : undefined)
  if (type === 'object') return objectOf(schema, at)
  if (type === 'array') return listOf(schema, at)
  if (type === 'string') return stringOf(schema)
  if (type === 'integer' || type === 'number') return numberOf(schema, type === 'integer')
  if (type === 'boolean') return true
  return type === 'null' ? null : undefined
}

function objectOf(schema: JsonSchema, at: Place): unknown {
  const properties = (schema['properties'] ?? {}) as Record<string, JsonSchema>
  const required = (schema['required'] ?? []) as string[]
  const names = [...new Set([...required, ...Object.keys(properties).filter((name) => hasExample(properties[name]))])]
  const fields = names.map((name) => [name, valueOf(properties[name] ?? {}, at)] as const)
  if (fields.some(([name, value]) => value === undefined && required.includes(name) && name in properties))
    return undefined
  const known = fields.map(([name, value]) => [name, value === undefined ? 'text' : value] as const)
  const least = Number(schema['minProperties'] ?? 0)
  for (const name of Object.keys(properties).slice(0, least))
    if (!names.includes(name)) known.push([name, valueOf(properties[name] ?? {}, at)] as never)
  return Object.fromEntries(known)
}

function hasExample(schema: JsonSchema | undefined): boolean {
  return Array.isArray(schema?.['examples'])
}

function listOf({ items, minItems, prefixItems }: JsonSchema, at: Place): unknown {
  const first = ((prefixItems ?? []) as JsonSchema[]).map((item) => valueOf(item, at))
  const item = isObject(items) ? valueOf(items, at) : 'text'
  const count = Math.max(Number(minItems ?? 0), item === undefined ? 0 : 1) - first.length
  return [...first, ...Array.from({ length: Math.max(0, count) }, () => item)]
}

function stringOf({ format, pattern, minLength = 0, maxLength = Number.POSITIVE_INFINITY }: JsonSchema): unknown {
  const [least, most] = [Number(minLength), Number(maxLength)]
  const made = typeof pattern === 'string' ? [textFor(pattern)] : []
  const candidates = [BY_FORMAT[String(format)], ...TEXTS, 'a'.repeat(Math.min(least, 10_000)), ...made]
  const test = typeof pattern === 'string' ? new RegExp(pattern, 'u') : null
  return candidates.find(
    (text) => text !== undefined && text.length >= least && text.length <= most && (test?.test(text) ?? true),
  )
}

/** A character, a class of characters or an anchor, and how often it occurs. */
const PIECE = /(\[(?:\\.|[^\]\\])+\]|\\.|[^\\()[\]|?*+{}])(?:\{(\d+)(?:,\d*)?\}|([?*+]))?/gsu

/**
 * Makes a text of a pattern that is a row of characters, classes and simple groups, such as that of an identifier. The caller
 * tests it.
 *
 * @example textFor('^AC[0-9a-f]{4}$') → "ACaaaa"
 */
function textFor(pattern: string): string {
  const firstOfGroups = pattern.replace(/\((?:\?:)?([^()|]*)(?:\|[^()]*)?\)/g, '$1')
  return [...firstOfGroups.matchAll(PIECE)]
    .map(([, piece = '', count, sign]) => {
      if (piece === '^' || piece === '$' || sign === '?' || sign === '*') return ''
      const test = new RegExp(`^${piece}$`, 'u')
      const character =
        piece.length === 1 && piece !== '.' ? piece : 'a A 1 - _ . / :'.split(' ').find((each) => test.test(each))
      return (character ?? '').repeat(Math.min(Number(count ?? 1), 1_000))
    })
    .join('')
}

function numberOf(schema: JsonSchema, isInteger: boolean): number {
  const step = Number(schema['multipleOf'] ?? (isInteger ? 1 : 0.5))
  const least = Number(schema['minimum'] ?? schema['exclusiveMinimum'] ?? Number.NEGATIVE_INFINITY)
  const most = Number(schema['maximum'] ?? schema['exclusiveMaximum'] ?? Number.POSITIVE_INFINITY)
  let value = Math.max(Math.ceil((Number.isFinite(least) ? least : step) / step) * step, Math.min(step, most))
  if (value <= Number(schema['exclusiveMinimum'] ?? Number.NEGATIVE_INFINITY)) value += step
  return value > most ? Math.floor(most / step) * step : value
}
