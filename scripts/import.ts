/**
 * `tollgate import openapi.yaml --price 0.01`: puts the API of an OpenAPI document on sale, as one document of the catalog.
 * Importing again keeps what the operator has changed, and prints what is different.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { format, resolveConfig } from 'prettier'
import { withBuiltIn, withBuiltInSchemas } from '../gateway/catalog/built-in.ts'
import { type CatalogDocument, readDocuments } from '../gateway/catalog/documents.ts'
import { nameOwners } from '../gateway/catalog/names-and-references.ts'
import { createValidators } from '../gateway/catalog/operation-validators.ts'
import { draftsOf, parsePrice } from '../gateway/catalog/product-drafts.ts'
import { createCatalog } from '../gateway/catalog/resolve.ts'
import { readSchemas } from '../gateway/catalog/schemas.ts'
import { readConfig } from '../gateway/config/config.ts'
import { SHOP_ROOT, withCommands } from '../gateway/config/project-root.ts'
import { InvalidInput } from '../gateway/errors.ts'
import type { Operation } from '../gateway/plugin/catalog.ts'
import type { Issue } from '../gateway/validation/issue.ts'
import { type Schemas, SchemaError } from '../gateway/validation/json-schema.ts'
import { readFlags } from './flags.ts'
import { type Wanted, type Written, writeDocument } from './import/catalog-document.ts'
import { exampleOf } from './import/example.ts'
import { knownIds, merge, type Merged, recordOf } from './import/merge.ts'
import { type Json, type OpenApi, readOpenApi, textOf } from './import/read-openapi.ts'
import { FAMILY } from './new-product/texts.ts'
import { nameIn, STYLE } from './new-product/write-product.ts'

const USAGE = `npx tollgate import SOURCE --price 0.01|free [--product NAME] [--at PATH] [--server ADDRESS]

Puts the API of an OpenAPI document (3.0 or 3.1, JSON or YAML, a file or an address) on sale: writes one document of the
catalog, with an operation for each that can be sold, and says of every other one why it is left out. Secrets are named in
the document and set in the environment. Importing again keeps prices, words and all else that you have changed, and prints
what was added, removed and changed; then --price counts for what still has the price of the last import.

  --product NAME     the id of the product; its title by default
  --at PATH          where the routes begin, /v1/x/NAME by default
  --server ADDRESS   where the API is, if not at the first server of the document`

interface Shop {
  readonly catalogDir: string
  readonly documents: readonly CatalogDocument[]
  readonly schemas: Schemas
}

async function openShop(): Promise<Shop> {
  const { catalogDir, schemaDir } = readConfig()
  const { documents } = await readDocuments(catalogDir)
  return { catalogDir, documents, schemas: withBuiltInSchemas((await readSchemas(schemaDir)).schemas) }
}

/** The document of a product, as the catalog has it now. */
function documentOf({ documents }: Shop, product: string): CatalogDocument | null {
  return documents.find(({ kind, content }) => kind === 'product' && content['product'] === product) ?? null
}

interface Flags {
  readonly price?: string
  readonly product?: string
  readonly at?: string
  readonly server?: string
}

