/** Compiles plugin code to JavaScript, so that the built gateway runs dropped-in TypeScript without a loader. */
import { dirname, join, normalize, relative, sep } from 'node:path'
import type {
  BuildFailure,
  BuildResult,
  Loader,
  Location,
  Message,
  OnResolveResult,
  Plugin as EsbuildPlugin,
} from 'esbuild'

/** Files of a plugin by path, e.g. "gold/index.ts". */
export type PluginFiles = ReadonlyMap<string, Buffer>

/** Changes when the same sources compile to other code. */
export const COMPILER = 'esbuild 4'

const CODE = /\.([cm]?)[jt]s$/
const TYPESCRIPT = /\.[cm]?ts$/
const TYPES_ONLY = /\.d\.[cm]?ts$/
const INDEX = /^[^\\/]+[\\/]index\.js$/
const NAMESPACE = 'plugin'

/** Code of a plugin has a syntax error. The message says what and where: `Unexpected "}" (gold/index.ts:3:7)`. */
export class CompileError extends Error {
  constructor(error: Message | undefined, cause: Error) {
    super(error ? describe(error) : cause.message, { cause })
    this.name = 'CompileError'
  }
}

/** Returns the name that a code file has after compilation: "index.ts" → "index.js". Other names stay. */
export function compiledName(file: string): string {
  return file.replace(CODE, '.$1js')
}

/**
 * Compiles each TypeScript file on its own, and adds a source map to it ("index.js.map"). Relative imports lead to the
 * compiled files, imported JSON becomes part of the code, and packages are left to Node. JavaScript is compiled if it
 * imports TypeScript or JSON. Other files are returned as they are, and so is other JavaScript: it may be a script for
 * browsers. If a module exists in both languages, the TypeScript is compiled.
 *
 * @throws CompileError at the first syntax error in TypeScript, or in JavaScript that another module imports
 */
export async function compilePlugin(files: PluginFiles): Promise<PluginFiles> {
  const modules = [...files.keys()].filter((file) => CODE.test(file) && !TYPES_ONLY.test(file))
  const chosen = [...new Map(modules.sort(typescriptLast).map((file) => [compiledName(file), file]))]
  const compiled = new Map([...files].filter(([file]) => !CODE.test(file)))
  const sources = new Sources(files)
  for (const extension of ['.js', '.mjs', '.cjs']) {
    const entries = new Map(chosen.filter(([name]) => name.endsWith(extension)))
    if (entries.size === 0) continue
    for (const [name, bytes] of await compileModules(entries, extension, sources)) compiled.set(name, bytes)
  }
  return compiled
}

const typescriptLast = (one: string, other: string): number =>
  Number(TYPESCRIPT.test(one)) - Number(TYPESCRIPT.test(other))

/** Source files by the name that they have after compilation. */
type Entries = ReadonlyMap<string, string>

async function compileModules(given: Entries, extension: string, sources: Sources): Promise<Map<string, Buffer>> {
  let entries = given
  for (;;) {
    const result = await compileEntries(entries, extension, sources)
    if (sources.convertComputedImports([...result.errors, ...result.warnings])) continue
    if ('outputFiles' in result) {
      const compiled = outputOf(result)
      for (const [name, file] of given)
        if (!TYPESCRIPT.test(file) && !sources.redirected.has(file)) {
          compiled.delete(`${name}.map`)
          compiled.set(name, sources.bytesOf(file))
        }
      return compiled
    }
    entries = withoutData(entries, result, sources.imported)
  }
}

type Compiled = BuildResult<{ write: false }>

async function compileEntries(
  entries: Entries,
  extension: string,
  { reader }: Sources,
): Promise<Compiled | BuildFailure> {
  // Most starts compile nothing.
  const { build } = await import('esbuild')
  return build({
    entryPoints: [...entries].map(([name, file]) => ({ in: file, out: name.slice(0, -extension.length) })),
    outdir: sep,
    outExtension: { '.js': extension },
    write: false,
    bundle: true,
    packages: 'external',
    format: extension === '.cjs' ? 'cjs' : 'esm',
    platform: 'node',
    target: 'node20.19',
    sourcemap: 'external',
    sourcesContent: false,
    tsconfigRaw: {},
    logLevel: 'silent',
    logOverride: { [COMPUTED_IMPORT]: 'warning' },
    plugins: [reader],
  }).catch((error: unknown) => {
    if (error instanceof Error && 'errors' in error) return error as BuildFailure
    throw error
  })
}

/** Leaves out files with a syntax error that are data: JavaScript that no module imports. Throws if there are others. */
function withoutData(entries: Entries, failure: BuildFailure, imported: ReadonlySet<string>): Entries {
  const isData = (file: string): boolean => !TYPESCRIPT.test(file) && !INDEX.test(file) && !imported.has(file)
  const error = failure.errors.find(({ location }) => !location || !isData(fileOf(location)))
  if (error || failure.errors.length === 0) throw new CompileError(error, failure)
  const data = new Set(failure.errors.map(({ location }) => (location ? fileOf(location) : '')))
  return new Map([...entries].filter(([, file]) => !data.has(file)))
}

function outputOf({ outputFiles }: Compiled): Map<string, Buffer> {
  return new Map(
    outputFiles.map(({ path, contents, text }) => {
      const name = path.slice(sep.length)
      return [name, name.endsWith('.map') ? mapBeside(name, text) : Buffer.from(contents)]
    }),
  )
}

