/**
 * Reads the catalog folder: service.json, hooks.json, networks.json, plans.json and any file whose name ends in .plans.json.
 * Every other *.json file, in sub-folders too, is a product document.
 */
import { statSync } from 'node:fs'
import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { NETWORKS_FILE } from '../config/networks.ts'
import { isObject, parseJson } from '../validation/json.ts'
import { CatalogError, type Issue } from '../validation/issue.ts'
import { Remembered } from './remembered.ts'

const SERVICE_FILE = 'service.json'
export const HOOKS_FILE = 'hooks.json'

export interface CatalogDocument {
  /** Path inside the catalog folder with forward slashes, e.g. "x/gold.json". */
  readonly file: string
  readonly kind: 'service' | 'plans' | 'hooks' | 'networks' | 'product'
  /** The parsed JSON. It has not been validated. */
  readonly content: Readonly<Record<string, unknown>>
}

/** A file that was read. */
interface KnownFile {
  readonly text: string
  readonly read: ReturnType<typeof parseJson>
  /** The status of the file before it was read. */
  readonly stamp: string
  /** False if the file was so new that a later change may have the same stamp. */
  readonly isSettled: boolean
}

/** Time stamps of files are no finer than this, also on old and remote file systems. */
const SETTLED_MS = 2_000

/**
 * Reads JSON files, and remembers them. A file that has not changed is not parsed again: its value is the same object. So
 * whatever was computed from it can be found by that object.
 */
export class JsonFiles {
  readonly #known = new Map<string, KnownFile>()

  /** Reads a JSON file. Null if the file has gone since it was listed. A file that cannot be read is an issue. */
  async read(path: string): Promise<ReturnType<typeof parseJson> | null> {
    try {
      // Reading a thousand files costs ten times as much as asking for their stamps, if each is asked for at once.
      const { dev, ino, size, mtimeNs, ctimeNs, ctimeMs } = statSync(path, { bigint: true })
      const stamp = [dev, ino, size, mtimeNs, ctimeNs].join()
      const known = this.#known.get(path)
      if (known?.isSettled && known.stamp === stamp) return known.read
      const isSettled = Date.now() - Number(ctimeMs) > SETTLED_MS
      const text = await readFile(path, 'utf8')
      const read = known?.text === text ? known.read : parseJson(text)
      this.#known.set(path, { text, read, stamp, isSettled })
      return read
    } catch (error) {
      this.#known.delete(path)
      const { code = String(error) } = error as NodeJS.ErrnoException
      if (code === 'ENOENT') return null
      const message = `Cannot be read (${code}). Give the gateway permission to read it, or remove it.`
      return { value: undefined, issues: [{ pointer: '', rule: 'read', message }] }
    }
  }
}

/**
 * Reads the documents that are JSON objects, sorted by file name. Files that cannot be read or parsed, values that are
 * not objects, and duplicate keys are issues. What service.json does not say, package.json beside the folder does.
 *
 * @param files remembers what was read, so that the next reading is faster
 * @throws CatalogError if the folder, or one in it, cannot be read: its products are unknown then
 */
export async function readDocuments(
  catalogDir: string,
  files = new JsonFiles(),
): Promise<{ readonly documents: CatalogDocument[]; readonly issues: Issue[] }> {
  const documents: CatalogDocument[] = []
  const issues: Issue[] = []
  const names = await jsonFiles(catalogDir).catch((error: NodeJS.ErrnoException) => {
    throw new CatalogError([unreadable(error.code ?? error.message)])
  })
  for (const file of names) {
    const read = await files.read(join(catalogDir, file))
    if (read === null) continue
    const { value, issues: found } = read
    issues.push(...found.map((issue) => ({ file, ...issue })))
    if (isObject(value))
      documents.push(file === SERVICE_FILE ? await serviceOf(value, catalogDir, files) : documentOf(file, value))
    else if (found.length === 0)
      issues.push({ file, pointer: '', rule: 'type', message: 'Must be an object. Write { ... }.' })
  }
  const hasService = [...documents, ...issues].some(({ file }) => file === SERVICE_FILE)
  if (!hasService) documents.push(await serviceOf(NOTHING, catalogDir, files))
  return { documents, issues }
}

