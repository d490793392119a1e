/**
 * `npm run types`: writes schemas/types.d.ts from the catalog and the schemas. `--check` only compares, and exits with 1 if
 * the file is out of date.
 */
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { withBuiltIn, withBuiltInSchemas } from '../gateway/catalog/built-in.ts'
import { pluginNameOf } from '../gateway/catalog/product-drafts.ts'
import { createCatalog } from '../gateway/catalog/resolve.ts'
import { CatalogError, lineOf } from '../gateway/validation/issue.ts'
import { readDocuments } from '../gateway/catalog/documents.ts'
import { readSchemas } from '../gateway/catalog/schemas.ts'
import { readConfig } from '../gateway/config/config.ts'
import { loadPlugins, withPluginSchemas } from '../gateway/products/build.ts'
import { declarations } from './schema-types.ts'
import { readFlags } from './flags.ts'
import { withCommands } from '../gateway/config/project-root.ts'

const USAGE = withCommands(`npm run types [-- --check]

Writes schemas/types.d.ts. With --check, writes nothing and exits with 1 if the file is out of date.`)

const { catalogDir, schemaDir, pluginDirs } = readConfig()
const file = join(schemaDir, 'types.d.ts')

/** Generates the declarations of the catalog. Throws CatalogError if a document or schema has an issue. */
async function generate(): Promise<string> {
  const { documents, issues } = await readDocuments(catalogDir)
  const { schemas, issues: more } = await readSchemas(schemaDir)
  // A package is compiled already. Other plugins may need these types to be compiled.
  const isPackage = (plugin: string): boolean => pluginNameOf(plugin).package !== null
  const packaged = documents.filter(({ content: { plugin } }) => typeof plugin === 'string' && isPackage(plugin))
  const loaded = await loadPlugins(packaged, { builtins: [], loads: new Map(), pluginDirs, loadSeconds: 30 })
  const all = withPluginSchemas(withBuiltInSchemas(schemas), loaded.plugins.values())
  const created = createCatalog(withBuiltIn(documents), all)
  const found = [...issues, ...more, ...loaded.issues, ...created.issues]
  if (found.length > 0) throw new CatalogError(found)
  const isTyped = (plugin: string): boolean =>
    isPackage(plugin) || pluginDirs.some((dir) => existsSync(join(dir, plugin)))
  return declarations(created.catalog, isTyped)
}

async function run(): Promise<number> {
  const { values } = readFlags(USAGE, { options: { check: { type: 'boolean', default: false } } })
  const text = await generate()
  const old = existsSync(file) ? await readFile(file, 'utf8') : ''
  if (!values.check) await writeFile(file, text)
  else if (old !== text) {
    process.stderr.write(withCommands('schemas/types.d.ts does not match the catalog. Run: npm run types\n'))
    return 1
  }
  return 0
}

try {
  process.exitCode = await run()
} catch (error) {
  if (!(error instanceof CatalogError)) throw error
  process.stderr.write(`${error.issues.map(lineOf).join('\n')}\n`)
  process.exitCode = 1
}
