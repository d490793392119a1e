/**
 * `npm run build`: compiles the gateway, the commands of its operator and its plugins to JavaScript in `dist`, which starts
 * in half the time that the sources take. `npm start` and `npm test` call it when a source has changed since the last build.
 */
import { existsSync, readdirSync } from 'node:fs'
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { createCopies } from '../gateway/plugin-code/copies.ts'
import { BUNDLE } from './bundle.ts'

const root = resolve(import.meta.dirname, '..')
const dist = join(root, 'dist')
const copies = join(dist, '.plugins')

/** Every file that is written, by its path below `dist`. */
const written = new Set<string>()

/** The modules that are started or imported from outside: by the command line, by plugins and by worker threads. */
const ENTRIES = [
  'gateway/main',
  'gateway/compose',
  'gateway/client/buyer',
  'gateway/config/config',
  'gateway/plugin/plugin',
  'gateway/testing/testing',
  'gateway/workers/thread',
  'gateway/calls/large-body-work',
  'gateway/mcp/large-message-outline',
  'gateway/mcp/large-message-arguments',
  'scripts/backup',
  'scripts/check',
  'scripts/doctor',
  'scripts/import',
  'scripts/init',
  'scripts/keys',
  'scripts/ledger',
  'scripts/mcp',
  'scripts/new-product',
  'scripts/pay',
  'scripts/program',
  'scripts/restore',
  'scripts/tokens',
  'scripts/types',
]

/**
 * Bundles the gateway and the commands with most packages into a few files, since reading 1,700 modules takes longer
 * than running them. The bundles lie as deep as the sources, so that paths relative to them lead to the same places. Names
 * are kept because stacks and logs show those of errors and classes.
 */
async function buildGateway(): Promise<void> {
  const { outputFiles } = await build({
    ...BUNDLE,
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'none',
    sourcemap: 'external',
    sourcesContent: false,
    absWorkingDir: root,
    outdir: dist,
    outbase: root,
    write: false,
    entryPoints: ENTRIES.map((entry) => `${entry}.ts`),
    chunkNames: 'gateway/bundles/[name]-[hash]',
    splitting: true,
  })
  for (const { path, contents } of outputFiles) await replace(path, contents)
}

/** Plugins import `tollgate/plugin` from this package, because it is the nearest to their compiled copies. */
async function writePackage(): Promise<void> {
  const entry = (module: string): string => `./gateway/${module}.js`
  const content = {
    name: 'tollgate',
    private: true,
    type: 'module',
    exports: {
      './client': entry('client/buyer'),
      './plugin': entry('plugin/plugin'),
      './testing': entry('testing/testing'),
    },
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

/** Replaces a file at once, so that a process that starts meanwhile reads the old one or the new one. */
async function replace(path: string, content: string | Uint8Array): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  await writeFile(`${path}.${process.pid}`, content)
  await rename(`${path}.${process.pid}`, path)
  written.add(path)
}

/** Removes what an earlier build wrote and this one did not. */
async function removeOld(): Promise<void> {
  for (const folder of ['gateway', 'scripts'].filter((each) => existsSync(join(dist, each))))
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
await removeOld()
process.stderr.write(`[build] gateway and ${count} plugins in ${((performance.now() - began) / 1000).toFixed(1)} s\n`)
