/** Runs the comparison with the chain on a schedule: one run at a time, in one process at a time. */
import type { Logger } from '../../plugin/plugin.ts'
import { keepLease, type Lease } from '../../stores/lease.ts'
import { ALARMING } from './buckets.ts'
import type { Comparison } from './comparison.ts'
import type { Findings, Row } from './findings.ts'

export interface Reconciliation {
  /** Compares now. If a run is under way, returns its result instead. */
  run(): Promise<Comparison>
  /** The result of the last run in this process, or null. */
  last(): Comparison | null
  /** Returns the rows that need attention, newest first. */
  rows(limit: number): Promise<readonly Row[]>
  start(everySeconds: number): void
  stop(): Promise<void>
}

export interface ReconciliationParts {
  readonly compare: () => Promise<Comparison>
  readonly findings: Findings
  readonly lease: Pick<Lease, 'hold'>
  readonly onCompared: (comparison: Comparison) => void
  readonly log: Logger
}

const LEASE = 'gateway/reconciliation'

/** Creates the schedule of a comparison. Nothing runs before `run` or `start`. */
export function createReconciliation(parts: ReconciliationParts): Reconciliation {
  const { compare, findings, lease, onCompared, log } = parts
  const kept = keepLease(lease, LEASE, (error) =>
    log.warn({ err: error }, 'the lease of reconciliation was not renewed'),
  )
  let last: Comparison | null = null
  let underWay: Promise<Comparison> | null = null
  let timer: NodeJS.Timeout | undefined

  async function compareNow(): Promise<Comparison> {
    try {
      last = await compare()
      onCompared(last)
      return last
    } finally {
      underWay = null
    }
  }
  const run = (): Promise<Comparison> => (underWay ??= compareNow())

  async function runIfLeased(): Promise<void> {
    if (await kept.hold()) await run()
  }

  return {
    run,
    last: () => last,
    rows: (limit) => findings.list(ALARMING, limit),
    start(everySeconds) {
      const tick = (): void =>
        void runIfLeased().catch((error: unknown) => log.error({ err: error }, 'reconciliation failed'))
      timer = setInterval(tick, everySeconds * 1000).unref()
      tick()
    },
    async stop() {
      clearInterval(timer)
      await underWay?.catch(() => {})
      kept.stop()
    },
  }
}
