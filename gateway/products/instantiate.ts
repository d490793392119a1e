/**
 * Instantiates products: reads settings, compiles schemas, runs migrations and calls `setup`. What has not changed since
 * the previous edition is reused.
 */
import { createHash } from 'node:crypto'
import type { CatalogDocument } from '../catalog/documents.ts'
import { promisesFreshData } from '../catalog/fresh-data.ts'
import { filesOf } from '../catalog/schemas.ts'
import type { CompileValidators, Validators } from '../catalog/operation-validators.ts'
import { InvalidInput } from '../errors.ts'
import type { Operation, OperationId, Product } from '../plugin/catalog.ts'
import type {
  Facts,
  Handler,
  Job,
  JsonSchema,
  Logger,
  Migration,
  Plugin,
  PluginContext,
  Registration,
} from '../plugin/plugin.ts'
import { type Issue, pointerOf } from '../validation/issue.ts'
import { SchemaError, type Schemas } from '../validation/json-schema.ts'
import { waitedForOthersMs } from '../stores/connection-use.ts'
import { createAsk } from './calls-between-products.ts'
import { type Breaker, type Breakers, createBreakers } from './breaker.ts'
import type { Edition } from './edition.ts'
import { createJobs, type JobLease, type Jobs, type JobTimers } from './jobs.ts'
import type { KnownValidators } from './known-validators.ts'
import { firstLineOf } from '../plugin-code/load.ts'
import { missingSecret, readSettings, type Secret, withSecrets } from './settings.ts'
import { createTimeouts, TimedOut, type Timeouts } from '../plugin-code/start-timeout.ts'
import type { Meter } from '../workers/timeout.ts'
import { createUpstream, fixedFields } from './upstream.ts'

interface InstanceParts {
  readonly product: string
  /** Null for an upstream. */
  readonly plugin: Plugin | null
  /** Instances with equal keys were set up alike: same settings, handler names and upstream. */
  readonly key: string
  readonly handlers: Readonly<Record<string, Handler>>
  readonly registration: Pick<Registration, 'jobs' | 'facts' | 'freshness' | 'watched' | 'stop'>
  readonly log: Logger
  /** The clock of the data. */
  readonly now: () => Date
  readonly lease: JobLease | undefined
  readonly breakers: Breakers | undefined
  readonly timers: JobTimers | undefined
  /** Counts how long others have had the database that the product waits for. */
  readonly lost?: Meter
}

const FACTS_MS = 2_000

/** The rule of an issue that says that a set-up threw. What it needs may have been away, so another try may succeed. */
export const SETUP_FAILED = 'setup-failed'

/** A product that has been set up: handlers, circuit breakers and jobs. Editions that keep the product share it. */
export class Instance {
  readonly product: string
  readonly plugin: Plugin | null
  readonly key: string
  readonly handlers: Readonly<Record<string, Handler>>
  /** Undefined if the plugin does not report how current its data are. */
  readonly freshness: Registration['freshness']
  readonly watched: Registration['watched']
  /** Counts how long others have had the database that the product waits for. Undefined for an upstream. */
  readonly lost: Meter | undefined
  readonly #registration: InstanceParts['registration']
  readonly #now: () => Date
  readonly #log: Logger
  readonly #jobs: Jobs
  readonly #allBreakers: Breakers
  readonly #breakers = new Map<OperationId, Breaker>()
  readonly #answers = new Map<OperationId, number>()
  readonly #editions = new Set<Edition>()
  /** The edition that was started last. Jobs call other products in it. */
  #latest: Edition | null = null
  #lastFacts: Facts = {}

