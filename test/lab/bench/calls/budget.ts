/** The budget of `npm run lab -- bench`: how many times as much one path may cost as another, compared with what was measured. */
import { median } from '../../../../plugins/lib/quant/rolling-median.ts'

/** The highest that a figure may be: times the other path, or microseconds above it. */
export type Bar = { readonly times: number } | { readonly microsAbove: number }

/** One line of budget.json. */
export interface BudgetLine {
  readonly name: string
  /** The case that is judged, and the case that it is compared with. */
  readonly of: string
  readonly to: string
  readonly bar: Bar
  /** How many times as much it cost when it was last recorded. Null: it was never measured. */
  readonly recorded: number | null
}

export interface Verdict extends BudgetLine {
  readonly times: number
  readonly microsAbove: number
  readonly meetsBar: boolean
  /** The highest ratio that passes `--check`; null if none was recorded. */
  readonly limit: number | null
  readonly isWithinLimit: boolean
}

/**
 * `--check` fails above this many times the recorded ratio, by the median of the rounds and by their cheapest ones too:
 * other work on the machine raises the one or the other, and a call that costs more raises both.
 */
export const SLACK = 1.5

/**
 * Compares measured CPU with the budget. Cases that were measured in turn met the same machine, so each round gives a
 * ratio of its own, and their median counts. Leaves out lines whose cases were not measured.
 *
 * @param rounds microseconds per request in each round, by name of the case
 *
 * @example judge([{ of: 'a', to: 'b', bar: { times: 2 }, recorded: 1, … }], new Map([['a', [30]], ['b', [10]]]))
 * // → [{ times: 3, microsAbove: 20, meetsBar: false, limit: 1.5, isWithinLimit: false, … }]
 */
export function judge(
  lines: readonly BudgetLine[],
  rounds: ReadonlyMap<string, readonly number[]>,
): readonly Verdict[] {
  return lines.flatMap((line) => {
    const [of, to] = [rounds.get(line.of), rounds.get(line.to)]
    if (of === undefined || to === undefined) return []
    const times = medianRatio(of, to)
    const microsAbove = median(inBoth(of, to).map(([one, other]) => one - other))
    const meetsBar = 'times' in line.bar ? times <= line.bar.times : microsAbove <= line.bar.microsAbove
    const limit = line.recorded === null ? null : line.recorded * SLACK
    const isWithinLimit = limit === null || Math.min(times, Math.min(...of) / Math.min(...to)) <= limit
    return [{ ...line, times, microsAbove, meetsBar, limit, isWithinLimit }]
  })
}

/** The median of the ratios of two cases, round by round. */
export function medianRatio(of: readonly number[], to: readonly number[]): number {
  return median(inBoth(of, to).map(([one, other]) => one / other))
}

/** The rounds that both cases have: one of them may have been measured more often, for the sake of another line. */
function inBoth(of: readonly number[], to: readonly number[]): readonly (readonly [number, number])[] {
  return of.flatMap((micros, round) => {
    const other = to[round]
    return other === undefined ? [] : [[micros, other] as const]
  })
}

/** Returns the budget with the measured ratios recorded. Lines that were not measured and all bars stay as they are. */
export function record(lines: readonly BudgetLine[], verdicts: readonly Verdict[]): readonly BudgetLine[] {
  const measured = new Map(verdicts.map(({ name, times }) => [name, Number(times.toPrecision(3))]))
  return lines.map((line) => ({ ...line, recorded: measured.get(line.name) ?? line.recorded }))
}
