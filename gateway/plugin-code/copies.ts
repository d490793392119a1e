/**
 * Copies plugin code into folders named by its content. Node caches an ES module by its URL: once imported it never
 * changes, and once failed it always fails. With a new URL for new content, an edit, a fix and a roll-back work without a
 * restart. Copies are inside the project, or linked to it, so that `tollgate/plugin` and packages resolve from them.
 */
import { createHash, randomUUID } from 'node:crypto'
import { readFileSync, rmSync, statSync } from 'node:fs'
import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { GATEWAY_ROOT, IS_BUILT, PROJECT_ROOT } from '../config/project-root.ts'
import type { Logger } from '../plugin/plugin.ts'
import { COMPILER, compilePlugin, type PluginFiles } from './compile.ts'

/**
 * Copies the plugin in `folder` of `dir` as it is now, and returns the path of the copy. `number` is 0 for the first copy.
 * Code that failed to load gets another attempt at a new URL: its second copy has number 1. Copies with the same `read`
 * read a folder that they share once.
 */
export type Copy = (dir: string, folder: string, number: number, read?: FoldersRead) => Promise<string>

/** Folders that were read, by path. */
export type FoldersRead = Map<string, Promise<FolderRead>>

interface FolderRead {
  /** By path below the folder of all plugins. */
  readonly files: PluginFiles
  /** Names of sibling folders and files that the code refers to. */
  readonly siblings: ReadonlySet<string>
}

/** The folder of the copies. Git ignores it. */
export const COPIES = join(GATEWAY_ROOT, '.plugins')
/** Every folder that holds code of plugins in this process. */
const folders = new Set<string>()

