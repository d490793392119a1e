/**
 * Builds an edition from the files. Each step takes the value of the last one: read → parse → validate → resolve →
 * instantiate → assemble. If a product cannot be set up, the catalog is resolved again without its new version.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { frozenMap } from '../plugin/immutable.ts'
import { type ParsedCatalog, parseCatalog } from '../catalog/product-drafts.ts'
import type { Catalog, OperationId, Product } from '../plugin/catalog.ts'
import { resolveCatalog } from '../catalog/resolve.ts'
import { conflictsOf, isUnusable, validateCatalog, type ValidateOptions } from '../catalog/validate.ts'
import { CatalogError, type Issue, pointerOf } from '../validation/issue.ts'
import { withBuiltIn, withBuiltInSchemas } from '../catalog/built-in.ts'
import { type CatalogDocument, HOOKS_FILE, isPlansFile, type JsonFiles, readDocuments } from '../catalog/documents.ts'
import { NETWORKS_FILE } from '../config/networks.ts'
import { placeOfPlan, sellsPlans } from '../catalog/plans.ts'
import { readSchemas } from '../catalog/schemas.ts'
import type { Schemas } from '../validation/json-schema.ts'
import { createValidators } from '../catalog/operation-validators.ts'
import type { Hook, Plugin } from '../plugin/plugin.ts'
import type { PauseCheck } from './paused-sales.ts'
import type { Copy } from '../plugin-code/copies.ts'
import type { DisabledProduct, Edition } from './edition.ts'
import { namedHooks, setUpHooks } from './hooks.ts'
import { nameOwners } from '../catalog/names-and-references.ts'
import { loadPluginOnce, PluginError, type PluginLoads, type PluginSources } from '../plugin-code/load.ts'
import { createSetup, type Failed, type Instance, type ReadyProduct, type SetupOptions } from './instantiate.ts'
import { AssembledEdition, reasonOf, viewDirsOf } from './assembled-edition.ts'
import { missingAssets, Views } from './views.ts'

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
  /** Hooks of the gateway itself, found likewise. */
  readonly builtInHooks?: readonly Hook[]
  /** Whether the products of the gateway itself are part of the catalog. */
  readonly hasBuiltIns?: boolean
  /** The edition to replace. What has not changed is kept, and a product that is now invalid stays as it was. */
  readonly previous?: Edition
  /** True checks every answer against its schema; false checks the first of an operation and then one in a hundred. */
  readonly checkAnswers: boolean
  /** Copies plugin code before it is imported. Without it, an edit of the code shows only after a restart. */
  readonly copy?: Copy
  /** Plugins that `loadAhead` has begun to load for this build. */
  readonly ahead?: PluginLoads
  /** Timeout for loading a plugin, and for setting up a product. */
  readonly setupSeconds?: number
  /** Remembers the files of catalog and schemas between builds. Without it, every build reads all of them. */
  readonly files?: JsonFiles
  /** Folders of views: that of the shop, then that of the gateway. Without them, the views of pages are not checked. */
  readonly viewDirs?: readonly string[]
  /** Whether the views of all pages are compiled at once, to find what is wrong with them. */
  readonly checksViews?: boolean
  /** What the operator has paused. Without it, nothing is. */
  readonly paused?: PauseCheck
  /** Names of the networks that payments are taken on. Without it, documents may name any network. */
  readonly networks?: ReadonlySet<string>
}

/** Enough for the migrations of large tables. Longer work belongs in a job. */
const SETUP_SECONDS = 30

