/**
 * Prometheus metrics of one gateway: what was offered, why payments were refused, what was delivered. Labels are catalog
 * ids and codes, so their number is bounded. They contain no addresses.
 */
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { andThen } from '../awaitable.ts'
import type { Serve } from '../calls/serve.ts'
import type { Answer, CallRequest } from '../calls/request-and-answer.ts'
import type { Operation } from '../plugin/catalog.ts'
import type { Edition } from '../products/edition.ts'
import { ERRORS } from '../errors.ts'
import type { Journal } from '../payments/journal/journal.ts'
import type { GasAccount, Settler } from '../methods/payment-method.ts'

/** How a call to a priced operation ended. `reason` is an error code or an x402 reason. */
export interface CallOutcome {
  readonly kind: 'offered' | 'refused' | 'not_charged' | 'pending' | 'delivered' | 'repeated' | 'by_token'
  readonly operation: string
  readonly product: string
  readonly reason: string
}

export interface Metrics {
  /** Wraps `serve` so that every call to a priced operation is counted by how it ended. */
  watch(serve: Serve): Serve
  /** Returns the count of an operation's calls that end with a 402 without `serve`. The sender of the 402 adds to it. */
  offersOf(operation: Operation): CallCount
  /** Wraps a settler so that settlements are timed and counted. */
  timed(settler: Settler): Settler
  /** Calls back when a call to a priced operation has ended. Offers (402) and token calls are reported on `flush()`. */
  onCallsEnded(listener: (outcome: CallOutcome, calls: number) => void): void
  /** Reports the offers and token calls since the last flush. */
  flush(): void
  /** Calls back with the outcome of every settlement. */
  onSettled(listener: (outcome: string) => void): void
  /** Returns how many seconds the last settlements took, oldest first; at most a thousand. */
  latencies(): readonly number[]
  /** Returns how many seconds the last paid calls of an operation took that were delivered, oldest first; at most 200. */
  durations(operation: string): readonly number[]
  /** Sets how many rows are in each bucket after a reconciliation. Buckets that are not named have no figure any more. */
  reconciled(buckets: Readonly<Record<string, number>>): void
  /** Adds the metrics of the accounts that pay gas, which are read when the metrics are. */
  watchGas(accounts: () => readonly GasAccount[]): void
  /** Sets which alarms are raised. */
  alarmed(raised: Readonly<Record<string, boolean>>): void
  /** Returns the metrics in the text exposition format of Prometheus, version 0.0.4. */
  text(): Promise<string>
  readonly contentType: string
}

/** How many calls of an operation ended in the same way. */
export interface CallCount {
  /** Calls not yet reported. */
  unreported: number
}

interface UsualOutcome extends CallCount {
  readonly outcome: CallOutcome
}

export interface MetricsParts {
  readonly journal: Pick<Journal, 'counts' | 'debts'>
  readonly edition: () => Edition
}

const MAX_LATENCIES = 1_000
const MAX_DURATIONS = 200
const MAX_REASONS = 200
const SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60]

