/** Runs recorded bars through the model as the product does, and stores the steps in columns. */
import type { Columns } from '../../../plugins/market/bars.ts'
import { advance, createModel, type ModelState, type Step } from '../../../plugins/regime/regime-model.ts'
import type { Fit } from '../../../plugins/regime/volatility-fit.ts'

export interface Track {
  readonly stepMinutes: number
  readonly count: number
  readonly minute: Float64Array
  readonly volatile: Uint8Array
  readonly probability: Float64Array
  readonly confidence: Float64Array
  readonly forecast: Float64Array
  readonly mean: Float64Array
  readonly p10: Float64Array
  readonly p90: Float64Array
  readonly boundary: Float64Array
  /** Log volatility of the hour before each step, measured as in the product; NaN if unknown. */
  readonly realized: Float64Array
  readonly scalar: Float64Array
  /** Log return of the bar of each step. */
  readonly change: Float64Array
  /** Log volatility by exponentially weighted averages with half-lives of 4, 11 and 24 hours. */
  readonly ewma4: Float64Array
  readonly ewma: Float64Array
  readonly ewma24: Float64Array
}

export const COLUMNS = [
  'minute',
  'probability',
  'confidence',
  'forecast',
  'mean',
  'p10',
  'p90',
  'boundary',
  'realized',
  'scalar',
] as const

/** Runs the bars through `model` and returns its steps, one per bar length. */
export function track(
  bars: Columns,
  barMinutes: number,
  fit?: Fit,
  model: ModelState = createModel(barMinutes, fit),
): Track {
  const last = bars.count > 0 ? bars.time[bars.count - 1]! : 0
  const room = Math.ceil((last - (bars.time[0] ?? 0)) / 60 / barMinutes) + 1
  const columns = Object.fromEntries(COLUMNS.map((name) => [name, new Float64Array(room)])) as Record<
    (typeof COLUMNS)[number],
    Float64Array
  >
  const volatile = new Uint8Array(room)
  const change = new Float64Array(room)
  const averages = [new Float64Array(room), new Float64Array(room), new Float64Array(room)] as const
  let count = 0
  let before = bars.open[0] ?? NaN
  const emit = (step: Step): void => {
    for (const name of COLUMNS) columns[name][count] = step[name]
    volatile[count] = step.volatile ? 1 : 0
    change[count] = 0
    for (const [i, average] of averages.entries()) average[count] = 0.5 * Math.log(model.measures.averages[i]! + 1e-12)
    count += 1
  }
  const { time, open, high, low, close } = bars
  for (let i = 0; i < bars.count; i += 1) {
    const emitted = count
    advance(model, time[i]! / 60, open[i]!, high[i]!, low[i]!, close[i]!, emit)
    if (count > emitted) change[count - 1] = Math.log(close[i]! / before)
    before = close[i]!
  }
  const cut = Object.fromEntries(COLUMNS.map((name) => [name, columns[name].subarray(0, count)])) as typeof columns
  return {
    stepMinutes: barMinutes,
    count,
    ...cut,
    volatile: volatile.subarray(0, count),
    change: change.subarray(0, count),
    ewma4: averages[0].subarray(0, count),
    ewma: averages[1].subarray(0, count),
    ewma24: averages[2].subarray(0, count),
  }
}

/** Returns the steps at or after a minute (epoch minutes). */
export function since(whole: Track, minute: number): Track {
  const from = whole.minute.findIndex((at) => at >= minute)
  return slice(whole, from, whole.count)
}

/** Returns the steps before a minute (epoch minutes). */
export function until(whole: Track, minute: number): Track {
  return slice(whole, 0, whole.minute.filter((at) => at < minute).length)
}

function slice(whole: Track, from: number, to: number): Track {
  const names = [...COLUMNS, 'change', 'ewma4', 'ewma', 'ewma24', 'volatile'] as const
  const part = Object.fromEntries(names.map((name) => [name, whole[name].subarray(from, to)]))
  return { ...whole, ...part, count: to - from }
}
