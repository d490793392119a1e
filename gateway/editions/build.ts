/** Builds an edition from the files: parse and validate the documents, load plugins, set products up, resolve the catalog. */
import type { Catalog, Product } from '../plugin/catalog.ts'
import { resolveCatalog } from '../catalog/resolve.ts'
import { conflictsOf, isUnusable, validateCatalog, type ValidateOptions } from '../catalog/validate.ts'
import { CatalogError, type Issue } from '../validation/issue.ts'
import { type CatalogDocument, readDocuments } from '../catalog/documents.ts'
import { NETWORKS_FILE } from '../config/networks.ts'
import { sellsPlans } from '../catalog/plans.ts'
import { readSchemas } from '../catalog/schemas.ts'
import type { Schemas } from '../validation/json-schema.ts'
import { createValidators } from '../catalog/validators.ts'
import type { Plugin } from '../plugin/plugin.ts'
import { assemble } from './assemble.ts'
import type { Copy } from './code-copies.ts'
import type { Edition, DisabledProduct } from './edition.ts'
import { nameOwners } from '../catalog/names.ts'
import type { Instance } from './instance.ts'
import { loadPlugin, PluginError, type PluginSources } from './load-plugin.ts'
import { createSetup, type Failed, type ReadyProduct, type SetupOptions } from './instantiate.ts'

export interface Built {
  readonly edition: Edition
  readonly issues: readonly Issue[]
}

export interface EditionOptions extends SetupOptions {
  readonly catalogDir: string
  readonly schemaDir: string
  /** Folders that hold plugins, in the order they are searched. */
  readonly pluginDirs: readonly string[]
  /** Plugins of the gateway itself. They are found before any folder is searched. */
  readonly builtins: readonly Plugin[]
  /** The edition to replace. What has not changed is kept, and a product that is now invalid stays as it was. */
  readonly previous?: Edition
  /** True checks every answer against its schema; false checks one in a hundred. */
  readonly checkAnswers: boolean
  /** Copies plugin code before it is imported. Without it, an edit of the code shows only after a restart. */
  readonly copy?: Copy
  /** Timeout for loading a plugin, and for setting up a product. */
  readonly setupSeconds?: number
  /** Names of the networks that payments are taken on. Without it, documents may name any network. */
  readonly networks?: ReadonlySet<string>
}

/** Enough for the migrations of large tables. Longer work belongs in a job. */
const SETUP_SECONDS = 30

/** The products of each edition, by the file of their document. */
const setUpProducts = new WeakMap<Edition, ReadonlyMap<string, ReadyProduct>>()

/**
 * Builds an edition and lists every issue found on the way. An invalid product stays as it was in the previous edition,
 * or is disabled. If service.json, plans.json or networks.json is invalid, the previous edition is returned.
 *
 * @throws CatalogError if one of them is invalid and there is no previous edition
 */
export async function buildEdition(options: EditionOptions): Promise<Built> {
  try {
    return await build(options)
  } catch (error) {
    if (!(error instanceof CatalogError) || !options.previous) throw error
    return { edition: options.previous, issues: error.issues }
  }
}

async function build(options: EditionOptions): Promise<Built> {
  const { log, previous, networks, setupSeconds = SETUP_SECONDS } = options
  const validation = {
    ...(previous ? { ownerOf: nameOwners(previous.catalog) } : {}),
    ...(networks ? { networks } : {}),
  }
  const before = (previous && setUpProducts.get(previous)) ?? new Map<string, ReadyProduct>()

  const read = await readDocuments(options.catalogDir)
  const schemaFiles = await readSchemas(options.schemaDir)
  const loaded = await loadPlugins(read.documents, { ...options, loadSeconds: setupSeconds })
  const fresh = withPluginSchemas(schemaFiles.schemas, loaded.plugins.values())
  const issues = [...read.issues, ...schemaFiles.issues, ...loaded.issues]
  issues.push(...check(read.documents, fresh, validation, issues))

  const selection = selectDocuments(read.documents, before)
  const known = (file: string): boolean => selection.documents.has(file) || before.has(file)
  new Set(issues.map(({ file }) => file).filter(known)).forEach(selection.rollBack)

  const instances = new Set<Instance>()
  /** Sets up every product of the selection. If one fails, it is rolled back and the new selection is set up. */
  async function setUpAll(
    last: ReadonlyMap<string, ReadyProduct>,
  ): Promise<{ catalog: Catalog; made: Map<string, ReadyProduct> }> {
    issues.push(...selection.resolveConflicts(validation.ownerOf))
    const documents = selection.inOrder()
    const stays = [...before.values()].filter(({ document }) => documents.includes(document))
    const schemas = withFormerSchemas(fresh, previous?.catalog.schemas ?? fresh, stays)
    const setUp = createSetup({ ...options, setupSeconds }, schemas, createValidators(schemas))
    const catalog = resolveCatalog(documents, schemas, { without: selection.disabled })
    const results = await Promise.all(
      catalog.products.map(async (product): Promise<ReadyProduct | Failed> => {
        const { file } = product
        const document = selection.documents.get(file) as CatalogDocument
        const earlier = last.get(file)
        if (earlier?.document === document && before.get(file) === earlier) return earlier
        return setUp(product, document, loaded.plugins.get(file) ?? null, earlier ?? before.get(file))
      }),
    )
    const made = new Map<string, ReadyProduct>()
    const failed: string[] = []
    for (const [index, result] of results.entries()) {
      const { file } = catalog.products[index] as Product
      if ('issues' in result) {
        issues.push(...result.issues)
        failed.push(file)
      } else {
        made.set(file, result)
        instances.add(result.instance)
      }
    }
    failed.forEach(selection.rollBack)
    return failed.length === 0 ? { catalog, made } : setUpAll(new Map([...before, ...made]))
  }

  const { catalog, made } = await setUpAll(before)
  const disabled = disabledProducts(read.documents, issues, new Set(made.keys()))
  const edition = assemble(catalog, made, disabled, { checkAnswers: options.checkAnswers, log })
  setUpProducts.set(edition, made)
  for (const { instance } of made.values()) instances.delete(instance)
  await Promise.all([...instances].map((instance) => instance.release(edition)))
  return { edition, issues }
}

