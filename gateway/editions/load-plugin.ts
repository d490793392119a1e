/** Finds and imports plugins by the name a catalog document gives. Code that nothing names is never imported. */
import { stat } from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Product } from '../plugin/catalog.ts'
import type { Plugin } from '../plugin/plugin.ts'
import type { Copy } from './code-copies.ts'
import { createTimeouts, TimedOut } from './timeout.ts'

export type PluginName = NonNullable<Product['plugin']>

export interface PluginSources {
  /** Found by name before any folder. */
  readonly builtins: readonly Plugin[]
  /** Folders that hold plugins, in the order they are searched. */
  readonly pluginDirs: readonly string[]
  /** Where code is imported from; absent: from where it lies, once and for all. */
  readonly copy?: Copy
  /** Seconds a plugin has to load. */
  readonly loadSeconds: number
  /** Called when a plugin has loaded after its time was over. */
  readonly onLate?: () => unknown
}

/** A plugin that cannot be used; the message is a sentence for the operator. */
export class PluginError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'PluginError'
  }
}

/**
 * The plugin of that name: a built-in, else the first folder that has it, `<dir>/<name>/index.ts` (or `.js`), with a
 * version `<dir>/<name>@<version>/index.ts`. Throws PluginError where it is not there, does not load, or is not one.
 */
export async function loadPlugin({ name, version }: PluginName, places: PluginSources): Promise<Plugin> {
  const { builtins, pluginDirs, copy } = places
  const builtin = version === null ? builtins.find((plugin) => plugin.name === name) : undefined
  if (builtin) return builtin
  const folder = version === null ? name : `${name}@${version}`
  const found = await find(folder, pluginDirs)
  if (found === null)
    throw new PluginError(
      `No plugin ${folder}. Put its index.ts into ${pluginDirs.map((dir) => join(dir, folder)).join(' or ')}.`,
    )
  const { first, home } = await locate(found.dir, folder, copy)
  const module = await importWithin(places, join(home, found.index)).catch((error: unknown) => {
    if (error instanceof TimedOut) throw new PluginError(`The plugin ${folder} ${error.message}`)
    failures.set(first, (failures.get(first) ?? 0) + 1)
    const words = firstLineOf(error).replaceAll(dirname(home), found.dir)
    throw new PluginError(`The plugin ${folder} does not load: ${words}${placeIn(home, error)}`, error)
  })
  const plugin = (module as { default?: unknown }).default
  if (!isPlugin(plugin))
    throw new PluginError(
      `The plugin ${folder} is not one. Write "export default definePlugin({ name, setup })" in its index.ts.`,
    )
  if (plugin.name !== name)
    throw new PluginError(
      `The plugin in ${folder} calls itself ${plugin.name}. Write name: '${name}', or rename the folder.`,
    )
  return plugin
}

async function find(folder: string, dirs: readonly string[]) {
  for (const dir of dirs)
    for (const index of ['index.ts', 'index.js']) {
      const entry = await stat(join(dir, folder, index)).catch(() => null)
      if (entry?.isFile()) return { dir, index }
    }
  return null
}

/** Where the code is imported from, and the name its failures are counted under. */
async function locate(dir: string, folder: string, copy: Copy | undefined) {
  if (!copy) return { first: join(dir, folder), home: join(dir, folder) }
  try {
    const first = await copy(dir, folder, 0)
    const failed = failures.get(first) ?? 0
    return { first, home: failed === 0 ? first : await copy(dir, folder, failed) }
  } catch (error) {
    throw new PluginError(`The plugin ${folder} could not be read: ${firstLineOf(error)}`, error)
  }
}

/** How often code has failed to load. The reason may lie outside it, so the same code gets another chance. */
const failures = new Map<string, number>()
const patience = createTimeouts()

async function importWithin({ loadSeconds, onLate }: PluginSources, entry: string): Promise<unknown> {
  const address = pathToFileURL(entry).href
  return patience(address, {
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

/** The first line of what an error says; with the next one where it only announces that. */
export function firstLineOf(error: unknown): string {
  const [first = '', second = ''] = (error instanceof Error ? error.message : String(error)).split('\n')
  return first.endsWith(':') ? `${first} ${second.trim()}` : first
}

/** Where in the folder an error was thrown, as " (index.ts:3:7)"; "" where it does not say, or has said so in words. */
function placeIn(folder: string, error: unknown): string {
  if (!(error instanceof Error) || error.message.includes(folder)) return ''
  const place = error.stack?.split(`${folder}${sep}`)[1]?.match(/^[^\s)]+:\d+/)?.[0]
  return place === undefined ? '' : ` (${place})`
}
