/**
 * Counters of one gateway in the words of its money: what was offered, why it was refused, what was delivered. Labels
 * are ids of the catalog and codes, so their number is bounded; nobody's address is among them.
 */
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { Serve } from '../calls/serve.ts'
import type { Answer, CallRequest } from '../calls/call.ts'
import type { Operation } from '../plugin/catalog.ts'
import type { Edition } from '../editions/edition.ts'
import { ERRORS } from '../errors.ts'
import type { Journal } from '../payments/journal/journal.ts'
import type { Settler } from '../methods/payment-method.ts'

/** A step of the way from an offer to a delivery; `reason` is an error code or an x402 reason. */
export interface Step {
  readonly kind: 'offered' | 'refused' | 'not_charged' | 'pending' | 'delivered' | 'repeated' | 'by_token'
  readonly operation: string
  readonly product: string
  readonly reason: string
}

export interface Metrics {
  /** `serve`, watched: every answer of a priced operation counts as one step. */
  watch(serve: Serve): Serve
  /** The settler, timed. */
  timed(settler: Settler): Settler
  /** Called with every step, e.g. to keep it beyond this process. */
  onStep(listener: (step: Step) => void): void
  /** Seconds the last settlements took, oldest first; at most a thousand. */
  latencies(): readonly number[]
  /** Called with the outcome of every settlement. */
  onSettled(listener: (outcome: string) => void): void
  /** Rows by bucket as the last reconciliation found them. */
  reconciled(buckets: Readonly<Record<string, number>>): void
  /** Which alarms are raised. */
  alarmed(raised: Readonly<Record<string, boolean>>): void
  /** The text exposition format of Prometheus, version 0.0.4. */
  text(): Promise<string>
  readonly contentType: string
}

export interface MetricsParts {
  readonly journal: Pick<Journal, 'counts' | 'debts'>
  readonly edition: () => Edition
}

const RECENT = 1_000
const MOST_REASONS = 200
const SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60]

export function createMetrics({ journal, edition }: MetricsParts): Metrics {
  const registry = new Registry()
  const registers: [Registry] = [registry]
  const steps = new Counter({
    name: 'tollgate_calls_total',
    help: 'Priced calls by how they ended: offered (402 shown), refused, not_charged, pending, delivered, repeated (a stored answer again), by_token.',
    labelNames: ['kind', 'operation', 'reason'] as const,
    registers,
  })
  const failures = new Counter({
    name: 'tollgate_product_failures_total',
    help: 'Answers a product failed to give, by code.',
    labelNames: ['product', 'code'] as const,
    registers,
  })
  const settling = new Histogram({
    name: 'tollgate_settle_seconds',
    help: 'Time from asking the settler to its outcome.',
    labelNames: ['outcome'] as const,
    buckets: SECONDS,
    registers,
  })
  const buckets = new Gauge({
    name: 'tollgate_reconciled_rows',
    help: 'Payments and transfers by bucket, as last reconciled with the chain.',
    labelNames: ['bucket'] as const,
    registers,
  })
  const alarms = new Gauge({
    name: 'tollgate_alarm',
    help: '1 while an alarm is raised: something somebody must look at.',
    labelNames: ['alarm'] as const,
    registers,
  })
  registerState(registry, journal, edition)
  const listeners: ((step: Step) => void)[] = []
  const settled: ((outcome: string) => void)[] = []
  const recent: number[] = []
  const reasons = new Set(['', 'other', ...Object.keys(ERRORS)])

  function count(operation: Operation, request: CallRequest, answer: Answer): void {
    const { product, id, price } = operation
    const code = answer.error?.code
    if (code?.startsWith('product_')) failures.inc({ product, code })
    const found = price === null ? null : stepOf(request, answer)
    if (found === null) return
    const step = { ...found, reason: reasonOf(found.reason) }
    steps.inc({ operation: id, ...step })
    for (const listener of listeners) listener({ ...step, operation: id, product })
  }

  /** Reasons may come from a facilitator, which may invent them: beyond so many they are "other". */
  function reasonOf(reason: string): string {
    if (reasons.size < MOST_REASONS) reasons.add(reason)
    return reasons.has(reason) ? reason : 'other'
  }

  return {
    watch: (serve) => async (edition, bound, request) => {
      const answer = await serve(edition, bound, request)
      count(bound.operation, request, answer)
      return answer
    },
    timed: (settler) => ({
      kind: settler.kind,
      check: (...asked) => settler.check(...asked),
      async settle(...asked) {
        const began = performance.now()
        let outcome = 'threw'
        try {
          const result = await settler.settle(...asked)
          outcome = result.state
          return result
        } finally {
          const seconds = (performance.now() - began) / 1000
          settling.observe({ outcome }, seconds)
          if (outcome === 'settled' && recent.push(seconds) > RECENT) recent.shift()
          for (const listener of settled) listener(outcome)
        }
      },
      status: (record) => settler.status(record),
      health: (network) => settler.health(network),
      close: () => settler.close(),
    }),
    onStep: (listener) => void listeners.push(listener),
    onSettled: (listener) => void settled.push(listener),
    latencies: () => recent,
    reconciled(rows) {
      for (const [bucket, number] of Object.entries(rows)) buckets.set({ bucket }, number)
    },
    alarmed(raised) {
      for (const [alarm, isRaised] of Object.entries(raised)) alarms.set({ alarm }, isRaised ? 1 : 0)
    },
    text: () => registry.metrics(),
    contentType: registry.contentType,
  }
}

