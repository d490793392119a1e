/** Builds an edition: documents read, plugins loaded and set up, schemas compiled, all checked together. */
import type { Catalog, Product } from '../plugin/catalog.ts'
import { createCatalog, type CreateOptions } from '../catalog/resolve.ts'
import { CatalogError, type Issue } from '../validation/issue.ts'
import { type CatalogDocument, readDocuments } from '../catalog/documents.ts'
import { NETWORKS_FILE } from '../config/networks.ts'
import { sellsPlans } from '../catalog/plans.ts'
import { readSchemas } from '../catalog/schemas.ts'
import type { Schemas } from '../validation/json-schema.ts'
import { createValidators } from '../catalog/validators.ts'
import type { Logger, Migration, Plugin, PluginContext } from '../plugin/plugin.ts'
import { assemble } from './assemble.ts'
import type { Copy } from './code-copies.ts'
import type { Edition, Withheld } from './edition.ts'
import { heldBy } from './name-ownership.ts'
import type { Instance } from './instance.ts'
import type { JobLease } from './jobs.ts'
import { loadPlugin, PluginError, type PluginPlaces } from './plugins.ts'
import type { Secret } from './settings.ts'
import { createSetup, type Failed, type Made } from './setup.ts'

export interface EditionOptions {
  readonly catalogDir: string
  readonly schemaDir: string
  /** Folders that hold plugins, in the order they are searched. */
  readonly pluginDirs: readonly string[]
  /** Found by name before any folder. */
  readonly builtins: readonly Plugin[]
  contextOf(plugin: string, product: string, settings: Readonly<Record<string, unknown>>): PluginContext
  /** The edition to follow: what has not changed is kept, and what is mistaken now stays as it was. */
  readonly previous?: Edition
  /** Check every answer against its schema; else a sample. */
  readonly checkAnswers: boolean
  /** The clock of the data. */
  now(): Date
  readonly log: Logger
  /** Values for `env:NAME` in documents. */
  readonly secret: Secret
  migrate(plugin: string, migrations: readonly Migration[]): Promise<void>
  /** Where plugin code is imported from; absent: from where it lies, so that an edit shows after a restart only. */
  readonly copy?: Copy
  /** Seconds a plugin has to load, and as many to be set up. */
  readonly setupSeconds?: number
  /** Called when a plugin has loaded, or a product is set up, after its time was over: another build takes it in. */
  readonly onLate?: () => unknown
  /** Names of the networks payments are taken on; absent: any will do. */
  readonly networks?: ReadonlySet<string>
  /** Where several processes share a database: each job runs in the one that holds its name. */
  readonly lease?: JobLease
}

/** Enough for the migrations of large tables; what takes longer belongs into a job. */
const SETUP_SECONDS = 30

/** What an edition was made of, by file of the product document. */
const makings = new WeakMap<Edition, ReadonlyMap<string, Made>>()

/**
 * The edition, and every mistake found on the way. A mistaken product is withheld, or stays as it was in the previous
 * edition. A mistake in service.json, plans.json or networks.json refuses the whole: the previous edition is returned,
 * and where there is none CatalogError is thrown.
 */
export async function buildEdition(
  options: EditionOptions,
): Promise<{ readonly edition: Edition; readonly mistakes: readonly Issue[] }> {
  try {
    return await build(options)
  } catch (error) {
    if (!(error instanceof CatalogError) || !options.previous) throw error
    return { edition: options.previous, mistakes: error.issues }
  }
}

