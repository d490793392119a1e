/**
 * The points where the simulation can stop a process. Every call that leaves the code under test (journal, settler,
 * handler, pause) waits here as a step. The run then decides whether the step succeeds, fails, or is the last thing that
 * its process does.
 */
export interface Process {
  readonly id: string
  dead: boolean
}

/**
 * What happens to a step. `before` and `after`: the process dies before or after the work. `fail` and `failAfter`: the
 * step throws before or after the work.
 */
export type Fate = 'done' | 'before' | 'after' | 'fail' | 'failAfter'

export interface Step {
  readonly process: Process
  readonly name: string
  /** Runs the step, then lets the code continue to its next steps. `choice` is the source of randomness of the work. */
  happen(fate: Fate, choice: number): Promise<void>
}

export interface Steps {
  readonly pending: readonly Step[]
  /** How often each step happened in each way, by "name fate". */
  readonly counts: Map<string, number>
  /** What happened, in order, as text. */
  readonly history: string[]
  /** Holds a call of a process until the run lets it happen. A call of a dead process never returns. */
  gate<Result>(process: Process, name: string, work: (choice: number) => Result | Promise<Result>): Promise<Result>
  /** Kills a process. The bits of `choice` decide which of its pending writes still reach the journal. */
  kill(process: Process, choice: number): Promise<void>
}

/** Writes to the journal. Several can be in one commit when the process dies. */
const WRITES = /^journal\.(reserve|answered|submitted|settled|released|refused|claim|late|owed)$/
/** Steps that cannot fail, because they do not leave the process. */
const NEVER_FAILS = new Set(['pause', 'handle', 'open', 'living'])

export class StepFailed extends Error {}

export function createSteps(onKill: (process: Process) => void): Steps {
  const pending: PendingStep[] = []
  const counts = new Map<string, number>()
  const history: string[] = []

  interface PendingStep extends Step {
    work(choice: number): Promise<unknown>
  }

  async function kill(process: Process, choice: number): Promise<void> {
    if (process.dead) return
    process.dead = true
    history.push(`${process.id} dies`)
    const cut = pending.filter((step) => step.process === process)
    for (const step of cut) pending.splice(pending.indexOf(step), 1)
    for (const [at, step] of cut.entries())
      if (WRITES.test(step.name) && (choice >> (at % 8)) % 2 === 1) await step.work(0).catch(() => {})
    onKill(process)
  }

  return {
    pending,
    counts,
    history,
    kill,
    gate<Result>(process: Process, name: string, work: (choice: number) => Result | Promise<Result>): Promise<Result> {
      return new Promise((resolve, reject) => {
        if (process.dead) return
        const step: PendingStep = {
          process,
          name,
          work: async (choice) => work(choice),
          async happen(wanted, choice) {
            const fate = NEVER_FAILS.has(name) && wanted.startsWith('fail') ? 'done' : wanted
            pending.splice(pending.indexOf(step), 1)
            history.push(`${process.id} ${name} ${fate}`)
            counts.set(`${name} ${fate}`, (counts.get(`${name} ${fate}`) ?? 0) + 1)
            if (fate === 'before') await kill(process, choice)
            else if (fate === 'fail') reject(new StepFailed(`${name} failed`))
            else await done(fate, choice)
            await quiet()
          },
        }
        async function done(fate: Fate, choice: number): Promise<void> {
          const [outcome] = await Promise.allSettled([step.work(choice)])
          if (fate === 'after') await kill(process, choice)
          else if (fate === 'failAfter') reject(new StepFailed(`${name} failed after it was done`))
          else if (outcome.status === 'fulfilled') resolve(outcome.value as Result)
          else reject(outcome.reason as Error)
        }
        pending.push(step)
      })
    },
  }
}

/** Waits until all code that is ready to run has run. */
export function quiet(): Promise<void> {
  return new Promise((wake) => setImmediate(wake))
}
