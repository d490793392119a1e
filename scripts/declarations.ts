/** TypeScript for the shapes of the catalog: one schema of all plugins, operations, inputs and outputs, compiled once. */
import { isDeepStrictEqual } from 'node:util'
import { compile } from 'json-schema-to-typescript'
import type { Catalog, Operation } from '../gateway/plugin/catalog.ts'
import { stepsOf } from '../gateway/validation/issue.ts'
import { isObject } from '../gateway/validation/json.ts'
import type { JsonSchema } from '../gateway/plugin/plugin.ts'

const HEAD = `/**
 * Made by scripts/types.ts from catalog/ and schemas/. Do not edit: run \`npm run types\`.
 * The shapes have their names from the $defs; Plugins gets the input and output of every handler.
 */

`
const TAIL = `
declare module 'tollgate/plugin' {
  interface Plugins extends Products {}
}
`
const NOTHING = { tsType: 'Readonly<Record<string, unknown>>' }

/**
 * The text of schemas/types.d.ts for the plugins that `isTyped` names. A field with a default is there when a handler
 * runs, and may be left out by a product that asks; arrays are readonly; a file is an Upload.
 */
export async function declarations(catalog: Catalog, isTyped: (plugin: string) => boolean): Promise<string> {
  const names = createNames(catalog)
  const plugins = new Map<string, Map<string, Operation[]>>()
  for (const { plugin, operations } of catalog.products) {
    if (!plugin || !isTyped(plugin.name)) continue
    const handlers = plugins.get(plugin.name) ?? new Map<string, Operation[]>()
    plugins.set(plugin.name, handlers)
    for (const operation of operations)
      handlers.set(operation.handler, [...(handlers.get(operation.handler) ?? []), operation])
  }
  const shapeOf = (schema: JsonSchema | null, missing: JsonSchema, isAsked = false): unknown =>
    schema ? names.typed(schema, { root: schema, file: '', isAsked }) : missing
  const inputOf = (operations: readonly Operation[], isAsked: boolean): unknown =>
    choice(
      operations.map(({ params, query, body }) =>
        closed({
          params: shapeOf(params, NOTHING, isAsked),
          query: shapeOf(query, NOTHING, isAsked),
          body: shapeOf(body, { tsType: 'undefined' }, isAsked),
        }),
      ),
    )
  const handler = (operations: readonly Operation[]): unknown => {
    const [input, asked] = [inputOf(operations, false), inputOf(operations, true)]
    const output = choice(operations.map(({ response }) => shapeOf(response, { tsType: 'unknown' })))
    return closed(isDeepStrictEqual(input, asked) ? { input, output } : { input, asked, output })
  }
  const products = [...plugins].sort(byName).map(([plugin, handlers]) => {
    const typed = [...handlers].sort(byName).map(([name, operations]) => [name, handler(operations)] as const)
    return [plugin, closed(Object.fromEntries(typed))] as const
  })
  const root = { title: 'Products', ...closed(Object.fromEntries(products)), $defs: names.all() }
  const text = await compile(root, 'Products', {
    bannerComment: '',
    additionalProperties: false,
    ignoreMinAndMaxItems: true,
    unreachableDefinitions: false,
    style: { semi: false, singleQuote: true, printWidth: 120 },
  })
  const uploads = /\bUpload\b/.test(text) ? "import type { Upload } from 'tollgate/plugin'\n\n" : ''
  // A type, unlike an interface, may be given where a record is wanted.
  const types = text.replace(/^export interface (\w+) \{/gm, 'export type $1 = {')
  return `${HEAD}${uploads}${readonlyArrays(types)}${TAIL}`
}

const byName = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number => (a < b ? -1 : 1)

function closed(properties: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return { type: 'object', required: Object.keys(properties), additionalProperties: false, properties }
}

function choice(schemas: readonly unknown[]): unknown {
  const different = [...new Map(schemas.map((schema) => [JSON.stringify(schema), schema])).values()]
  return different.length === 1 ? different[0] : { anyOf: different }
}

interface From {
  readonly root: JsonSchema
  readonly file: string
  /** True for what another product asks with: there a default may be left out. */
  readonly isAsked: boolean
}

/** Gives every referenced shape one name, and keeps its schema under that name. */
function createNames({ schemas }: Catalog) {
  const kept = new Map<string, unknown>()
  const owners = new Map<string, string>()

  function nameOf(file: string, fragment: string): string {
    const word = (fragment.split('/').at(-1) || file.replace(/\.json$/, '')).replace(/[^A-Za-z0-9]+/g, ' ')
    const plain = pascal(word)
    const place = `${file}#${fragment}`
    const owner = owners.get(plain)
    const isFree = (owner === undefined || owner === place) && !(plain in globalThis)
    const name = isFree ? plain : pascal(`${file.replace(/\.json$/, '')} ${word}`)
    owners.set(name, place)
    return name
  }

  function refer(ref: string, from: From): unknown {
    const [named = '', fragment = ''] = ref.split('#')
    const file = named === '' ? from.file : named
    const root = named === '' ? from.root : (schemas.get(named) as JsonSchema)
    const target = targetOf(ref, root)
    if (file === '') return typed(target, { ...from, root, file })
    const plain = nameOf(file, fragment)
    const isAsked = from.isAsked && holdsDefault(target, root, new Set())
    const name = isAsked ? `Asked${plain}` : plain
    if (!kept.has(name)) {
      kept.set(name, {})
      kept.set(name, typed(target, { root, file, isAsked }))
    }
    return { $ref: `#/$defs/${name}` }
  }

  function holdsDefault(node: unknown, root: JsonSchema, seen: Set<unknown>): boolean {
    if (typeof node !== 'object' || node === null || seen.has(node)) return false
    seen.add(node)
    const ref = (node as JsonSchema)['$ref']
    if (typeof ref === 'string') {
      const [named = ''] = ref.split('#')
      const next = named === '' ? root : (schemas.get(named) as JsonSchema)
      if (holdsDefault(targetOf(ref, next), next, seen)) return true
    }
    return 'default' in node || Object.values(node).some((child) => holdsDefault(child, root, seen))
  }

  /** The schema in the words that json-schema-to-typescript knows. */
  function typed(node: unknown, from: From): unknown {
    if (Array.isArray(node)) return node.map((item) => typed(item, from))
    if (!isObject(node)) return node
    if (typeof node['tsType'] === 'string') return { tsType: node['tsType'] }
    if (typeof node['$ref'] === 'string') return refer(node['$ref'], from)
    if (node['format'] === 'binary' || node['contentMediaType'] === 'application/octet-stream')
      return { tsType: 'Upload' }
    const { prefixItems, ...rest } = node
    const words = Object.entries(rest).filter(([word]) => !UNTYPED.has(word))
    const shape = Object.fromEntries(words.map(([word, value]) => [word, typedWord(word, value, from)]))
    if (prefixItems) Object.assign(shape, { items: typed(prefixItems, from), additionalItems: false })
    if (isObject(shape['properties'])) shape['required'] = from.isAsked ? (node['required'] ?? []) : present(node)
    if (Array.isArray(shape['allOf']))
      shape['allOf'] = shape['allOf'].filter((part) => Object.keys(part as object).length > 0)
    if (Array.isArray(shape['allOf']) && shape['allOf'].length === 0) delete shape['allOf']
    return shape
  }

  function typedWord(word: string, value: unknown, from: From): unknown {
    if (word !== 'properties') return VALUES.has(word) ? value : typed(value, from)
    return Object.fromEntries(Object.entries(value as object).map(([name, schema]) => [name, typed(schema, from)]))
  }

  return { typed, all: () => Object.fromEntries([...kept].sort(byName)) }
}

function targetOf(ref: string, root: JsonSchema): unknown {
  return stepsOf(ref.split('#')[1] ?? '').reduce<unknown>((node, step) => (node as Record<string, unknown>)[step], root)
}

/** Rules that no type can say, and names of our own making. */
const UNTYPED = new Set(
  '$id $schema $defs title if then else not dependentRequired dependentSchemas unevaluatedProperties propertyNames contains examples default pattern'.split(
    ' ',
  ),
)
const VALUES = new Set(['const', 'enum', 'required', 'description', 'type'])

function present(node: Readonly<Record<string, unknown>>): string[] {
  const required = (node['required'] ?? []) as string[]
  const filled = Object.entries(node['properties'] as Record<string, JsonSchema>)
    .filter(([, schema]) => isObject(schema) && 'default' in schema)
    .map(([name]) => name)
  return [...new Set([...required, ...filled])]
}

function pascal(words: string): string {
  return words
    .split(/[\s-]+/)
    .filter(Boolean)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')
}

/** @example readonlyArrays('a: (string | null)[][]') → "a: readonly (readonly (string | null)[])[]" */
export function readonlyArrays(text: string): string {
  let done = text
  for (let at = done.indexOf('[]'); at !== -1; at = done.indexOf('[]', at)) {
    const brackets = /^(\[\])+/.exec(done.slice(at))?.[0].length ?? 0
    const isComment = /^\s*(\/\*\*|\*)/.test(done.slice(done.lastIndexOf('\n', at) + 1, at))
    const start = isComment ? at : elementStart(done, at)
    let type = done.slice(start, at)
    for (let depth = 0; depth < brackets / 2; depth += 1) type = `readonly ${depth === 0 ? type : `(${type})`}[]`
    const made = isComment ? '[]'.repeat(brackets / 2) : type
    done = done.slice(0, start) + made + done.slice(at + brackets)
    at = start + made.length
  }
  return done
}

/** Where the element type before `[]` begins. */
function elementStart(text: string, end: number): number {
  let depth = 0
  for (let at = end - 1; at >= 0; at -= 1) {
    const sign = text[at] as string
    if (')}'.includes(sign)) depth += 1
    if ('({'.includes(sign)) depth -= 1
    if (depth === 0 && !/[\w$"'.]/.test(text[at - 1] ?? '') && sign !== ')' && sign !== '}') return at
  }
  return 0
}
