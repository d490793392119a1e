/** Compiles plugin code to JavaScript, so that the built gateway runs dropped-in TypeScript without a loader. */
import { dirname, join, normalize, relative, sep } from 'node:path'
import type {
  BuildFailure,
  BuildOptions,
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
export const COMPILER = 'esbuild 3'

const CODE = /\.([cm]?)[jt]s$/
const TYPESCRIPT = /\.[cm]?ts$/
const TYPES_ONLY = /\.d\.[cm]?ts$/
const COMMONJS = /\.c[jt]s$/
const INDEX = /^[^\\/]+[\\/]index\.js$/
const NAMESPACE = 'plugin'
/** Modules that hold what `import.meta` is in one file of a bundle, by the path of that file. */
const META_NAMESPACE = 'meta'
const META_ADDRESS = `${META_NAMESPACE}:`

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
 * With the name of a plugin's folder, the index of this folder becomes one file with the modules that it imports, unless its
 * code could tell the difference. That loads in a third of the time. The modules are returned as files too, because threads
 * start from them.
 *
 * @throws CompileError at the first syntax error in TypeScript, or in JavaScript that another module imports
 */
export async function compilePlugin(files: PluginFiles, folder?: string): Promise<PluginFiles> {
  const modules = [...files.keys()].filter((file) => CODE.test(file) && !TYPES_ONLY.test(file))
  const chosen = [...new Map(modules.sort(typescriptLast).map((file) => [compiledName(file), file]))]
  const compiled = new Map([...files].filter(([file]) => !CODE.test(file)))
  const sources = new Sources(files)
  for (const extension of ['.js', '.mjs', '.cjs']) {
    const entries = new Map(chosen.filter(([name]) => name.endsWith(extension)))
    if (entries.size === 0) continue
    for (const [name, bytes] of await compileModules(entries, extension, sources)) compiled.set(name, bytes)
  }
  const index = folder === undefined ? undefined : chosen.find(([name]) => name === join(folder, 'index.js'))
  if (index) for (const [name, bytes] of await compileIndex(index, sources, compiled)) compiled.set(name, bytes)
  return compiled
}

const typescriptLast = (one: string, other: string): number =>
  Number(TYPESCRIPT.test(one)) - Number(TYPESCRIPT.test(other))

/** Source files by the name that they have after compilation. */
type Entries = ReadonlyMap<string, string>

async function compileModules(given: Entries, extension: string, sources: Sources): Promise<Map<string, Buffer>> {
  let entries = given
  for (;;) {
    const result = await compileEntries(entries, extension, { plugins: [sources.reader] })
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

/**
 * Compiles an index and the modules that it imports to one file. Returns nothing if the code would then differ from `apart`,
 * all files compiled on their own: a module might run twice or earlier, a class might get another name, or an import that
 * Node refuses would be undefined.
 */
async function compileIndex(
  [name, file]: readonly [string, string],
  sources: Sources,
  apart: PluginFiles,
): Promise<Map<string, Buffer>> {
  const { reader, isWhole } = sources.readerOfWhole(file)
  const result = await compileEntries(new Map([[name, file]]), '.js', {
    plugins: [reader],
    define: { 'import.meta': META },
    banner: { js: `const ${OWN_META} = import.meta;` },
    // Modules that wait would run one after the other.
    supported: { 'top-level-await': false },
  })
  if (!('outputFiles' in result) || result.warnings.some(({ id }) => id === UNDEFINED_IMPORT)) return new Map()
  const compiled = outputOf(result)
  return isWhole(String(compiled.get(name)), apart) ? compiled : new Map()
}

type Compiled = BuildResult<{ write: false }>

async function compileEntries(
  entries: Entries,
  extension: string,
  options: Pick<BuildOptions, 'plugins' | 'define' | 'banner' | 'supported'>,
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
    ...options,
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
const UNDEFINED_IMPORT = 'import-is-undefined'
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

const META = '$meta'
/** What `import.meta` is in the file that a bundle is. */
const OWN_META = '$ownMeta'
/** What a bundle changes: code that uses these names, requires modules, or counts on the order in which they run. */
const CHANGED = /\$meta\b|\$ownMeta\b|\bcreateRequire\(|\bimport\s*['"]\.\.?\//
/** Requires a package, which is no module of the plugin. */
const REQUIRED_PACKAGE = /\bcreateRequire\(import\.meta\.url\)\(\s*['"][^.'"/]/g
/** What esbuild adds for namespaces, whose objects then inherit, and for CommonJS. */
const ADDED = /\b__(?:commonJS|export|reExport|toESM)\(/

/** Returns a module with what `import.meta` is in a file, whose path is relative to the bundle. */
const metaModule = (path: string): string => `
import { fileURLToPath } from 'node:url'
import { dirname } from 'node:path'
const url = new URL(${JSON.stringify(path)}, ${OWN_META}.url).href
const filename = fileURLToPath(url)
const resolve = (name) => ${OWN_META}.resolve(/^[.]{1,2}[/]/.test(name) ? new URL(name, url).href : name)
export const ${META} = { __proto__: null, dirname: dirname(filename), filename, resolve, url }
`

interface Whole {
  readonly reader: EsbuildPlugin
  readonly isWhole: (code: string, apart: PluginFiles) => boolean
}

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

  /** True for JavaScript whose TypeScript is compiled in its place. */
  #isReplaced(file: string): boolean {
    const typescript = file.replace(/js$/, 'ts')
    return typescript !== file && this.#files.has(typescript)
  }

  /**
   * Lets esbuild read an index with all modules that it imports. `isWhole` takes the code, and all files compiled on their
   * own. It says whether the code does what these do. Read all files with `reader` before.
   */
  readerOfWhole(index: string): Whole {
    const home = dirname(index)
    const modules: string[] = []
    let isWhole = !this.imported.has(index)
    const setup: EsbuildPlugin['setup'] = (context) => {
      context.onResolve({ filter: /.*/ }, ({ path, kind, importer, namespace }) => {
        if (kind === 'entry-point') return { path, namespace: NAMESPACE }
        if (path.startsWith(META_ADDRESS)) return { path: path.slice(META_ADDRESS.length), namespace: META_NAMESPACE }
        if (!path.startsWith('.') || namespace !== NAMESPACE) return { path, external: true }
        const found = moduleAt(join(dirname(importer), path), this.#files)
        if (found === null || kind !== 'import-statement' || COMMONJS.test(found) || this.#isReplaced(found))
          isWhole = false
        return found === null ? { path, external: true } : { path: found, namespace: NAMESPACE }
      })
      context.onLoad({ filter: /.*/, namespace: NAMESPACE }, ({ path }) => {
        const text = this.bytesOf(path).toString()
        if (this.#converted.has(path) || CHANGED.test(text.replace(REQUIRED_PACKAGE, ''))) isWhole = false
        modules.push(compiledName(path))
        // At the end, so that no position moves.
        const meta =
          !path.endsWith('.json') && text.includes('meta')
            ? `\nimport { ${META} } from ${JSON.stringify(META_ADDRESS + path)}`
            : ''
        return { contents: text + meta, loader: loaderOf(path), resolveDir: NOWHERE }
      })
      context.onLoad({ filter: /.*/, namespace: META_NAMESPACE }, ({ path }) => ({
        contents: metaModule(pathTo(compiledName(path), home)),
      }))
    }
    return {
      reader: { name: 'plugin-index', setup },
      isWhole(code, apart) {
        const classes = new Set(modules.flatMap((file) => classesIn(String(apart.get(file) ?? ''))))
        return isWhole && !ADDED.test(code) && classesIn(code).every((name) => classes.has(name))
      },
    }
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

/** Names of classes in compiled code: `var Price = class` and `var Price = class _Price`, with 2 behind a name that is taken. */
const classesIn = (code: string): string[] =>
  [...code.matchAll(/(?:([\w$]+)\s*=\s*)?\bclass\b(?:\s+([\w$]+))?/g)].map(
    ([, variable, name]) => `${variable} ${name}`,
  )

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
