/**
 * Copies of plugin code, each in a folder named by its content. An ES module is known by its address: imported once it
 * never changes, and once failed it stays failed. A new content at a new address makes an edit, a mend and a rollback
 * work while the process runs. Copies lie inside the project, so that `tollgate/plugin` and packages resolve from them.
 */
import { createHash, randomUUID } from 'node:crypto'
import { mkdir, readdir, readFile, rename, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { dirname, join, relative, resolve, sep } from 'node:path'
import type { Logger } from '../plugin/plugin.ts'

/**
 * The copy of the plugin of `folder` in `dir` as it is at this moment. Code that failed may get another chance at a new
 * address: its second copy is numbered 1.
 */
export type Copy = (dir: string, folder: string, number: number) => Promise<string>

/** Where copies lie: inside the project, and in no repository. */
export const COPIES = resolve(import.meta.dirname, '../../.plugins')

/** Copies nobody asked for this long are removed: they are releases of the past. */
const KEPT_DAYS = 7
const DAY_MS = 86_400_000
const CODE = /\.[cm]?[jt]s$/
/** Any quoted path that leads upwards: an import, or the address of a file beside the code. */
const UPWARDS = /['"`](\.\.\/[^'"`\n]+)['"`]/g

/**
 * Makes copies below `root`. A copy holds the plugin's folder and the folders beside it that its code refers to
 * ("../shared/..."), at the same distance from each other. A package.json is left out, so that `tollgate/plugin` means ours;
 * `node_modules` of the plugin's own are linked. Where nothing can be written, as on a read-only disk, code is used from
 * where it lies: it works, and an edit shows after a restart.
 */
export function createCopies(root: string, log?: Pick<Logger, 'warn'>): Copy {
  let isWritable = true
  let tidied: Promise<void> | null = null
  const inUse = new Set<string>()

  /** Whoever tidies meanwhile, here or in another process, sees by its time that a copy is still used. */
  async function use(home: string): Promise<void> {
    if (inUse.size === 0) setInterval(() => inUse.forEach((one) => void touch(one)), DAY_MS).unref()
    inUse.add(home)
    await touch(home)
  }

  return async (dir, folder, number) => {
    tidied ??= tidy(root).catch(() => {})
    const files = await collect(dir, folder)
    const links = await packagesOf(dir, files)
    const hash = hashOf(files, links)
    const home = join(root, number === 0 ? hash : `${hash}-${number}`)
    try {
      if (!(await exists(home))) await write(home, files, links)
    } catch (error) {
      if (isWritable)
        log?.warn({ err: error, root }, 'plugin code cannot be copied: an edit of it shows after a restart')
      isWritable = false
      return join(dir, folder)
    }
    await use(home)
    await tidied
    return join(home, folder)
  }
}

type Files = ReadonlyMap<string, Buffer>

/** The files of the folder, and of what its code refers to beside it, by path below `dir`. */
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

/** Paths below `dir` of everything in `name`, which may be a file. */
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

/** Folders of packages of a copy's own, by the name of the folder they belong to. */
type Links = ReadonlyMap<string, string>

async function packagesOf(dir: string, files: Files): Promise<Links> {
  const links = new Map<string, string>()
  for (const name of new Set([...files.keys()].map((file) => file.split(sep)[0] as string))) {
    const packages = join(dir, name, 'node_modules')
    if (await exists(packages)) links.set(name, packages)
  }
  return links
}

/** The same code beside other packages is another copy: what it was linked to may be gone. */
function hashOf(files: Files, links: Links): string {
  const hash = createHash('sha256')
  for (const [name, packages] of links) hash.update(`${name}\0${packages}\0`)
  for (const [file, bytes] of files) hash.update(`${file}\0${bytes.length}\0`).update(bytes)
  return hash.digest('hex').slice(0, 24)
}

/** Written aside and moved into place whole: another process may be making the same copy. */
async function write(home: string, files: Files, links: Links): Promise<void> {
  const aside = `${home}.${randomUUID()}`
  try {
    for (const [file, bytes] of files) {
      await mkdir(dirname(join(aside, file)), { recursive: true })
      await writeFile(join(aside, file), bytes)
    }
    for (const [name, packages] of links) await symlink(packages, join(aside, name, 'node_modules'), 'junction')
    await rename(aside, home)
  } catch (error) {
    await rm(aside, { recursive: true, force: true }).catch(() => {})
    if (!(await exists(home))) throw error
  }
}

async function touch(home: string): Promise<void> {
  const now = new Date()
  // It may be another user's.
  await utimes(home, now, now).catch(() => {})
}

async function tidy(root: string): Promise<void> {
  const before = Date.now() - KEPT_DAYS * DAY_MS
  for (const name of await readdir(root)) {
    const { mtimeMs } = await stat(join(root, name))
    if (mtimeMs < before) await rm(join(root, name), { recursive: true, force: true })
  }
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null)) !== null
}
