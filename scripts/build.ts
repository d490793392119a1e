/**
 * `npm run build`: compiles the gateway, the commands of its operator and its plugins to JavaScript in `dist`, which starts
 * in half the time that the sources take. `npm start` and `npm test` call it when a source has changed since the last build.
 */
import { existsSync, readdirSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build, transform } from 'esbuild'
import { codeFileOf } from '../gateway/bundles.ts'
import { createCopies } from '../gateway/editions/code-copies.ts'
import { BUNDLE } from './bundle.ts'

const root = resolve(import.meta.dirname, '..')
const dist = join(root, 'dist')
const bundles = join(dist, 'gateway/bundles')

/** Every file that is written, by its path below `dist`. */
const written = new Set<string>()

/** The modules that are started or imported from outside: by the command line, by plugins and by worker threads. */
const ENTRIES = [
  'gateway/main',
  'gateway/compose',
  'gateway/config/config',
  'gateway/plugin/plugin',
  'gateway/editions/worker-thread',
  'gateway/calls/large-body-work',
  'gateway/mcp/large-message-outline',
  'gateway/mcp/large-message-arguments',
  'scripts/backup',
  'scripts/check',
  'scripts/doctor',
  'scripts/keys',
  'scripts/ledger',
  'scripts/new-product',
  'scripts/restore',
  'scripts/tokens',
  'scripts/types',
]

/** What every call of esbuild gets. A start reads less. Names stay, because stacks and logs show those of errors and classes. */
const COMPACT = {
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'none',
  sourcemap: 'external',
  sourcesContent: false,
} as const
/** Keeps the first line of every file free, for what differs between files. */
const FIRST_LINE = '//'

/**
 * Bundles the gateway and the commands with most packages into a few files, since reading 1,700 modules takes longer than running them.
 * The bundles lie as deep as the sources, so that paths relative to them lead to the same places.
 */
async function buildGateway(): Promise<void> {
  const options = { ...BUNDLE, ...COMPACT, absWorkingDir: root, outdir: dist, outbase: root, write: false } as const
  const loader = await build({ ...options, banner: {}, entryPoints: ['gateway/bundles.ts'] })
  for (const { path, contents } of loader.outputFiles) await replace(path, contents)
  const { outputFiles } = await build({
    ...options,
    banner: { js: FIRST_LINE },
    entryPoints: ENTRIES.map((entry) => `${entry}.ts`),
    chunkNames: 'gateway/bundles/[name]-[hash]',
    splitting: true,
  })
  const texts = new Map(outputFiles.map(({ path, text }) => [path, text]))
  for (const [path, text] of texts) {
    if (path.endsWith('.map')) continue
    const map = texts.get(`${path}.map`) ?? ''
    const { code, map: newMap } = dirname(path) === bundles ? await asBundle(path, text, map) : asEntry(path, text, map)
    // V8 would take code of another text of the same length.
    await rm(codeFileOf(path), { force: true })
    await replace(path, code)
    await replace(`${path}.map`, newMap)
  }
}

interface Compiled {
  readonly code: string
  readonly map: string
}

/**
 * Turns a bundle into what `gateway/bundles.ts` loads: a CommonJS module in parentheses. Its dynamic imports become calls of
 * what the loader passes. Their names have six letters, as `import` has, so that positions stay.
 */
