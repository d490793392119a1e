/**
 * Joins an imported document with the one of an earlier import. A field that the operator has changed since stays; every
 * other one is that of the OpenAPI document. The document keeps a digest of each field as it was imported, to tell the two.
 */
import { PRODUCT_SCHEMA } from '../../gateway/config/project-root.ts'
import { createHash } from 'node:crypto'
import { isObject } from '../../gateway/validation/json.ts'
import type { Wanted, Written } from './catalog-document.ts'
import { entriesOf, type Json } from './read-openapi.ts'

export interface Merged {
  /** The catalog document. */
  readonly content: Json
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly changed: readonly string[]
  /** Operations that the operator took out of the document. */
  readonly takenOut: readonly string[]
}

/** Where the document came from, as an import records it. */
export interface Source {
  readonly from: string
  readonly at: string
  readonly price: string
  /** The address that the operator named instead of the first server. */
  readonly server?: string
}

type Digests = Readonly<Record<string, string>>

interface Imported {
  readonly product: Digests
  readonly operations: Readonly<Record<string, Digests>>
}

/** What an earlier import recorded in a document. Null if there is no document, or no import wrote it. */
export function recordOf(document: Json | null): (Source & Imported) | null {
  const imported = document?.['imported']
  return isObject(imported) ? (imported as unknown as Source & Imported) : null
}

/** Ids by method and path of the OpenAPI document. */
export function knownIds(document: Json | null): Map<string, string> {
  return new Map(
    Object.entries(recordOf(document)?.operations ?? {}).flatMap(([key, { id }]) => (id ? [[key, id]] : [])),
  )
}

/** Joins what was written now with the document of before, which may be null. */
export function merge(before: Json | null, written: Written, wanted: Wanted, source: Source): Merged {
  const record = recordOf(before)
  const operations: Record<string, unknown> = {}
  const digests: Record<string, Digests> = {}
  const [added, removed, changed, takenOut]: [string[], string[], string[], string[]] = [[], [], [], []]
  const former = isObject(before?.['operations']) ? before['operations'] : {}
  for (const [key, { id, fields }] of written.operations) {
    digests[key] = { id, ...digestsOf(fields) }
    const known = record?.operations[key]
    const present = former[id]
    if (!known) added.push(`${key} as ${id}`)
    if (known && !isObject(present)) takenOut.push(key)
    else if (!known || !isObject(present)) operations[id] = fields
    else {
      const { value, taken, kept } = joined(present, fields, known)
      operations[id] = value
      const told = differences(taken, kept)
      if (told !== '') changed.push(`${key} as ${id}: ${told}`)
    }
  }
  const importedIds = new Set(knownIds(before).values())
  for (const [key, { id = '' }] of Object.entries(record?.operations ?? {}))
    if (!written.operations.has(key) && id in former) removed.push(`${key} as ${id}`)
  // What the operator wrote beside the import.
  for (const [id, fields] of entriesOf(former)) if (!importedIds.has(id)) operations[id] = fields

  const { title, summary, upstream } = written.product
  const product = { title, summary }
  const words = joined(pick(before, ['title', 'summary']), product, record?.product ?? {})
  const formerUpstream = isObject(before?.['upstream']) ? before['upstream'] : {}
  const address = joined(formerUpstream, upstream, record?.product ?? {})
  const told = differences([...words.taken, ...address.taken], [...words.kept, ...address.kept])
  // Secrets go where the upstream is.
  const moved = address.taken.includes('url') ? `, calls go to ${String(upstream['url'])} now` : ''
  if (record && told !== '') changed.unshift(`the product: ${told}${moved}`)
  const family = wanted.at.startsWith('/v1/x/') ? { family: 'x' } : {}
  const head = before ?? { $schema: PRODUCT_SCHEMA, product: wanted.product, ...family }
  const {
    operations: _,
    imported: __,
    ...rest
  } = { ...head, ...words.value, upstream: address.value } as Record<string, unknown>
  return {
    content: {
      ...rest,
      operations,
      imported: { ...source, product: digestsOf({ ...product, ...upstream }), operations: digests },
    },
    added,
    removed,
    changed,
    takenOut,
  }
}

/** The fields that follow the OpenAPI document, and those in which the operator's stay. */
function differences(taken: readonly string[], kept: readonly string[]): string {
  return [taken.join(', '), kept.length > 0 ? `yours stays: ${kept.join(', ')}` : ''].filter(Boolean).join('; ')
}

function pick(document: Json | null, names: readonly string[]): Json {
  return Object.fromEntries(names.flatMap((name) => (document && name in document ? [[name, document[name]]] : [])))
}

/** Takes each field that the operator has not changed from `next`, and tells those that differ from the last import. */
function joined(before: Json, next: Json, known: Digests) {
  const value: Record<string, unknown> = {}
  const taken: string[] = []
  const kept: string[] = []
  for (const name of new Set([...Object.keys(next), ...Object.keys(before)])) {
    const isOwn = name in before && digestOf(before[name]) !== known[name]
    const isRemoved = !(name in before) && name in known
    const isNew = digestOrNone(next, name) !== known[name]
    if (isOwn || isRemoved) {
      if (name in before) value[name] = before[name]
      if (isNew && name in next) kept.push(name)
    } else {
      if (name in next) value[name] = next[name]
      if (isNew) taken.push(name)
    }
  }
  return { value, taken, kept }
}

const digestOrNone = (fields: Json, name: string): string | undefined =>
  name in fields ? digestOf(fields[name]) : undefined

function digestsOf(fields: Json): Digests {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, digestOf(value)]))
}

/** Short, because nobody wants to deceive it. */
function digestOf(value: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify(value) ?? '')
    .digest('base64url')
    .slice(0, 8)
}
