/** Work on a clock. Runs of one job never overlap; a failure is logged and counted, never thrown. */
import type { Ask, Job, Logger } from '../plugin.ts'

export interface JobCount {
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

const STOP_MS = 5_000

/** `askNow` gives a run its `ask`, at the asOf of the moment the run begins. */
export function createJobs(jobs: readonly Job[], askNow: (job: string, signal: AbortSignal) => Ask, log: Logger): Jobs {
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
      await job.run({ signal, ask: askNow(job.name, signal) })
    } catch (error) {
      if (!signal.aborted) {
        count.failures += 1
        log.error({ err: error, job: job.name }, 'a job failed; it runs again at its next time')
      }
    }
    count.runs += 1
    if (!signal.aborted) schedule(job, Math.max(0, job.everySeconds * 1000 - (performance.now() - begun)))
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
