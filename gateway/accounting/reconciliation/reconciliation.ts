/**
 * Runs the comparison with the chain on a schedule: one run at a time, in one process at a time. Between two runs it looks
 * at the newest blocks.
 */
import type { Logger } from '../../plugin/plugin.ts'
import { keepLease, type Lease } from '../../stores/lease.ts'
import { ALARMING } from './buckets.ts'
import type { Compare, Comparison } from './comparison.ts'
import type { Findings, Row } from './findings.ts'

export interface Reconciliation {
  /** Compares now. If a run is under way, returns its result instead. */
  run(): Promise<Comparison>
  /** The result of the last run in this process, or null. */
  last(): Comparison | null
  /** Returns the rows that need attention, newest first. */
  rows(limit: number): Promise<readonly Row[]>
  /** Returns transfers of authorizations that others sent, found since this moment (ms), newest first. */
  foreignSince(since: number, limit: number): Promise<readonly Row[]>
  /** Compares now and every so many seconds, and looks at the newest blocks every `lookSeconds` in between. */
  start(everySeconds: number, lookSeconds?: number): void
  stop(): Promise<void>
}

export interface ReconciliationParts {
  readonly compare: Compare
  readonly findings: Findings
  readonly lease: Pick<Lease, 'hold'>
  /** Called with the result of each run, and with null once another process compares instead of this one. */
  readonly onCompared: (comparison: Comparison | null) => void
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
  let looking: Promise<void> = Promise.resolve()
  /** The last result is of this process, and may be the newest one. */
  let isCurrent = false
  let timer: NodeJS.Timeout | undefined

  async function compareNow(): Promise<Comparison> {
    try {
      await looking
      last = await compare()
      isCurrent = true
      onCompared(last)
      return last
    } finally {
      underWay = null
    }
  }
  const run = (): Promise<Comparison> => (underWay ??= compareNow())

  /** A chain that cannot be read is reported by the next run. */
  async function look(): Promise<void> {
    looking = compare.look().catch((error: unknown) => log.debug({ err: error }, 'the newest blocks could not be read'))
    await looking
  }

  /** Another process holds the lease. */
  function leave(): void {
    if (!isCurrent || underWay) return
    isCurrent = false
    onCompared(null)
  }

  async function work(isRun: boolean): Promise<void> {
    if (!(await kept.hold())) return leave()
    if (isRun) await run()
    else if (!underWay) await look()
  }

  return {
    run,
    last: () => last,
    rows: (limit) => findings.list(ALARMING, limit),
    foreignSince: (since, limit) => findings.foreignSince(since, limit),
    start(everySeconds, lookSeconds = everySeconds) {
      const looksPerRun = Math.max(1, Math.round(everySeconds / lookSeconds))
      let ticks = 0
      const tick = (): void =>
        void work(ticks++ % looksPerRun === 0).catch((error: unknown) =>
          log.error({ err: error }, 'reconciliation failed'),
        )
      timer = setInterval(tick, lookSeconds * 1000).unref()
      tick()
    },
    async stop() {
      clearInterval(timer)
      await kept.stop()
      await underWay?.catch(() => {})
      await looking
    },
  }
}
