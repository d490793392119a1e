/** Holds the edition that serves new calls, and replaces it with the next one. */
import type { Built } from './build.ts'
import type { Issue } from '../validation/issue.ts'
import type { Logger } from '../plugin/plugin.ts'
import type { CurrentEdition, Edition } from './edition.ts'
import { oneAtATime } from './mutex.ts'

/** Builds an edition from the files. `previous` is the edition it follows. */
export type BuildEdition = (previous?: Edition) => Promise<Built>

export interface Swap extends CurrentEdition {
  /** Builds the first edition. Throws CatalogError if the catalog allows none. Call it once, before anything else. */
  open(build: BuildEdition): Promise<void>
  /** What the last build found wrong. */
  readonly issues: readonly Issue[]
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
  /** Runs before an edition serves its first call. `readAt` is when its files were read. */
  readonly prepare: (edition: Edition, readAt: Date) => Promise<void>
  readonly now: () => Date
  readonly log: Logger
}

const LOOK_MS = 50

/** Creates the holder without an edition; `open` builds the first one. */
export function createSwap({ prepare, now, log }: SwapParts): Swap {
  const inFlight = new Map<Edition, number>()
  const listeners = new Set<(edition: Edition, before: Edition) => void>()
  let closing = false
  let serving: Built | null = null
  let opening: Promise<BuildEdition> | null = null

  function opened(): Built {
    if (!serving) throw new Error('No edition serves yet.')
    return serving
  }

  /** Builds the first edition and resolves with the way to build the next ones. */
  async function openFirst(build: BuildEdition): Promise<BuildEdition> {
    const readAt = now()
    const first = await build()
    report(log, first.issues)
    await prepare(first.edition, readAt)
    serving = first
    return build
  }

  const reload = oneAtATime(async () => {
    const build = await opening
    if (closing || !build) return opened().issues
    const old = opened().edition
    const readAt = now()
    const built = await build(old)
    report(log, built.issues)
    const { edition, issues } = built
    if (edition === old) {
      serving = built
      return issues
    }
    try {
      await prepare(edition, readAt)
    } catch (error) {
      await edition.stop()
      throw error
    }
    serving = built
    log.info({ version: edition.catalog.version, withheld: edition.disabled.length }, 'a new edition serves')
    for (const listener of listeners) listener(edition, old)
    await old.stopJobs(edition)
    edition.start()
    retire(old).catch((error: unknown) => log.error({ err: error }, 'the old edition did not stop cleanly'))
    return issues
  })

  /** The old edition stops when its last call has ended. */
  async function retire(edition: Edition): Promise<void> {
    while ((inFlight.get(edition) ?? 0) > 0) await new Promise((wake) => setTimeout(wake, LOOK_MS))
    await edition.stop()
  }

  return {
    async open(build) {
      opening = openFirst(build)
      await opening
    },
    get current() {
      return opened().edition
    },
    get issues() {
      return opened().issues
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
      await serving?.edition.stop()
    },
  }
}

function report(log: Logger, issues: readonly Issue[]): void {
  for (const { message, ...place } of issues) log.error(place, `catalog: ${place.file}${place.pointer} ${message}`)
}
