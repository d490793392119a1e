/** Costs of calls, as `npm run lab -- bench --json` prints them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** CPU of one call, in seconds. */
export interface CallCost {
  /** On the event loop. */
  readonly loop: number
  /** In other threads: the journal's statements, hashing and checks. */
  readonly others: number
}

/** The figures of docs/scale.md. */
export const RECORDED_COSTS = join(import.meta.dirname, 'costs.json')

/**
 * The part of the CPU that is spent on the event loop if the file does not say: 1,720 of 2,870 µs of a paid call were,
 * when it was last taken apart. An unpaid call does nothing elsewhere.
 */
const LOOP_PART = { paid: 0.6, unpaid: 1 }

/**
 * Reads the cost of one case from a file that `npm run lab -- bench --json` wrote.
 *
 * @throws Error if the file has no figure for this case
 */
export function readCost(file: string, name: string, kind: 'paid' | 'unpaid'): CallCost {
  const { figures } = JSON.parse(readFileSync(file, 'utf8')) as {
    readonly figures?: readonly { readonly name: string; readonly median: number; readonly loop?: number }[]
  }
  const found = figures?.find((figure) => figure.name === name)
  if (!found) throw new Error(`${file} has no figure for the case "${name}".`)
  const { median, loop = median * LOOP_PART[kind] } = found
  return { loop: loop / 1e6, others: Math.max(0, median - loop) / 1e6 }
}
