/** Compiles plugin code to JavaScript, so that the built gateway runs dropped-in TypeScript without a loader. */
import { dirname, join, normalize, relative, sep } from 'node:path'
import { build, type BuildFailure, type Plugin as EsbuildPlugin } from 'esbuild'

/** Files of a plugin by path, e.g. "gold/index.ts". */
export type PluginFiles = ReadonlyMap<string, Buffer>

/** Changes when the same sources compile to other code. */
export const COMPILER = 'esbuild 1'

const CODE = /\.([cm]?)[jt]s$/
const TYPES_ONLY = /\.d\.[cm]?ts$/
const NAMESPACE = 'plugin'

/** Code of a plugin has a syntax error. The message says what and where: `Unexpected "}" (gold/index.ts:3:7)`. */
export class CompileError extends Error {
  constructor(failure: BuildFailure) {
    super(describe(failure), { cause: failure })
    this.name = 'CompileError'
  }
}

/** Returns the name that a code file has after compilation: "index.ts" → "index.js". Other names stay. */
export function compiledName(file: string): string {
  return file.replace(CODE, '.$1js')
}

/**
 * Compiles each TypeScript and JavaScript file on its own, and adds a source map to it ("index.js.map"). Relative imports
 * lead to the compiled files, imported JSON becomes part of the code, and packages are left to Node. Other files are
 * returned as they are. If a module exists in both languages, the TypeScript is compiled.
 *
 * @throws CompileError at the first syntax error
 */
export async function compilePlugin(files: PluginFiles): Promise<PluginFiles> {
  const modules = [...files.keys()].filter((file) => CODE.test(file) && !TYPES_ONLY.test(file))
  const chosen = new Map(modules.sort(scriptsFirst).map((file) => [compiledName(file), file]))
  const compiled = new Map([...files].filter(([file]) => !CODE.test(file)))
  for (const extension of ['.js', '.mjs', '.cjs']) {
    const entries = [...chosen].filter(([name]) => name.endsWith(extension))
    for (const [name, bytes] of await compileModules(entries, extension, files)) compiled.set(name, bytes)
  }
  return compiled
}

const scriptsFirst = (one: string, other: string): number => Number(/ts$/.test(one)) - Number(/ts$/.test(other))

async function compileModules(
  entries: readonly (readonly [name: string, file: string])[],
  extension: string,
  files: PluginFiles,
): Promise<[name: string, bytes: Buffer][]> {
  if (entries.length === 0) return []
  const { outputFiles } = await build({
    entryPoints: entries.map(([name, file]) => ({ in: file, out: name.slice(0, -extension.length) })),
    outdir: sep,
    outExtension: { '.js': extension },
    write: false,
    bundle: true,
    packages: 'external',
    format: extension === '.cjs' ? 'cjs' : 'esm',
    platform: 'node',
    target: 'node20',
    sourcemap: 'external',
    sourcesContent: false,
    tsconfigRaw: {},
    logLevel: 'silent',
    plugins: [readFrom(files)],
  }).catch((error: BuildFailure) => {
    throw new CompileError(error)
  })
  return outputFiles.map(({ path, contents, text }) => {
    const name = path.slice(sep.length)
    return [name, name.endsWith('.map') ? mapBeside(name, text) : Buffer.from(contents)]
  })
}

/** Makes the sources of a source map relative to it. */
function mapBeside(name: string, text: string): Buffer {
  const map = JSON.parse(text) as { readonly sources: readonly string[] }
  const sources = map.sources.map((source) => relative(dirname(name), source.replace(`${NAMESPACE}:`, '')))
  return Buffer.from(JSON.stringify({ ...map, sources }))
}

/** Lets esbuild read the modules from memory, and keeps every import of one module by another. */
function readFrom(files: PluginFiles): EsbuildPlugin {
  return {
    name: 'plugin-files',
    setup(context) {
      context.onResolve({ filter: /.*/ }, ({ path, kind, importer }) => {
        if (kind === 'entry-point') return { path, namespace: NAMESPACE }
        if (!path.startsWith('.')) return { path, external: true }
        const found = moduleAt(join(dirname(importer), path), files)
        if (found?.endsWith('.json')) return { path: found, namespace: NAMESPACE }
        return { path: found === null ? path : importedAs(path, found), external: true }
      })
      context.onLoad({ filter: /.*/, namespace: NAMESPACE }, ({ path }) => ({
        contents: files.get(path) ?? '',
        loader: path.endsWith('.json') ? 'json' : /ts$/.test(path) ? 'ts' : 'js',
      }))
    },
  }
}

/** Finds what a relative import means: the file itself, its TypeScript, or either without the extension. */
function moduleAt(wanted: string, files: PluginFiles): string | null {
  const typescript = wanted.replace(/\.([cm]?)js$/, '.$1ts')
  const candidates = [wanted, typescript, ...['.ts', '.js', '/index.ts', '/index.js'].map((end) => wanted + end)]
  return candidates.map(normalize).find((file) => files.has(file)) ?? null
}

/** Returns the import of the compiled module: what was written, with the extension that the file has now. */
function importedAs(written: string, found: string): string {
  const folder = written.slice(0, written.lastIndexOf('/') + 1)
  const last = written.slice(folder.length)
  const name = compiledName(found.split(sep).at(-1) as string)
  // "./prices" may mean ./prices/index.ts.
  return name.startsWith('index.') && !last.startsWith('index') ? `${written}/${name}` : folder + name
}

/** @example "Expected ";" but found "x" (gold/index.ts:3:7)" */
function describe({ errors, message }: BuildFailure): string {
  const [first] = errors
  if (!first) return message
  const { text, location } = first
  if (!location) return text
  return `${text} (${location.file.replace(`${NAMESPACE}:`, '')}:${location.line}:${location.column + 1})`
}
