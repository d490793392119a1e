/** Work on a clock. Runs of one job never overlap, in any process; a failure is logged and counted, never thrown. */
import type { Ask, Job, Logger } from '../plugin/plugin.ts'

export interface JobCount {
  /** Runs that have ended, well or not. */
  readonly runs: number
  readonly failures: number
}

export interface Jobs {
  /** First runs begin at once; idempotent. */
  start(): void
  /** Aborts what runs and waits for it, at most a few seconds. */
  stop(): Promise<void>
  counts(): Readonly<Record<string, JobCount>>
}

/** Says which process runs a job: true where this one holds the name for the next seconds. */
export interface JobLease {
  hold(name: string, seconds: number): Promise<boolean>
}

export interface JobParts {
  readonly product: string
  readonly jobs: readonly Job[]
  /** The `ask` of a run, at the asOf of the moment it begins. */
  readonly askNow: (job: string, signal: AbortSignal) => Ask
  /** Absent where one process has the database to itself. */
  readonly lease: JobLease | undefined
  readonly log: Logger
}

const STOP_MS = 5_000
const LEASE_SECONDS = 60

export function createJobs({ product, jobs, askNow, lease, log }: JobParts): Jobs {
  const counts = new Map(jobs.map(({ name }) => [name, { runs: 0, failures: 0 }]))
  const stopping = new AbortController()
  const running = new Set<Promise<void>>()
  const timers = new Set<NodeJS.Timeout>()
  let started = false

  async function run(job: Job): Promise<void> {
    const { signal } = stopping
    const count = counts.get(job.name) as { runs: number; failures: number }
    const begun = performance.now()
    try {
      if (await holds(job))
        await leased(job, () => job.run({ signal, ask: askNow(job.name, signal) })).finally(() => (count.runs += 1))
    } catch (error) {
      if (!signal.aborted) {
        count.failures += 1
        log.error({ err: error, job: job.name }, 'a job failed; it runs again at its next time')
      }
    }
    if (!signal.aborted) schedule(job, Math.max(0, job.everySeconds * 1000 - (performance.now() - begun)))
  }

  /** Held beyond the next run, so that the job stays where it is. */
  const holds = async ({ name, everySeconds }: Job): Promise<boolean> =>
    (await lease?.hold(`${product}/${name}`, everySeconds + LEASE_SECONDS)) ?? true

  /** A run may outlast its lease, so the lease is prolonged while it works. */
  async function leased(job: Job, work: () => Promise<void>): Promise<void> {
    const renew = (): void =>
      void holds(job).catch((error: unknown) => log.warn({ err: error, job: job.name }, 'a lease was not prolonged'))
    const timer = lease && setInterval(renew, (LEASE_SECONDS * 1000) / 3)
    try {
      await work()
    } finally {
      clearInterval(timer)
    }
  }

  function schedule(job: Job, delayMs: number): void {
    const timer = setTimeout(() => {
      timers.delete(timer)
      launch(job)
    }, delayMs)
    timer.unref()
    timers.add(timer)
  }

  function launch(job: Job): void {
    const current = run(job)
    running.add(current)
    void current.finally(() => running.delete(current))
  }

  return {
    start() {
      if (started) return
      started = true
      jobs.forEach(launch)
    },
    async stop() {
      stopping.abort()
      timers.forEach(clearTimeout)
      let patience: NodeJS.Timeout | undefined
      const enough = new Promise((resolve) => {
        patience = setTimeout(resolve, STOP_MS)
      })
      await Promise.race([Promise.all(running), enough])
      clearTimeout(patience)
    },
    counts: () => Object.fromEntries([...counts].map(([name, count]) => [name, { ...count }])),
  }
}
