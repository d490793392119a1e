/**
 * Loads the bundles of a build, each with the code that V8 compiled when the build ran it. Otherwise V8 would read
 * three megabytes of text at every start, in each process and each thread. The sources do not use this module.
 *
 * A bundle is a CommonJS module wrapped in a function expression. V8 rejects code of another version of itself; it then
 * compiles the text, as it does without code.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { Script } from 'node:vm'

type Require = (name: string) => unknown

/** What `scripts/build.ts` wraps the text of a bundle in. */
type Wrapped = (
  exports: unknown,
  require: Require,
  module: unknown,
  filename: string,
  dirname: string,
  later: (name: string) => Promise<unknown>,
  outer: (module: string) => Promise<unknown>,
) => void

interface Loaded {
  readonly script: Script
  readonly module: { readonly exports: unknown }
}

const FOLDER = join(import.meta.dirname, 'bundles')
const requirePackage = createRequire(join(FOLDER, 'bundle.js'))
/** By file name. */
const loaded = new Map<string, Loaded>()

/** The file of the compiled code of a bundle. */
export const codeFileOf = (bundle: string): string => `${bundle}.code`

/** Returns the function with which a module of the build requires bundles. `from` is the URL of the module. */
export function requireFrom(from: string): Require {
  const require = createRequire(from)
  const folder = dirname(fileURLToPath(from))
  return (name) =>
    name.startsWith('.') && join(folder, dirname(name)) === FOLDER ? load(basename(name)) : require(name)
}

/** Returns the exports of a bundle, given by its file name. It runs once in each thread. */
export function load(name: string): unknown {
  const known = loaded.get(name)
  if (known !== undefined) return known.module.exports
  const filename = join(FOLDER, name)
  const script = new Script(readFileSync(filename, 'utf8'), { filename, cachedData: readCode(filename) })
  const module = { exports: {} }
  // Before it runs, because bundles may require each other.
  loaded.set(name, { script, module })
  const run = script.runInThisContext() as Wrapped
  run(module.exports, requireInBundle, module, filename, FOLDER, loadLater, importOther)
  return module.exports
}

const requireInBundle: Require = (name) => (name.startsWith('./') ? load(basename(name)) : requirePackage(name))

/** A dynamic import of a bundle. */
const loadLater = async (name: string): Promise<unknown> => load(basename(name))

/** A dynamic import of another module. */
const importOther = (name: string): Promise<unknown> =>
  import(name.startsWith('.') ? pathToFileURL(join(FOLDER, name)).href : name)

function readCode(bundle: string): Buffer | undefined {
  try {
    return readFileSync(codeFileOf(bundle))
  } catch {
    return undefined
  }
}

/** Returns what V8 has compiled of the loaded bundles so far, by the path of the file to write it to. */
export function compiledCode(): ReadonlyMap<string, Buffer> {
  return new Map([...loaded].map(([name, { script }]) => [codeFileOf(join(FOLDER, name)), script.createCachedData()]))
}
