/** A real gateway with its own catalog and plugin folder outside the project, which tests change while it runs. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'
import type { Config } from '../../gateway/config/config.ts'
import type { Overrides } from '../../gateway/compose.ts'
import { SERVICE } from '../support/catalog.ts'
import { copyFirstStart } from '../support/first-start.ts'
import { openGateway, type TestGateway } from '../support/gateway.ts'

export const root = resolve(import.meta.dirname, '../..')
const FIXTURES = join(root, 'test/fixtures/plugins')

export interface LiveGatewayOptions {
  /** Documents of the catalog besides service.json, by file name. */
  readonly catalog?: Readonly<Record<string, unknown>>
  /** Folders of test/fixtures/plugins that are in the plugin folder from the start. */
  readonly plugins?: readonly string[]
  /** Files of the plugin folder from the start. What is written later is read when the watch sees it, also after a reload. */
  readonly sources?: Readonly<Record<string, string>>
  /** Starts with the shipped catalog, and with the data that its first start computes. */
  readonly own?: boolean
  /** Documents may name the project's own plugins too. */
  readonly ownPlugins?: boolean
  readonly environment?: Readonly<Record<string, string>>
  readonly overrides?: Overrides
  readonly config?: Partial<Config>
}

export interface LiveGateway extends TestGateway {
  /** Writes a catalog document: a string as it is, anything else as JSON. */
  writeCatalog(file: string, content: unknown): void
  writePlugin(file: string, source: string): void
  /** Copies a fixture into the plugin folder. */
  copyPlugin(fixture: string, as?: string): void
  remove(...path: string[]): void
  get(path: string): Promise<Response>
  json(path: string): Promise<Record<string, unknown>>
}

export async function openLiveGateway(options: LiveGatewayOptions = {}): Promise<LiveGateway> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-live-'))
  const [catalogDir, pluginDir] = [join(folder, 'catalog'), join(folder, 'plugins')]
  mkdirSync(pluginDir)
  const write = (dir: string, file: string, content: unknown): void => {
    mkdirSync(dirname(join(dir, file)), { recursive: true })
    writeFileSync(join(dir, file), typeof content === 'string' ? content : JSON.stringify(content, null, 2))
  }
  const copyPlugin = (fixture: string, as = fixture): void =>
    cpSync(join(FIXTURES, fixture), join(pluginDir, as), { recursive: true })
  if (options.own) cpSync(join(root, 'catalog'), catalogDir, { recursive: true })
  else write(catalogDir, 'service.json', SERVICE)
  for (const [file, content] of Object.entries(options.catalog ?? {})) write(catalogDir, file, content)
  options.plugins?.forEach((fixture) => copyPlugin(fixture))
  for (const [file, source] of Object.entries(options.sources ?? {})) write(pluginDir, file, source)
  const dirs = options.own || options.ownPlugins ? [pluginDir, join(root, 'plugins')] : [pluginDir]
  const place = { DATA_DIR: join(folder, 'data'), CATALOG_DIR: catalogDir, PLUGIN_DIRS: dirs.join(delimiter) }
  const environment = { ...place, ...options.environment }
  if (options.own) await copyFirstStart(environment)
  const shop = await openGateway(environment, { inMemory: !options.own, ...options.overrides }, options.config)
  const get = (path: string): Promise<Response> => fetch(shop.url + path)
  return {
    ...shop,
    writeCatalog: (file, content) => write(catalogDir, file, content),
    writePlugin: (file, source) => write(pluginDir, file, source),
    copyPlugin,
    remove: (...path) => rmSync(join(folder, ...path), { recursive: true, force: true }),
    get,
    json: async (path) => (await (await get(path)).json()) as Record<string, unknown>,
    async close() {
      try {
        await shop.close()
      } finally {
        rmSync(folder, { recursive: true, force: true })
      }
    },
  }
}

/** Returns the source of a plugin whose free operation "getWord" answers with the word in `word.ts` beside it. */
export const wordPlugin = (name: string, also = ''): string => `import { definePlugin } from 'tollgate/plugin'
import { word } from './word.ts'
${also}
export default definePlugin({ name: '${name}', setup: () => ({ handlers: { getWord: () => ({ word }) } }) })
`

/** Returns a catalog document of a product with the free operation "getWord". */
export const wordProduct = (plugin: string, changes: object = {}, product: object = {}) => ({
  product: plugin,
  title: plugin,
  summary: 'A word.',
  plugin,
  ...product,
  operations: {
    getWord: {
      route: `GET /v1/${plugin}`,
      summary: 'A word.',
      price: 'free',
      response: { type: 'object', required: ['word'] },
      ...changes,
    },
  },
})
