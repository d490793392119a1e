/** Puts the files of a new product where they belong, unless one is there or the catalog would refuse them. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { format, resolveConfig } from 'prettier'
import { createCatalog } from '../gateway/catalog/resolve.ts'
import { CatalogError, type Issue } from '../gateway/validation/issue.ts'
import { readDocuments } from '../gateway/catalog/documents.ts'
import { readSchemas } from '../gateway/catalog/schemas.ts'
import { nameOwners } from '../gateway/catalog/names.ts'
import { documentOf, FAMILY, type NewProduct, pluginOf, schemaOf, testOf, upstreamOf } from './product/texts.ts'

export interface Places {
  readonly root: string
  readonly catalogDir: string
  readonly schemaDir: string
  readonly pluginDir: string
}

/**
 * A name that will do, made of any words.
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
 * Writes the files and returns their paths. The document comes last: a gateway that runs takes it up at once. Throws,
 * having written nothing, where one of them is there already, or where the catalog would refuse the product.
 */
export async function writeProduct(
  made: NewProduct,
  { root, catalogDir, schemaDir, pluginDir }: Places,
): Promise<string[]> {
  const test = join(root, 'test', 'plugins', made.product, 'index.test.ts')
  const code: readonly (readonly [string, string])[] = [
    [join(schemaDir, `${made.product}.json`), schemaOf(made)],
    [join(pluginDir, made.product, 'index.ts'), pluginOf(made)],
    [test, testOf(made)],
  ]
  const document = made.upstream === '' ? documentOf(made) : upstreamOf(made)
  const files = [
    ...(made.upstream === '' ? code : []),
    [join(catalogDir, FAMILY, `${made.product}.json`), document] as const,
  ]
  const folders = made.upstream === '' ? [join(pluginDir, made.product)] : []
  const taken = [...files.map(([file]) => file), ...folders].filter((file) => existsSync(file))
  if (taken.length > 0) {
    const places = taken.map((file) => relative(root, file)).join(', ')
    throw new Error(`${places} ${taken.length > 1 ? 'are' : 'is'} there already. Choose another name.`)
  }
  const refused = await refusals(made, document, { catalogDir, schemaDir })
  if (refused.length > 0)
    throw new Error(`${refused.map(({ message }) => message).join('\n')}\nChoose another name or address.`)
  const style = await resolveConfig(join(root, 'package.json'))
  const texts = await Promise.all(files.map(([file, text]) => format(text, { ...style, filepath: file })))
  for (const [index, [file]] of files.entries()) {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, texts[index] as string, { flag: 'wx' })
  }
  return files.map(([file]) => file)
}

/** What the catalog as it stands would say against the new document: names and routes that others have. */
async function refusals(
  made: NewProduct,
  document: string,
  { catalogDir, schemaDir }: Pick<Places, 'catalogDir' | 'schemaDir'>,
): Promise<readonly Issue[]> {
  const file = `${FAMILY}/${made.product}.json`
  const { documents } = await readDocuments(catalogDir)
  const { schemas } = await readSchemas(schemaDir)
  try {
    const ownerOf = nameOwners(createCatalog(documents, schemas).catalog)
    const content = JSON.parse(document) as Record<string, unknown>
    schemas.set(`${made.product}.json`, JSON.parse(schemaOf(made)) as Record<string, unknown>)
    const { issues } = createCatalog([...documents, { file, kind: 'product', content }], schemas, { ownerOf })
    return issues.filter((issue) => issue.file === file)
  } catch (error) {
    // The catalog cannot be built at all at the moment; npm run check says why.
    if (error instanceof CatalogError) return []
    throw error
  }
}
