import { centredMedian } from './scale.ts'
import type { Add } from './finding.ts'
import type { Scales, Series } from './series.ts'

const DEVIATIONS = 5
const TIMES_MEDIAN = 30
const TIMES_NEIGHBOURS = 8
const ORDINARY_RANGE = 4
/** Zero volume means something only where it is rare. */
const RARE = 0.05

/**
 * Volume far out of line on an ordinary range (log volume more than 5 local deviations, 30 times the local median and 8
 * times the largest of six neighbours), and bars that moved on no volume where such bars are rare.
 */
export function checkVolume(series: Series, scales: Scales, add: Add): void {
  const { volume, count, rows, high, low, close } = series
  if (!volume) return
  const logs = volume.map((value) => (value > 0 ? Math.log(value) : NaN))
  const centre = centredMedian(logs, 101)
  const deviation = centredMedian(
    logs.map((value, i) => Math.abs(value - centre[i]!)),
    101,
  ).map((value) => Math.max(1.4826 * value, 0.1))
  const zeros = volume.reduce((sum, value) => sum + (value === 0 ? 1 : 0), 0)
  for (let i = 0; i < count; i += 1) {
    const [value, usual] = [volume[i]!, scales.usualVolume[i]!]
    const common = {
      index: rows[i]!,
      field: 'volume',
      observed: value,
      expected: usual || null,
      severity: 'warning',
    } as const
    const score = (logs[i]! - centre[i]!) / deviation[i]!
    const out =
      score > DEVIATIONS && value > TIMES_MEDIAN * usual && value > TIMES_NEIGHBOURS * largestAround(volume, i)
    if (out && scales.range[i]! < ORDINARY_RANGE * scales.local[i]!) {
      const explanation = `${(value / usual).toPrecision(3)} times the usual volume on an ordinary range`
      add({ ...common, code: 'volume_outlier', score, confidence: 0.95, explanation })
    }
    const moved = high[i] !== low[i] || close[i] !== (close[i - 1] ?? close[i])
    if (value === 0 && moved && zeros < RARE * count) {
      const explanation = 'the price moved on no volume'
      add({ ...common, code: 'zero_volume_move', score: null, confidence: 0.8, explanation })
    }
  }
}

function largestAround(volume: Float64Array, i: number): number {
  let largest = 0
  for (let j = Math.max(0, i - 3); j <= Math.min(volume.length - 1, i + 3); j += 1)
    if (j !== i && volume[j]! > largest) largest = volume[j]!
  return largest
}
