/**
 * Bundles schemas of many files into one flat set: `gold.json#/$defs/Bar` becomes `<prefix>gold.Bar`, and every
 * reference is rewritten to match. The set has only the schemas that are referenced.
 */
import type { JsonSchema } from '../plugin/plugin.ts'
import { pointerOf, stepsOf } from '../validation/issue.ts'

export interface Bundle {
  /** Returns the schema with its references rewritten. Its own `$defs` are added under `name`. */
  add(schema: JsonSchema, name: string): JsonSchema
  /** Returns the properties of an object schema, following the schema's own reference. */
  properties(schema: JsonSchema, name: string): readonly Property[]
  /** The schemas referenced so far, by flat name. */
  readonly schemas: Readonly<Record<string, JsonSchema>>
}

export interface Property {
  readonly name: string
  readonly required: boolean
  readonly schema: JsonSchema
}

/** The document a reference is relative to. */
interface Base {
  readonly name: string
  readonly root: JsonSchema
}

/** Values of these keywords are data, not schemas. */
const DATA = new Set(['const', 'enum', 'default', 'example', 'examples'])
/** Keywords that must not be copied into another document, because they identify or rename the schema. */
const OWN = new Set(['$id', '$schema', '$defs', '$comment', 'tsType'])

/** Creates an empty bundle over schema files by name. `prefix` is the pointer to the set, such as "#/schemas/". */
export function createBundle(files: ReadonlyMap<string, JsonSchema>, prefix: string): Bundle {
  const schemas: Record<string, JsonSchema> = {}

  /** Resolves a reference to its document, flat name and schema, and the remaining steps of its pointer. */
  function target(reference: string, base: Base) {
    const [file = '', pointer = ''] = reference.split('#', 2)
    const root = file === '' ? base.root : files.get(file.replace(/^\.\//, ''))
    if (root === undefined) throw new Error(`${base.name} references the schema ${file}, which does not exist.`)
    const there: Base = file === '' ? base : { name: flatName(file), root }
    const steps = stepsOf(decodeURIComponent(pointer))
    const [first, definition, ...rest] = steps
    if (first === '$defs' && definition !== undefined) {
      const schema = (root['$defs'] as Record<string, JsonSchema> | undefined)?.[definition]
      if (schema === undefined)
        throw new Error(`${base.name} references the schema ${reference}, which does not exist.`)
      return { there, name: `${there.name}.${flatName(definition)}`, schema, rest }
    }
    return { there, name: there.name, schema: root, rest: steps }
  }

  function refer(reference: string, base: Base): string {
    const { there, name, schema, rest } = target(reference, base)
    if (!(name in schemas)) {
      schemas[name] = {}
      schemas[name] = rewrite(schema, there) as JsonSchema
    }
    return prefix + name + pointerOf(...rest)
  }

  function rewrite(value: unknown, base: Base): unknown {
    if (Array.isArray(value)) return value.map((item) => rewrite(item, base))
    if (typeof value !== 'object' || value === null) return value
    const entries = Object.entries(value).filter(([keyword]) => !OWN.has(keyword))
    return Object.fromEntries(
      entries.map(([keyword, inner]) => {
        if (keyword === '$ref' && typeof inner === 'string') return [keyword, refer(inner, base)]
        return [keyword, DATA.has(keyword) ? inner : rewrite(inner, base)]
      }),
    )
  }

  function properties(schema: JsonSchema, base: Base): readonly Property[] {
    if (typeof schema['$ref'] === 'string') {
      const { there, schema: referred } = target(schema['$ref'], base)
      return properties(referred, there)
    }
    const parts = ((schema['allOf'] ?? []) as readonly JsonSchema[]).flatMap((part) => properties(part, base))
    const required = new Set((schema['required'] ?? []) as readonly string[])
    const own = Object.entries((schema['properties'] ?? {}) as Record<string, JsonSchema>).map(([name, property]) => ({
      name,
      required: required.has(name),
      schema: rewrite(property, base) as JsonSchema,
    }))
    return [...parts, ...own]
  }

  return {
    schemas,
    add: (schema, name) => rewrite(schema, { name: flatName(name), root: schema }) as JsonSchema,
    properties: (schema, name) => properties(schema, { name: flatName(name), root: schema }),
  }
}

/** Turns "gold.json" into "gold". Characters that OpenAPI does not allow in a component name become "_". */
function flatName(file: string): string {
  return file.replace(/\.json$/, '').replace(/[^A-Za-z0-9._-]+/g, '_')
}
