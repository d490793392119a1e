/** Reads the catalog folder: service.json, plans.json, and every other *.json, in sub-folders too, a product. */
import { readdir, readFile } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { parseJson } from './json.ts'
import type { Mistake } from './mistake.ts'

export interface CatalogDocument {
  /** Path inside the catalog folder with forward slashes, e.g. "x/gold.json". */
  readonly file: string
  readonly kind: 'service' | 'plans' | 'product'
  /** As parsed; not yet checked against its schema. */
  readonly content: Readonly<Record<string, unknown>>
}

/**
 * Every document that is a JSON object, by file name in order, and a mistake for each that is not, for equal keys, and
 * for a missing service.json. Throws where the folder itself cannot be read.
 */
export async function readDocuments(
  catalogDir: string,
): Promise<{ readonly documents: CatalogDocument[]; readonly mistakes: Mistake[] }> {
  const documents: CatalogDocument[] = []
  const mistakes: Mistake[] = []
  for (const file of await jsonFiles(catalogDir)) {
    const { value, problems } = parseJson(await readFile(join(catalogDir, file), 'utf8'))
    mistakes.push(...problems.map((problem) => ({ file, ...problem })))
    if (isObject(value)) documents.push({ file, kind: kindOf(file), content: value })
    else if (problems.length === 0)
      mistakes.push({ file, pointer: '', rule: 'type', message: 'Must be an object. Write { ... }.' })
  }
  const named = [...documents, ...mistakes].some(({ file }) => file === 'service.json')
  if (!named)
    mistakes.push({
      file: 'service.json',
      pointer: '',
      rule: 'missing',
      message: 'Is missing. Write the words of the service.',
    })
  return { documents, mistakes }
}

function kindOf(file: string): CatalogDocument['kind'] {
  if (file === 'service.json') return 'service'
  return file === 'plans.json' ? 'plans' : 'product'
}

async function jsonFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile() && entry.name.endsWith('.json') && !entry.name.startsWith('.'))
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length).split(sep).filter(Boolean).join('/'))
    .sort()
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
