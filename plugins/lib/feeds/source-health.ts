/**
 * Remembers which sources answer, for each thing that is asked of them: a symbol that a venue has delisted says nothing
 * about the others. After a failure a source is not asked for a while, longer after each further one.
 */
import type { RequestError } from './requests.ts'

/** How a source has failed for one thing. */
export interface SourceRecord {
  readonly source: string
  /** What is asked of it, such as a symbol; '' for everything. */
  readonly item: string
  /** Failures in a row. */
  readonly failures: number
  /** HTTP status of the last failure; 0 without an answer. */
  readonly status: number
  readonly reason: string
  /** Time of the first of these failures, epoch seconds. */
  readonly since: number
  /** The source is not asked before this time, epoch seconds. */
  readonly until: number
}

export interface SourceHealthOptions {
  /** Epoch seconds. */
  readonly now: () => number
  /** Keeps a record beyond this process. `failures` is 0 once the source has answered again. */
  readonly save: (record: SourceRecord) => Promise<void>
}

export type Failure = Pick<RequestError, 'status' | 'message' | 'retryAfterSeconds'>

/** Refused, or unknown there: nothing that a repetition soon would change. */
const REFUSALS = new Set([401, 403, 404, 405, 410, 418, 451])
/** Limits count for everything that is asked from our address. */
const LIMITS = new Set([418, 429])
const DAY = 86_400
/** First pause, what each further failure multiplies it by, and the longest, in seconds. */
const PAUSES = {
  refused: [600, 4, DAY],
  limited: [30, 2, 3600],
  failed: [10, 2, 120],
} as const

/**
 * Seconds for which a source is left alone after `failures` failures in a row.
 *
 * @example quarantineSeconds({ status: 503, retryAfterSeconds: null }, 3) // 40
 */
export function quarantineSeconds(
  { status, retryAfterSeconds }: Pick<Failure, 'status' | 'retryAfterSeconds'>,
  failures: number,
): number {
  const kind = status === 429 ? 'limited' : REFUSALS.has(status) ? 'refused' : 'failed'
  const [first, factor, longest] = PAUSES[kind]
  return Math.min(DAY, Math.max(retryAfterSeconds ?? 0, Math.min(longest, first * factor ** (failures - 1))))
}

/** The health of sources by what is asked of them. */
export class SourceHealth {
  readonly #options: SourceHealthOptions
  #records = new Map<string, SourceRecord>()

  constructor(options: SourceHealthOptions) {
    this.#options = options
  }

  /** Replaces what is remembered, as another process has stored it. */
  load(records: readonly SourceRecord[]): void {
    this.#records = new Map(records.map((record) => [keyOf(record.source, record.item), record]))
  }

  /** False while the source must not be asked for the item. */
  isUsable(source: string, item: string): boolean {
    const now = this.#options.now()
    return [item, ''].every((one) => now >= (this.#records.get(keyOf(source, one))?.until ?? 0))
  }

  /**
   * Records a failure and returns for how many seconds the source is left alone. A failure during a pause is that of a request
   * which was under way when the pause began: the same incident, so it does not make the next pauses longer, nor this one shorter.
   */
  async failed(source: string, item: string, failure: Failure): Promise<number> {
    const now = this.#options.now()
    const of = LIMITS.has(failure.status) ? '' : item
    const earlier = this.#records.get(keyOf(source, of))
    const paused = earlier && now < earlier.until ? earlier : null
    const failures = paused?.failures ?? (earlier?.failures ?? 0) + 1
    const until = Math.max(paused?.until ?? 0, now + quarantineSeconds(failure, failures))
    await this.#keep({
      source,
      item: of,
      failures,
      status: failure.status,
      reason: failure.message,
      since: earlier?.since ?? now,
      until,
    })
    return until - now
  }

  /** Records that the source has answered for the item. An answer that was under way when a pause began does not end it. */
  async answered(source: string, item: string): Promise<void> {
    const now = this.#options.now()
    for (const of of [item, '']) {
      const record = this.#records.get(keyOf(source, of))
      if (record && now >= record.until) await this.#keep({ ...record, failures: 0, until: 0 })
    }
  }

  /** Sources that have failed since they last answered. */
  failing(): readonly SourceRecord[] {
    return [...this.#records.values()]
  }

  async #keep(record: SourceRecord): Promise<void> {
    const key = keyOf(record.source, record.item)
    if (record.failures === 0) this.#records.delete(key)
    else this.#records.set(key, record)
    await this.#options.save(record)
  }
}

const keyOf = (source: string, item: string): string => `${source} ${item}`