/** Creates the metrics with a registry of their own. */
export function createMetrics({ journal, edition }: MetricsParts): Metrics {
  const registry = new Registry()
  const { calls, failures, settlements, buckets, alarms } = createCounters([registry])
  registerStateGauges(registry, journal, edition)
  const callListeners: ((outcome: CallOutcome, calls: number) => void)[] = []
  const settlementListeners: ((outcome: string) => void)[] = []
  const latencies: number[] = []
  const durations = new Map<string, number[]>()
  const boundedReason = createReasonLimit()

  function count(operation: Operation, request: CallRequest, answer: Answer, seconds: number): void {
    const { product, id, price } = operation
    const code = answer.error?.code
    if (code?.startsWith('product_')) failures.inc({ product, code })
    const found = price === null ? null : outcomeOf(request, answer)
    if (found === null) return
    if (found.kind === 'by_token') usualOf('by_token', operation).unreported += 1
    else {
      if (found.kind === 'delivered') addDuration(id, seconds)
      report({ ...found, reason: boundedReason(found.reason), operation: id, product }, 1)
    }
  }

  function addDuration(id: string, seconds: number): void {
    const known = durations.get(id)
    if (known === undefined) durations.set(id, [seconds])
    else if (known.push(seconds) > MAX_DURATIONS) known.shift()
  }

  function report(outcome: CallOutcome, ended: number): void {
    const { kind, operation, reason } = outcome
    calls.inc({ operation, kind, reason }, ended)
    for (const listener of callListeners) listener(outcome, ended)
  }

  /** Most calls end in one of these two ways. They are reported in batches: notifying listeners costs more than counting. */
  const usual = { offered: new Map<Operation, UsualOutcome>(), by_token: new Map<Operation, UsualOutcome>() }

  function usualOf(kind: keyof typeof usual, operation: Operation): UsualOutcome {
    const known = usual[kind].get(operation)
    if (known) return known
    const { id, product } = operation
    const made = { outcome: { kind, reason: '', operation: id, product }, unreported: 0 }
    usual[kind].set(operation, made)
    return made
  }

  function flush(): void {
    const { bound } = edition()
    for (const outcomes of Object.values(usual))
      for (const [operation, counted] of outcomes) {
        if (counted.unreported > 0) report(counted.outcome, counted.unreported)
        counted.unreported = 0
        // Operations of former editions are hardly called again.
        if (bound.get(operation.id)?.operation !== operation) outcomes.delete(operation)
      }
  }

  function settled(outcome: string, seconds: number): void {
    settlements.observe({ outcome }, seconds)
    if (outcome === 'settled' && latencies.push(seconds) > MAX_LATENCIES) latencies.shift()
    for (const listener of settlementListeners) listener(outcome)
  }

  return {
    watch: (serve) => (edition, bound, request) => {
      const began = performance.now()
      return andThen(serve(edition, bound, request), (answer) => {
        count(bound.operation, request, answer, (performance.now() - began) / 1000)
        return answer
      })
    },
    offersOf: (operation) => usualOf('offered', operation),
    timed: (settler) => timedSettler(settler, settled),
    onCallsEnded: (listener) => void callListeners.push(listener),
    flush,
    onSettled: (listener) => void settlementListeners.push(listener),
    latencies: () => latencies,
    durations: (operation) => durations.get(operation) ?? [],
    reconciled(rows) {
      buckets.reset()
      for (const [bucket, number] of Object.entries(rows)) buckets.set({ bucket }, number)
    },
    watchGas: (accounts) => registerGasMetrics(registry, accounts),
    alarmed(raised) {
      for (const [alarm, isRaised] of Object.entries(raised)) alarms.set({ alarm }, isRaised ? 1 : 0)
    },
    text() {
      flush()
      return registry.metrics()
    },
    contentType: registry.contentType,
  }
}

function createCounters(registers: [Registry]) {
  return {
    calls: new Counter({
      name: 'tollgate_calls_total',
      help: 'Priced calls by how they ended: offered (402 shown), refused, not_charged, pending, delivered, repeated (a stored answer again), by_token.',
      labelNames: ['kind', 'operation', 'reason'] as const,
      registers,
    }),
    failures: new Counter({
      name: 'tollgate_product_failures_total',
      help: 'Calls that a product failed to answer, by error code.',
      labelNames: ['product', 'code'] as const,
      registers,
    }),
    settlements: new Histogram({
      name: 'tollgate_settle_seconds',
      help: 'Time from the call of the settler to its outcome.',
      labelNames: ['outcome'] as const,
      buckets: SECONDS,
      registers,
    }),
    buckets: new Gauge({
      name: 'tollgate_reconciled_rows',
      help: 'Payments and transfers by bucket, as of the last reconciliation with the chain. Of several processes, one has them.',
      labelNames: ['bucket'] as const,
      registers,
    }),
    alarms: new Gauge({
      name: 'tollgate_alarm',
      help: '1 while an alarm is raised and needs attention.',
      labelNames: ['alarm'] as const,
      registers,
    }),
  }
}

function timedSettler(settler: Settler, settled: (outcome: string, seconds: number) => void): Settler {
  return {
    kind: settler.kind,
    check: (...parameters) => settler.check(...parameters),
    codeHashOf: (payment) => settler.codeHashOf?.(payment),
    mayPay: async (...parameters) => (await settler.mayPay?.(...parameters)) ?? null,
    async settle(...parameters) {
      const began = performance.now()
      let outcome = 'threw'
      try {
        const result = await settler.settle(...parameters)
        outcome = result.state
        return result
      } finally {
        settled(outcome, (performance.now() - began) / 1000)
      }
    },
    status: (record, options) => settler.status(record, options),
    ...(settler.finality ? { finality: settler.finality } : {}),
    health: (network) => settler.health(network),
    gasAccounts: () => settler.gasAccounts?.() ?? [],
    close: () => settler.close(),
  }
}

type GasFigure = (account: GasAccount) => bigint | number

