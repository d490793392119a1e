/** The budget of `npm run bench`: how many times as much one path may cost as another, compared with what was measured. */

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

/** `--check` fails above this many times the recorded ratio. */
export const SLACK = 1.5

/**
 * Compares measured CPU, in microseconds per request by name of the case, with the budget. Leaves out lines whose cases
 * were not measured.
 *
 * @example judge([{ of: 'a', to: 'b', bar: { times: 2 }, recorded: 1, … }], new Map([['a', 30], ['b', 10]]))
 * // → [{ times: 3, microsAbove: 20, meetsBar: false, limit: 1.5, isWithinLimit: false, … }]
 */
export function judge(lines: readonly BudgetLine[], micros: ReadonlyMap<string, number>): readonly Verdict[] {
  return lines.flatMap((line) => {
    const [of, to] = [micros.get(line.of), micros.get(line.to)]
    if (of === undefined || to === undefined) return []
    const times = of / to
    const microsAbove = of - to
    const meetsBar = 'times' in line.bar ? times <= line.bar.times : microsAbove <= line.bar.microsAbove
    const limit = line.recorded === null ? null : line.recorded * SLACK
    return [{ ...line, times, microsAbove, meetsBar, limit, isWithinLimit: limit === null || times <= limit }]
  })
}

/** Returns the budget with the measured ratios recorded. Lines that were not measured and all bars stay as they are. */
export function record(lines: readonly BudgetLine[], verdicts: readonly Verdict[]): readonly BudgetLine[] {
  const measured = new Map(verdicts.map(({ name, times }) => [name, Number(times.toPrecision(3))]))
  return lines.map((line) => ({ ...line, recorded: measured.get(line.name) ?? line.recorded }))
}
