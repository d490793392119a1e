/**
 * Catalog, validators, handlers and tools, built together, checked together and swapped as one reference. A call is
 * served by one edition from start to end.
 */
import type { Catalog, Operation, OperationId } from '../plugin/catalog.ts'
import type { Call, Facts, Freshness, Input } from '../plugin/plugin.ts'
import type { ForwardedRequest } from './upstream.ts'

/** What a transport hands over before validation: strings as they came, the body decoded by media type. */
export interface RawInput {
  readonly params: Readonly<Record<string, unknown>>
  readonly query: Readonly<Record<string, unknown>>
  readonly body: unknown
  /** What an upstream gets as it came; only where the operation passes on. */
  readonly forwarded?: ForwardedRequest
}

/** A call for a bound operation, which adds the `ask` of its product. */
export type HandledCall = Omit<Call, 'ask'>

export interface BoundOperation {
  readonly operation: Operation
  /** An upstream answers it, and gets the request as it came. */
  readonly isUpstream?: boolean
  /** Defaults applied, strings coerced. Throws InvalidInput listing every mistake. */
  validate(raw: RawInput): Input
  /**
   * Runs the handler within the operation's time budget and checks the answer against its schema. Throws ServiceError
   * only: a thrown bug or a wrong answer becomes `product_failed`, a hang `product_timeout`.
   */
  handle(call: HandledCall): Promise<unknown>
  /**
   * Reports how current the data behind an answer are, on the clock of the data. Undefined if the plugin does not say.
   * `input` is validated.
   */
  freshness?(input: Input, asOf: Date): Promise<Freshness>
  /** Throws Unavailable while the product's breaker is open or a product it asks is withheld. */
  assertAvailable(): void
}

/** A product that could not be built: named in /health, absent from every document. */
export interface DisabledProduct {
  readonly product: string
  readonly file: string
  readonly reason: string
}

export interface ProductStatus {
  readonly product: string
  readonly status: 'ok' | 'suspended' | 'withheld'
  readonly reason?: string
}

export interface Edition {
  readonly catalog: Catalog
  readonly bound: ReadonlyMap<OperationId, BoundOperation>
  readonly disabled: readonly DisabledProduct[]
  /** Folders of views that its plugins bring along. */
  readonly viewDirs: readonly string[]
  /** Live status of every product, withheld ones included. */
  status(): readonly ProductStatus[]
  /** Small numbers and words of each product, for /v1/stats. */
  facts(): Promise<Readonly<Record<string, Facts>>>
  /** Starts the jobs; idempotent. */
  start(): void
  /** Stops the jobs that `next`, which takes over, does not go on with. Calls in flight are left alone. */
  stopJobs(next: Edition): Promise<void>
  /** Stops jobs and plugins once nothing of it is in use. */
  stop(): Promise<void>
}

/** The one mutable reference: which edition serves new calls. */
export interface CurrentEdition {
  readonly current: Edition
}
