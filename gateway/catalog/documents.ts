/** Reads the catalog folder: service.json, plans.json, networks.json; every other *.json, in sub-folders too, a product. */
import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { NETWORKS_FILE } from '../config/networks.ts'
import { parseJson } from '../validation/json.ts'
import type { Issue } from '../validation/issue.ts'

export interface CatalogDocument {
  /** Path inside the catalog folder with forward slashes, e.g. "x/gold.json". */
  readonly file: string
  readonly kind: 'service' | 'plans' | 'networks' | 'product'
  /** As parsed; not yet checked against its schema. */
  readonly content: Readonly<Record<string, unknown>>
}

/**
 * Every document that is a JSON object, by file name in order, and a mistake for each that is not, that cannot be read,
 * for equal keys, and for a missing service.json. Throws where the folder itself cannot be read.
 */
export async function readDocuments(
  catalogDir: string,
): Promise<{ readonly documents: CatalogDocument[]; readonly issues: Issue[] }> {
  const documents: CatalogDocument[] = []
  const issues: Issue[] = []
  for (const file of await jsonFiles(catalogDir)) {
    const read = await readJson(join(catalogDir, file))
    if (read === null) continue
    const { value, issues: found } = read
    issues.push(...found.map((issue) => ({ file, ...issue })))
    if (isObject(value)) documents.push({ file, kind: kindOf(file), content: value })
    else if (found.length === 0)
      issues.push({ file, pointer: '', rule: 'type', message: 'Must be an object. Write { ... }.' })
  }
  const named = [...documents, ...issues].some(({ file }) => file === 'service.json')
  if (!named)
    issues.push({
      file: 'service.json',
      pointer: '',
      rule: 'missing',
      message: 'Is missing. Write the words of the service.',
    })
  return { documents, issues }
}

/** What a file says; null where it has gone since it was listed. That it cannot be read is a problem of that file only. */
export async function readJson(path: string): Promise<ReturnType<typeof parseJson> | null> {
  try {
    return parseJson(await readFile(path, 'utf8'))
  } catch (error) {
    const { code = String(error) } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return null
    const message = `Cannot be read (${code}). Give the gateway the right to, or remove it.`
    return { value: undefined, issues: [{ pointer: '', rule: 'read', message }] }
  }
}

function kindOf(file: string): CatalogDocument['kind'] {
  if (file === 'service.json') return 'service'
  if (file === NETWORKS_FILE) return 'networks'
  return file === 'plans.json' ? 'plans' : 'product'
}

/** Links are followed: an operator may keep documents, or whole folders of them, elsewhere. */
async function jsonFiles(folder: string, below = '', within: readonly string[] = []): Promise<string[]> {
  const home = await realpath(join(folder, below))
  // A link that leads round in circles.
  if (within.includes(home)) return []
  const entries = await readdir(home, { withFileTypes: true })
  const files = entries
    .filter(({ name }) => !name.startsWith('.'))
    .map(async (entry) => {
      const file = below === '' ? entry.name : `${below}/${entry.name}`
      const found = entry.isSymbolicLink() ? await stat(join(home, entry.name)).catch(() => null) : entry
      if (found?.isDirectory()) return jsonFiles(folder, file, [...within, home])
      return found?.isFile() && file.endsWith('.json') ? [file] : []
    })
  return (await Promise.all(files)).flat().sort()
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