  constructor(parts: InstanceParts) {
    const { product, plugin, key, handlers, registration, log, now, lease, breakers, timers } = parts
    this.product = product
    this.plugin = plugin
    this.key = key
    this.handlers = handlers
    this.lost = parts.lost
    this.freshness = registration.freshness?.bind(registration)
    this.watched = registration.watched?.bind(registration)
    this.#registration = registration
    this.#now = now
    this.#allBreakers = breakers ?? createBreakers()
    this.#log = log
    this.#jobs = createJobs({
      product,
      jobs: registration.jobs ?? [],
      askNow: (job, signal) =>
        createAsk(this.#latest as Edition, product, { asOf: now(), signal, id: `job:${product}/${job}` }),
      lease,
      log: log.child({ product }),
      timers,
    })
  }

  breaker(operation: OperationId): Breaker {
    const breaker = this.#breakers.get(operation) ?? this.#allBreakers.create(operation, elapsedSince(this.#now))
    this.#breakers.set(operation, breaker)
    return breaker
  }

  /** Counts an answer of an operation. Returns how many there were, this one included. */
  countAnswer(operation: OperationId): number {
    const count = (this.#answers.get(operation) ?? 0) + 1
    this.#answers.set(operation, count)
    return count
  }

  /** Reads the product's facts. Returns the last ones if it fails or takes longer than two seconds. */
  async facts(): Promise<Facts> {
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<Facts>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no facts within ${FACTS_MS} ms`)), FACTS_MS)
    })
    try {
      return await Promise.race([this.#readFacts(), timeout])
    } catch (error) {
      this.#log.warn(
        { product: this.product, reason: String(error) },
        'facts could not be read; the last ones are shown',
      )
      return this.#lastFacts
    } finally {
      clearTimeout(timer)
    }
  }

  async #readFacts(): Promise<Facts> {
    const own = (await this.#registration.facts?.()) ?? {}
    const hasJobs = (this.#registration.jobs ?? []).length > 0
    this.#lastFacts = hasJobs ? { ...own, jobs: this.#jobs.counts() } : own
    return this.#lastFacts
  }

  /** Keeps the instance alive until the edition releases it. */
  retain(edition: Edition): void {
    this.#editions.add(edition)
  }

  /** Starts the jobs if they do not run yet. From now on they call other products in this edition. */
  start(edition: Edition): void {
    this.#latest = edition
    this.#jobs.start()
  }

  /** Stops the jobs, unless `next`, the edition that takes over, uses this instance too. */
  async stopJobs(next: Edition): Promise<void> {
    if (!this.#editions.has(next)) await this.#jobs.stop()
  }

  /** Stops the jobs and the plugin when no other edition uses the instance. */
  async release(edition: Edition): Promise<void> {
    this.#editions.delete(edition)
    if (this.#editions.size > 0) return
    for (const breaker of this.#breakers.values()) this.#allBreakers.forget(breaker)
    await this.#jobs.stop()
    await this.#registration.stop?.()
  }
}

/**
 * Returns a clock of elapsed milliseconds: the larger of the time on the clock of the data and real time. A clock of the
 * data that is frozen must not keep a breaker open.
 */
function elapsedSince(now: () => Date): () => number {
  const [started, ticks] = [now().getTime(), performance.now()]
  return () => Math.max(now().getTime() - started, performance.now() - ticks)
}

/** A product with all that an edition needs to serve it. */
export interface ReadyProduct {
  readonly document: CatalogDocument
  readonly product: Product
  /** The schemas of the catalog it was set up in. */
  readonly schemas: Schemas
  readonly instance: Instance
  readonly validators: ReadonlyMap<OperationId, Validators>
  /** Products with equal keys have the same schemas and examples. */
  readonly schemaKey: string
  /** Names of the schemas its operations need. */
  readonly schemaNames: readonly string[]
}

/** A product whose schemas compile and whose examples are valid. */
type Checked = Pick<ReadyProduct, 'validators' | 'schemaKey' | 'schemaNames'>

/** A product that could not be set up, with the reasons. */
export interface Failed {
  readonly issues: readonly Issue[]
}

/** Sets up one product. `former` is the product of the previous edition; what has not changed of it is reused. */
export type Setup = (
  product: Product,
  document: CatalogDocument,
  plugin: Plugin | null,
  former: ReadyProduct | undefined,
) => Promise<ReadyProduct | Failed>

/** Parts needed to set products up. */
export interface SetupOptions {
  contextOf(plugin: string, product: string, settings: Readonly<Record<string, unknown>>): PluginContext
  migrate(plugin: string, migrations: readonly Migration[]): Promise<void>
  /** Returns the value of `env:NAME` in documents. */
  readonly secret: Secret
  /** Plugins of the gateway itself. */
  readonly builtins?: readonly Plugin[]
  readonly log: Logger
  /** The clock of the data. */
  now(): Date
  /** When several processes share a database, each job runs in the process that holds its lease. */
  readonly lease?: JobLease
  /** The circuit breakers of this process, if others share them. */
  readonly breakers?: Breakers
  /** Begins the runs of jobs; the timers of Node if absent. */
  readonly timers?: JobTimers
  /**
   * Keys of products whose schemas compile and whose examples are valid, and of documents that follow their schema, as
   * `npm run build` found. Validators of these products are compiled when they are first used, because compiling all of
   * them would double the time of a start.
   */
  readonly checkedSchemas?: ReadonlySet<string>
  /** Remembers validators between editions that do not follow each other. Without it, only those of the former are reused. */
  readonly knownValidators?: KnownValidators
  /** Called when a plugin has loaded, or a product is set up, after its timeout. The next build uses it. */
  readonly onLate?: () => unknown
}

type Options = SetupOptions & { readonly setupSeconds: number }

/** Creates the function that sets up products. Each plugin runs its migrations once, however many products name it. */
export function createSetup(options: Options, schemas: Schemas, validatorsOf: CompileValidators): Setup {
  const migrated = new Map<Plugin, Promise<void>>()

  return async (product, document, plugin, former) => {
    const isUnchanged = former?.product === product && former.schemas === schemas && former.instance.plugin === plugin
    const checked = isUnchanged ? former : check(product, plugin, former)
    if ('issues' in checked) return checked
    const { validators, schemaKey, schemaNames } = checked
    const instance = product.upstream
      ? upstreamInstance(product, former, options)
      : await pluginInstance(
          product,
          plugin as Plugin,
          former,
          { ...options, isChecked: isListed(schemaKey) },
          migrated,
        )
    if ('issues' in instance) return instance
    return { document, product, schemas, instance, validators, schemaKey, schemaNames }
  }

  function isListed(schemaKey: string): boolean {
    return options.checkedSchemas?.has(schemaKey) === true
  }

  function check(product: Product, plugin: Plugin | null, former: ReadyProduct | undefined): Failed | Checked {
    const schemaNames = filesOf(product.operations, schemas)
    const schemaKey = schemaKeyOf(product, plugin?.settings, schemaNames, schemas)
    const known = former?.schemaKey === schemaKey ? former.validators : options.knownValidators?.get(schemaKey)
    if (known) return { validators: known, schemaKey, schemaNames }
    const isChecked = isListed(schemaKey)
    const validators = compileAll(product, validatorsOf, { isChecked })
    if ('issues' in validators) return validators
    const issues = isChecked ? [] : exampleIssues(product, validators)
    if (issues.length > 0) return { issues }
    options.knownValidators?.set(schemaKey, validators)
    return { validators, schemaKey, schemaNames }
  }
}

/** Identifies the schemas of a product with everything that they refer to, that of its settings, and its examples. */
function schemaKeyOf(
  { operations }: Product,
  settings: JsonSchema | undefined,
  names: readonly string[],
  schemas: Schemas,
): string {
  const own = operations.map(({ id, params, query, body, response, bodyMedia, plan, internal, example }) => [
    [id, params, query, body, response, bodyMedia, plan?.plan, internal, example],
  ])
  const content = JSON.stringify([own, jsonOf(settings), names.map((name) => schemas.get(name))])
  return createHash('sha256').update(content).digest('base64url')
}

/** Null if it cannot be written as JSON, which no schema can be that compiles. */
function jsonOf(settings: JsonSchema | undefined): string | null {
  try {
    return JSON.stringify(settings) ?? null
  } catch {
    return null
  }
}

function compileAll(
  { file, operations }: Product,
  validatorsOf: CompileValidators,
  options: { readonly isChecked: boolean },
) {
  const validators = new Map<OperationId, Validators>()
  const issues: Issue[] = []
  for (const operation of operations)
    try {
      validators.set(operation.id, validatorsOf(operation, options))
    } catch (error) {
      if (!(error instanceof SchemaError)) throw error
      const pointer = pointerOf('operations', operation.id, error.part)
      issues.push({ file, pointer, rule: 'schema', message: error.message })
    }
  return issues.length > 0 ? { issues } : validators
}

/** Checks examples against the schemas of their operation: buyers copy them from the documents. */
function exampleIssues({ file, operations }: Product, validators: ReadonlyMap<OperationId, Validators>): Issue[] {
  return operations.flatMap(({ id, example }) => {
    if (!example) return []
    const pointer = pointerOf('operations', id, 'example')
    const { params = {}, query = {}, body } = example.request
    const issues: Issue[] = []
    try {
      validators.get(id)?.input({ params, query, body })
    } catch (error) {
      if (!(error instanceof InvalidInput)) throw error
      for (const { loc, msg } of error.detail) {
        const [section, ...steps] = loc
        const place = pointer + pointerOf('request', section === 'path' ? 'params' : String(section), ...steps)
        issues.push({ file, pointer: place, rule: 'example', message: msg })
      }
    }
    const wrong = example.response === undefined ? null : validators.get(id)?.answer(example.response)
    if (wrong) issues.push({ file, pointer: `${pointer}/response`, rule: 'example', message: wrong })
    return issues
  })
}

function upstreamInstance(
  product: Product,
  former: ReadyProduct | undefined,
  { secret, log, now, lease, breakers, timers }: Options,
): Instance | Failed {
  const { file, id, operations, upstream } = product
  const { value: filled, missing } = withSecrets(fixedFields(product), secret)
  if (missing.length > 0) return { issues: missing.map((one) => missingSecret(file, one)) }
  const key = instanceKey(filled, operations, [upstream, operations.map((each) => each.upstream)])
  if (former?.instance.plugin === null && former.instance.key === key) return former.instance
  const handlers = createUpstream(product, filled)
  return new Instance({ product: id, plugin: null, key, handlers, registration: {}, log, now, lease, breakers, timers })
}

async function pluginInstance(
  product: Product,
  plugin: Plugin,
  former: ReadyProduct | undefined,
  options: Options & { readonly isChecked: boolean },
  migrated: Map<Plugin, Promise<void>>,
): Promise<Instance | Failed> {
  const { file, id, operations } = product
  const { log, now, lease, breakers, timers } = options
  const { settings, issues } = readSettings(product, plugin.settings, options)
  if (issues.length > 0) return { issues }
  const key = instanceKey(settings, operations, null)
  if (former?.instance.plugin === plugin && former.instance.key === key) return former.instance
  const failed = (rule: string, message: string): Failed => ({
    issues: [{ file, pointer: '/plugin', rule, message }],
  })
  try {
    const context = options.contextOf(plugin.name, id, settings)
    const registration = await setUpWithTimeout(plugin, `${id} ${key}`, options, async () => {
      if (!migrated.has(plugin)) migrated.set(plugin, options.migrate(plugin.name, plugin.migrations ?? []))
      await migrated.get(plugin)
      return plugin.setup(context)
    })
    if (!hasHandlers(registration))
      return failed(
        'handlers',
        `The plugin ${plugin.name} has returned no handlers from setup. Return { handlers: { ... } }.`,
      )
    const refused = (rule: string, message: string): Failed => {
      // A plugin that never stops must not keep the edition from being built.
      stopOf(registration).catch((error: unknown) =>
        log.error({ err: error, product: id }, 'a product that was refused did not stop cleanly'),
      )
      return failed(rule, message)
    }
    // A shop may answer the route of a built-in operation itself.
    const mayHandleMore = options.builtins?.includes(plugin) === true
    const mismatch = handlerMismatch(product, registration.handlers, mayHandleMore)
    if (mismatch !== null) return refused('handlers', mismatch)
    const faultyJob = jobFault(plugin.name, registration.jobs ?? [])
    if (faultyJob !== null) return refused('jobs', faultyJob)
    // A plan's `fresh` is met by the reports of the products that it opens, so a plan needs none of its own.
    const unreported = registration.freshness
      ? undefined
      : operations.find((each) => promisesFreshData(each) && !each.plan)
    if (unreported)
      return refused(
        'fresh',
        `The document says in "fresh" when ${unreported.id} is sold, but the plugin ${plugin.name} has no function freshness(input, asOf). Write one, or remove "fresh".`,
      )
    const handlers = registration.handlers as unknown as Readonly<Record<string, Handler>>
    const lost = (): number => waitedForOthersMs(context.db)
    return new Instance({ product: id, plugin, key, handlers, registration, log, now, lease, breakers, timers, lost })
  } catch (error) {
    log.error({ err: error, product: id }, 'a product could not be set up')
    if (error instanceof TimedOut) return failed('setup', `The plugin ${plugin.name} ${firstLineOf(error)}`)
    return failed(SETUP_FAILED, `The plugin ${plugin.name} could not be set up: ${firstLineOf(error)}`)
  }
}

/** The set-ups of one plugin: its timeouts, and results that came after the timeout and that no build has used yet. */
interface Setups {
  readonly timeouts: Timeouts
  readonly late: Map<string, Registration>
}

const setupsOf = new WeakMap<Plugin, Setups>()

/** Calls `setup`, or returns the result of an earlier call that came after its timeout. */
export async function setUpWithTimeout(
  plugin: Plugin,
  key: string,
  { setupSeconds, onLate, log }: Pick<Options, 'setupSeconds' | 'onLate' | 'log'>,
  setup: () => Promise<Registration>,
): Promise<Registration> {
  const { timeouts, late } = setupsOf.get(plugin) ?? { timeouts: createTimeouts(), late: new Map() }
  setupsOf.set(plugin, { timeouts, late })
  const ready = late.get(key)
  if (late.delete(key)) return ready as Registration

  async function keepLate(registration: Registration): Promise<void> {
    late.set(key, registration)
    await onLate?.()
    // No build has used it: the product is gone, or its settings or code have changed meanwhile.
    if (late.get(key) === registration && late.delete(key)) await registration.stop?.()
  }
  const logFailure = (error: unknown): void =>
    log.error({ err: error, set_up: key }, 'a product that exceeded its set-up timeout failed')
  return timeouts(key, {
    seconds: setupSeconds,
    what: 'is not set up',
    run: setup,
    late: (ended) => ('value' in ended ? void keepLate(ended.value).catch(logFailure) : logFailure(ended.error)),
  })
}

async function stopOf(registration: Pick<Registration, 'stop'>): Promise<void> {
  await registration.stop?.()
}

/** Types are not checked when code is compiled, so that a plugin may return anything. */
function hasHandlers(registration: unknown): boolean {
  const { handlers } = (registration ?? {}) as Partial<Registration>
  return typeof handlers === 'object' && handlers !== null
}

/** Describes a job that could not run as it is meant to. Null if all can. */
function jobFault(plugin: string, jobs: readonly Partial<Job>[]): string | null {
  const names = new Set<string>()
  for (const { name, everySeconds, run } of jobs) {
    if (typeof name !== 'string' || name === '') return `A job of the plugin ${plugin} has no name. Give it one.`
    if (names.has(name)) return `The plugin ${plugin} has two jobs with the name ${name}. Give each its own.`
    names.add(name)
    const job = `The job ${name} of the plugin ${plugin}`
    if (typeof run !== 'function') return `${job} has no function run. Write one.`
    // Without a number, it would run again at once, without end.
    if (typeof everySeconds !== 'number' || !(everySeconds > 0))
      return `${job} has no interval. Write everySeconds, a number above 0.`
  }
  return null
}

/** Describes what does not match between the operations of a product and the handlers of its plugin. Null if all match. */
function handlerMismatch(
  product: Product,
  handlers: Readonly<Record<string, unknown>>,
  mayHandleMore: boolean,
): string | null {
  const needed = product.operations.filter(({ retired }) => !retired)
  const missing = needed.filter(({ handler }) => typeof handlers[handler] !== 'function').map(({ id }) => id)
  const named = new Set(product.operations.map(({ handler }) => handler))
  const surplus = mayHandleMore ? [] : Object.keys(handlers).filter((name) => !named.has(name))
  const problems = [
    missing.length > 0
      ? `The plugin has no handler for ${missing.join(', ')}. Write one, or remove the operation.`
      : '',
    surplus.length > 0
      ? `The plugin handles ${surplus.join(', ')}, which no operation names. Add it here, or remove the handler.`
      : '',
  ]
  return problems.filter(Boolean).join(' ') || null
}

/** The key of an instance: equal if a new set-up would be given the same. */
function instanceKey(settings: unknown, operations: readonly Operation[], upstream: unknown): string {
  return JSON.stringify([
    settings,
    operations.map((each) => [each.handler, each.retired, promisesFreshData(each)]),
    upstream,
  ])
}
