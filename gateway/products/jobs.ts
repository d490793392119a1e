/**
 * Runs the jobs of a product at their intervals. Runs of one job never overlap, in any process: a run whose process has
 * lost the lease, because it was suspended, is aborted. A failure is logged and counted, never thrown.
 */
import { setMaxListeners } from 'node:events'
import { Unavailable } from '../errors.ts'
import type { Ask, Job, Logger } from '../plugin/plugin.ts'
import { keepLease, type KeptLease, RENEW_SECONDS } from '../stores/lease.ts'

export interface JobCount {
  /** Runs that have ended, successful or not. */
  readonly runs: number
  readonly failures: number
}

export interface Jobs {
  /** Begins the first run of every job at once. Does nothing if the jobs were started before. */
  start(): void
  /** Aborts the runs under way and waits for them, at most five seconds. */
  stop(): Promise<void>
  counts(): Readonly<Record<string, JobCount>>
}

/** Decides which process runs a job. `hold` returns true if this process has the name for the next seconds. */
export interface JobLease {
  hold(name: string, seconds: number): Promise<boolean>
}

/** When the runs of jobs begin. A test puts its own in the place of the timers of Node. */
export interface JobTimers {
  /** Milliseconds, which never decrease. */
  now(): number
  /** Calls `run` after so many milliseconds. Its promise resolves when the run has ended. */
  after(ms: number, run: () => Promise<void>): JobTimer
}

export interface JobTimer {
  cancel(): void
}

/** Node fires a timer that is longer at once: 24 days. */
const MAX_TIMER_MS = 2 ** 31 - 1

/** The timers of Node. They keep no process alive. */
const NODE_TIMERS: JobTimers = {
  now: () => performance.now(),
  after(ms, run) {
    let timer: NodeJS.Timeout
    const wait = (left: number): void => {
      const now = Math.min(left, MAX_TIMER_MS)
      timer = setTimeout(() => (now < left ? wait(left - now) : void run()), now)
      timer.unref()
    }
    wait(ms)
    return { cancel: () => clearTimeout(timer) }
  },
}

export interface JobParts {
  readonly product: string
  readonly jobs: readonly Job[]
  /** Creates the `ask` of a run. Its asOf is the moment when the run begins. */
  readonly askNow: (job: string, signal: AbortSignal) => Ask
  /** Undefined if no other process uses the database. */
  readonly lease: JobLease | undefined
  readonly log: Logger
  /** Undefined for the timers of Node. */
  readonly timers?: JobTimers | undefined
}

const STOP_MS = 5_000

/** Creates the jobs of a product. None runs before `start`. */
export function createJobs(parts: JobParts): Jobs {
  return new JobRunner(parts)
}

class JobRunner implements Jobs {
  readonly #parts: JobParts
  readonly #counts: ReadonlyMap<string, { runs: number; failures: number }>
  readonly #running = new Set<Promise<void>>()
  readonly #timers: JobTimers
  readonly #waiting = new Set<JobTimer>()
  /** By job. They are renewed between runs too, so that a job stays in one process. */
  readonly #leases: ReadonlyMap<string, KeptLease>
  /**
   * By job: aborts the run that is under way. Each run has its own, because Node remembers in a signal whatever
   * `AbortSignal.any` has made of it, and a run does that for each request.
   */
  readonly #underWay = new Map<string, AbortController>()
  #isStarted = false
  #isStopped = false

  constructor(parts: JobParts) {
    this.#parts = parts
    const { jobs, lease, product, log, timers = NODE_TIMERS } = parts
    this.#timers = timers
    this.#counts = new Map(jobs.map(({ name }) => [name, { runs: 0, failures: 0 }]))
    const onError = (job: string) => (error: unknown) =>
      log.warn({ err: error, job }, 'the lease of a job could not be renewed')
    const leases = lease
      ? jobs.map(({ name }) => {
          const onLost = (): void => this.#underWay.get(name)?.abort()
          return [name, keepLease(lease, `${product}/${name}`, onError(name), onLost)] as const
        })
      : []
    this.#leases = new Map(leases)
  }

  start(): void {
    if (this.#isStarted) return
    this.#isStarted = true
    const { jobs, timers } = this.#parts
    // The timers of a test begin the first run too.
    for (const job of jobs)
      if (timers) this.#schedule(job, 0)
      else void this.#begin(job)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#underWay.forEach((run) => run.abort())
    this.#waiting.forEach((timer) => timer.cancel())
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise((resolve) => {
      timer = setTimeout(resolve, STOP_MS)
    })
    // A run that takes longer keeps its lease.
    const ended = Promise.all(this.#running).then(() =>
      Promise.all([...this.#leases.values()].map((lease) => lease.stop())),
    )
    await Promise.race([ended, timeout])
    clearTimeout(timer)
  }

  counts(): Readonly<Record<string, JobCount>> {
    return Object.fromEntries([...this.#counts].map(([name, count]) => [name, { ...count }]))
  }

  #begin(job: Job): Promise<void> {
    const run = this.#run(job)
    this.#running.add(run)
    return run.finally(() => this.#running.delete(run))
  }

  async #run(job: Job): Promise<void> {
    const { askNow, log } = this.#parts
    const count = this.#counts.get(job.name) as { runs: number; failures: number }
    const began = this.#timers.now()
    const run = new AbortController()
    const { signal } = run
    // Every pending request of a run listens to it, and a run may have many. Node would take that for a leak and warn.
    setMaxListeners(0, signal)
    let isOurs = true
    try {
      isOurs = (await this.#leases.get(job.name)?.hold()) ?? true
      if (isOurs)
        try {
          if (this.#isStopped) run.abort()
          this.#underWay.set(job.name, run)
          await job.run({ signal, ask: askNow(job.name, signal) })
        } finally {
          this.#underWay.delete(job.name)
          count.runs += 1
        }
    } catch (error) {
      if (signal.aborted && !this.#isStopped)
        log.warn({ err: error, job: job.name }, 'a run of a job was aborted: another process has its lease')
      else if (this.#isStopped) return
      // Data that another product is still loading are no failure: a later run finds them.
      else if (error instanceof Unavailable) log.info({ job: job.name, reason: error.message }, 'a job waits for data')
      else {
        count.failures += 1
        log.error({ err: error, job: job.name }, 'a job failed; it runs again after its interval')
      }
    }
    // The job of a process that has died moves here long before its next run would be due.
    const everySeconds = isOurs && !signal.aborted ? job.everySeconds : Math.min(job.everySeconds, RENEW_SECONDS)
    if (!this.#isStopped) this.#schedule(job, Math.max(0, everySeconds * 1000 - (this.#timers.now() - began)))
  }

  #schedule(job: Job, delayMs: number): void {
    const timer: JobTimer = this.#timers.after(delayMs, () => {
      this.#waiting.delete(timer)
      return this.#begin(job)
    })
    this.#waiting.add(timer)
  }
}