/** The figures of an account that pays gas. Its address is no label: a process has one account on a network. */
const GAS_METRICS: readonly (readonly [name: string, help: string, valueOf: GasFigure])[] = [
  ['tollgate_gas_balance_wei', 'What the gas account of this process holds.', ({ balance }) => balance],
  [
    'tollgate_gas_settlements_left',
    'Settlements that the gas account can pay for, at what one costs now.',
    // On a chain without fees, any balance pays for every settlement.
    ({ balance, settlementCost: { wei } }) => (wei === 0n ? Number.POSITIVE_INFINITY : balance / wei),
  ],
  [
    'tollgate_settlement_cost_wei',
    'What settling one payment alone costs now: its gas and, on chains of the OP Stack, its data.',
    ({ settlementCost }) => settlementCost.wei,
  ],
  ['tollgate_gas_spent_wei', 'What transactions of this process have cost since it started.', ({ spent }) => spent],
  [
    'tollgate_gas_spent_on_failures_wei',
    'How much of tollgate_gas_spent_wei transactions have cost that failed.',
    ({ spentOnFailures }) => spentOnFailures,
  ],
]

function registerGasMetrics(registry: Registry, accounts: () => readonly GasAccount[]): void {
  for (const [name, help, valueOf] of GAS_METRICS)
    registry.registerMetric(
      new Gauge({
        name,
        help,
        labelNames: ['network'] as const,
        registers: [],
        collect() {
          this.reset()
          for (const account of accounts()) this.set({ network: account.network.name }, Number(valueOf(account)))
        },
      }),
    )
}

/** A facilitator may invent any number of reasons. Beyond a limit, new ones are counted as "other". */
function createReasonLimit(): (reason: string) => string {
  const reasons = new Set(['', 'other', ...Object.keys(ERRORS)])
  return (reason) => {
    if (reasons.size < MAX_REASONS) reasons.add(reason)
    return reasons.has(reason) ? reason : 'other'
  }
}

/** Classifies the answer of a priced operation. Returns null if it says nothing about a payment. */
function outcomeOf({ credential }: CallRequest, answer: Answer): Pick<CallOutcome, 'kind' | 'reason'> | null {
  const { error, receipt, status } = answer
  const isPaid = (credential?.payments.length ?? 0) > 0
  if (error) {
    const reason = labelOf(error.reason ?? error.code)
    if (error.code === 'settlement_pending') return { kind: 'pending', reason }
    if (error.code === 'payment_required') return { kind: 'offered', reason: '' }
    if (status === 402 || status === 409) return { kind: 'refused', reason }
    return isPaid ? { kind: 'not_charged', reason } : null
  }
  if (receipt?.success) {
    const isReplay = answer.headers['idempotent-replay'] === 'true'
    return { kind: isReplay ? 'repeated' : 'delivered', reason: '' }
  }
  if (isPaid && credential?.token == null) return { kind: 'not_charged', reason: `status_${status}` }
  return { kind: 'by_token', reason: '' }
}

/** Reasons may come from a facilitator. Anything but a short identifier becomes `other`. */
function labelOf(code: string): string {
  return /^[a-z0-9_]{1,80}$/.test(code) ? code : 'other'
}

/** Registers the gauges that are computed when the metrics are read. */
function registerStateGauges(registry: Registry, journal: MetricsParts['journal'], edition: () => Edition): void {
  // Keeps prom-client from adding the gauges to its global registry as well.
  const registers: Registry[] = []
  const payments = new Gauge({
    name: 'tollgate_payments',
    help: 'Payments in the journal by state; submitted ones are pending, reversed ones are owed to us.',
    labelNames: ['state'] as const,
    registers,
    async collect() {
      const counts = await ifReadable(journal.counts())
      this.reset()
      for (const [state, number] of Object.entries(counts ?? {})) this.set({ state }, number)
    },
  })
  const owed = new Gauge({
    name: 'tollgate_owed_payments',
    help: 'Payments that were settled but cannot be delivered and are not repaid yet.',
    registers,
    async collect() {
      const debts = await ifReadable(journal.debts())
      if (debts === null) this.remove()
      else this.set(debts.length)
    },
  })
  const up = new Gauge({
    name: 'tollgate_product_up',
    help: '1 if the product answers, 0 if it is suspended or disabled.',
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

/** How long the metrics wait for the journal. */
const READ_MS = 2_000

/**
 * Resolves with what is read, or with null if it cannot be read in time: one gauge that fails would take the others with
 * it, and with them the alarm which says that the journal cannot be written.
 */
async function ifReadable<Value>(read: Promise<Value>): Promise<Value | null> {
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, READ_MS, null)
  })
  try {
    return await Promise.race([read.catch(() => null), over])
  } finally {
    clearTimeout(timer)
  }
}
