/** An edition that is assembled: the products and hooks that are set up, and the operations that they answer. */
import { setImmediate } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { andThen, type Awaitable } from '../awaitable.ts'
import { frozenMap } from '../plugin/immutable.ts'
import type { Catalog, OperationId, Plan, Product } from '../plugin/catalog.ts'
import { documentKeyOf } from '../catalog/validate.ts'
import type { Issue } from '../validation/issue.ts'
import type { CatalogDocument } from '../catalog/documents.ts'
import { promisesFreshData } from '../catalog/fresh-data.ts'
import type { Validators } from '../catalog/operation-validators.ts'
import { ServiceError } from '../errors.ts'
import type { Facts } from '../plugin/plugin.ts'
import { assertUsable } from './calls-between-products.ts'
import { bind } from './call.ts'
import { type PauseCheck, reasonOfPauses } from './paused-sales.ts'
import type { Breaker } from './breaker.ts'
import type { BoundOperation, DisabledProduct, Edition, ProductStatus } from './edition.ts'
import { type FreshnessGate, type FreshnessState, statesOf } from './freshness.ts'
import type { ReadyHook } from './hooks.ts'
import type { Instance, ReadyProduct, SetupOptions } from './instantiate.ts'
import type { Views } from './views.ts'

/** How long what is known of the freshness of all operations is shown. Each of them is read once a second at most. */
const LOOK_MS = 500

/** The folders of views that come with plugins. */
export function viewDirsOf(instances: readonly Instance[]): readonly string[] {
  const views = instances.flatMap(({ plugin }) => plugin?.views ?? [])
  return [...new Set(views.map((url) => fileURLToPath(url)))]
}

/** The issues of a file in one text. Empty if it has none. */
export function reasonOf(file: string, issues: readonly Issue[]): string {
  return issues
    .filter((issue) => issue.file === file)
    .map(({ pointer, message }) => [pointer, message].filter(Boolean).join(' '))
    .join(' ')
}

/** True if a plan can be stale while no operation that it opens is: it may demand more, and is measured without their delay. */
function demandsMore({ fresh, authorizes }: Plan, { operations }: Catalog): boolean {
  const opened = authorizes.flatMap((id) => operations.get(id) ?? [])
  return fresh !== null || opened.some((each) => promisesFreshData(each) && each.maxFreshnessSeconds > 0)
}

/** What was read, and its issues. */
interface Findings {
  readonly documents: readonly CatalogDocument[]
  readonly disabled: readonly DisabledProduct[]
  readonly issues: readonly Issue[]
  readonly views: Views
}

interface AssemblyParts extends Pick<SetupOptions, 'now' | 'log'> {
  /** True checks every answer against its schema; false checks the first of an operation and then one in a hundred. */
  readonly checkAnswers: boolean
  /** What the operator has paused. Without it, nothing is. */
  readonly paused?: PauseCheck
}

/** An edition, and the products it was assembled from, for the build of the next one. */
export class AssembledEdition implements Edition {
  readonly disabled: readonly DisabledProduct[]
  readonly bound: ReadonlyMap<OperationId, BoundOperation>
  readonly schemaKeys: readonly string[]
  readonly hooks: readonly ReadyHook[]
  readonly views: Views
  /** The products by the file of their document. */
  readonly products: ReadonlyMap<string, ReadyProduct>
  readonly #instances = new Map<string, Instance>()
  readonly #breakers: readonly Breaker[]
  readonly #documents: readonly CatalogDocument[]
  readonly #issues: readonly Issue[]
  readonly #gates: readonly FreshnessGate[]
  #lastFreshness: readonly FreshnessState[] = []
  #freshness: Awaitable<readonly FreshnessState[]> = []
  #lookedAt = -Infinity
  #isStopped = false
  readonly #catalog: Catalog
  readonly #paused: PauseCheck | undefined
  /** The status while no breaker is open and nothing is paused: nothing else that it depends on changes within an edition. */
  #undisturbed: readonly ProductStatus[] | null = null

