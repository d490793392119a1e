/** Tests two promises on real bars: one bad print does not set the regime, and later bars do not change earlier steps. */
import { deserialize, serialize } from 'node:v8'
import type { Columns } from '../../../plugins/market/bars.ts'
import { createModel, type ModelState } from '../../../plugins/regime/regime-model.ts'
import { COLUMNS, track, type Track } from './model-track.ts'

const TRIALS = 20
const SPIKE = 1.05
const DAY = 1440

/**
 * Plants one bad print at 20 places in the second half of the recording: a close 5% too high, where the next bar opens
 * before the price returns. Returns for each place how many steps of the following day change their label.
 */
export function badPrintTrials(bars: Columns, barMinutes: number): number[] {
  const places = Array.from({ length: TRIALS }, (_, i) => Math.floor(bars.count * (0.5 + (0.48 * i) / TRIALS)))
  const day = DAY / barMinutes
  const model = createModel(barMinutes)
  let reached = 0
  return places.map((place) => {
    track(slice(bars, reached, place), barMinutes, undefined, model)
    reached = place
    const state = serialize(model)
    const clean = slice(bars, place, place + day)
    const run = (part: Columns): Track =>
      track(part, barMinutes, undefined, deserialize(Buffer.from(state)) as ModelState)
    const [expected, disturbed] = [run(clean), run(withSpike(clean, 10))]
    return expected.volatile.reduce((sum, label, i) => sum + (label === disturbed.volatile[i] ? 0 : 1), 0)
  })
}

function withSpike(bars: Columns, at: number): Columns {
  const [open, high, low, close] = [bars.open, bars.high, bars.low, bars.close].map((column) => column.slice())
  const wrong = bars.close[at]! * SPIKE
  close![at] = wrong
  high![at] = Math.max(high![at]!, wrong)
  open![at + 1] = wrong
  high![at + 1] = Math.max(high![at + 1]!, wrong)
  return { ...bars, open: open!, high: high!, low: low!, close: close! }
}

/** The bars beyond six standard deviations of the series, and how many of them raised the scalar. */
export function raisedAtJumps({ change, scalar, count }: Track): { readonly bars: number; readonly raised: number } {
  const deviation = Math.sqrt(change.reduce((sum, move) => sum + move ** 2, 0) / count)
  const jumps = [...change.keys()].filter((i) => i > 0 && Math.abs(change[i]!) > 6 * deviation)
  return { bars: jumps.length, raised: jumps.filter((i) => scalar[i]! > scalar[i - 1]!).length }
}

/**
 * Returns true if the first 70% of the bars give byte-identical steps with and without the rest, even when the model is
 * saved halfway and restored.
 */
export function prefixHolds(bars: Columns, barMinutes: number, whole: Track): boolean {
  const model = createModel(barMinutes)
  const half = Math.floor(bars.count / 2)
  const begun = track(slice(bars, 0, half), barMinutes, undefined, model)
  const restored = deserialize(serialize(model)) as ModelState
  const continued = track(slice(bars, half, Math.floor(bars.count * 0.7)), barMinutes, undefined, restored)
  return sameFrom(whole, 0, begun) && sameFrom(whole, begun.count, continued)
}

function sameFrom(whole: Track, start: number, part: Track): boolean {
  return ([...COLUMNS, 'volatile'] as const).every((name) => {
    const expected = whole[name].slice(start, start + part.count)
    const found = part[name].slice()
    return Buffer.from(expected.buffer).equals(Buffer.from(found.buffer))
  })
}

function slice(bars: Columns, from: number, to: number): Columns {
  const part = <Array extends Float64Array | Uint8Array>(column: Array): Array => column.subarray(from, to) as Array
  const time = part(bars.time)
  return {
    count: time.length,
    time,
    open: part(bars.open),
    high: part(bars.high),
    low: part(bars.low),
    close: part(bars.close),
    volume: part(bars.volume),
    state: part(bars.state),
  }
}