async function asBundle(path: string, text: string, map: string): Promise<Compiled> {
  const inlineMap = `//# sourceMappingURL=data:application/json;base64,${Buffer.from(map).toString('base64')}`
  const compiled = await transform(`${text}\n${inlineMap}`, {
    ...COMPACT,
    format: 'cjs',
    platform: 'node',
    target: BUNDLE.target,
    // With this extension a default import of CommonJS means what it means to Node.
    sourcefile: path.replace(/\.js$/, '.mjs'),
    define: { 'import.meta.url': '$url', 'import.meta.filename': '__filename', 'import.meta.dirname': '__dirname' },
    banner:
      '(function(exports,require,module,__filename,__dirname,$later,$outer){' +
      'const $url=require("node:url").pathToFileURL(__filename).href;',
    footer: '})',
  })
  const code = compiled.code.replace(/\bimport\((?="\.\/[\w-]+\.js"\))/g, '$later(').replace(/\bimport\(/g, '$$outer(')
  return { code, map: compiled.map }
}

/** Lets a module that is started or imported from outside load bundles with `gateway/bundles.ts`, without moving positions. */
function asEntry(path: string, text: string, map: string): Compiled {
  const loader = relative(dirname(path), join(dist, 'gateway/bundles.js'))
  const head =
    `import{requireFrom}from"${loader.startsWith('.') ? loader : `./${loader}`}";` +
    'const require=requireFrom(import.meta.url),$=require,$later=async file=>require(file);'
  const code = text
    .replace(FIRST_LINE, head)
    .replace(
      /\bimport(?:\{([^}]*)\}from)?"([^"]*\/bundles\/[\w-]+\.js)";/g,
      (statement, names: string | undefined, file: string) => {
        const left = names === undefined ? '' : `let{${names.replace(/\sas\s/g, ':')}}=`
        return `${left}$("${file}");`.padEnd(statement.length)
      },
    )
    .replace(/\bimport\((?="[^"]*\/bundles\/[\w-]+\.js"\))/g, '$later(')
  return { code, map }
}

/** Plugins import `tollgate/plugin` from this package, because it is the nearest to their compiled copies. */
async function writePackage(): Promise<void> {
  const entry = (module: string): string => `./gateway/${module}.js`
  const content = {
    name: 'tollgate',
    private: true,
    type: 'module',
    exports: { './plugin': entry('plugin/plugin') },
    imports: { '#gateway': entry('plugin/plugin') },
  }
  await replace(join(dist, 'package.json'), `${JSON.stringify(content, null, 2)}\n`)
}

/** Compiles the plugins that come with the gateway. Others are compiled when a catalog first names them. */
async function buildPlugins(): Promise<number> {
  const plugins = join(root, 'plugins')
  const copy = createCopies(join(dist, '.plugins'), { compiles: true })
  const folders = readdirSync(plugins).filter((folder) => existsSync(join(plugins, folder, 'index.ts')))
  for (const folder of folders) await copy(plugins, folder, 0)
  return folders.length
}

const built = (file: string): Promise<unknown> => import(pathToFileURL(join(dist, 'gateway', file)).href)

/** Lists the schemas of our own catalog that compile. Whoever changes one of them compiles it at the start, as any other. */
async function listSchemas(): Promise<void> {
  await replace(join(dist, 'checked-schemas.json'), '[]\n')
  const { openCatalog } = (await built('compose.js')) as typeof import('../gateway/compose.ts')
  const { readConfig } = (await built('config/config.js')) as typeof import('../gateway/config/config.ts')
  const { edition, close } = await openCatalog(readConfig({}))
  await replace(join(dist, 'checked-schemas.json'), `${JSON.stringify(edition?.schemaKeys ?? [])}\n`)
  await close()
}

/** Opens the gateway with a catalog that sells nothing, asks it, and keeps the code that V8 has compiled meanwhile. */
async function keepCompiledCode(): Promise<void> {
  const { createGateway } = (await built('compose.js')) as typeof import('../gateway/compose.ts')
  const { readConfig } = (await built('config/config.js')) as typeof import('../gateway/config/config.ts')
  const { load, compiledCode } = (await built('bundles.js')) as typeof import('../gateway/bundles.ts')
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-build-'))
  await mkdir(join(folder, 'catalog'))
  await cp(join(root, 'catalog/service.json'), join(folder, 'catalog/service.json'))
  const config = readConfig({
    NETWORK: 'base-sepolia',
    PAY_TO: '0x00000000000000000000000000000000000000A1',
    FACILITATOR_URL: 'http://127.0.0.1:9/',
    RPC_URL: 'http://127.0.0.1:9/',
    DATA_DIR: join(folder, 'data'),
    CATALOG_DIR: join(folder, 'catalog'),
    LOG_LEVEL: 'fatal',
  })
  const gateway = await createGateway({ ...config, port: 0 })
  const address = await gateway.listen()
  for (const path of ['/', '/openapi.json', '/health', '/v1/none']) await (await fetch(address + path)).text()
  await gateway.close()
  await rm(folder, { recursive: true })
  // The launcher and the signer are not used here; loading them compiles the code of their start.
  for (const path of written) if (dirname(path) === bundles && path.endsWith('.js')) load(basename(path))
  for (const [file, code] of compiledCode()) await replace(file, code)
}

/** Replaces a file at once, so that a process that starts meanwhile reads the old one or the new one. */
async function replace(path: string, content: string | Uint8Array): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  await writeFile(`${path}.${process.pid}`, content)
  await rename(`${path}.${process.pid}`, path)
  written.add(path)
}

/** Removes what an earlier build wrote and this one did not. */
async function removeOld(): Promise<void> {
  for (const folder of ['gateway', 'scripts'])
    for (const name of await readdir(join(dist, folder), { recursive: true, withFileTypes: true })) {
      const path = join(name.parentPath, name.name)
      if (name.isFile() && !written.has(path)) await rm(path)
    }
}

const began = performance.now()
await buildGateway()
await writePackage()
const count = await buildPlugins()
await listSchemas()
await keepCompiledCode()
await removeOld()
process.stderr.write(`[build] gateway and ${count} plugins in ${((performance.now() - began) / 1000).toFixed(1)} s\n`)
