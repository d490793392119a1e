/**
 * Copies plugin code into folders named by its content. Node caches an ES module by its URL: once imported it never
 * changes, and once failed it fails for ever. With a new URL for new content, an edit, a fix and a roll-back work without a
 * restart. Copies are inside the project, so that `tollgate/plugin` and packages resolve from them.
 */
import { createHash, randomUUID } from 'node:crypto'
import { mkdir, readdir, readFile, rename, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { dirname, join, relative, resolve, sep } from 'node:path'
import type { Logger } from '../plugin/plugin.ts'

/**
 * Copies the plugin in `folder` of `dir` as it is now, and returns the path of the copy. `number` is 0 for the first copy.
 * Code that failed to load gets another attempt at a new URL: its second copy has number 1.
 */
export type Copy = (dir: string, folder: string, number: number) => Promise<string>

/** The folder of the copies. Git ignores it. */
export const COPIES = resolve(import.meta.dirname, '../../.plugins')

/** Copies that were not used for this long are removed. */
const KEPT_DAYS = 7
const DAY_MS = 86_400_000
const CODE = /\.[cm]?[jt]s$/
/** Any quoted path that leads upwards: an import, or the path of a file beside the code. */
const UPWARDS = /['"`](\.\.\/[^'"`\n]+)['"`]/g

/**
 * Creates the function that copies plugins below `root`. A copy contains the plugin's folder and the sibling folders that
 * its code refers to ("../shared/..."), in the same relative places. It omits package.json, so that `tollgate/plugin`
 * resolves to the running gateway, and links the plugin's own `node_modules`. On a read-only disk the code is used in
 * place: it works, and an edit takes effect after a restart.
 */
export function createCopies(root: string, log?: Pick<Logger, 'warn'>): Copy {
  let isWritable = true
  let cleaned: Promise<void> | null = null
  const inUse = new Set<string>()

  /** Renews the time of a copy every day, so that no process removes it while it is used. */
  async function keepInUse(home: string): Promise<void> {
    if (inUse.size === 0) setInterval(() => inUse.forEach((one) => void touch(one)), DAY_MS).unref()
    inUse.add(home)
    await touch(home)
  }

  return async (dir, folder, number) => {
    cleaned ??= removeUnused(root).catch(() => {})
    const files = await collect(dir, folder)
    const links = await packagesOf(dir, files)
    const hash = hashOf(files, links)
    const home = join(root, number === 0 ? hash : `${hash}-${number}`)
    try {
      if (!(await exists(home))) await write(home, files, links)
    } catch (error) {
      if (isWritable)
        log?.warn({ err: error, root }, 'plugin code cannot be copied; an edit of it takes effect after a restart')
      isWritable = false
      return join(dir, folder)
    }
    await keepInUse(home)
    await cleaned
    return join(home, folder)
  }
}

type Files = ReadonlyMap<string, Buffer>

/** Reads the files of the folder and of the sibling folders that its code refers to, by path below `dir`. */
async function collect(dir: string, folder: string): Promise<Files> {
  const files = new Map<string, Buffer>()
  const wanted = [folder]
  for (const name of wanted)
    for (const file of await filesOf(dir, name)) {
      const bytes = await readFile(join(dir, file))
      files.set(file, bytes)
      if (!CODE.test(file)) continue
      for (const [, path = ''] of bytes.toString('utf8').matchAll(UPWARDS)) {
        const beside = relative(dir, resolve(dir, dirname(file), path)).split(sep)[0] ?? ''
        if (beside === '..' || beside === '' || wanted.includes(beside)) continue
        if (await exists(join(dir, beside))) wanted.push(beside)
      }
    }
  return new Map([...files].sort(([one], [other]) => (one < other ? -1 : 1)))
}

/** Lists the files in `name`, as paths below `dir`. `name` may be a file itself. */
async function filesOf(dir: string, name: string): Promise<string[]> {
  const found = await stat(join(dir, name))
  if (found.isFile()) return [name]
  const entries = await readdir(join(dir, name), { withFileTypes: true })
  const nested = entries.map(async (entry) => {
    const path = join(name, entry.name)
    if (entry.name.startsWith('.') || entry.name === 'node_modules') return []
    if (entry.isDirectory() || (entry.isSymbolicLink() && (await stat(join(dir, path))).isDirectory()))
      return filesOf(dir, path)
    return entry.name === 'package.json' ? [] : [path]
  })
  return (await Promise.all(nested)).flat()
}

/** The plugin's own `node_modules` folders, by the name of the folder that contains them. */
type Links = ReadonlyMap<string, string>

async function packagesOf(dir: string, files: Files): Promise<Links> {
  const links = new Map<string, string>()
  for (const name of new Set([...files.keys()].map((file) => file.split(sep)[0] as string))) {
    const packages = join(dir, name, 'node_modules')
    if (await exists(packages)) links.set(name, packages)
  }
  return links
}

/** Hashes code and links. The same code with other packages is another copy, because a linked folder may be gone. */
function hashOf(files: Files, links: Links): string {
  const hash = createHash('sha256')
  for (const [name, packages] of links) hash.update(`${name}\0${packages}\0`)
  for (const [file, bytes] of files) hash.update(`${file}\0${bytes.length}\0`).update(bytes)
  return hash.digest('hex').slice(0, 24)
}

/** Writes a copy under a temporary name and renames it, because another process may be writing the same copy. */
async function write(home: string, files: Files, links: Links): Promise<void> {
  const temporary = `${home}.${randomUUID()}`
  try {
    for (const [file, bytes] of files) {
      await mkdir(dirname(join(temporary, file)), { recursive: true })
      await writeFile(join(temporary, file), bytes)
    }
    for (const [name, packages] of links) await symlink(packages, join(temporary, name, 'node_modules'), 'junction')
    await rename(temporary, home)
  } catch (error) {
    await rm(temporary, { recursive: true, force: true }).catch(() => {})
    if (!(await exists(home))) throw error
  }
}

async function touch(home: string): Promise<void> {
  const now = new Date()
  // The copy may belong to another user.
  await utimes(home, now, now).catch(() => {})
}

/** Removes copies that were not used for a week. */
async function removeUnused(root: string): Promise<void> {
  const before = Date.now() - KEPT_DAYS * DAY_MS
  for (const name of await readdir(root)) {
    const { mtimeMs } = await stat(join(root, name))
    if (mtimeMs < before) await rm(join(root, name), { recursive: true, force: true })
  }
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null)) !== null
}
