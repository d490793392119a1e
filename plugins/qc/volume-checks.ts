import type { AddFinding } from './finding-codes.ts'
import { DAY } from './bar-times.ts'
import { centredMedian } from '../lib/quant/rolling-median.ts'
import type { Scales, Series } from './clean-series.ts'
import { type Session, wallClock } from './session-detection.ts'

const DEVIATIONS = 5
const TIMES_MEDIAN = 30
const TIMES_SIX = 8
const TIMES_TWENTY = 25
/** In local scales. For a volume that stands out among twenty neighbours the limit is half as much again. */
const ORDINARY_RANGE = 4
/** At least three outliers at the same minute of the day, on this share of days, are an auction. */
const AUCTION = 0.2
/** Zero volume is reported only if it is rarer than this. */
const RARE = 0.05

/**
 * Reports volume that is far out of line on an ordinary range, and bars that moved without volume if such bars are rare.
 * Volume is out of line if its log is more than 5 local deviations above the median and the volume is 30 times the local
 * median and 8 times the largest of six neighbours, or if it is 25 times the largest of twenty neighbours. Minutes of the
 * day at which outliers recur are auctions and are not reported.
 */
export function checkVolume(series: Series, scales: Scales, interval: number, session: Session, add: AddFinding): void {
  const { volume, count, rows, high, low, close } = series
  if (!volume) return
  const score = deviations(volume)
  const isOut = (i: number): boolean => {
    const value = volume[i]!
    const range = scales.range[i]! / scales.local[i]!
    if (value > TIMES_TWENTY * largest(volume, i, 10)) return range < 1.5 * ORDINARY_RANGE
    const isFar = score[i]! > DEVIATIONS && value > TIMES_MEDIAN * scales.usualVolume[i]!
    return isFar && value > TIMES_SIX * largest(volume, i, 3) && range < ORDINARY_RANGE
  }
  const places = Array.from({ length: count }, (_, i) => i)
  const zeros = volume.filter((value) => value === 0).length
  for (const i of withoutAuctions(places.filter(isOut), series.time, interval, session)) {
    const usual = scales.usualVolume[i]!
    const times =
      usual > 0 ? `${(volume[i]! / usual).toPrecision(3)} times the usual volume` : 'volume where there usually is none'
    const explanation = `${times}, on an ordinary range`
    report(i, { code: 'volume_outlier', score: score[i]!, confidence: 0.95, explanation })
  }
  if (zeros >= RARE * count) return
  for (const i of places) {
    const moved = high[i] !== low[i] || close[i] !== (close[i - 1] ?? close[i])
    if (volume[i] !== 0 || !moved) continue
    const explanation = 'the price moved without volume'
    report(i, { code: 'zero_volume_move', score: null, confidence: 0.8, explanation })
  }

  function report(
    i: number,
    own: Pick<Parameters<AddFinding>[0], 'code' | 'score' | 'confidence' | 'explanation'>,
  ): void {
    const observed = volume![i]! / series.factor[i]!
    const expected = scales.usualVolume[i]! > 0 ? scales.usualVolume[i]! / series.factor[i]! : null
    add({ ...own, severity: 'warning', index: rows[i]!, field: 'volume', observed, expected })
  }
}

/** Log volume over its 101-bar median, in local standard deviations estimated from the median deviation. */
function deviations(volume: Float64Array): Float64Array {
  const logs = volume.map((value) => (value > 0 ? Math.log(value) : NaN))
  const centre = centredMedian(logs, 101)
  const distance = logs.map((value, i) => value - centre[i]!)
  const usual = centredMedian(distance.map(Math.abs), 101)
  return distance.map((value, i) => value / Math.max(1.4826 * usual[i]!, 0.1))
}

function withoutAuctions(places: number[], time: Float64Array, interval: number, session: Session): number[] {
  if (interval >= DAY) return places
  const minuteOf = (i: number): number => wallClock(time[i]!, session.zone).minute
  const perMinute = new Map<number, number>()
  for (const i of places) perMinute.set(minuteOf(i), (perMinute.get(minuteOf(i)) ?? 0) + 1)
  const days = (time[time.length - 1]! - time[0]!) / DAY
  return places.filter((i) => perMinute.get(minuteOf(i))! < Math.max(3, AUCTION * days))
}

/** The largest volume of up to `reach` bars on each side; Infinity if none is above zero. */
function largest(volume: Float64Array, i: number, reach: number): number {
  let most = 0
  for (let j = Math.max(0, i - reach); j <= Math.min(volume.length - 1, i + reach); j += 1)
    if (j !== i && volume[j]! > most) most = volume[j]!
  return most || Infinity
}
