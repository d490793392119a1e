/**
 * The messages between the processes of one gateway: how often callers called, and which operations are paused.
 * Processes of one machine tell it their primary, which keeps it in memory; processes of several machines tell it a
 * Redis.
 */

/** Calls of one caller that this process has admitted and not yet reported. Negative to take some back. */
export interface AddedCalls {
  /** Names the caller. It is a hash: neither addresses nor tokens leave the process. */
  readonly caller: string
  readonly calls: number
  /** How long the window in which they were counted lasts, if they are the first of it. */
  readonly msLeft: number
}

/** The calls of one caller to all processes in the present window. */
export interface CallTotal {
  readonly calls: number
  /** How long the window lasts. */
  readonly msLeft: number
}

export interface PauseChange {
  readonly operation: string
  /** Milliseconds until the operation is tried again; null ends the pause. */
  readonly msLeft: number | null
  /** The last version that this process knows. A pause that is another one by now does not end. */
  readonly version: string | null
}

export interface Pause {
  readonly operation: string
  /** Another one after each change. */
  readonly version: string
  /** Null if the pause was ended. */
  readonly msLeft: number | null
}

/** The other processes. Every function rejects if they cannot be reached. */
export interface Peers {
  /** Adds calls to what all processes counted. Returns the totals in the same order. */
  addCalls(added: readonly AddedCalls[]): Promise<readonly CallTotal[]>
  /** Makes changes, and returns every pause that began or ended during the last minutes. */
  exchangePauses(changes: readonly PauseChange[]): Promise<readonly Pause[]>
}

/** Something that is counted until it ends. */
interface Ending {
  readonly endsAt: number
}

/** How many callers are counted at once. Beyond that, the count that began first is forgotten. */
const MAX_CALLERS = 100_000
/** How many counts are deleted at once, so that no call waits for many. It is more than are added at once. */
const FORGOTTEN_AT_ONCE = 10

/**
 * Makes room for a count: deletes the oldest ones that have ended, or that exceed the limit. Counts are added as their
 * windows begin.
 */
export function makeRoom(counts: Map<string, Ending>, now: number): void {
  let forgotten = 0
  for (const [caller, { endsAt }] of counts) {
    if ((endsAt > now && counts.size < MAX_CALLERS) || forgotten === FORGOTTEN_AT_ONCE) return
    counts.delete(caller)
    forgotten += 1
  }
}

/** Keeps in memory what processes tell each other. `now` counts milliseconds and never goes back. */
export class PeersInMemory implements Peers {
  readonly #now: () => number
  readonly #counts = new Map<string, { calls: number; readonly endsAt: number; readonly ms: number }>()
  readonly #pauses = new Map<string, { readonly version: string; readonly until: number | null; readonly ms: number }>()
  #changes = 0

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  async addCalls(added: readonly AddedCalls[]): Promise<readonly CallTotal[]> {
    const now = this.#now()
    return added.map(({ caller, calls, msLeft }) => {
      let count = this.#counts.get(caller)
      if (!count || count.endsAt <= now) {
        this.#counts.delete(caller)
        makeRoom(this.#counts, now)
        this.#counts.set(caller, (count = { calls: 0, endsAt: now + msLeft, ms: msLeft }))
      }
      count.calls += calls
      // Sums of fractions are rounded: what is left could be a little more than what there was.
      return { calls: count.calls, msLeft: Math.min(count.ms, count.endsAt - now) }
    })
  }

  async exchangePauses(changes: readonly PauseChange[]): Promise<readonly Pause[]> {
    const now = this.#now()
    for (const { operation, msLeft, version } of changes) {
      if (msLeft === null && this.#pauses.get(operation)?.version !== version) continue
      this.#changes += 1
      const until = msLeft === null ? null : now + msLeft
      this.#pauses.set(operation, { version: String(this.#changes), until, ms: msLeft ?? 0 })
    }
    return [...this.#pauses].map(([operation, { version, until, ms }]) => ({
      operation,
      version,
      msLeft: until === null ? null : Math.min(ms, until - now),
    }))
  }
}
