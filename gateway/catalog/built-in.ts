/**
 * The products that come with the gateway: documents, pages and receipts. A shop needs no file for them, and what its own
 * files define takes precedence: a file of the same product adds to the built-in one, and a built-in operation gives way to
 * another of the same id. Another one that takes its route is a conflict, as between any two operations.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import documents from './built-in/documents.json' with { type: 'json' }
import pages from './built-in/pages.json' with { type: 'json' }
import receipts from './built-in/receipts.json' with { type: 'json' }
import { PROJECT_ROOT } from '../config/project-root.ts'
import { once } from '../once.ts'
import type { JsonSchema } from '../plugin/plugin.ts'
import { isObject } from '../validation/json.ts'
import type { CatalogDocument } from './documents.ts'
import { draftsOf } from './product-drafts.ts'
import { Remembered } from './remembered.ts'

type Content = CatalogDocument['content']

const BUILT_IN: readonly Content[] = [documents, pages, receipts]

/** Schemas that built-in products use, or that products may refer to. */
const SCHEMAS = ['common.json', 'documents.json', 'pages.json', 'plans.json', 'receipts.json']

/** Returns the documents of a shop with the built-in ones, sorted by file. */
export function withBuiltIn(own: readonly CatalogDocument[]): CatalogDocument[] {
  const drafts = draftsOf(own.filter(({ kind }) => kind === 'product'))
  const all = new Map(own.map((document) => [document.file, document]))
  for (const content of BUILT_IN) {
    const product = content['product'] as string
    const same = drafts.find((draft) => draft.product === product)
    const others = drafts.filter((draft) => draft !== same).flatMap(({ operations }) => operations)
    const ids = new Set(others.map(({ id }) => id))
    const document = joined(content, own.find(({ file }) => file === same?.file) ?? null, ids)
    if (document) all.set(document.file, document)
  }
  return [...all.values()].sort((one, other) => (one.file < other.file ? -1 : 1))
}

/** Adds the schemas of the gateway that a shop has not replaced. */
export function withBuiltInSchemas(own: ReadonlyMap<string, JsonSchema>): Map<string, JsonSchema> {
  return new Map([...builtInSchemas(), ...own])
}

const builtInSchemas = once(() => {
  const folder = join(PROJECT_ROOT, 'schemas')
  return SCHEMAS.map((name) => [name, JSON.parse(readFileSync(join(folder, name), 'utf8')) as JsonSchema] as const)
})

/** Built-in documents as they are served. One that stays the same is the same object, so that nothing is computed again. */
const served = new Remembered<CatalogDocument>()

/**
 * Returns a built-in document with what a shop's file of the same product adds, and without the operations whose id another
 * file has. Null if none is left.
 */
function joined(content: Content, same: CatalogDocument | null, taken: ReadonlySet<string>): CatalogDocument | null {
  const [draft] = draftsOf([{ file: '', kind: 'product', content }])
  const left = draft?.operations.filter(({ id }) => !taken.has(id)) ?? []
  if (left.length === 0) return null
  const inputs = [same?.content, same?.file, left.map(({ id }) => id).join()]
  return served.get(content, inputs, () => {
    const added = same?.content ?? {}
    const operations = Object.fromEntries(left.map(({ id, fields }) => [id, fields]))
    return {
      file: same?.file ?? `built-in/${String(content['product'])}.json`,
      kind: 'product',
      content: {
        ...content,
        ...added,
        settings: { ...asObject(content['settings']), ...asObject(added['settings']) },
        operations: { ...operations, ...asObject(added['operations']) },
      },
    }
  })
}

const asObject = (value: unknown): Content => (isObject(value) ? value : {})
