/** Measures of a soak run and their limits: errors by code, recovery after a fault, growth of the heap. */
import { percentile } from '../bench/percentile.ts'

/** How one request ended. */
export type Ending =
  /** As it should. */
  | 'answered'
  /** Nothing was charged and the caller knows when to come back. */
  | 'refused'
  /** The connection broke, or no answer came in time. */
  | 'lost'
  /** Any other answer. */
  | 'wrong'

export interface Sample {
  /** Kind of request: `402`, `free`, `token`, `paid` or `mcp`. */
  readonly kind: string
  /** When it was due, in milliseconds of one clock. */
  readonly at: number
  /** Milliseconds from then until its end. */
  readonly ms: number
  readonly ending: Ending
  /** The status and the error code. */
  readonly outcome: string
}

const WINDOW_MS = 1_000
const STEP_MS = 100

/** Whether a request paid for an answer. */
export function isPurchase({ kind }: Sample): boolean {
  return kind === 'paid' || kind === 'mcp'
}

/** Latencies by request kind; Infinity if unanswered. */
export function timesOf(kind: string, samples: readonly Sample[]): readonly number[] {
  return samples
    .filter((sample) => sample.kind === kind)
    .map(({ ms, ending }) => (ending === 'answered' ? ms : Number.POSITIVE_INFINITY))
}

/** Seconds from the end of a fault; infinity if it has not happened. */
export interface Recovery {
  /** Until a purchase that was sent after the fault has been delivered. */
  readonly sold: number
  /** Until the 402s of a whole second are answered in normal time again. */
  readonly quoted: number
}

/**
 * Returns how long the gateway took to recover from a fault.
 *
 * @param endedAt on the clock of the samples
 * @param normalMs the highest p99 of 402s that counts as normal
 */
export function recoveryOf(samples: readonly Sample[], endedAt: number, normalMs: number): Recovery {
  const since = samples.filter(({ at }) => at >= endedAt)
  const delivered = since
    .filter((sample) => isPurchase(sample) && sample.ending === 'answered')
    .map(({ at, ms }) => at + ms)
  return { sold: (Math.min(...delivered) - endedAt) / 1000, quoted: quotedAgain(since, endedAt, normalMs) }
}

function quotedAgain(since: readonly Sample[], endedAt: number, normalMs: number): number {
  const last = Math.max(...since.map(({ at }) => at))
  for (let from = endedAt; from + WINDOW_MS <= last; from += STEP_MS) {
    const within = timesOf(
      '402',
      since.filter(({ at }) => at >= from && at < from + WINDOW_MS),
    )
    if (within.length > 0 && percentile(within, 0.99) <= normalMs) return (from - endedAt) / 1000
  }
  return Number.POSITIVE_INFINITY
}

/** Counts the outcomes of all requests that were not answered as they should. */
export function errorsByCode(samples: readonly Sample[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const { ending, outcome } of samples) if (ending !== 'answered') counts[outcome] = (counts[outcome] ?? 0) + 1
  return counts
}

/** When a fault was, on the clock of the samples. */
export interface FaultWindow {
  readonly name: string
  readonly beganAt: number
  readonly endedAt: number
  /** Breaks connections. */
  readonly cuts: boolean
}

/** How long the gateway may take to recover. */
export const RECOVERY_MS = 5_000
/** The share of requests that may be refused while there is no fault. */
const CALM_REFUSALS = 0.001

/**
 * Holds the requests around one fault against the error budget: refusals and, if the fault breaks connections, lost
 * requests are allowed from its beginning until five seconds after its end, and one refusal in a thousand at other times.
 * Returns what goes beyond that, as sentences.
 */
export function budgetBreaches(samples: readonly Sample[], fault: FaultWindow): readonly string[] {
  const isDuring = ({ at, ms }: Sample): boolean => at + ms >= fault.beganAt && at <= fault.endedAt + RECOVERY_MS
  const describe = (found: readonly Sample[]): string =>
    Object.entries(errorsByCode(found))
      .map(([outcome, count]) => `${count} × ${outcome}`)
      .join(', ')
  const wrong = samples.filter(({ ending }) => ending === 'wrong')
  const lost = samples.filter((sample) => sample.ending === 'lost' && !(fault.cuts && isDuring(sample)))
  const refused = samples.filter((sample) => sample.ending === 'refused' && !isDuring(sample))
  return [
    ...(wrong.length > 0 ? [`answers that must never be: ${describe(wrong)}`] : []),
    ...(lost.length > 0 ? [`requests without an answer: ${describe(lost)}`] : []),
    ...(refused.length > samples.length * CALM_REFUSALS ? [`refusals without a fault: ${describe(refused)}`] : []),
  ]
}

/** The memory of one process at one moment. */
export interface Memory {
  readonly pid: number
  readonly minute: number
  /** Megabytes that are used after a collection. */
  readonly heap: number
  /** Megabytes. */
  readonly resident: number
}

/**
 * Returns the megabytes by which the heap of a process grows in a minute: one slope through the measurements of all
 * processes, each moved to its own mean (least squares with a fixed effect). NaN if no process has lived long enough.
 *
 * @param warmMinutes so many measurements of each process are left out: its caches fill, a different one with each fault
 */
export function heapSlope(memory: readonly Memory[], warmMinutes: number): number {
  let [above, below] = [0, 0]
  for (const process of new Set(memory.map(({ pid }) => pid))) {
    const points = memory.filter(({ pid }) => pid === process).slice(warmMinutes)
    const mean = (of: (point: Memory) => number): number =>
      points.reduce((sum, point) => sum + of(point), 0) / points.length
    const [minute, heap] = [mean((point) => point.minute), mean((point) => point.heap)]
    for (const point of points) {
      above += (point.minute - minute) * (point.heap - heap)
      below += (point.minute - minute) ** 2
    }
  }
  return below === 0 ? Number.NaN : above / below
}