/**
 * Builds an edition and lists every issue found on the way. An invalid product stays as it was in the previous edition,
 * or is disabled. If a file that is indispensable is invalid, or a hook cannot be set up, the previous edition is returned.
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
  const { previous, networks, setupSeconds = SETUP_SECONDS } = options
  const validation = {
    ...(previous ? { ownerOf: nameOwners(previous.catalog) } : {}),
    ...(networks ? { networks } : {}),
    ...(options.checkedSchemas ? { checked: options.checkedSchemas } : {}),
  }
  const former = previous instanceof AssembledEdition ? previous : null
  const before = former?.products ?? new Map<string, ReadyProduct>()

  const own = await readDocuments(options.catalogDir, options.files)
  const read = options.hasBuiltIns ? { ...own, documents: withBuiltIn(own.documents) } : own
  const schemaFiles = await readSchemas(options.schemaDir, options.files)
  const loads: PluginLoads = options.ahead ?? new Map()
  const sources = { ...options, loads, read: new Map(), loadSeconds: setupSeconds }
  const loaded = await loadPlugins(read.documents, sources)
  const schemas = sameOr(
    previous?.catalog.schemas,
    withPluginSchemas(withBuiltInSchemas(schemaFiles.schemas), loaded.plugins.values()),
  )
  const parsed = parseCatalog(read.documents)
  const issues = [...read.issues, ...schemaFiles.issues, ...loaded.issues]
  issues.push(...validate(parsed, schemas, validation, issues))

  const hooks = await setUpHooks(read.documents, former?.hooks ?? [], { ...options, ...sources, setupSeconds })
  const selection = new Selection(parsed, before, validation.ownerOf)
  for (const file of new Set(issues.map(({ file }) => file))) if (selection.knows(file)) selection.rollBack(file)

  const { catalog, products, unused } = await setUpAll({
    options: { ...options, setupSeconds },
    plugins: loaded.plugins,
    schemas,
    before,
    selection,
    issues,
  })
  const disabled = disabledProducts(read.documents, issues, new Set(products.keys()))
  const { viewDirs = [], checksViews } = options
  const pluginViewDirs = viewDirsOf([...products.values()].map(({ instance }) => instance))
  const views = await Views.next({ viewDirs, pluginViewDirs }, catalog, former?.views, checksViews)
  issues.push(...views.issues(catalog), ...missingAssets(catalog.service, viewDirs))
  const found = { documents: read.documents, disabled, issues, views }
  const edition = new AssembledEdition(catalog, products, hooks, found, options)
  await Promise.all(unused.map((instance) => instance.release(edition)))
  return { edition, issues }
}

interface SetUpParts {
  readonly options: EditionOptions & { readonly setupSeconds: number }
  /** Plugins by the file of the document that names them. */
  readonly plugins: ReadonlyMap<string, Plugin>
  readonly schemas: Schemas
  /** Products of the previous edition, by file. */
  readonly before: ReadonlyMap<string, ReadyProduct>
  readonly selection: Selection
  /** Issues that are found are added to this list. */
  readonly issues: Issue[]
}

interface SetUpProducts {
  readonly catalog: Catalog
  readonly products: ReadonlyMap<string, ReadyProduct>
  /** Instances that were created and are not part of the edition. */
  readonly unused: readonly Instance[]
}

/**
 * Resolves the selection and sets up its products. If some fail, they are rolled back and the new selection is resolved;
 * products that are ready by then are reused.
 */
async function setUpAll({ options, plugins, schemas, before, selection, issues }: SetUpParts): Promise<SetUpProducts> {
  const created = new Set<Instance>()
  let last = before
  for (;;) {
    issues.push(...selection.resolveConflicts())
    const unchanged = [...before.values()].filter(({ document }) => selection.contains(document))
    const all = withFormerSchemas(schemas, options.previous?.catalog.schemas ?? schemas, unchanged)
    const setUp = createSetup(options, all, createValidators(all))
    const catalog = resolveCatalog(selection.parsed, all, { without: selection.disabled })
    const known = last
    const results = await Promise.all(
      catalog.products.map(async (product): Promise<ReadyProduct | Failed> => {
        const { file } = product
        const document = selection.document(file) as CatalogDocument
        const former = known.get(file)
        const isInOneFile = selection.parsed.plans.length < 2 || selection.parsed.plans[0]?.file !== file
        if (isInOneFile && former?.document === document && before.get(file) === former) return former
        return setUp(product, document, plugins.get(file) ?? null, former ?? before.get(file))
      }),
    )
    const products = new Map<string, ReadyProduct>()
    const failed: string[] = []
    for (const [index, result] of results.entries()) {
      const { file } = catalog.products[index] as Product
      if ('issues' in result) {
        issues.push(...result.issues)
        failed.push(file)
      } else {
        products.set(file, result)
        created.add(result.instance)
      }
    }
    if (failed.length === 0) {
      const found = [
        ...unreportedDemands(catalog, products, selection.parsed.plans),
        ...missingViews(catalog, products, before, options.viewDirs),
      ]
      issues.push(...found)
      failed.push(...new Set(found.map(({ file }) => file)))
    }
    if (failed.length === 0) {
      const used = new Set([...products.values()].map(({ instance }) => instance))
      return { catalog, products, unused: [...created].filter((instance) => !used.has(instance)) }
    }
    failed.forEach((file) => selection.rollBack(file))
    last = new Map([...before, ...products])
  }
}

