/** The JSON Schemas of the schemas folder, and references between them such as "gold.json#/$defs/Price". */
import { readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { JsonSchema } from '../plugin/plugin.ts'
import type { Operation } from '../plugin/catalog.ts'
import { type Issue, stepsOf } from '../validation/issue.ts'
import { JsonFiles } from './documents.ts'
import { isObject } from '../validation/json.ts'
import type { Schemas } from '../validation/json-schema.ts'
import { Remembered } from './remembered.ts'

/**
 * Reads the *.json files of a folder, without its sub-folders. A schema is known by its file name, which must equal its
 * `$id`.
 */
export async function readSchemas(
  schemaDir: string,
  files = new JsonFiles(),
): Promise<{ readonly schemas: Map<string, JsonSchema>; readonly issues: Issue[] }> {
  const schemas = new Map<string, JsonSchema>()
  const issues: Issue[] = []
  // A shop may do without schemas of its own.
  const entries = await readdir(schemaDir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  const names = entries.filter((name) => name.endsWith('.json')).sort()
  for (const name of names) {
    const read = await files.read(join(schemaDir, name))
    if (read === null) continue
    const { value, issues: found } = read
    const file = `${basename(schemaDir)}/${name}`
    issues.push(...found.map((issue) => ({ file, ...issue })))
    if (!isObject(value)) continue
    if (value['$id'] !== undefined && value['$id'] !== name)
      issues.push({ file, pointer: '/$id', rule: 'schema-id', message: `Write "${name}", the name of the file.` })
    else schemas.set(name, value)
  }
  return { schemas, issues }
}

interface Found {
  readonly schema: unknown
  /** The schema that a reference without a file refers to, inside the found schema. */
  readonly root: JsonSchema
  /** File of the root, or "" for a schema that is written in a catalog document. */
  readonly file: string
}

/** Finds the target of a `$ref`. Null if there is none. */
function follow(ref: string, from: Omit<Found, 'schema'>, schemas: Schemas): Found | null {
  const [file = '', fragment = ''] = ref.split('#')
  const root = file === '' ? from.root : schemas.get(file)
  if (!root) return null
  const pointer = decoded(fragment)
  if (pointer === null) return null
  let schema: unknown = root
  for (const step of stepsOf(pointer))
    schema = isObject(schema) || Array.isArray(schema) ? (schema as Record<string, unknown>)[step] : undefined
  return schema === undefined ? null : { schema, root, file: file === '' ? from.file : file }
}

/** The text of a URI fragment; null if a percent sign in it encodes nothing. */
function decoded(fragment: string): string | null {
  try {
    return decodeURIComponent(fragment)
  } catch {
    return null
  }
}

/** Keywords whose value is data: a `$ref` in there is not a reference. */
const DATA = new Set(['const', 'enum', 'default', 'examples'])

interface References {
  readonly broken: readonly string[]
  readonly files: ReadonlySet<string>
}

const knownReferences = new Remembered<References>()

/**
 * Lists the broken references of a schema, and the schema files that it needs, directly or indirectly. A broken reference
 * is listed as it is written, with " in gold.json" if another file contains it.
 */
export function references(schema: JsonSchema, schemas: Schemas): References {
  return knownReferences.get(schema, [schemas], () => findReferences(schema, schemas))
}

function findReferences(schema: JsonSchema, schemas: Schemas): References {
  const broken: string[] = []
  const files = new Set<string>()
  const seen = new Set<unknown>()
  function walk(node: unknown, from: Omit<Found, 'schema'>): void {
    if (typeof node !== 'object' || node === null || seen.has(node)) return
    seen.add(node)
    for (const [key, value] of Object.entries(node)) {
      if (key === '$ref' && typeof value === 'string') {
        const found = follow(value, from, schemas)
        if (found) {
          if (found.file !== '') files.add(found.file)
          walk(found.schema, found)
        } else broken.push(from.file === '' ? value : `${value} in ${from.file}`)
      } else if (!DATA.has(key)) walk(value, from)
    }
  }
  walk(schema, { root: schema, file: '' })
  return { broken, files }
}

/** Lists the schema files that operations need, sorted by name. */
export function filesOf(operations: readonly Operation[], schemas: Schemas): string[] {
  const files = new Set<string>()
  for (const { params, query, body, response } of operations)
    for (const schema of [params, query, body, response])
      if (schema) for (const file of references(schema, schemas).files) files.add(file)
  return [...files].sort()
}

/**
 * Replaces every `$ref` of a schema by its target, for readers that cannot follow references. Keywords beside a `$ref`
 * take precedence over those of its target. A schema that contains itself accepts anything at the second level.
 */
export function dereference(schema: JsonSchema, schemas: Schemas): JsonSchema {
  function inline(node: unknown, from: Omit<Found, 'schema'>, within: readonly unknown[]): unknown {
    if (Array.isArray(node)) return node.map((item) => inline(item, from, within))
    if (!isObject(node)) return node
    const entries = Object.entries(node)
      .filter(([key]) => !['$ref', '$id', '$schema', '$defs', 'tsType'].includes(key))
      .map(([key, value]) => [key, DATA.has(key) ? value : inline(value, from, within)] as const)
    const own = Object.fromEntries(entries)
    if (typeof node['$ref'] !== 'string') return own
    const found = follow(node['$ref'], from, schemas)
    if (!found || within.includes(found.schema)) return own
    const target = inline(found.schema, found, [...within, found.schema])
    return isObject(target) ? { ...target, ...own } : target
  }
  return inline(schema, { root: schema, file: '' }, []) as JsonSchema
}

/** Returns the properties of an object schema, including those of its `allOf`, with references resolved. */
export function fieldsOf(schema: JsonSchema | null, schemas: Schemas): Readonly<Record<string, JsonSchema>> {
  if (schema === null) return {}
  const fields: Record<string, JsonSchema> = {}
  const collect = (node: unknown): void => {
    if (!isObject(node)) return
    if (Array.isArray(node['allOf'])) node['allOf'].forEach(collect)
    if (isObject(node['properties'])) Object.assign(fields, node['properties'])
  }
  collect(dereference(schema, schemas))
  return fields
}

/** True for the schema of a file. */
export function isFileSchema(schema: JsonSchema | undefined): boolean {
  return schema?.['format'] === 'binary' || schema?.['contentMediaType'] === 'application/octet-stream'
}

/** The schema of a field where a file is sent as text: in JSON and over MCP. Any other field stays as it is. */
export function asText(schema: JsonSchema): JsonSchema {
  if (!isFileSchema(schema)) return schema
  const description = [schema['description'], 'The content of the file as text.'].filter(Boolean).join(' ')
  return { type: 'string', ...(schema['title'] === undefined ? {} : { title: schema['title'] }), description }
}
