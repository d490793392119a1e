/** Writes the files of a new product, unless one of them exists or the catalog would refuse the product. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { format, resolveConfig } from 'prettier'
import { withBuiltIn, withBuiltInSchemas } from '../../gateway/catalog/built-in.ts'
import { createCatalog } from '../../gateway/catalog/resolve.ts'
import { CatalogError, type Issue } from '../../gateway/validation/issue.ts'
import { readDocuments } from '../../gateway/catalog/documents.ts'
import { readSchemas } from '../../gateway/catalog/schemas.ts'
import { nameOwners } from '../../gateway/catalog/names-and-references.ts'
import {
  documentOf,
  FAMILY,
  type NewProduct,
  pluginOf,
  schemaOf,
  testOf,
  type TestRunner,
  upstreamOf,
} from './texts.ts'

/** How files are formatted in a project that does not say. */
export const STYLE = { semi: false, singleQuote: true, printWidth: 120 } as const

export interface Places {
  readonly root: string
  readonly runner: TestRunner
  readonly catalogDir: string
  readonly schemaDir: string
  readonly pluginDir: string
}

/**
 * Makes a valid product name of any text.
 *
 * @example nameIn('Gold 2/oz') // "gold-2-oz"
 */
export function nameIn(words: string): string {
  const name = words
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^[-0-9]+|-+$/g, '')
  return name === '' ? 'gold-price' : name
}

/**
 * Writes the files and returns their paths. The document is written last, because a running gateway loads it at once.
 *
 * @throws Error, before anything is written, if a file exists or the catalog would refuse the product
 */
export async function writeProduct(
  product: NewProduct,
  { root, runner, catalogDir, schemaDir, pluginDir }: Places,
): Promise<string[]> {
  const { product: name } = product
  const test = runner === 'mocha' ? join('plugins', name, 'index.test.ts') : `${name}.test.ts`
  const testFile = join(root, 'test', test)
  const plugin = join(pluginDir, product.product, 'index.ts')
  const code: readonly (readonly [string, string])[] = [
    [join(schemaDir, `${product.product}.json`), schemaOf(product)],
    [plugin, pluginOf(product)],
    [testFile, testOf(product, relative(dirname(testFile), plugin).replaceAll('\\', '/'), runner)],
  ]
  const document = product.upstream === '' ? documentOf(product) : upstreamOf(product)
  const files = [
    ...(product.upstream === '' ? code : []),
    [join(catalogDir, FAMILY, `${product.product}.json`), document] as const,
  ]
  const folders = product.upstream === '' ? [join(pluginDir, product.product)] : []
  const taken = [...files.map(([file]) => file), ...folders].filter((file) => existsSync(file))
  if (taken.length > 0) {
    const places = taken.map((file) => relative(root, file)).join(', ')
    throw new Error(`${places} ${taken.length > 1 ? 'exist' : 'exists'} already. Choose another name.`)
  }
  const refused = await refusals(product, document, { catalogDir, schemaDir })
  if (refused.length > 0)
    throw new Error(`${refused.map(({ message }) => message).join('\n')}\nChoose another name or address.`)
  const style = (await resolveConfig(join(root, 'package.json'))) ?? STYLE
  const texts = await Promise.all(files.map(([file, text]) => format(text, { ...style, filepath: file })))
  for (const [index, [file]] of files.entries()) {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, texts[index] as string, { flag: 'wx' })
  }
  return files.map(([file]) => file)
}

/** Lists the issues that the new document would have in the present catalog, such as names and routes in use. */
async function refusals(
  product: NewProduct,
  document: string,
  { catalogDir, schemaDir }: Pick<Places, 'catalogDir' | 'schemaDir'>,
): Promise<readonly Issue[]> {
  const file = `${FAMILY}/${product.product}.json`
  const documents = withBuiltIn((await readDocuments(catalogDir)).documents)
  const schemas = withBuiltInSchemas((await readSchemas(schemaDir)).schemas)
  try {
    const ownerOf = nameOwners(createCatalog(documents, schemas).catalog)
    const content = JSON.parse(document) as Record<string, unknown>
    schemas.set(`${product.product}.json`, JSON.parse(schemaOf(product)) as Record<string, unknown>)
    const { issues } = createCatalog([...documents, { file, kind: 'product', content }], schemas, { ownerOf })
    return issues.filter((issue) => issue.file === file)
  } catch (error) {
    // The catalog cannot be built at present; npm run check reports why.
    if (error instanceof CatalogError) return []
    throw error
  }
}