/** Copies that were not used for this long are removed. */
const KEPT_DAYS = 7
const DAY_MS = 86_400_000
const CODE = /\.[cm]?[jt]s$/
/** Any quoted path that leads upwards: an import, or the path of a file beside the code. */
const UPWARDS = /['"`](\.\.\/[^'"`\n]+)['"`]/g

export interface CopyOptions {
  /** Copies JavaScript in place of TypeScript. On by default in a built gateway. */
  readonly compiles?: boolean
  readonly log?: Pick<Logger, 'warn'>
}

/**
 * Creates the function that copies plugins below `root`. A copy contains the plugin's folder and the sibling folders that
 * its code refers to ("../shared/..."), in the same relative places. It omits package.json, so that `tollgate/plugin`
 * resolves to the running gateway, and links the plugin's own `node_modules`. If `root` cannot be written to, copies go to
 * a temporary folder of this process.
 */
export function createCopies(root: string, { compiles = IS_BUILT, log }: CopyOptions = {}): Copy {
  let temporary: Promise<string> | null = null
  let cleaned: Promise<void> | null = null
  const inUse = new Set<string>()
  folders.add(root)

  /** Renews the time of a copy every day, so that no process removes it while it is used. */
  async function keepInUse(home: string): Promise<void> {
    if (inUse.size === 0) setInterval(() => inUse.forEach((one) => void touch(one)), DAY_MS).unref()
    inUse.add(home)
    await touch(home)
  }

  /** Writes a copy, below `root` or else below the temporary folder, and returns its path. */
  async function write(name: string, files: PluginFiles, links: Links): Promise<string> {
    if (!temporary)
      try {
        return await writeIn(root, name, files, links)
      } catch (error) {
        if (!temporary) log?.warn({ err: error, root }, 'plugin code is copied to a temporary folder')
        temporary ??= temporaryRoot()
      }
    return writeIn(await temporary, name, files, links)
  }

  /** Returns the path of a copy that exists. */
  async function find(name: string): Promise<string | null> {
    const places = [root, ...(temporary ? [await temporary] : [])].map((folder) => join(folder, name))
    for (const home of places) if (await exists(home)) return home
    return null
  }

  return async (dir, folder, number, read = new Map()) => {
    cleaned ??= removeUnused(root).catch(() => {})
    const sources = await collect(dir, folder, read)
    const links = await packagesOf(dir, sources)
    const hash = hashOf(sources, links, compiles)
    const name = number === 0 ? hash : `${hash}-${number}`
    // Otherwise the copy might be removed after it was found.
    await cleaned
    const known = await find(name)
    const home = known ?? (await write(name, compiles ? await compilePlugin(sources) : sources, links))
    await keepInUse(home)
    return join(home, folder)
  }
}

/** Adds a folder with code of plugins that is no copy. */
export const addPluginFolder = (folder: string): void => void folders.add(folder)

/** True if a line of a stack names code of a plugin. */
export function isPluginCode(frame: string): boolean {
  return [...folders].some((folder) =>
    [folder + sep, `${pathToFileURL(folder).href}/`].some((at) => frame.includes(at)),
  )
}

/** Creates a folder for copies outside the project. Its links let `tollgate/plugin` and packages resolve all the same. */
async function temporaryRoot(): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'tollgate-plugins-')))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const copies = join(folder, 'copies')
  folders.add(copies)
  await mkdir(join(copies, 'node_modules'), { recursive: true })
  const settings = { type: 'module', imports: { '#gateway': 'tollgate/plugin' } }
  await writeFile(join(copies, 'package.json'), JSON.stringify(settings))
  await symlink(GATEWAY_ROOT, join(copies, 'node_modules', 'tollgate'), 'junction')
  await symlink(join(PROJECT_ROOT, 'node_modules'), join(folder, 'node_modules'), 'junction')
  return copies
}

/** Returns the files of the folder and of the sibling folders that its code refers to, by path below `dir`. */
async function collect(dir: string, folder: string, read: FoldersRead): Promise<PluginFiles> {
  const found: PluginFiles[] = []
  const wanted = new Set([folder])
  for (const name of wanted) {
    const path = join(dir, name)
    const reading = read.get(path) ?? readFolder(dir, name)
    read.set(path, reading)
    const { files, siblings } = await reading
    found.push(files)
    for (const sibling of siblings) wanted.add(sibling)
  }
  const all = found.flatMap((files) => [...files])
  return new Map(all.sort(([one], [other]) => (one < other ? -1 : 1)))
}

/** Files of up to this size are read at once, because waiting costs the event loop several times what reading them does. */
const READ_AT_ONCE_BYTES = 65_536

function read(path: string): Buffer | Promise<Buffer> {
  return statSync(path).size <= READ_AT_ONCE_BYTES ? readFileSync(path) : readFile(path)
}

/** Reads the files in `name`, which may be a file itself. */
async function readFolder(dir: string, name: string): Promise<FolderRead> {
  const files = new Map<string, Buffer>()
  const siblings = new Set<string>()
  for (const file of await filesOf(dir, name)) {
    const bytes = await read(join(dir, file))
    files.set(file, bytes)
    if (!CODE.test(file)) continue
    for (const [, path = ''] of bytes.toString('utf8').matchAll(UPWARDS)) {
      const beside = relative(dir, resolve(dir, dirname(file), path)).split(sep)[0] ?? ''
      if (beside === '..' || beside === '' || beside === name || siblings.has(beside)) continue
      if (await exists(join(dir, beside))) siblings.add(beside)
    }
  }
  return { files, siblings }
}

/**
 * Lists the files in `name`, as paths below `dir`. `name` may be a file itself. Throws an Error for a link to a folder that
 * contains it, which has no end.
 *
 * @param above the real paths of the folders that lead here
 */
async function filesOf(dir: string, name: string, above: readonly string[] = []): Promise<string[]> {
  const found = await stat(join(dir, name))
  if (found.isFile()) return [name]
  const real = await realpath(join(dir, name))
  if (above.some((folder) => folder === real || folder.startsWith(real.endsWith(sep) ? real : real + sep)))
    throw new Error(`${name} is a link to a folder that contains it. Remove the link.`)
  const entries = await readdir(join(dir, name), { withFileTypes: true })
  const nested = entries.map(async (entry) => {
    const path = join(name, entry.name)
    if (entry.name.startsWith('.') || entry.name === 'node_modules') return []
    if (entry.isDirectory() || (entry.isSymbolicLink() && (await stat(join(dir, path))).isDirectory()))
      return filesOf(dir, path, [...above, real])
    return entry.name === 'package.json' ? [] : [path]
  })
  return (await Promise.all(nested)).flat()
}

/** The plugin's own `node_modules` folders, by the name of the folder that contains them. */
type Links = ReadonlyMap<string, string>

async function packagesOf(dir: string, files: PluginFiles): Promise<Links> {
  const links = new Map<string, string>()
  for (const name of new Set([...files.keys()].map((file) => file.split(sep)[0] as string))) {
    const packages = join(dir, name, 'node_modules')
    if (await exists(packages)) links.set(name, packages)
  }
  return links
}

/** Hashes code and links. The same code with other packages is another copy, because a linked folder may be gone. */
function hashOf(files: PluginFiles, links: Links, compiles: boolean): string {
  const hash = createHash('sha256')
  if (compiles) hash.update(`${COMPILER}\0`)
  for (const [name, packages] of links) hash.update(`${name}\0${packages}\0`)
  for (const [file, bytes] of files) hash.update(`${file}\0${bytes.length}\0`).update(bytes)
  return hash.digest('hex').slice(0, 24)
}

/** Writes a copy under another name and renames it, because another process may be writing the same copy. */
async function writeIn(folder: string, name: string, files: PluginFiles, links: Links): Promise<string> {
  const home = join(folder, name)
  const unfinished = `${home}.${randomUUID()}`
  try {
    for (const [file, bytes] of files) {
      await mkdir(dirname(join(unfinished, file)), { recursive: true })
      await writeFile(join(unfinished, file), bytes)
    }
    for (const [link, packages] of links) await symlink(packages, join(unfinished, link, 'node_modules'), 'junction')
    await rename(unfinished, home)
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true }).catch(() => {})
    if (!(await exists(home))) throw error
  }
  return home
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
