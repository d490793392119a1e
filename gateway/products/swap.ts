/** Holds the edition that serves new calls, and swaps in the next one. */
import { type Awaitable, isPromise } from '../awaitable.ts'
import type { Logger } from '../plugin/plugin.ts'
import type { Issue } from '../validation/issue.ts'
import type { Built } from './build.ts'
import type { CurrentEdition, Edition } from './edition.ts'
import { SETUP_FAILED } from './instantiate.ts'

/** Builds an edition from the files. `previous` is the edition it follows. */
export type BuildEdition = (previous?: Edition) => Promise<Built>

export type EditionListener = (edition: Edition, previous: Edition) => void

export interface Swap extends CurrentEdition {
  /** Builds the first edition. Throws CatalogError if the catalog allows none. Call it once, before anything else. */
  open(build: BuildEdition): Promise<void>
  /** The issues that the last build found. */
  readonly issues: readonly Issue[]
  /** Builds an edition from the files and swaps it in. If the build fails, the current edition stays. */
  reload(): Promise<readonly Issue[]>
  /** Calls the listener after each swap; an error that it throws is logged. Returns a function that removes it. */
  onEdition(listener: EditionListener): () => void
  /** Does work on behalf of an edition: its plugins are not stopped before the work ends. */
  during<Result>(edition: Edition, work: () => Awaitable<Result>): Awaitable<Result>
  /** Waits for a reload that is under way, but not for long, and stops the current edition. */
  close(): Promise<void>
}

export interface SwapParts {
  /** Runs before an edition serves its first call. `readAt` is when its files were read. */
  readonly prepare: (edition: Edition, readAt: Date) => Promise<void>
  readonly now: () => Date
  readonly log: Logger
  /** When a reload that failed is tried again, and first a set-up that did. */
  readonly retryMs?: number
  /** How long `close` waits for a reload. */
  readonly closeMs?: number
}

/** How often a replaced edition is checked for calls that still use it. */
const POLL_MS = 50
const RETRY_MS = 5_000
/** The longest time between two tries to set a product up. */
const MAX_RETRY_MS = 300_000
/** A plugin that hangs while it is loaded holds a reload for longer than a gateway may take to stop. */
const CLOSE_MS = 3_000

/** Creates the holder without an edition; `open` builds the first one. */
export function createSwap(parts: SwapParts): Swap {
  return new EditionSwap(parts)
}

class EditionSwap implements Swap {
  /** Each caller waits for a reload that begins after its call, so that no change of a file is missed. */
  readonly reload = oneAtATime(() => this.#reload())
  readonly #parts: SwapParts
  readonly #runningCalls = new Map<Edition, number>()
  readonly #listeners = new Set<EditionListener>()
  #isClosing = false
  #retry: NodeJS.Timeout | undefined
  /** How often a set-up was tried again since the last change. */
  #retries = 0
  /** True if the next reload only tries again what has failed. */
  #isRetry = false
  #serving: Built | null = null
  /** Resolves when the first edition serves. A plugin that becomes ready meanwhile may ask for a reload before that. */
  #opening: Promise<BuildEdition> | null = null

  constructor(parts: SwapParts) {
    this.#parts = parts
  }

  async open(build: BuildEdition): Promise<void> {
    this.#opening = this.#openFirst(build)
    await this.#opening
  }

  async #openFirst(build: BuildEdition): Promise<BuildEdition> {
    const { prepare, now, log } = this.#parts
    const readAt = now()
    const first = await build()
    logIssues(log, first.issues)
    await prepare(first.edition, readAt)
    this.#serving = first
    this.#retryFailed(first.issues, false)
    return build
  }

  get #opened(): Built {
    if (!this.#serving) throw new Error('The first edition has not been built yet.')
    return this.#serving
  }

  get current(): Edition {
    return this.#opened.edition
  }

  get issues(): readonly Issue[] {
    return this.#opened.issues
  }

  async #reload(): Promise<readonly Issue[]> {
    clearTimeout(this.#retry)
    const isRetry = this.#isRetry
    this.#isRetry = false
    try {
      const issues = await this.#rebuild(isRetry)
      this.#retryFailed(issues, isRetry)
      return issues
    } catch (error) {
      // The database may be unreachable. Retry; otherwise the change waits for the next edit.
      this.#retryAfter(this.#parts.retryMs ?? RETRY_MS, isRetry)
      throw error
    }
  }