/** What an answer of a priced operation was to its caller, or null where it says nothing about money. */
function stepOf({ credential }: CallRequest, answer: Answer): Pick<Step, 'kind' | 'reason'> | null {
  const { error, receipt, status } = answer
  const isPaid = (credential?.payments.length ?? 0) > 0
  if (error) {
    const reason = wordOf(error.reason ?? error.code)
    if (error.code === 'settlement_pending') return { kind: 'pending', reason }
    if (error.code === 'payment_required') return { kind: 'offered', reason: '' }
    if (status === 402 || status === 409) return { kind: 'refused', reason }
    return isPaid ? { kind: 'not_charged', reason } : null
  }
  if (receipt?.success) {
    const isAgain = answer.headers['idempotent-replay'] === 'true'
    return { kind: isAgain ? 'repeated' : 'delivered', reason: '' }
  }
  if (isPaid && credential?.token == null) return { kind: 'not_charged', reason: `status_${status}` }
  return { kind: 'by_token', reason: '' }
}

/** Reasons may come from a facilitator: what is not a short word is `other`, so that labels stay few. */
function wordOf(reason: string): string {
  return /^[a-z0-9_]{1,80}$/.test(reason) ? reason : 'other'
}

/** Gauges that are asked for at the moment of a scrape. */
function registerState(registry: Registry, journal: MetricsParts['journal'], edition: () => Edition): void {
  const registers: Registry[] = []
  const payments = new Gauge({
    name: 'tollgate_payments',
    help: 'Payments in the ledger by state; submitted ones are pending.',
    labelNames: ['state'] as const,
    registers,
    async collect() {
      for (const [state, number] of Object.entries(await journal.counts())) this.set({ state }, number)
    },
  })
  const owed = new Gauge({
    name: 'tollgate_owed_payments',
    help: 'Payments settled and not deliverable, not repaid yet.',
    registers,
    async collect() {
      this.set((await journal.debts()).length)
    },
  })
  const up = new Gauge({
    name: 'tollgate_product_up',
    help: '1 where the product answers, 0 where it is suspended or withheld.',
    labelNames: ['product'] as const,
    registers,
    collect() {
      this.reset()
      for (const { product, status } of edition().status()) this.set({ product }, status === 'ok' ? 1 : 0)
    },
  })
  const jobs = new Gauge({
    name: 'tollgate_job_failures',
    help: 'Failed runs of background jobs since the product was set up.',
    labelNames: ['product', 'job'] as const,
    registers,
    async collect() {
      this.reset()
      for (const [product, { jobs: runs }] of Object.entries(await edition().facts()))
        for (const [job, { failures }] of Object.entries((runs ?? {}) as Record<string, { failures: number }>))
          this.set({ product, job }, failures)
    },
  })
  for (const gauge of [payments, owed, up, jobs]) registry.registerMetric(gauge)
}
