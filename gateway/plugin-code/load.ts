/** Finds and imports plugins by the name in a catalog document. Code that no document names is never imported. */
import { existsSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, isAbsolute, join, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { pluginNameOf } from '../catalog/product-drafts.ts'
import { SHOP_ROOT } from '../config/project-root.ts'
import type { Product } from '../plugin/catalog.ts'
import { API_VERSION, type Plugin } from '../plugin/plugin.ts'
import { sourceStack } from '../observe/source-positions.ts'
import { isObject } from '../validation/json.ts'
import { addPluginFolder, type Copy, type FoldersRead } from './copies.ts'
import { CompileError } from './compile.ts'
import { createTimeouts, TimedOut } from './start-timeout.ts'

type PluginName = NonNullable<Product['plugin']>

export interface PluginSources {
  /** Folders that hold plugins, in the order they are searched. */
  readonly pluginDirs: readonly string[]
  /** Copies code before it is imported. Without it, an edit of the code takes effect after a restart. */
  readonly copy?: Copy
  /** Folders that were read for other plugins of the same build. */
  readonly read?: FoldersRead
  /** Timeout for loading a plugin. */
  readonly loadSeconds: number
  /** Called when a plugin has loaded after its timeout. */
  readonly onLate?: () => unknown
}

/** Plugins that are loaded, that are loading or that have failed, by name and version as documents write them. */
export type PluginLoads = Map<string, Promise<Plugin>>

/** A plugin cannot be used. The message tells the operator why. */
export class PluginError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'PluginError'
  }
}

/**
 * Loads the plugin that a document names, as "gold", "gold@2" or "npm:@acme/gold", unless `loads` has it: a plugin that many
 * documents name is read once. Throws as `loadPlugin` does.
 */
export function loadPluginOnce(named: string, loads: PluginLoads, sources: PluginSources): Promise<Plugin> {
  const known = loads.get(named)
  if (known) return known
  const parsed = pluginNameOf(named)
  const loading = parsed.package === null ? loadPlugin(parsed, sources) : loadPackage(parsed.package, named, sources)
  loads.set(named, loading)
  return loading
}

/**
 * Loads the plugin of a name: `<dir>/<name>/index.ts` (or `.js`) of the first folder that has it. With a version the
 * folder is `<name>@<version>`.
 *
 * @throws PluginError if there is no such plugin, it does not load in time, or its default export is not a plugin
 */
async function loadPlugin({ name, version }: PluginName, sources: PluginSources): Promise<Plugin> {
  const { pluginDirs, copy, read } = sources
  const folder = version === null ? name : `${name}@${version}`
  const found = await find(folder, pluginDirs)
  if (found === null)
    throw new PluginError(
      `There is no plugin ${folder}. Put its index.ts into ${pluginDirs.map((dir) => join(dir, folder)).join(' or ')}.`,
    )
  const { first, home } = await locate(found.dir, folder, copy, read)
  // The copy of a built gateway is JavaScript.
  const { index } = (await find(folder, [dirname(home)])) ?? found
  const module = await importWithTimeout(sources, join(home, index)).catch((error: unknown) => {
    if (error instanceof TimedOut) throw new PluginError(`The plugin ${folder} ${error.message}`)
    failures.set(first, (failures.get(first) ?? 0) + 1)
    const reason = namingSources(firstLineOf(error).replaceAll(dirname(home), found.dir))
    throw new PluginError(`The plugin ${folder} does not load: ${reason}${placeIn(home, error)}`, error)
  })
  const plugin = pluginIn(module, folder)
  if (plugin.name !== name)
    throw new PluginError(
      `The plugin in ${folder} has the name ${plugin.name}. Write name: '${name}', or rename the folder.`,
    )
  return plugin
}

/** Packages that were loaded, by the file they begin in. Node imports a file once, so a newer version needs a restart. */
const packages = new Map<string, Plugin>()

/**
 * Loads a plugin from a package that the shop has installed. It is JavaScript and is imported where it is. Its data are kept
 * under the name of the package.
 *
 * @throws PluginError if it is not installed, does not load in time, or its default export is not a plugin
 */
async function loadPackage(name: string, key: string, sources: PluginSources): Promise<Plugin> {
  const entry = entryOf(name)
  const known = packages.get(entry)
  if (known) return known
  addPluginFolder(dirname(entry))
  const module = await importWithTimeout(sources, entry).catch((error: unknown) => {
    if (error instanceof TimedOut) throw new PluginError(`The plugin ${name} ${error.message}`)
    throw new PluginError(`The plugin ${name} does not load: ${firstLineOf(error)}. After a change, restart.`, error)
  })
  const plugin = { ...pluginIn(module, name), name: key }
  packages.set(entry, plugin)
  return plugin
}

