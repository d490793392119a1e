/** Opens one plugin with its catalog file, so that a test decides what the outside world answers and what time it is. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { withBuiltIn } from '../catalog/built-in.ts'
import { type CatalogDocument, readDocuments } from '../catalog/documents.ts'
import { openCatalog } from '../compose.ts'
import { type Config, readConfig } from '../config/config.ts'
import type { Edition } from '../products/edition.ts'
import { createAsk } from '../products/calls-between-products.ts'
import type { DatabaseOptions } from '../stores/database.ts'
import type {
  Asked,
  Database,
  Facts,
  Freshness,
  InputOf,
  JsonSchema,
  OperationId,
  OutputOf,
  DefinedPlugin,
  Plugin,
  Plugins,
  Registration,
  ServerEvent,
  SettingsOf,
  StreamRequest,
} from '../plugin/plugin.ts'
import { type Issue, lineOf } from '../validation/issue.ts'
import { callOperation, type CallOptions } from './call-operation.ts'

/** A clock that stands still until it is moved. */
export class TestClock {
  #time: number

  /** @param start a time as ISO 8601 */
  constructor(start: string) {
    this.#time = new Date(start).getTime()
    if (Number.isNaN(this.#time)) throw new RangeError(`${start} is not a time. Write it as 2026-06-01T12:00:00Z.`)
  }

  readonly now = (): Date => new Date(this.#time)

  advance({ seconds }: { readonly seconds: number }): void {
    this.#time += seconds * 1000
  }
}

export interface TestProductOptions<Schema extends JsonSchema = JsonSchema> {
  /** Answers what the plugin fetches. Without it every request fails. */
  readonly fetch?: (request: Request) => Response | Promise<Response>
  /** The clock of the data. The default stands at the present. */
  readonly clock?: TestClock
  /** Settings that differ from those of the catalog file. They are checked, and get their defaults, as those are. */
  readonly settings?: Changes<SettingsOf<Schema>>
  /** Where the plugin keeps its tables: `{ file }` for SQLite, `{ url }` for PostgreSQL. The default is memory. */
  readonly database?: DatabaseOptions
  /** Environment variables, such as DATA_MODE. The default is the environment of the process. */
  readonly environment?: Readonly<Record<string, string | undefined>>
}

/** Some of the settings: what is left out keeps its value or gets its default. */
type Changes<Value> = Value extends object ? { readonly [Key in keyof Value]?: Changes<Value[Key]> } : Value

/** The operations that a plugin answers. Any, until its types are generated. */
type OperationsOf<Name extends string> = Name extends keyof Plugins
  ? {
      [Id in keyof Plugins[Name] & string]: Plugins[Name][Id] extends { operation: infer Ids extends string } ? Ids : Id
    }[keyof Plugins[Name] & string]
  : OperationId

/** The input of a call and its circumstances, in which an `asOf` may be left out: it is then as late as the catalog allows. */
type TestRequest<Id extends OperationId> = InputOf<Id> & Partial<CallOptions>

export interface TestProduct<Name extends string = string, OwnFacts extends Facts = Facts> {
  /** The product, and those that it names in `uses`. */
  readonly edition: Edition
  /** What keeps the product, or one that it uses, from being opened. */
  readonly issues: readonly Issue[]
  readonly db: Database
  readonly clock: TestClock
  /**
   * Calls an operation as a buyer would: validates the input, runs the handler and checks the answer. Rejects with the
   * ServiceError that the gateway would answer. With `stream: { lastEventId: null }` it resolves with the events.
   */
  call<Id extends OperationsOf<Name>>(
    operation: Id,
    request: TestRequest<Id> & { readonly stream: StreamRequest },
  ): Promise<AsyncIterable<ServerEvent>>
  call<Id extends OperationsOf<Name>>(
    operation: Id,
    ...request: {} extends InputOf<Id> ? [request?: TestRequest<Id>] : [request: TestRequest<Id>]
  ): Promise<OutputOf<Id>>
  /** Runs a job once, to its end. Rejects with what it throws. */
  run(job: string): Promise<void>
  /** Resolves with how fresh the data behind an answer are at present; null if it uses none. */
  freshness<Id extends OperationsOf<Name>>(operation: Id, ...input: Asked<Id>): Promise<Freshness | null>
  facts(): Promise<OwnFacts>
  close(): Promise<void>
}

/**
 * Opens the product of a plugin in memory with the settings, operations and schemas of its catalog file. Jobs run when the
 * test says so. Products that the file names in `uses` are there too, with the same clock and `fetch`. If one of them cannot
 * be opened, `issues` says why, and so does the error of whatever is called.
 *
 * @example
 * const clock = new TestClock('2026-06-01T12:00:00Z')
 * const product = await openTestProduct(gold, { clock, fetch: () => Response.json({ price: 1900 }) })
 * await product.run('read')
 * const { price } = await product.call('getGold')
 */
export async function openTestProduct<Name extends string, Schema extends JsonSchema, OwnFacts extends Facts>(
  plugin: DefinedPlugin<Name, Schema, OwnFacts>,
  options: TestProductOptions<Schema> = {},
): Promise<TestProduct<Name, OwnFacts>> {
  const { clock = new TestClock(new Date().toISOString()), database, environment, fetch = unanswered } = options
  const config = environment === undefined ? readConfig() : readConfig(environment)
  const { product, documents, issues: found } = await documentsFor(plugin.name, options.settings, config)
  const set: SetUp<OwnFacts> = {}
  const watched: Plugin = {
    ...plugin,
    async setup(context) {
      set.db = context.db
      return (set.registration = await plugin.setup(context))
    },
  }
  const catalogDir = mkdtempSync(join(tmpdir(), 'tollgate-product-'))
  for (const { file, content } of documents) {
    mkdirSync(dirname(join(catalogDir, file)), { recursive: true })
    writeFileSync(join(catalogDir, file), JSON.stringify(content))
  }
  const opened = await openCatalog(
    { ...config, catalogDir },
    {
      now: clock.now,
      fetch: async (input, init) => {
        const request = new Request(input, init)
        request.signal.throwIfAborted()
        return fetch(request)
      },
      plugin: watched,
      // Those that the product uses are among the documents.
      hasBuiltIns: false,
      ...(database ? { database } : {}),
    },
  ).finally(() => rmSync(catalogDir, { recursive: true }))
  const { edition, close } = opened
  const issues = [...found, ...opened.issues]
  if (edition) return productOf({ product, edition, issues, clock, set, close })
  await close()
  throw new Error(refusal(product, issues))
}

/** What a set-up of the plugin was given and returned. */
interface SetUp<OwnFacts extends Facts> {
  db?: Database
  registration?: Pick<Registration, 'jobs'> & { facts?(): Promise<OwnFacts> }
}

interface ProductParts<OwnFacts extends Facts> {
  readonly product: string
  readonly edition: Edition
  readonly issues: readonly Issue[]
  readonly clock: TestClock
  readonly set: SetUp<OwnFacts>
  close(): Promise<void>
}

function productOf<Name extends string, OwnFacts extends Facts>(
  parts: ProductParts<OwnFacts>,
): TestProduct<Name, OwnFacts> {
  const { product, edition, issues, clock, set } = parts
  const stopping = new AbortController()
  const opened = () => {
    const { db, registration } = set
    if (!db || !registration || issues.length > 0) throw new Error(refusal(product, issues))
    return { db, registration }
  }
  const asOfOf = (id: OperationId): Date =>
    new Date(clock.now().getTime() - (edition.catalog.operations.get(id)?.maxFreshnessSeconds ?? 0) * 1000)
  return {
    edition,
    issues,
    clock,
    get db() {
      return opened().db
    },
    async call(id: OperationId, request?: object) {
      opened()
      return callOperation(edition, id, { asOf: asOfOf(id), ...request }) as never
    },
    async run(name) {
      const { jobs = [] } = opened().registration
      const job = jobs.find((each) => each.name === name)
      if (!job) throw new Error(`There is no job ${name}. There are: ${jobs.map((each) => each.name).join(', ')}.`)
      const { signal } = stopping
      const ask = createAsk(edition, product, { id: `job:${product}/${name}`, asOf: clock.now(), signal })
      await job.run({ signal, ask })
    },
    async freshness(id, ...[input]) {
      opened()
      const bound = edition.bound.get(id)
      if (!bound) throw new Error(`There is no operation ${id}.`)
      const validated = bound.validate({ params: {}, query: {}, body: undefined, ...input })
      return (await bound.freshness?.(validated, asOfOf(id))) ?? null
    },
    async facts() {
      const { registration } = opened()
      if (!registration.facts) throw new Error(`${product} has no facts.`)
      return registration.facts()
    },
    async close() {
      stopping.abort(new Error('The test product is closed.'))
      await parts.close()
    },
  }
}

const refusal = (product: string, issues: readonly Issue[]): string =>
  `The product ${product} cannot be opened:\n${issues.map(lineOf).join('\n')}`

function unanswered(request: Request): never {
  throw new Error(`Nothing answers ${request.method} ${request.url} in this test. Pass fetch to openTestProduct.`)
}

/** The documents of the product that a plugin answers, and of all that it uses. */
async function documentsFor(plugin: string, settings: unknown, { catalogDir }: Config) {
  const { documents: written, issues } = await readDocuments(catalogDir)
  const documents = withBuiltIn(written)
  const own = documents.find(({ content }) => String(content['plugin']).split('@')[0] === plugin)
  if (!own) {
    const message = `has no file with "plugin": "${plugin}". Write the catalog file of the product.`
    const missing = { file: catalogDir, pointer: '', rule: 'missing', message }
    return { product: plugin, documents: documents.filter(isService), issues: [...issues, missing] }
  }
  const used = new Set<CatalogDocument>()
  const add = (document: CatalogDocument): void => {
    if (used.has(document)) return
    used.add(document)
    for (const id of (document.content['uses'] ?? []) as readonly string[]) {
      const other = documents.find(({ content }) => id in Object(content['operations']))
      if (other) add(other)
    }
  }
  add(own)
  const content = {
    ...own.content,
    plugin,
    settings: { ...Object(own.content['settings']), ...Object(settings) },
  }
  const kept = documents.filter((each) => isService(each) || used.has(each))
  return {
    product: String(own.content['product']),
    documents: kept.map((each) => (each === own ? { ...own, content } : each)),
    issues: [],
  }
}

const isService = ({ kind }: CatalogDocument): boolean => kind === 'service' || kind === 'networks'
