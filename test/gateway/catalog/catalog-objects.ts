import { createCatalog } from '../../../gateway/catalog/resolve.ts'
import { type CatalogDocument, isPlansFile } from '../../../gateway/catalog/documents.ts'
import type { JsonSchema } from '../../../gateway/plugin/plugin.ts'
import { SERVICE } from '../../support/catalog.ts'

/** Catalogs that tests write as objects instead of files. */
export type Contents = Readonly<Record<string, object>>

export const SCHEMAS = new Map<string, JsonSchema>([
  [
    'gold.json',
    { $id: 'gold.json', $defs: { Price: { type: 'number' }, Query: { properties: { day: { type: 'string' } } } } },
  ],
  ['unused.json', { $id: 'unused.json' }],
])

export function documentsOf(contents: Contents): CatalogDocument[] {
  return Object.entries({ 'service.json': SERVICE, ...contents }).map(([file, content]) => ({
    file,
    kind: file === 'service.json' ? 'service' : isPlansFile(file) ? 'plans' : 'product',
    content: content as Record<string, unknown>,
  }))
}

export const create = (contents: Contents, schemas: ReadonlyMap<string, JsonSchema> = SCHEMAS) =>
  createCatalog(documentsOf(contents), schemas)

export function params(name: string) {
  return { type: 'object', required: [name], properties: { [name]: { type: 'string' } } }
}

export function at(route: string, name: string) {
  return { route, params: params(name) }
}

export function free(path: string) {
  return { route: `GET ${path}`, summary: 'Free.', price: 'free', response: {} }
}
