/** The one mutable reference: which edition serves new calls, and how the next one takes its place. */
import type { Issue } from '../validation/issue.ts'
import type { Logger } from '../plugin/plugin.ts'
import type { CurrentEdition, Edition } from './edition.ts'
import { oneAtATime } from './mutex.ts'

export interface Built {
  readonly edition: Edition
  readonly mistakes: readonly Issue[]
}

export interface Swap extends CurrentEdition {
  /** What the last build found wrong. */
  readonly mistakes: readonly Issue[]
  /** Builds from the files and swaps the new edition in. Where the build fails, all stays as it is. */
  reload(): Promise<readonly Issue[]>
  /** Calls back after each swap; returns the way to stop. */
  onEdition(listener: (edition: Edition, before: Edition) => void): () => void
  /** Work on behalf of an edition: its plugins are not stopped before it ends. */
  during<Result>(edition: Edition, work: () => Promise<Result>): Promise<Result>
  /** Waits for a reload that runs, and stops the current edition. */
  close(): Promise<void>
}

export interface SwapParts {
  readonly build: (previous?: Edition) => Promise<Built>
  /** Runs before an edition serves its first call. */
  readonly prepare: (edition: Edition) => Promise<void>
  readonly log: Logger
}

const LOOK_MS = 50

/** Builds the first edition. Throws CatalogError where there can be none. */
export async function createSwap({ build, prepare, log }: SwapParts): Promise<Swap> {
  const inFlight = new Map<Edition, number>()
  const listeners = new Set<(edition: Edition, before: Edition) => void>()
  let closing = false
  const first = await build()
  report(log, first.mistakes)
  await prepare(first.edition)
  let { edition: current, mistakes } = first

  const reload = oneAtATime(async () => {
    if (closing) return mistakes
    const old = current
    const built = await build(old)
    report(log, built.mistakes)
    const { edition } = built
    if (edition === old) return (mistakes = built.mistakes)
    try {
      await prepare(edition)
    } catch (error) {
      await edition.stop()
      throw error
    }
    ;({ edition: current, mistakes } = built)
    log.info({ version: edition.catalog.version, withheld: edition.withheld.length }, 'a new edition serves')
    for (const listener of listeners) listener(edition, old)
    await old.stopJobs(edition)
    edition.start()
    retire(old).catch((error: unknown) => log.error({ err: error }, 'the old edition did not stop cleanly'))
    return mistakes
  })

  /** The old edition stops when its last call has ended. */
  async function retire(edition: Edition): Promise<void> {
    while ((inFlight.get(edition) ?? 0) > 0) await new Promise((wake) => setTimeout(wake, LOOK_MS))
    await edition.stop()
  }

  return {
    get current() {
      return current
    },
    get mistakes() {
      return mistakes
    },
    reload,
    onEdition(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    async during(edition, work) {
      inFlight.set(edition, (inFlight.get(edition) ?? 0) + 1)
      try {
        return await work()
      } finally {
        const left = (inFlight.get(edition) ?? 1) - 1
        if (left === 0) inFlight.delete(edition)
        else inFlight.set(edition, left)
      }
    },
    async close() {
      closing = true
      await reload().catch(() => {})
      await current.stop()
    },
  }
}

function report(log: Logger, mistakes: readonly Issue[]): void {
  for (const { message, ...place } of mistakes) log.error(place, `catalog: ${place.file}${place.pointer} ${message}`)
}