  /** Tries again, at growing intervals, to set up the products that could not be: what they need may have been away. */
  #retryFailed(issues: readonly Issue[], isRetry: boolean): void {
    if (!issues.some(({ rule }) => rule === SETUP_FAILED)) return
    this.#retries = isRetry ? this.#retries + 1 : 0
    this.#retryAfter((this.#parts.retryMs ?? RETRY_MS) * 2 ** this.#retries, true)
  }

  #retryAfter(ms: number, isRetry: boolean): void {
    const { log } = this.#parts
    if (!this.#serving || this.#isClosing) return
    const again = (): void => {
      this.#isRetry = isRetry
      this.reload().catch((err: unknown) => log.warn({ err }, 'the catalog was not reloaded; it is tried again'))
    }
    this.#retry = setTimeout(again, Math.min(ms, MAX_RETRY_MS)).unref()
  }

  /** @param isRetry keep the edition, and with it the open event streams, if everything is as it was */
  async #rebuild(isRetry: boolean): Promise<readonly Issue[]> {
    const { prepare, now, log } = this.#parts
    const build = await this.#opening
    if (this.#isClosing || !build) return this.issues
    const previous = this.current
    const readAt = now()
    const built = await build(previous)
    logIssues(log, built.issues)
    const { edition, issues } = built
    if (edition === previous) {
      this.#serving = built
      log.warn({ version: edition.catalog.version }, 'the edition stays as it was because of the errors above')
      return issues
    }
    if (isRetry && outcomeOf(built) === outcomeOf(this.#opened)) {
      this.#serving = { edition: previous, issues }
      await edition.stop()
      return issues
    }
    try {
      if (!this.#isClosing) await prepare(edition, readAt)
    } catch (error) {
      // A plugin that never stops must not hold up the next reload.
      edition.stop().catch((err: unknown) => log.error({ err }, 'an edition that was not used was not stopped cleanly'))
      throw error
    }
    if (this.#isClosing) {
      await edition.stop()
      return this.issues
    }
    this.#serving = built
    logEdition(log, built)
    for (const listener of this.#listeners) this.#tell(listener, edition, previous)
    await previous.stopJobs(edition)
    if (!this.#isClosing) edition.start()
    this.#retire(previous).catch((error: unknown) =>
      log.error({ err: error }, 'the previous edition was not stopped cleanly'),
    )
    return issues
  }

  /** The edition serves already, so a listener that fails must stop neither the others nor the end of the previous one. */
  #tell(listener: EditionListener, edition: Edition, previous: Edition): void {
    try {
      listener(edition, previous)
    } catch (error) {
      this.#parts.log.error({ err: error }, 'a listener of new editions failed')
    }
  }

  /** Stops an edition when its last call has ended. */
  async #retire(edition: Edition): Promise<void> {
    while ((this.#runningCalls.get(edition) ?? 0) > 0) await new Promise((wake) => setTimeout(wake, POLL_MS))
    await edition.stop()
  }

  onEdition(listener: EditionListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  during<Result>(edition: Edition, work: () => Awaitable<Result>): Awaitable<Result> {
    const result = work()
    if (!isPromise(result)) return result
    const calls = this.#runningCalls
    calls.set(edition, (calls.get(edition) ?? 0) + 1)
    return result.finally(() => {
      const remaining = (calls.get(edition) ?? 1) - 1
      if (remaining === 0) calls.delete(edition)
      else calls.set(edition, remaining)
    })
  }

  async close(): Promise<void> {
    this.#isClosing = true
    clearTimeout(this.#retry)
    let timer: NodeJS.Timeout | undefined
    const over = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.#parts.closeMs ?? CLOSE_MS)
    })
    await Promise.race([this.reload().catch(() => {}), over])
    clearTimeout(timer)
    await this.#serving?.edition.stop()
  }
}

/** The result of a build: what is sold and what is refused. */
function outcomeOf({ edition: { catalog, disabled }, issues }: Built): string {
  return JSON.stringify([
    catalog.version,
    disabled.map(({ file }) => file),
    issues.map(({ file, rule }) => [file, rule]),
  ])
}

function logIssues(log: Logger, issues: readonly Issue[]): void {
  for (const { message, ...place } of issues) log.error(place, `catalog: ${place.file}${place.pointer} ${message}`)
}

/** Logs that an edition is served, and which of its products are still those of an earlier one. */
function logEdition(log: Logger, { edition, issues }: Built): void {
  const { version, products } = edition.catalog
  const fields = { version, withheld: edition.disabled.length }
  const faulty = new Set(issues.map(({ file }) => file))
  const kept = products.filter(({ file }) => faulty.has(file)).map(({ id }) => id)
  if (kept.length === 0) log.info(fields, 'a new edition is served')
  else
    log.warn(
      { ...fields, kept },
      `a new edition is served, with ${kept.join(', ')} as before because of the errors above`,
    )
}

/**
 * Returns a function that runs `work`, one run at a time. Callers that arrive during a run share one more run, which
 * begins after it: the run that a caller waits for always begins after the call.
 */
export function oneAtATime<Result>(work: () => Promise<Result>): () => Promise<Result> {
  let running: Promise<Result> | null = null
  let next: Promise<Result> | null = null

  function run(): Promise<Result> {
    const current = work().finally(() => {
      running = null
    })
    running = current
    return current
  }

  return () => {
    if (running === null) return run()
    next ??= running
      .catch(() => {})
      .then(() => {
        next = null
        return run()
      })
    return next
  }
}
