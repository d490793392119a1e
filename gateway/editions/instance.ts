/** A product that has been set up: handlers, breakers and jobs, shared by the editions that keep it. */
import type { Operation, OperationId, Product } from '../plugin/catalog.ts'
import type { Ask, Facts, Handler, Job, Logger, Plugin, Registration } from '../plugin/plugin.ts'
import { askFrom } from './ask.ts'
import { type Breaker, createBreaker } from './circuit-breaker.ts'
import type { Edition } from './edition.ts'
import { createJobs, type JobLease } from './jobs.ts'

export interface Instance {
  readonly product: string
  /** Null for an upstream. */
  readonly plugin: Plugin | null
  /** Equal where a new set-up would give the same: settings and handler names. */
  readonly key: string
  readonly handlers: Readonly<Record<string, Handler>>
  breaker(operation: OperationId): Breaker
  /** Counts answers of an operation, for sampling. */
  answered(operation: OperationId): number
  facts(): Promise<Facts>
  /** Undefined if the plugin does not report how current its data are. */
  readonly freshness: Registration['freshness']
  /** The edition takes it into use; jobs begin with the first and ask in the latest. */
  retain(edition: Edition): void
  start(edition: Edition): void
  /** Stops the jobs, unless the edition that takes over holds this instance too. */
  stopJobs(next: Edition): Promise<void>
  /** Stops jobs and plugin when the last edition lets go. */
  release(edition: Edition): Promise<void>
}

export interface InstanceParts {
  readonly product: string
  readonly plugin: Plugin | null
  readonly key: string
  readonly handlers: Readonly<Record<string, Handler>>
  readonly registration: Pick<Registration, 'jobs' | 'facts' | 'freshness' | 'stop'>
  readonly log: Logger
  readonly now: () => Date
  readonly lease: JobLease | undefined
}

export function createInstance({
  product,
  plugin,
  key,
  handlers,
  registration,
  log,
  now,
  lease,
}: InstanceParts): Instance {
  const breakers = new Map<OperationId, Breaker>()
  const answers = new Map<OperationId, number>()
  const holders = new Set<Edition>()
  let latest: Edition | null = null

  const askNow = (job: string, signal: AbortSignal): Ask =>
    askFrom(latest as Edition, product, { asOf: now(), signal, callId: `job:${product}/${job}` })
  const list: readonly Job[] = registration.jobs ?? []
  const jobs = createJobs({ product, jobs: list, askNow, lease, log: log.child({ product }) })

  return {
    product,
    plugin,
    key,
    handlers,
    breaker(operation) {
      const breaker = breakers.get(operation) ?? createBreaker(operation, elapsedSince(now))
      breakers.set(operation, breaker)
      return breaker
    },
    answered(operation) {
      const count = (answers.get(operation) ?? 0) + 1
      answers.set(operation, count)
      return count
    },
    freshness: registration.freshness?.bind(registration),
    async facts() {
      const own = (await registration.facts?.()) ?? {}
      return list.length === 0 ? own : { ...own, jobs: jobs.counts() }
    },
    retain: (edition) => void holders.add(edition),
    start(edition) {
      latest = edition
      jobs.start()
    },
    async stopJobs(next) {
      if (!holders.has(next)) await jobs.stop()
    },
    async release(edition) {
      holders.delete(edition)
      if (holders.size > 0) return
      await jobs.stop()
      await registration.stop?.()
    },
  }
}

/** Milliseconds by whichever clock went further: a frozen clock of the data must not keep a breaker open. */
function elapsedSince(now: () => Date): () => number {
  const [started, ticks] = [now().getTime(), performance.now()]
  return () => Math.max(now().getTime() - started, performance.now() - ticks)
}

/** What is wrong between the operations of a product and the handlers of its plugin, or null. */
export function handlerMismatch(product: Product, handlers: Readonly<Record<string, unknown>>): string | null {
  const needed = product.operations.filter(({ retired }) => !retired)
  const missing = needed.filter(({ handler }) => typeof handlers[handler] !== 'function').map(({ id }) => id)
  const named = new Set(product.operations.map(({ handler }) => handler))
  const surplus = Object.keys(handlers).filter((name) => !named.has(name))
  const sentences = [
    missing.length > 0
      ? `The plugin has no handler for ${missing.join(', ')}. Write one, or remove the operation.`
      : '',
    surplus.length > 0
      ? `The plugin handles ${surplus.join(', ')}, which no operation names. Add it here, or remove the handler.`
      : '',
  ]
  return sentences.filter(Boolean).join(' ') || null
}

/** Identity of a set-up. */
export function instanceKey(settings: unknown, operations: readonly Operation[], upstream: unknown): string {
  return JSON.stringify([settings, operations.map(({ handler, retired }) => [handler, retired]), upstream])
}
