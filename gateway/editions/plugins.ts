/** Finds and imports plugins by the name a catalog document gives. Code that nothing names is never imported. */
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Product } from '../catalog/catalog.ts'
import type { Plugin } from '../plugin.ts'

export type PluginName = NonNullable<Product['plugin']>

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
export async function loadPlugin(
  { name, version }: PluginName,
  builtins: readonly Plugin[],
  folders: readonly string[],
): Promise<Plugin> {
  const builtin = version === null ? builtins.find((plugin) => plugin.name === name) : undefined
  if (builtin) return builtin
  const folder = version === null ? name : `${name}@${version}`
  const entry = await entryOf(folder, folders)
  if (entry === null)
    throw new PluginError(
      `No plugin ${folder}. Put its index.ts into ${folders.map((dir) => join(dir, folder)).join(' or ')}.`,
    )
  const module = await importEntry(entry, folder)
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

async function entryOf(folder: string, folders: readonly string[]): Promise<string | null> {
  for (const dir of folders)
    for (const index of ['index.ts', 'index.js']) {
      const file = join(dir, folder, index)
      const found = await stat(file).catch(() => null)
      if (found?.isFile()) return file
    }
  return null
}

async function importEntry(entry: string, folder: string): Promise<unknown> {
  try {
    return await import(pathToFileURL(entry).href)
  } catch (error) {
    throw new PluginError(`The plugin ${folder} does not load: ${wordsOf(error)}`, error)
  }
}

function isPlugin(value: unknown): value is Plugin {
  if (typeof value !== 'object' || value === null) return false
  const { name, setup } = value as Partial<Plugin>
  return typeof name === 'string' && typeof setup === 'function'
}

/** The first line of what an error says. */
export function wordsOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? ''
}
