/**
 * `npm run build`: compiles the gateway, the commands of its operator and its plugins to JavaScript in `dist`, which starts
 * in half the time that the sources take. `npm start` and `npm test` call it when a source has changed since the last build.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build, transform } from 'esbuild'
import { compileClientWithDependenciesTracked } from 'pug'
import { codeFileOf } from '../gateway/bundles.ts'
import type { Gateway } from '../gateway/compose.ts'
import type { Hex } from '../gateway/config/networks.ts'
import { createCopies } from '../gateway/editions/code-copies.ts'
import { digestOf, fileOfTemplate } from '../gateway/http/built-templates.ts'
import { BUNDLE } from './bundle.ts'
import { type Payment, readRequirement, signPayment } from './pay/payment.ts'

const root = resolve(import.meta.dirname, '..')
const dist = join(root, 'dist')
const bundles = join(dist, 'gateway/bundles')
const copies = join(dist, '.plugins')

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
  const copy = createCopies(copies, { compiles: true })
  const folders = readdirSync(plugins).filter((folder) => existsSync(join(plugins, folder, 'index.ts')))
  for (const folder of folders) await copy(plugins, folder, 0)
  return folders.length
}

/** Compiles the views that come with the gateway. One that has changed since then is compiled when its page is shown. */
async function buildViews(): Promise<void> {
  const views = join(root, 'views')
  const files = existsSync(views) ? readdirSync(views, { recursive: true, encoding: 'utf8' }) : []
  for (const file of files.filter((each) => each.endsWith('.pug')))
    await replace(join(dist, 'templates', fileOfTemplate(file)), compileView(views, file))
}

/** Returns the text of the module that `gateway/http/built-templates.ts` reads. */
function compileView(views: string, view: string): string {
  const filename = join(views, view)
  const options = { filename, basedir: views, compileDebug: false, inlineRuntimeFunctions: true }
  const { body, dependencies } = compileClientWithDependenciesTracked(readFileSync(filename, 'utf8'), options)
  const texts = [...new Set([filename, ...dependencies])]
  const digests = Object.fromEntries(texts.map((path) => [relative(views, path), digestOf(readFileSync(path, 'utf8'))]))
  return `${body}\nmodule.exports={template,digests:${JSON.stringify(digests)}}\n`
}

const built = (file: string): Promise<unknown> => import(pathToFileURL(join(dist, 'gateway', file)).href)

/**
 * Lists the schemas of our own catalog that compile, and the documents that follow theirs. What somebody changes is checked
 * at the start, as any other.
 */
async function listSchemas(): Promise<void> {
  await replace(join(dist, 'checked-schemas.json'), '[]\n')
  const { openCatalog } = (await built('compose.js')) as typeof import('../gateway/compose.ts')
  const { readConfig } = (await built('config/config.js')) as typeof import('../gateway/config/config.ts')
  const { edition, close } = await openCatalog(readConfig({}))
  const keys = edition ? [...edition.schemaKeys, ...edition.documentKeys] : []
  await replace(join(dist, 'checked-schemas.json'), `${JSON.stringify(keys)}\n`)
  await close()
}

/** What the gateway sells while the build runs it. */
const PRODUCT = {
  product: 'word',
  title: 'Word',
  summary: 'A word.',
  plugin: 'build-word',
  operations: {
    getWord: {
      route: 'POST /v1/word',
      summary: 'A word.',
      price: '0.001',
      body: { type: 'object', properties: { length: { type: 'integer', minimum: 1 } } },
      response: { type: 'object', required: ['word'], properties: { word: { type: 'string' } } },
      tool: true,
    },
  },
}
const PLUGIN = `import { definePlugin } from 'tollgate/plugin'
export default definePlugin({ name: 'build-word', setup: () => ({ handlers: { getWord: () => ({ word: 'word' }) } }) })
`
/** A chain that cannot be opened does not keep anybody from building: a real network may be all that this gateway needs. */
const NO_CHAIN = {
  NETWORK: 'base-sepolia',
  PAY_TO: '0x00000000000000000000000000000000000000A1',
  FACILITATOR_URL: 'http://127.0.0.1:9/',
  RPC_URL: 'http://127.0.0.1:9/',
}