function checkFlags({ price, at, server }: Flags): void {
  if (price !== undefined && price !== 'free' && parsePrice(price) === null)
    throw new Error(
      `--price ${price} is not a price. Write "free", or dollars above zero with at most six decimals, such as 0.01.`,
    )
  if (at !== undefined && !/^(\/|(\/[\w.~-]+)+)$/.test(at))
    throw new Error(
      `--at ${at} is not a path. Write where the routes begin, such as /v1/x/petstore, or / for the root.`,
    )
  if (server !== undefined && !/^https?:\/\/[^/?#@{}\s]+(\/[^?#{}\s]*)?$/.test(server))
    throw new Error(`--server ${server} is not an address. Write http:// or https://, a host and a path.`)
}

/** The id of the product: as given, or made of the title. */
function productIn(openapi: OpenApi, given: string | undefined): string {
  const title = textOf((openapi.root['info'] as Json)['title'])
  const product = given ?? (/[a-z]/i.test(title) ? nameIn(title) : '')
  if (/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(product)) return product
  if (given !== undefined)
    throw new Error(
      `--product ${given} is not a name. Write lower case letters, digits and hyphens, such as ${nameIn(given)}.`,
    )
  throw new Error(`The title "${title}" makes no name. Say how to call the product, such as --product petstore.`)
}

async function importDocument(source: string, flags: Flags): Promise<number> {
  checkFlags(flags)
  const openapi = await readOpenApi(source)
  const shop = await openShop()
  const product = productIn(openapi, flags.product)
  const before = documentOf(shop, product)
  const record = recordOf(before?.content ?? null)
  if (before && !record)
    throw new Error(
      `${relative('.', join(shop.catalogDir, before.file))} sells a product ${product} that no import wrote. Choose another name with --product.`,
    )
  const price = flags.price ?? record?.price
  if (price === undefined) throw new Error(`Say what a call costs: --price 0.01, or --price free.\n\n${USAGE}`)
  const at = (flags.at ?? record?.at ?? `/v1/${FAMILY}/${product}`).replace(/^\/$/, '')
  const others = draftsOf(
    withBuiltIn(shop.documents).filter(({ kind, file }) => kind === 'product' && file !== before?.file),
  )
  const wanted: Wanted = {
    product,
    price,
    at,
    server: flags.server ?? record?.server,
    knownIds: knownIds(before?.content ?? null),
    takenIds: new Set(others.flatMap(({ operations }) => operations.map(({ id }) => id))),
  }
  const file = before?.file ?? (at.startsWith(`/v1/${FAMILY}/`) ? `${FAMILY}/${product}.json` : `${product}.json`)
  const path = join(shop.catalogDir, file)
  if (!before && existsSync(path))
    throw new Error(`${relative('.', path)} exists already. Choose another name with --product.`)
  const written = sellable(writeDocument(openapi, wanted), wanted, file, shop)
  if (written.operations.size === 0)
    throw new Error([`Nothing of ${source} can be sold:`, ...written.leftOut.map((line) => `  ${line}`)].join('\n'))
  const from = openapi.address ?? relative(SHOP_ROOT, resolve(source)).replaceAll('\\', '/')
  const recorded = wanted.server === undefined ? {} : { server: wanted.server }
  const merged = merge(before?.content ?? null, written, wanted, { from, at: at === '' ? '/' : at, price, ...recorded })
  refuseConflicts(merged.content, file, shop)
  const style = (await resolveConfig(join(SHOP_ROOT, 'package.json'))) ?? STYLE
  const text = await format(JSON.stringify(merged.content), { ...style, parser: 'json' })
  mkdirSync(dirname(path), { recursive: true })
  const isNew = !existsSync(path) || readFileSync(path, 'utf8') !== text
  if (isNew) writeFileSync(path, text)
  process.stdout.write(reportOf(merged, written, { wanted, path, isFirst: before === null, isNew }))
  return 0
}

/** A catalog with nothing but this document, and its issues. */
function alone(content: Json, file: string, schemas: Schemas) {
  const service = { name: 'Shop', title: 'Shop', summary: 'Shop.', description: 'Shop.', version: '0.1.0' }
  return createCatalog(
    [
      { file: 'service.json', kind: 'service', content: service },
      { file, kind: 'product', content },
    ],
    schemas,
  )
}

/** Leaves out what the catalog would refuse: an OpenAPI document may describe what no gateway can serve. */
function sellable(written: Written, wanted: Wanted, file: string, { schemas }: Shop): Written {
  const operations = new Map(written.operations)
  const leftOut = [...written.leftOut]
  const lost = [...written.lost]
  const leave = (key: string, why: string): void => {
    operations.delete(key)
    leftOut.push(`${key}: ${why}`)
  }
  const contentOf = () =>
    merge(null, { ...written, operations }, wanted, { from: '', at: wanted.at || '/', price: wanted.price }).content
  const keyOf = (id: string): string => [...operations].find(([, each]) => each.id === id)?.[0] ?? ''
  const issuesOf = (): readonly Issue[] => (operations.size === 0 ? [] : alone(contentOf(), file, schemas).issues)
  for (let found = issuesOf(); found.length > 0; found = issuesOf()) {
    const byOperation = new Map(found.map((issue) => [keyOf(issue.pointer.split('/')[2] ?? ''), issue]))
    for (const [key, issue] of byOperation) {
      if (key === '' || issue.rule === 'route-taken') refuse([issue])
      leave(key, `${issue.pointer.split('/').slice(3).join('/') || 'the operation'}: ${issue.message}`)
    }
  }
  if (operations.size === 0) return { ...written, operations, leftOut, lost }
  const validatorsOf = createValidators(schemas)
  for (const operation of alone(contentOf(), file, schemas).catalog.operations.values()) {
    if (operation.product !== wanted.product) continue
    const key = keyOf(operation.id)
    try {
      const example = checkedExample(operation, validatorsOf(operation))
      const { example: _, ...fields } = (operations.get(key) as { readonly fields: Json }).fields
      operations.set(key, { id: operation.id, fields: example ? { ...fields, example } : fields })
      if (!example) lost.push(`${key}: an example, because none was found that fits its schema. Write one.`)
    } catch (error) {
      if (!(error instanceof SchemaError)) throw error
      leave(key, `its ${error.part}: ${error.message}`)
    }
  }
  return { ...written, operations, leftOut, lost }
}

/** The example of an operation as far as it fits the schemas: that of the OpenAPI document, or one made of the schemas. */
function checkedExample(
  { example, params, query, body }: Operation,
  validators: ReturnType<ReturnType<typeof createValidators>>,
) {
  const made = (schema: Json | null): unknown => (schema ? exampleOf(schema) : undefined)
  const fits = (request: NonNullable<typeof example>['request']): boolean => {
    try {
      validators.input({ params: {}, query: {}, body: undefined, ...request })
      return true
    } catch (error) {
      if (error instanceof InvalidInput) return false
      throw error
    }
  }
  const given = example?.request ?? {}
  const required = { params: made(params) as Json, query: made(query) as Json, body: made(body) }
  const whole = Object.fromEntries(Object.entries(required).filter(([, value]) => value !== undefined))
  const candidates = [given, { ...given, body: required.body }, { ...whole, body: given.body }, whole]
  const request = candidates.find(fits)
  if (!request) return null
  const { response } = example ?? {}
  const isShown =
    response !== undefined && JSON.stringify(response).length <= MAX_SHOWN && validators.answer(response) === null
  return { request: JSON.parse(JSON.stringify(request)) as Json, ...(isShown ? { response } : {}) }
}

/** Documents show the example of every operation, so a long answer is left out. */
const MAX_SHOWN = 4_000

/** Throws if the document is in conflict with the rest of the catalog, for example about a route. */
function refuseConflicts(content: Json, file: string, { documents, schemas }: Shop): void {
  const others = withBuiltIn(documents.filter((document) => document.file !== file))
  const ownerOf = nameOwners(createCatalog(others, schemas).catalog)
  const { issues } = createCatalog([...others, { file, kind: 'product', content }], schemas, { ownerOf })
  refuse(issues.filter((issue) => issue.file === file))
}

function refuse(issues: readonly Issue[]): void {
  if (issues.length === 0) return
  const lines = issues.map(({ pointer, message }) => `${pointer}: ${message}`)
  const isRoute = issues.some(({ rule }) => rule === 'route-taken')
  const advice = isRoute ? 'Say with --at where its routes begin, such as --at /v1/x/NAME.' : 'Nothing was written.'
  throw new Error([...lines, advice].join('\n'))
}

interface Told {
  readonly wanted: Wanted
  readonly path: string
  readonly isFirst: boolean
  readonly isNew: boolean
}

function reportOf(merged: Merged, written: Written, { wanted, path, isFirst, isNew }: Told): string {
  const { added, removed, changed, takenOut } = merged
  const sold = Object.keys(merged.content['operations'] as Json).length
  const cost = wanted.price === 'free' ? 'free' : `$${wanted.price} a call`
  const place = relative('.', path)
  const head = isFirst
    ? `${place}: ${sold} operations, ${cost}.`
    : `${place}: ${sold} operations. ${isNew ? `${added.length} added, ${removed.length} removed, ${changed.length} changed.` : 'Nothing has changed.'}`
  const listed = (title: string, lines: readonly string[], mark = ' '): string[] =>
    lines.length === 0 ? [] : ['', title, ...lines.map((line) => ` ${mark} ${line}`)]
  const secrets = [...written.secrets].filter(([name]) => JSON.stringify(merged.content).includes(`"env:${name}"`))
  const diff = isFirst
    ? []
    : [
        ...listed('Added:', added, '+'),
        ...listed('Removed:', removed, '-'),
        ...listed('Changed:', changed, '~'),
        ...listed('Taken out by you, and left out:', takenOut),
      ]
  return [
    head,
    ...diff,
    ...listed('Left out:', written.leftOut),
    ...listed('Not carried over:', written.lost),
    ...listed(
      'Set in the environment or in .env:',
      secrets.map(([name, what]) => `${name}: ${what}`),
    ),
    '',
    `Next: ${withCommands('npm run check')}`,
    '',
  ].join('\n')
}

try {
  const { values, positionals } = readFlags(USAGE, {
    allowPositionals: true,
    options: {
      price: { type: 'string' },
      product: { type: 'string' },
      at: { type: 'string' },
      server: { type: 'string' },
    },
  })
  const [source, ...rest] = positionals
  if (source === undefined || rest.length > 0)
    throw new Error(
      `${source === undefined ? 'Name an OpenAPI document' : `Unexpected argument ${rest.join(' ')}`}.\n\n${USAGE}`,
    )
  process.exitCode = await importDocument(source, values)
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`)
  process.exitCode = 1
}
