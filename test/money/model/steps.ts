/**
 * Where a process can be stopped. Every call that leaves the code under test (journal, settler, handler, pause) waits
 * here as a step until the run lets it happen, fail, or be the last thing its process ever did.
 */
export interface Process {
  readonly id: string
  dead: boolean
}

/** `before` and `after`: the process dies, the work undone or done. `fail` and `failAfter`: it throws instead. */
export type Fate = 'done' | 'before' | 'after' | 'fail' | 'failAfter'

export interface Step {
  readonly process: Process
  readonly name: string
  /** Does it, and lets the code run on to its next steps. `choice` decides what is open about it. */
  happen(fate: Fate, choice: number): Promise<void>
}

export interface Steps {
  readonly pending: readonly Step[]
  /** How often each step happened in each way, by "name fate". */
  readonly counts: Map<string, number>
  /** What happened, in order, for people. */
  readonly story: string[]
  /** Puts a call of a process on hold. In a dead process it stays there for ever. */
  gate<Result>(process: Process, name: string, work: (choice: number) => Result | Promise<Result>): Promise<Result>
  /** Ends a process: nothing of it runs on. Each write it had under way is done or not, as the bits of `choice` say. */
  kill(process: Process, choice: number): Promise<void>
}

/** Writes of the ledger: several can be in one commit when the process dies. */
const WRITES = /^journal\.(reserve|answered|submitted|settled|released|refused|claim|late|owed)$/
/** What cannot throw: it is not a call to the outside. */
const SURE = new Set(['pause', 'handle', 'open', 'living'])

export class StepFailed extends Error {}

export function createSteps(onKill: (process: Process) => void): Steps {
  const pending: Held[] = []
  const counts = new Map<string, number>()
  const story: string[] = []

  interface Held extends Step {
    work(choice: number): Promise<unknown>
  }

  async function kill(process: Process, choice: number): Promise<void> {
    if (process.dead) return
    process.dead = true
    story.push(`${process.id} dies`)
    const cut = pending.filter((step) => step.process === process)
    for (const step of cut) pending.splice(pending.indexOf(step), 1)
    for (const [at, step] of cut.entries())
      if (WRITES.test(step.name) && (choice >> (at % 8)) % 2 === 1) await step.work(0).catch(() => {})
    onKill(process)
  }

  return {
    pending,
    counts,
    story,
    kill,
    gate<Result>(process: Process, name: string, work: (choice: number) => Result | Promise<Result>): Promise<Result> {
      return new Promise((resolve, reject) => {
        if (process.dead) return
        const step: Held = {
          process,
          name,
          work: async (choice) => work(choice),
          async happen(wanted, choice) {
            const fate = SURE.has(name) && wanted.startsWith('fail') ? 'done' : wanted
            pending.splice(pending.indexOf(step), 1)
            story.push(`${process.id} ${name} ${fate}`)
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

/** Lets everything run that waits for nothing. */
export function quiet(): Promise<void> {
  return new Promise((wake) => setImmediate(wake))
}