/** Lists the plans that demand fresh data of operations whose products do not report how fresh they are. */
function unreportedDemands(
  catalog: Catalog,
  products: ReadonlyMap<string, ReadyProduct>,
  planFiles: readonly CatalogDocument[],
): Issue[] {
  const reporting = new Set(
    catalog.products.filter(({ file }) => products.get(file)?.instance.freshness).map(({ id }) => id),
  )
  const isUnreported = (id: OperationId): boolean => {
    const operation = catalog.operations.get(id)
    return operation !== undefined && operation.fresh !== 'request' && !reporting.has(operation.product)
  }
  const sale = catalog.products.find(({ operations }) => operations.some(({ plan }) => plan))
  if (!sale) return []
  return catalog.plans.plans.flatMap(({ plan, fresh, authorizes }) => {
    const unreported = fresh ? authorizes.find(isUnreported) : undefined
    if (unreported === undefined) return []
    const message = `The plan ${plan} demands fresh data of ${unreported}, but its product does not report how fresh they are. Write a function freshness(input, asOf) in its plugin, or remove "fresh".`
    const { file, pointer } = placeOfPlan(planFiles, plan) ?? { file: sale.file, pointer: '' }
    return [{ file, pointer: `${pointer}/fresh`, rule: 'fresh', message }]
  })
}

/**
 * Lists the pages without a view: a browser would get JSON. Products that stay as they were are left alone, because a view
 * that has gone takes one page with it, and not all that the product sells.
 */
function missingViews(
  catalog: Catalog,
  products: ReadonlyMap<string, ReadyProduct>,
  before: ReadonlyMap<string, ReadyProduct>,
  viewDirs: readonly string[] | undefined,
): Issue[] {
  if (viewDirs === undefined) return []
  const folders = [...viewDirs, ...viewDirsOf([...products.values()].map(({ instance }) => instance))]
  return catalog.products.flatMap((product) => {
    const { file, operations } = product
    const former = before.get(file)
    if (former?.product === product && former.instance === products.get(file)?.instance) return []
    return operations.flatMap(({ id, view, retired }) => {
      if (view === null || retired || folders.some((folder) => existsSync(join(folder, `${view}.pug`)))) return []
      const message = `There is no view ${view}. Write views/${view}.pug, or bring it along in the folder "views" of the plugin.`
      return [{ file, pointer: pointerOf('operations', id, 'view'), rule: 'view', message }]
    })
  })
}

/** The documents to build from: each as it was read or as it was in the previous edition, or left out. */
class Selection {
  /** Files of documents that are left out. */
  readonly disabled = new Set<string>()
  readonly #documents: Map<string, CatalogDocument>
  readonly #before: ReadonlyMap<string, ReadyProduct>
  readonly #ownerOf: ValidateOptions['ownerOf']
  #parsed: ParsedCatalog
  #hasChanged = false

  constructor(parsed: ParsedCatalog, before: ReadonlyMap<string, ReadyProduct>, ownerOf: ValidateOptions['ownerOf']) {
    this.#documents = new Map(parsed.documents.map((document) => [document.file, document]))
    this.#before = before
    this.#ownerOf = ownerOf
    this.#parsed = parsed
  }

  knows(file: string): boolean {
    return this.#documents.has(file) || this.#before.has(file)
  }

  document(file: string): CatalogDocument | undefined {
    return this.#documents.get(file)
  }

  contains(document: CatalogDocument): boolean {
    return this.#documents.get(document.file) === document
  }

  /** The documents, parsed. They are parsed again only after one of them was rolled back. */
  get parsed(): ParsedCatalog {
    return this.#parsed
  }

  /** Goes back to the document of the previous edition. Disables a document that has no other version. */
  rollBack(file: string): void {
    const former = this.#before.get(file)
    if (former && !this.contains(former.document)) {
      this.#documents.set(file, former.document)
      this.#hasChanged = true
    } else this.disabled.add(file)
  }

