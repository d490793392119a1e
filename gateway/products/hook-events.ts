/**
 * Tells hooks of settled payments and refused calls, after the answer and apart from it: a hook that throws, hangs or is
 * slow holds nothing up. What does not fit into the queue is dropped and counted in the log.
 */
import type { Logger, Refusal, Sale } from '../plugin/plugin.ts'
import type { ServedHook } from './edition.ts'
import { withTimeout } from './hooks.ts'
import type { Swap } from './swap.ts'

export interface HookEvents {
  settled(sale: Sale): void
  /** Whether a hook of the present edition wants to know of refusals: to describe one takes time. */
  readonly wantsRefusals: boolean
  refused(refusal: Refusal): void
  /** Begins to tell of what has happened since the process began. */
  start(): void
  /** Waits for the hooks that are being told, and drops the rest. */
  stop(): Promise<void>
}

interface HookEventParts {
  readonly editions: Pick<Swap, 'current' | 'during'>
  readonly log: Logger
}

type Event = { readonly kind: 'settled'; readonly about: Sale } | { readonly kind: 'refused'; readonly about: Refusal }

const MAX_QUEUED = 1_000
const CONCURRENCY = 8

/** Creates the queue of events of one process. */
export function createHookEvents({ editions, log }: HookEventParts): HookEvents {
  const queue: Event[] = []
  const running = new Set<Promise<void>>()
  let dropped = 0
  let state: 'waiting' | 'started' | 'stopped' = 'waiting'

  function add(event: Event): void {
    if (state === 'stopped') return
    if (queue.length < MAX_QUEUED) queue.push(event)
    else if (dropped++ === 0) log.warn('hooks are told of payments more slowly than these are made: some are left out')
    // The answer leaves first.
    setImmediate(advance)
  }

  function advance(): void {
    while (state === 'started' && running.size < CONCURRENCY) {
      const event = queue.shift()
      if (!event) {
        if (dropped > 0) log.warn({ dropped }, 'hooks were not told of some payments')
        dropped = 0
        return
      }
      const work = tell(event)
      running.add(work)
      void work.finally(() => {
        running.delete(work)
        advance()
      })
    }
  }

  async function tell(event: Event): Promise<void> {
    const edition = editions.current
    await editions.during(edition, () => Promise.all(edition.hooks.map((hook) => tellOne(hook, event))))
  }

  async function tellOne({ name, registration, timeoutMs }: ServedHook, event: Event): Promise<void> {
    try {
      await withTimeout<unknown>(timeoutMs, (signal) =>
        event.kind === 'settled'
          ? registration.settled?.(event.about, signal)
          : registration.refused?.(event.about, signal),
      )
    } catch (error) {
      log.error({ err: error, hook: name, call: event.about.call }, `a hook failed when told of a ${event.kind} call`)
    }
  }

  return {
    settled: (about) => add({ kind: 'settled', about }),
    get wantsRefusals() {
      return editions.current.hooks.some(({ registration }) => registration.refused)
    },
    refused: (about) => add({ kind: 'refused', about }),
    start() {
      state = 'started'
      advance()
    },
    async stop() {
      state = 'stopped'
      await Promise.all(running)
    },
  }
}