interface Selection {
  /** The documents to build from, by file: as they were read, or as they were in the previous edition. */
  readonly documents: ReadonlyMap<string, CatalogDocument>
  /** Files of documents that are left out. */
  readonly disabled: ReadonlySet<string>
  inOrder(): CatalogDocument[]
  /** Goes back to the document of the previous edition; disables a document that has no other version. */
  rollBack(file: string): void
  /** A document that was rolled back may claim a name that a new one uses now. Rolls the later ones back; lists why. */
  resolveConflicts(held: ValidateOptions['ownerOf']): Issue[]
}

function selectDocuments(read: readonly CatalogDocument[], before: ReadonlyMap<string, ReadyProduct>): Selection {
  const documents = new Map(read.map((document) => [document.file, document]))
  const disabled = new Set<string>()
  let hasChanged = false
  const inOrder = (): CatalogDocument[] =>
    [...documents.values()].sort((one, other) => (one.file < other.file ? -1 : 1))
  const rollBack = (file: string): void => {
    const kept = before.get(file)
    if (kept && documents.get(file) !== kept.document) {
      documents.set(file, kept.document)
      hasChanged = true
    } else disabled.add(file)
  }
  return {
    documents,
    disabled,
    inOrder,
    rollBack,
    resolveConflicts(held) {
      const found: Issue[] = []
      while (hasChanged) {
        hasChanged = false
        const conflicts = conflictsOf(inOrder(), held).filter(({ file }) => !disabled.has(file))
        found.push(...conflicts)
        new Set(conflicts.map(({ file }) => file)).forEach(rollBack)
      }
      return found
    },
  }
}

/** A product that stays as it was keeps the schemas it was set up with, even if they are invalid or gone now. */
function withFormerSchemas(fresh: Schemas, former: Schemas, stays: readonly ReadyProduct[]): Schemas {
  const all = new Map(fresh)
  for (const name of stays.flatMap(({ schemaNames }) => schemaNames)) {
    const schema = former.get(name)
    if (schema) all.set(name, schema)
  }
  return all
}

/** Lists the issues of all documents. Throws CatalogError, with the issues found before, if no catalog can be built. */
function check(
  documents: readonly CatalogDocument[],
  schemas: Schemas,
  options: ValidateOptions,
  before: readonly Issue[],
): readonly Issue[] {
  const issues = validateCatalog(documents, schemas, options)
  const files = new Set([...before, ...issues].map(({ file }) => file))
  const isBroken = INDISPENSABLE.some((file) => files.has(file))
  if (isBroken || isUnusable(documents, files)) throw new CatalogError([...before, ...issues])
  return issues
}

/** Without these files no catalog can be built. */
const INDISPENSABLE = ['service.json', 'plans.json', NETWORKS_FILE]

async function loadPlugins(documents: readonly CatalogDocument[], places: PluginSources) {
  const plugins = new Map<string, Plugin>()
  const issues: Issue[] = []
  const load = async ({ file, kind, content }: CatalogDocument): Promise<void> => {
    const named = kind === 'plans' && sellsPlans(content) ? 'plans' : content['plugin']
    if (typeof named !== 'string') return
    const [name = '', version = null] = named.split('@')
    try {
      plugins.set(file, await loadPlugin({ name, version }, places))
    } catch (error) {
      if (!(error instanceof PluginError)) throw error
      issues.push({ file, pointer: '/plugin', rule: 'plugin', message: error.message })
    }
  }
  await Promise.all(documents.map(load))
  return { plugins, issues }
}

/** A file of the schemas folder replaces a plugin's schema of the same name. */
function withPluginSchemas(schemas: Schemas, plugins: Iterable<Plugin>): Schemas {
  const all = new Map(schemas)
  for (const schema of [...plugins].flatMap((plugin) => plugin.schemas ?? [])) {
    const id = schema['$id']
    if (typeof id === 'string' && !all.has(id)) all.set(id, schema)
  }
  return all
}

function disabledProducts(
  documents: readonly CatalogDocument[],
  issues: readonly Issue[],
  served: ReadonlySet<string>,
): DisabledProduct[] {
  const contents = new Map(documents.map(({ file, content }) => [file, content]))
  const files = [...new Set(issues.map(({ file }) => file))].filter((file) => !served.has(file))
  return files.flatMap((file) => {
    if (file.startsWith('schemas/')) return []
    const product = contents.get(file)?.['product']
    const reason = issues
      .filter((mistake) => mistake.file === file)
      .map(({ pointer, message }) => [pointer, message].filter(Boolean).join(' '))
      .join(' ')
    return [{ product: typeof product === 'string' ? product : file.replace(/\.json$/, ''), file, reason }]
  })
}