const NAME_OF_SHOP = /^(?:@[^/]*\/)?(.*)$/
const VERSION = /^[0-9]+\.[0-9]+\.[0-9]+$/

const documentOf = (file: string, content: CatalogDocument['content']): CatalogDocument => ({
  file,
  kind: kindOf(file),
  content,
})

/** What service.json says of a service and, where it says nothing, the name, version and description of its package. */
async function serviceOf(
  own: CatalogDocument['content'],
  catalogDir: string,
  files: JsonFiles,
): Promise<CatalogDocument> {
  const folder = dirname(catalogDir)
  const value = (await files.read(join(folder, 'package.json')))?.value
  const described = isObject(value) ? value : NOTHING
  return services.get(described, [own, folder], () => {
    const text = (name: string, otherwise: string): string =>
      typeof described[name] === 'string' && described[name] !== '' ? described[name] : otherwise
    const words = text('name', basename(folder))
      .replace(NAME_OF_SHOP, '$1')
      .replaceAll(/[-_.]+/g, ' ')
      .trim()
    const name = words === '' ? 'Shop' : words.charAt(0).toUpperCase() + words.slice(1)
    const version = text('version', '')
    const summary = text(
      'description',
      'APIs for software agents. Each call is paid with x402 in USDC: no sign-up, no API key.',
    )
    return documentOf(SERVICE_FILE, {
      name,
      title: own['name'] ?? name,
      summary,
      description: own['summary'] ?? summary,
      version: VERSION.test(version) ? version : '0.1.0',
      ...own,
    })
  })
}

const NOTHING: Readonly<Record<string, unknown>> = {}
const services = new Remembered<CatalogDocument>()

/** The message does not say where the folder is: /health shows it to everybody. */
function unreadable(code: string): Issue {
  const message = `Cannot be read, because the folder of the catalog, or one in it, cannot (${code}). Correct CATALOG_DIR, or give the gateway permission to read the folder.${code === 'ENOENT' ? ' To begin a shop: npx tollgate init' : ''}`
  return { file: SERVICE_FILE, pointer: '', rule: 'read', message }
}

function kindOf(file: string): CatalogDocument['kind'] {
  if (file === SERVICE_FILE) return 'service'
  if (file === NETWORKS_FILE) return 'networks'
  if (file === HOOKS_FILE) return 'hooks'
  return isPlansFile(file) ? 'plans' : 'product'
}

/** True for a file that holds plans: plans.json, and in any folder e.g. gold.plans.json. */
export function isPlansFile(file: string): boolean {
  return file === 'plans.json' || file.endsWith('.plans.json')
}

/** Lists the *.json files. Links are followed: an operator may keep documents or whole folders elsewhere. */
async function jsonFiles(folder: string, below = '', within: readonly string[] = []): Promise<string[]> {
  const found = await entriesOf(join(folder, below)).catch((error: NodeJS.ErrnoException) => {
    // The file was removed after it was listed.
    if (error.code === 'ENOENT' && below !== '') return null
    throw error
  })
  // The link leads back to a folder above it.
  if (found === null || within.includes(found.home)) return []
  const { home, entries } = found
  const files = entries
    .filter(({ name }) => !name.startsWith('.'))
    .map(async (entry) => {
      const file = below === '' ? entry.name : `${below}/${entry.name}`
      const target = entry.isSymbolicLink() ? await stat(join(home, entry.name)).catch(() => null) : entry
      if (target?.isDirectory()) return jsonFiles(folder, file, [...within, home])
      return target?.isFile() && file.endsWith('.json') ? [file] : []
    })
  return (await Promise.all(files)).flat().sort()
}

/** The entries of a folder, and where it is without links. */
async function entriesOf(path: string) {
  const home = await realpath(path)
  return { home, entries: await readdir(home, { withFileTypes: true }) }
}