/**
 * Opens the gateway, asks it and buys from it, and keeps the code that V8 has compiled meanwhile. Otherwise the first
 * callers after a start would wait for it.
 */
async function keepCompiledCode(): Promise<void> {
  const { load, compiledCode } = (await built('bundles.js')) as typeof import('../gateway/bundles.ts')
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-build-'))
  await mkdir(join(folder, 'catalog'))
  await mkdir(join(folder, 'plugins', PRODUCT.plugin), { recursive: true })
  await cp(join(root, 'catalog/service.json'), join(folder, 'catalog/service.json'))
  await writeFile(join(folder, 'catalog/word.json'), JSON.stringify(PRODUCT))
  await writeFile(join(folder, 'plugins', PRODUCT.plugin, 'index.ts'), PLUGIN)
  const gateway = await openGateway(folder, {}).catch((error: Error) => {
    reportPurchase(error)
    return openGateway(folder, NO_CHAIN)
  })
  const address = await gateway.listen()
  for (const path of ['/', '/openapi.json', '/health', '/v1/none']) await (await fetch(address + path)).text()
  const buyer = gateway.settlement.sandbox?.buyer
  if (buyer) await buy(address, buyer.privateKey).catch(reportPurchase)
  await gateway.close()
  await rm(folder, { recursive: true })
  for (const copy of readdirSync(copies).filter((each) => existsSync(join(copies, each, PRODUCT.plugin))))
    await rm(join(copies, copy), { recursive: true })
  // The launcher and the signer are not used here; loading them compiles the code of their start.
  for (const path of written) if (dirname(path) === bundles && path.endsWith('.js')) load(basename(path))
  for (const [file, code] of compiledCode()) await replace(file, code)
}

async function openGateway(folder: string, network: Readonly<Record<string, string>>): Promise<Gateway> {
  const { createGateway } = (await built('compose.js')) as typeof import('../gateway/compose.ts')
  const { readConfig } = (await built('config/config.js')) as typeof import('../gateway/config/config.ts')
  const config = readConfig({
    ...network,
    DATA_DIR: join(folder, 'data'),
    CATALOG_DIR: join(folder, 'catalog'),
    PLUGIN_DIRS: join(folder, 'plugins'),
    LOG_LEVEL: 'silent',
  })
  return createGateway({ ...config, port: 0 })
}

/** A build without this code works: the first purchase after a start compiles it. */
function reportPurchase({ message }: Error): void {
  process.stderr.write(`[build] nothing could be bought, so that first purchases will be slow: ${message}\n`)
}

/** Buys over HTTP and as a tool. Throws if it gets no answer. */
async function buy(address: string, key: Hex): Promise<void> {
  const post = (path: string, body: object, headers: Readonly<Record<string, string>> = {}): Promise<Response> =>
    fetch(address + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
      body: JSON.stringify(body),
    })
  const asked = await post('/v1/word', {})
  const requirement = readRequirement(asked.headers.get('payment-required'), await asked.text(), false)
  const sign = (): Promise<Payment> => signPayment(requirement, key, Math.floor(Date.now() / 1000))
  const { header, value } = await sign()
  const bought = await post('/v1/word', {}, { [header]: value })
  const payment: unknown = JSON.parse(Buffer.from((await sign()).value, 'base64').toString())
  const call = { name: 'get_word', arguments: {}, _meta: { 'x402/payment': payment } }
  const used = await post('/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: call })
  const results = [bought.status, await bought.text(), used.status, await used.text()]
  if (bought.status !== 200 || String(results[3]).includes('"isError":true'))
    throw new Error(`the answers were ${results.join(' ')}`)
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
  for (const folder of ['gateway', 'scripts', 'templates'].filter((each) => existsSync(join(dist, each))))
    for (const name of await readdir(join(dist, folder), { recursive: true, withFileTypes: true })) {
      const path = join(name.parentPath, name.name)
      if (name.isFile() && !written.has(path)) await rm(path)
    }
}

const began = performance.now()
await buildGateway()
await writePackage()
const count = await buildPlugins()
await buildViews()
await listSchemas()
await keepCompiledCode()
await removeOld()
process.stderr.write(`[build] gateway and ${count} plugins in ${((performance.now() - began) / 1000).toFixed(1)} s\n`)