  constructor(
    catalog: Catalog,
    products: ReadonlyMap<string, ReadyProduct>,
    hooks: readonly ReadyHook[],
    { documents, disabled, issues, views }: Findings,
    { checkAnswers, paused, now, log }: AssemblyParts,
  ) {
    this.#catalog = catalog
    this.#paused = paused
    this.disabled = disabled
    this.#documents = documents
    this.#issues = issues
    this.products = products
    this.hooks = hooks
    this.views = views
    this.schemaKeys = [...products.values()].map(({ schemaKey }) => schemaKey)
    const bound = new Map<OperationId, BoundOperation>()
    for (const product of catalog.products) {
      const { instance, validators } = products.get(product.file) as ReadyProduct
      this.#instances.set(product.id, instance)
      for (const operation of product.operations) {
        const own = validators.get(operation.id) as Validators
        const parts = { operation, instance, validators: own, uses: product.uses, checkAnswers, paused, now, log }
        bound.set(operation.id, bind({ ...parts, edition: () => this }))
      }
    }
    this.bound = frozenMap(bound)
    // Any other plan is stale when an operation that it opens is.
    this.#gates = [...bound.values()].flatMap(({ operation: { plan }, fresh }) =>
      fresh && (plan === null || demandsMore(plan, catalog)) ? [fresh] : [],
    )
    this.#breakers = catalog.products.flatMap(({ id, operations }) =>
      operations.map((operation) => (this.#instances.get(id) as Instance).breaker(operation.id)),
    )
    for (const instance of this.#allInstances()) instance.retain(this)
  }

  /** Those of products and of hooks. Two hooks that are set up alike share one. */
  #allInstances(): ReadonlySet<Instance> {
    return new Set([...this.#instances.values(), ...this.hooks.map(({ instance }) => instance)])
  }

  get catalog(): Catalog {
    return this.#paused?.shown(this.#catalog) ?? this.#catalog
  }

  get documentKeys(): readonly string[] {
    const faulty = new Set(this.#issues.map(({ file }) => file))
    return this.#documents.filter(({ file, kind }) => kind !== 'networks' && !faulty.has(file)).map(documentKeyOf)
  }

  status(): readonly ProductStatus[] {
    if (this.catalog !== this.#catalog || this.#breakers.some((breaker) => breaker.isOpen()))
      return this.#currentStatus()
    return (this.#undisturbed ??= this.#currentStatus())
  }

  #currentStatus(): readonly ProductStatus[] {
    return [
      ...this.catalog.products.map((product) => this.#statusOf(product)),
      ...this.disabled.map(({ product, reason }) => ({ product, status: 'withheld' as const, reason })),
    ]
  }

  #statusOf({ id: product, file, operations, uses }: Product): ProductStatus {
    const pauses = operations.flatMap((operation) => this.#paused?.of(operation) ?? [])
    if (pauses.length > 0) return { product, status: 'paused', reason: reasonOfPauses(pauses) }
    const failing = operations
      .filter(({ id }) => this.#instances.get(product)?.breaker(id).isOpen())
      .map(({ id }) => id)
    if (failing.length > 0)
      return { product, status: 'suspended', reason: `${failing.join(', ')} failed five times in a row` }
    try {
      assertUsable(this, product, uses)
      // A product whose new version has an issue is served as it was.
      const issue = reasonOf(file, this.#issues)
      if (issue !== '')
        return {
          product,
          status: 'ok',
          reason: `The last valid version is served, because ${file} has errors: ${issue}`,
        }
      return { product, status: 'ok' }
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      return { product, status: 'suspended', reason: error.message }
    }
  }

  freshness(): Awaitable<readonly FreshnessState[]> {
    // A probe of /health must not cost a look at every operation.
    if (performance.now() - this.#lookedAt < LOOK_MS) return this.#freshness
    this.#lookedAt = performance.now()
    this.#freshness = andThen(statesOf(this.#gates), (states) => this.#keepFreshness(states))
    return this.#freshness
  }

  #keepFreshness(states: readonly FreshnessState[]): readonly FreshnessState[] {
    const last = this.#lastFreshness
    const isSame = states.length === last.length && states.every((state, at) => state === last[at])
    if (!isSame) this.#lastFreshness = states
    this.#freshness = this.#lastFreshness
    return this.#lastFreshness
  }

  async facts(): Promise<Readonly<Record<string, Facts>>> {
    const all = [...this.#instances].map(async ([id, instance]) => [id, await instance.facts()] as const)
    return Object.fromEntries(await Promise.all(all))
  }

  start(): void {
    for (const instance of this.#instances.values()) instance.start(this)
    void this.#lookAtAll()
  }

  /**
   * Lets the first 402 tell how fresh the data are. Calls do not wait until all operations have been looked at. The state of a
   * plan is that of the operations that it opens.
   */
  async #lookAtAll(): Promise<void> {
    for (const { operation, fresh } of this.bound.values()) {
      if (!fresh || operation.plan !== null) continue
      await setImmediate()
      if (this.#isStopped) return
      void fresh.state()
    }
  }

  async stopJobs(next: Edition): Promise<void> {
    await Promise.all([...this.#instances.values()].map((instance) => instance.stopJobs(next)))
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    const ends = await Promise.allSettled([...this.#allInstances()].map((instance) => instance.release(this)))
    const failed = ends.find(({ status }) => status === 'rejected')
    if (failed) throw (failed as PromiseRejectedResult).reason
  }
}
