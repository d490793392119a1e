/**
 * Catalog, validators, handlers and tools, built together, checked together and swapped as one reference. A call is
 * served by one edition from start to end.
 */
import type { Awaitable } from '../awaitable.ts'
import type { Catalog, Operation, OperationId, Plan } from '../plugin/catalog.ts'
import type { Call, Facts, Freshness, HookRegistration, Input } from '../plugin/plugin.ts'
import type { BodyRules } from '../catalog/large-body.ts'
import type { ClaimedRequest } from '../payments/payment.ts'
import type { FreshnessGate, FreshnessLook, FreshnessState } from './freshness.ts'
import type { Caller } from '../workers/timeout.ts'
import type { ForwardedRequest } from './upstream.ts'
import type { Views } from './views.ts'

/** The input of a call before validation: strings as they were sent, the body decoded by media type. */
export interface RawInput {
  readonly params: Readonly<Record<string, unknown>>
  readonly query: Readonly<Record<string, unknown>>
  /** A LargeBody if it is large JSON. */
  readonly body: unknown
  /** The caller's request as an upstream receives it. Present only if an upstream answers the operation. */
  readonly forwarded?: ForwardedRequest
}

/**
 * A call of a bound operation, which adds the `ask` of its product, a signal that also ends with its timeout, and the
 * client of its caller.
 */
export type HandledCall = Omit<Call, 'ask' | 'signal' | 'client'> & {
  readonly caller: Caller
  /** The caller's request. Absent if another product asks. */
  readonly claimed?: ClaimedRequest
}

export interface BoundOperation {
  readonly operation: Operation
  /** True if an upstream answers the operation. It receives the request as it was sent. */
  readonly isUpstream?: boolean
  /** Defaults applied, strings coerced. Throws InvalidInput that lists every issue. */
  validate(raw: RawInput): Input
  /** Rules by which a thread checks large bodies as `validate` checks small ones. */
  bodyRules(): BodyRules
  /**
   * Runs the handler within the operation's timeout and checks the answer against its schema. Returns the answer, or a
   * promise of it if the handler returns one. Throws, or rejects with, ServiceError only: a thrown bug or a wrong answer
   * becomes `product_failed`, a hang `product_timeout`.
   */
  handle(call: HandledCall): unknown
  /**
   * Reports how fresh the data behind an answer are, on the clock of the data; null if it uses none. Undefined if the
   * plugin does not say. `input` is validated.
   */
  freshness?(input: Input, asOf: Date): Awaitable<Freshness | null>
  /** Decides whether answers may be sold. Undefined if the catalog asks for nothing. */
  readonly fresh?: FreshnessGate
  /**
   * Looks at the present data with what the operation and a plan that opens it demand of them. Undefined or null if nothing
   * is demanded, or nothing is known.
   */
  lookFor?(plan: Pick<Plan, 'fresh'>): FreshnessLook | null
  /** Throws `paused` while the operator has paused it, and Unavailable while the product's breaker is open or a product that it uses is disabled. */
  assertAvailable(): void
}

/** A hook of an edition. */
export interface ServedHook {
  /** As hooks.json names it, e.g. "deny-list". */
  readonly name: string
  readonly registration: HookRegistration
  readonly timeoutMs: number
  /** Whether a payment passes that the hook cannot screen. */
  readonly isOpenOnFailure: boolean
}

/** A product that could not be built: named in /health, absent from every document. */
export interface DisabledProduct {
  readonly product: string
  readonly file: string
  readonly reason: string
}

export interface ProductStatus {
  readonly product: string
  readonly status: 'ok' | 'suspended' | 'paused' | 'withheld'
  /** Why it is not sold. With status "ok", why its last valid version is sold instead of the present files. */
  readonly reason?: string
}

export interface Edition {
  readonly catalog: Catalog
  readonly bound: ReadonlyMap<OperationId, BoundOperation>
  readonly disabled: readonly DisabledProduct[]
  /** The keys of its products' schemas, all of which compile. */
  readonly schemaKeys: readonly string[]
  /** The keys of the documents that follow their schema. */
  readonly documentKeys: readonly string[]
  /** The hooks, in the order in which they are asked. */
  readonly hooks: readonly ServedHook[]
  /** What its pages are rendered with. */
  readonly views: Views
  /** Live status of every product, disabled ones included. */
  status(): readonly ProductStatus[]
  /** How fresh the data of each operation with `fresh` are, at most 1.5 seconds old. The same object until that changes. */
  freshness(): Awaitable<readonly FreshnessState[]>
  /** The facts that each product reports about itself, for /v1/stats. */
  facts(): Promise<Readonly<Record<string, Facts>>>
  /** Starts the jobs. Does nothing if they run. */
  start(): void
  /** Stops the jobs, except those that `next`, the edition that takes over, keeps. Running calls go on. */
  stopJobs(next: Edition): Promise<void>
  /** Stops the jobs and plugins that no other edition uses. */
  stop(): Promise<void>
}

/** The one mutable reference: which edition serves new calls. */
export interface CurrentEdition {
  readonly current: Edition
}
