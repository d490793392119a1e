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
  readonly forecast: Float64Array
  readonly boundary: Float64Array
  /** Log volatility of the hour before each step, measured as in the product; NaN if unknown. */
  readonly realized: Float64Array
  readonly scalar: Float64Array
  /** Log return of the bar of each step. */
  readonly change: Float64Array
}

const COLUMNS = ['minute', 'probability', 'forecast', 'boundary', 'realized', 'scalar'] as const

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
  let count = 0
  let before = bars.open[0] ?? NaN
  const emit = (step: Step): void => {
    for (const name of COLUMNS) columns[name][count] = step[name]
    volatile[count] = step.volatile ? 1 : 0
    change[count] = 0
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
  }
}

/** Returns the steps at or after a minute (epoch minutes). */
export function since(whole: Track, minute: number): Track {
  const from = whole.minute.findIndex((at) => at >= minute)
  const part = <Array extends Float64Array | Uint8Array>(column: Array): Array => column.subarray(from) as Array
  return {
    stepMinutes: whole.stepMinutes,
    count: whole.count - from,
    minute: part(whole.minute),
    volatile: part(whole.volatile),
    probability: part(whole.probability),
    forecast: part(whole.forecast),
    boundary: part(whole.boundary),
    realized: part(whole.realized),
    scalar: part(whole.scalar),
    change: part(whole.change),
  }
}