/** Makes the sources of a source map relative to it. */
function mapBeside(name: string, text: string): Buffer {
  const map = JSON.parse(text) as { readonly sources: readonly string[] }
  const sources = map.sources.map((source) => relative(dirname(name), source.replace(`${NAMESPACE}:`, '')))
  return Buffer.from(JSON.stringify({ ...map, sources }))
}

/** The id of esbuild's message about an import of a computed address. It is not a warning by default. */
const COMPUTED_IMPORT = 'unsupported-dynamic-import'
/** A folder that does not exist. esbuild looks there for files that match an address such as `./venues/${name}.ts`. */
const NOWHERE = join(sep, ...Array.from({ length: 50 }, () => 'nowhere'))
/** Its error if it finds none. */
const PATTERN_IMPORT = /^Could not resolve import\(/
const IMPORT = 'import'
/** Takes the place of `import` where the address is computed. It has the same length, so that no position moves. */
const CONVERTED = '$load_'
const CONVERTER = `
function ${CONVERTED}(address, options) { return import(String(address).replace(/\\.([cm]?)ts$/, '.$1js'), options) }
`

/** The sources as esbuild reads them from memory, and what it learns of their imports. */
class Sources {
  /** Files that a module imports. */
  readonly imported = new Set<string>()
  /** Files with an import that leads elsewhere after compilation. */
  readonly redirected = new Set<string>()
  readonly #files: PluginFiles
  /** The content of files with computed imports. */
  readonly #converted = new Map<string, string>()

  constructor(files: PluginFiles) {
    this.#files = files
  }

  /** Lets esbuild read the modules, and keeps every import of one by another, except that of JSON. */
  get reader(): EsbuildPlugin {
    return {
      name: 'plugin-files',
      setup: (context) => {
        context.onResolve({ filter: /.*/ }, ({ path, kind, importer }) =>
          kind === 'entry-point' ? { path, namespace: NAMESPACE } : this.#resolve(path, importer),
        )
        context.onLoad({ filter: /.*/, namespace: NAMESPACE }, ({ path }) => ({
          contents: this.#converted.get(path) ?? this.bytesOf(path),
          loader: loaderOf(path),
          resolveDir: NOWHERE,
        }))
      },
    }
  }

  bytesOf(file: string): Buffer {
    return this.#files.get(file) ?? Buffer.alloc(0)
  }

  #resolve(path: string, importer: string): OnResolveResult {
    if (!path.startsWith('.')) return { path, external: true }
    const [, address = '', query = ''] = /^([^?#]*)(.*)$/s.exec(path) ?? []
    const wanted = join(dirname(importer), address)
    const found = moduleAt(wanted, this.#files)
    if (found === null) return { path, external: true }
    this.imported.add(found)
    const isData = found.endsWith('.json')
    if (!isData && compiledName(found) === wanted) return { path, external: true }
    this.redirected.add(importer)
    return isData
      ? { path: found, namespace: NAMESPACE }
      : { path: pathTo(compiledName(found), dirname(importer)) + query, external: true }
  }

  /** Converts the computed imports that the messages name. Returns false if there are none. */
  convertComputedImports(messages: readonly Message[]): boolean {
    let converts = false
    for (const { id, text, location } of messages) {
      if (!location || (id !== COMPUTED_IMPORT && !PATTERN_IMPORT.test(text))) continue
      const file = fileOf(location)
      const code = this.#converted.get(file) ?? `${this.#files.get(file)?.toString() ?? ''}${CONVERTER}`
      const at = code.lastIndexOf(IMPORT, offsetOf(location, code))
      if (at < 0 || at > code.length - CONVERTER.length) continue
      this.#converted.set(file, code.slice(0, at) + CONVERTED + code.slice(at + IMPORT.length))
      converts = true
    }
    return converts
  }
}

const loaderOf = (file: string): Loader => (file.endsWith('.json') ? 'json' : TYPESCRIPT.test(file) ? 'ts' : 'js')

/** Finds what a relative import means: the file itself, its TypeScript, or either without the extension. */
function moduleAt(wanted: string, files: PluginFiles): string | null {
  const typescript = wanted.replace(/\.([cm]?)js$/, '.$1ts')
  const candidates = [wanted, typescript, ...['.ts', '.js', '/index.ts', '/index.js'].map((end) => wanted + end)]
  return candidates.map(normalize).find((file) => files.has(file)) ?? null
}

/** @example pathTo('gold/deep/price.js', 'gold') → './deep/price.js' */
function pathTo(file: string, folder: string): string {
  const path = relative(folder, file).replaceAll(sep, '/')
  return path.startsWith('../') ? path : `./${path}`
}

/** @example "Expected ";" but found "x" (gold/index.ts:3:7)" */
function describe({ text, location }: Message): string {
  return location ? `${text} (${fileOf(location)}:${location.line}:${columnOf(location)})` : text
}

const fileOf = ({ file }: Location): string => file.replace(`${NAMESPACE}:`, '')

/** Counts characters from 1, as editors do. esbuild counts bytes from 0. */
function columnOf({ lineText, column }: Location): number {
  return Buffer.from(lineText).subarray(0, column).toString().length + 1
}

function offsetOf(location: Location, code: string): number {
  const ends = [...code.matchAll(/\r\n|[\n\r\u2028\u2029]/g)]
  const before = ends[location.line - 2]
  return (before ? before.index + before[0].length : 0) + columnOf(location) - 1
}