async function build(options: EditionOptions) {
  const { log, previous, setupSeconds = SETUP_SECONDS } = options
  const { networks } = options
  const held = { ...(previous ? { held: heldBy(previous.catalog) } : {}), ...(networks ? { networks } : {}) }
  const before = (previous && makings.get(previous)) ?? new Map<string, Made>()
  const read = await readDocuments(options.catalogDir)
  const files = await readSchemas(options.schemaDir)
  const loaded = await loadPlugins(read.documents, { ...options, loadSeconds: setupSeconds })
  const fresh = withPluginSchemas(files.schemas, loaded.plugins.values())
  const mistakes = [...read.mistakes, ...files.mistakes, ...loaded.mistakes]
  mistakes.push(...check(read.documents, fresh, held, mistakes))

  const documents = new Map(read.documents.map((document) => [document.file, document]))
  const withheld = new Set<string>()
  /** Back to what it was, or out. */
  const retreat = (file: string): void => {
    const kept = before.get(file)
    if (kept && documents.get(file) !== kept.document) documents.set(file, kept.document)
    else withheld.add(file)
  }
  const wrong = new Set(mistakes.map(({ file }) => file).filter((file) => documents.has(file) || before.has(file)))
  wrong.forEach(retreat)

  const instances = new Set<Instance>()
  /** Sets up what is sound. What cannot be set up retreats; then the rest is looked at again without it. */
  async function round(last: ReadonlyMap<string, Made>): Promise<{ catalog: Catalog; made: Map<string, Made> }> {
    const stays = [...before.values()].filter(({ document }) => documents.get(document.file) === document)
    const schemas = withFormerSchemas(fresh, previous?.catalog.schemas ?? fresh, stays)
    const setUp = createSetup({ ...options, setupSeconds }, schemas, createValidators(schemas))
    const { catalog } = createCatalog(inOrder(documents.values()), schemas, { ...held, without: withheld })
    const make = async (product: Product): Promise<Made | Failed> => {
      const { file } = product
      const document = documents.get(file) as CatalogDocument
      const kept = last.get(file)
      if (kept?.document === document && before.get(file) === kept) return kept
      return setUp(product, document, loaded.plugins.get(file) ?? null, kept ?? before.get(file))
    }
    const results = await Promise.all(catalog.products.map(make))
    const made = new Map<string, Made>()
    const failed: string[] = []
    for (const [index, result] of results.entries()) {
      const { file } = catalog.products[index] as Product
      if ('mistakes' in result) {
        mistakes.push(...result.mistakes)
        failed.push(file)
      } else {
        made.set(file, result)
        instances.add(result.instance)
      }
    }
    failed.forEach(retreat)
    return failed.length === 0 ? { catalog, made } : round(new Map([...before, ...made]))
  }

  const { catalog, made } = await round(before)
  const missing = withheldList(read.documents, mistakes, new Set(made.keys()))
  const edition = assemble(catalog, made, missing, { checkAnswers: options.checkAnswers, log })
  makings.set(edition, made)
  for (const { instance } of made.values()) instances.delete(instance)
  await Promise.all([...instances].map((instance) => instance.release(edition)))
  return { edition, mistakes }
}

/** By file name, whichever of them come from the files and which stay as they were. */
function inOrder(documents: Iterable<CatalogDocument>): CatalogDocument[] {
  return [...documents].sort((one, other) => (one.file < other.file ? -1 : 1))
}

/** What stays as it was keeps the schemas it was made with, also those that are mistaken or gone by now. */
function withFormerSchemas(fresh: Schemas, former: Schemas, stays: readonly Made[]): Schemas {
  const all = new Map(fresh)
  for (const name of stays.flatMap(({ schemaNames }) => schemaNames)) {
    const schema = former.get(name)
    if (schema) all.set(name, schema)
  }
  return all
}

/** Mistakes of all documents; throws CatalogError, with those found before, where no catalog can be made. */
function check(
  documents: readonly CatalogDocument[],
  schemas: Schemas,
  held: Pick<CreateOptions, 'held' | 'networks'>,
  before: readonly Issue[],
): readonly Issue[] {
  try {
    const { mistakes } = createCatalog(documents, schemas, held)
    const kinds = new Set(['service.json', 'plans.json', NETWORKS_FILE])
    if (before.some(({ file }) => kinds.has(file))) throw new CatalogError(mistakes)
    return mistakes
  } catch (error) {
    throw error instanceof CatalogError ? new CatalogError([...before, ...error.issues]) : error
  }
}

async function loadPlugins(documents: readonly CatalogDocument[], places: PluginPlaces) {
  const plugins = new Map<string, Plugin>()
  const mistakes: Issue[] = []
  const load = async ({ file, kind, content }: CatalogDocument): Promise<void> => {
    const named = kind === 'plans' && sellsPlans(content) ? 'plans' : content['plugin']
    if (typeof named !== 'string') return
    const [name = '', version = null] = named.split('@')
    try {
      plugins.set(file, await loadPlugin({ name, version }, places))
    } catch (error) {
      if (!(error instanceof PluginError)) throw error
      mistakes.push({ file, pointer: '/plugin', rule: 'plugin', message: error.message })
    }
  }
  await Promise.all(documents.map(load))
  return { plugins, mistakes }
}

/** Files of the schemas folder win over a plugin's own of the same name. */
function withPluginSchemas(schemas: Schemas, plugins: Iterable<Plugin>): Schemas {
  const all = new Map(schemas)
  for (const schema of [...plugins].flatMap((plugin) => plugin.schemas ?? [])) {
    const id = schema['$id']
    if (typeof id === 'string' && !all.has(id)) all.set(id, schema)
  }
  return all
}

function withheldList(
  documents: readonly CatalogDocument[],
  mistakes: readonly Issue[],
  served: ReadonlySet<string>,
): Withheld[] {
  const contents = new Map(documents.map(({ file, content }) => [file, content]))
  const files = [...new Set(mistakes.map(({ file }) => file))].filter((file) => !served.has(file))
  return files.flatMap((file) => {
    if (file.startsWith('schemas/')) return []
    const product = contents.get(file)?.['product']
    const reason = mistakes
      .filter((mistake) => mistake.file === file)
      .map(({ pointer, message }) => [pointer, message].filter(Boolean).join(' '))
      .join(' ')
    return [{ product: typeof product === 'string' ? product : file.replace(/\.json$/, ''), file, reason }]
  })
}