/** The file that a package of the shop begins in, as its package.json says. */
function entryOf(name: string): string {
  try {
    const file = createRequire(join(SHOP_ROOT, 'package.json')).resolve(name)
    // Otherwise it is a module of Node.
    if (isAbsolute(file)) return file
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'MODULE_NOT_FOUND')
      throw new PluginError(`The package ${name} cannot be imported. ${firstLineOf(error)}`, error)
  }
  throw new PluginError(`There is no package ${name}. Run: npm install ${name}`)
}

/** The plugin that a module exports. */
function pluginIn(module: unknown, named: string): Plugin {
  const plugin = (module as { default?: unknown }).default
  if (!isPlugin(plugin))
    throw new PluginError(
      `The plugin ${named} has no plugin as its default export. Write "export default definePlugin({ name, setup })" in its index.ts.`,
    )
  const fault = faultOf(plugin)
  if (fault !== null) throw new PluginError(`The plugin ${named} ${fault}`)
  return plugin
}

/** Finds faults that would keep a whole edition from being built. Types are not checked when code is compiled. */
function faultOf({ apiVersion, views, schemas = [] }: Plugin): string | null {
  if (apiVersion !== undefined && apiVersion !== API_VERSION) return otherVersion(apiVersion)
  const isFolder = views === undefined || (views instanceof URL && views.protocol === 'file:')
  if (!isFolder) return "has views that are no folder. Write views: new URL('./views', import.meta.url)."
  const areSchemas = Array.isArray(schemas) && schemas.every((schema) => isObject(schema))
  return areSchemas ? null : 'has schemas that are no list of JSON Schemas. Write schemas: [{ $id: ... }].'
}

/** What to do about a plugin that was written for another version of the plugin API. */
function otherVersion(version: unknown): string {
  if (typeof version !== 'number') return `has an apiVersion that is no number. Write apiVersion: ${API_VERSION}.`
  const written = `was written for version ${version} of the plugin API, and this gateway has version ${API_VERSION}.`
  return version > API_VERSION
    ? `${written} Update the gateway, or use an earlier release of the plugin.`
    : `${written} Make the changes that "Versions" in docs/plugins.md lists, then write apiVersion: ${API_VERSION}.`
}

async function find(folder: string, dirs: readonly string[]) {
  for (const dir of dirs)
    for (const index of ['index.ts', 'index.js']) {
      const entry = await stat(join(dir, folder, index)).catch(() => null)
      if (entry?.isFile()) return { dir, index }
    }
  return null
}

/** Returns the folder to import from (`home`), and the first copy of the code, by which failures are counted. */
async function locate(dir: string, folder: string, copy: Copy | undefined, read: FoldersRead | undefined) {
  if (!copy) return { first: join(dir, folder), home: join(dir, folder) }
  try {
    const first = await copy(dir, folder, 0, read)
    const failed = failures.get(first) ?? 0
    return { first, home: failed === 0 ? first : await copy(dir, folder, failed, read) }
  } catch (error) {
    if (error instanceof CompileError)
      throw new PluginError(`The plugin ${folder} does not load: ${error.message}`, error)
    throw new PluginError(`The plugin ${folder} could not be read: ${firstLineOf(error)}`, error)
  }
}

/** How often code has failed to load. The cause may be outside the code, so the same code is tried again. */
const failures = new Map<string, number>()
const timeouts = createTimeouts()

async function importWithTimeout({ loadSeconds, onLate }: PluginSources, entry: string): Promise<unknown> {
  const address = pathToFileURL(entry).href
  return timeouts(address, {
    seconds: loadSeconds,
    what: 'does not load',
    run: () => import(address),
    late: () => onLate?.(),
  })
}

function isPlugin(value: unknown): value is Plugin {
  if (typeof value !== 'object' || value === null) return false
  const { name, setup } = value as Partial<Plugin>
  return typeof name === 'string' && typeof setup === 'function'
}

/** Returns the first line of an error message, and the second one too if the first ends with a colon. */
export function firstLineOf(error: unknown): string {
  const [first = '', second = ''] = (error instanceof Error ? error.message : String(error)).split('\n')
  return first.endsWith(':') ? `${first} ${second.trim()}` : first
}

/** Names the TypeScript where a message names the JavaScript that it was compiled to. */
function namingSources(message: string): string {
  return message.replace(/\/[^\s'"()]+\.[cm]?js\b/g, (file) => {
    const source = file.replace(/js$/, 'ts')
    return !existsSync(file) && existsSync(source) ? source : file
  })
}

/** Returns where in the folder an error was thrown, as " (index.ts:3:7)". Empty if unknown, or if the message names it. */
function placeIn(folder: string, error: unknown): string {
  if (!(error instanceof Error) || error.message.includes(folder)) return ''
  const place = sourceStack(error.stack ?? '')
    .split(`${folder}${sep}`)[1]
    ?.match(/^[^\s)]+:\d+/)?.[0]
  return place === undefined ? '' : ` (${place})`
}