  /**
   * A document that was rolled back may claim a name that a new document uses now. Rolls back the documents that lose
   * their names, until none is left, and lists why.
   */
  resolveConflicts(): Issue[] {
    const issues: Issue[] = []
    while (this.#hasChanged) {
      this.#hasChanged = false
      this.#parsed = parseCatalog([...this.#documents.values()].sort((one, other) => (one.file < other.file ? -1 : 1)))
      const conflicts = conflictsOf(this.#parsed, this.#ownerOf).filter(({ file }) => !this.disabled.has(file))
      issues.push(...conflicts)
      for (const file of new Set(conflicts.map((conflict) => conflict.file))) this.rollBack(file)
    }
    return issues
  }
}

/** A product that stays as it was keeps the schemas it was set up with, even if they are invalid or gone now. */
function withFormerSchemas(current: Schemas, former: Schemas, unchanged: readonly ReadyProduct[]): Schemas {
  const all = new Map(current)
  for (const name of unchanged.flatMap(({ schemaNames }) => schemaNames)) {
    const schema = former.get(name)
    if (schema) all.set(name, schema)
  }
  return sameOr(current, all)
}

/** The former map if the schemas are the same: what was computed with it is still true. Otherwise the new one, frozen. */
function sameOr(former: Schemas | undefined, schemas: Schemas): Schemas {
  const isSame = former?.size === schemas.size && [...schemas].every(([name, schema]) => former.get(name) === schema)
  return former && isSame ? former : frozenMap(schemas)
}

/** Lists the issues of all documents. Throws CatalogError, with the issues found before, if no catalog can be built. */
function validate(
  parsed: ParsedCatalog,
  schemas: Schemas,
  options: ValidateOptions,
  before: readonly Issue[],
): readonly Issue[] {
  const issues = validateCatalog(parsed, schemas, options)
  const files = new Set([...before, ...issues].map(({ file }) => file))
  const isBroken = [...files].some(
    (file) => ['service.json', HOOKS_FILE, NETWORKS_FILE].includes(file) || isPlansFile(file),
  )
  if (isBroken || isUnusable(parsed, files)) throw new CatalogError([...before, ...issues])
  return issues
}

interface LoadOptions extends PluginSources {
  readonly builtins: readonly Plugin[]
  readonly loads: PluginLoads
}

/** Loads the plugins that documents name, by the file of the document. What cannot be loaded is an issue. */
export async function loadPlugins(documents: readonly CatalogDocument[], { builtins, loads, ...sources }: LoadOptions) {
  const plugins = new Map<string, Plugin>()
  const issues: Issue[] = []
  const load = async (document: CatalogDocument): Promise<void> => {
    const named = pluginIn(document)
    if (named === null) return
    const { file } = document
    try {
      const builtin = builtins.find(({ name }) => name === named)
      plugins.set(file, builtin ?? (await loadPluginOnce(named, loads, sources)))
    } catch (error) {
      if (!(error instanceof PluginError)) throw error
      issues.push({ file, pointer: '/plugin', rule: 'plugin', message: error.message })
    }
  }
  await Promise.all(documents.map(load))
  return { plugins, issues }
}

/** The plugin that a document names, such as "gold@2". A list of plans has its own without naming it. */
function pluginIn({ kind, content }: CatalogDocument): string | null {
  const named = kind === 'plans' && sellsPlans(content) ? 'plans' : content['plugin']
  return typeof named === 'string' ? named : null
}

export interface AheadOptions extends Pick<PluginSources, 'pluginDirs' | 'copy' | 'onLate'> {
  readonly catalogDir: string
  readonly files: JsonFiles
  /** Names of the gateway's own plugins, which have no folder. */
  readonly builtinNames: ReadonlySet<string>
  readonly setupSeconds?: number
}

/**
 * Begins to load the plugins that the documents name, for a first edition that is built when its stores are open. Returns
 * the loads at once and adds to them. What fails is reported by the build.
 */
export function loadAhead(options: AheadOptions): PluginLoads {
  const { catalogDir, files, builtinNames, setupSeconds = SETUP_SECONDS } = options
  const loads: PluginLoads = new Map()
  const sources = { ...options, read: new Map(), loadSeconds: setupSeconds }
  const begin = ({ documents }: { readonly documents: readonly CatalogDocument[] }): void => {
    const names = documents.flatMap((each) => (each.kind === 'hooks' ? namedHooks(each) : (pluginIn(each) ?? [])))
    for (const named of names) if (!builtinNames.has(named)) loadPluginOnce(named, loads, sources).catch(() => {})
  }
  readDocuments(catalogDir, files).then(begin, () => {})
  return loads
}

/** A file of the schemas folder replaces a plugin's schema of the same name. */
export function withPluginSchemas(schemas: Schemas, plugins: Iterable<Plugin>): Schemas {
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
    const name = typeof product === 'string' ? product : file.replace(/\.json$/, '')
    return [{ product: name, file, reason: reasonOf(file, issues) }]
  })
}
