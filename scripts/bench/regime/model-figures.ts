/** Figures of a run of the model, and of the baseline that it must beat. */
import { type Curves, curvesOf, gradeLabels, type Graded, type Grades } from '../../../plugins/regime/label-grades.ts'
import type { Track } from './model-track.ts'

export interface Figures extends Grades {
  /** Correlation of the forecast with the log volatility that followed. */
  readonly correlation: number | null
  /** Coefficient of variation of daily volatility, of one unit and of one scaled by the position scalar. */
  readonly daily_vol_cv: number | null
  readonly scaled_daily_vol_cv: number | null
}

/** Returns for every step the log volatility of the hour that follows it; NaN where the track ends before. */
const forwardOf = ({ realized, stepMinutes, count }: Track): Float64Array => {
  const hour = 60 / stepMinutes
  return Float64Array.from({ length: count }, (_, i) => (i + hour < count ? realized[i + hour]! : NaN))
}

/** Converts a track to the form that is graded: volatilities instead of their logarithms. */
function gradedOf(track: Track, forward: Float64Array): Graded {
  const { stepMinutes, volatile, probability, boundary } = track
  return { stepMinutes, volatile, probability, boundary: boundary.map(Math.exp), forward: forward.map(Math.exp) }
}

/** Returns the calibration and persistence curves of a track. */
export const trackCurves = (track: Track): Curves => curvesOf(gradedOf(track, forwardOf(track)))

/** Returns the figures of the model. */
export function figuresOf(track: Track): Figures {
  const forward = forwardOf(track)
  const [raw, scaled] = dailyVolatility(track)
  return {
    ...gradeLabels(gradedOf(track, forward)),
    correlation: correlation(track.forecast, forward),
    daily_vol_cv: variation(raw),
    scaled_daily_vol_cv: variation(scaled),
  }
}

/**
 * Returns the figures of the baseline, which is VOLATILE while the volatility of the last hour is above the model's
 * boundary. It has no probability, so Brier score and ECE are NaN.
 */
export function baselineOf(track: Track): Figures {
  const { realized, boundary } = track
  const volatile = Uint8Array.from(realized, (value, i) => (value > boundary[i]! ? 1 : 0))
  const forward = forwardOf(track)
  const grades = gradeLabels({ ...gradedOf(track, forward), volatile, probability: volatile })
  const nothing = { brier: NaN, ece: NaN, daily_vol_cv: null, scaled_daily_vol_cv: null }
  return { ...grades, ...nothing, correlation: correlation(realized, forward) }
}

/** Returns the volatility of each whole day, for a constant position and for one scaled by the previous step's scalar. */
function dailyVolatility({ change, scalar, stepMinutes, count }: Track): [number[], number[]] {
  const perDay = 1440 / stepMinutes
  const [raw, scaled]: [number[], number[]] = [[], []]
  for (let start = 1; start + perDay <= count; start += perDay) {
    let [plain, sized] = [0, 0]
    for (let i = start; i < start + perDay; i += 1) {
      plain += change[i]! ** 2
      sized += (change[i]! * scalar[i - 1]!) ** 2
    }
    raw.push(Math.sqrt(plain))
    scaled.push(Math.sqrt(sized))
  }
  return [raw, scaled]
}

/** Returns the coefficient of variation, or null for fewer than two values. */
function variation(values: readonly number[]): number | null {
  if (values.length < 2) return null
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  const square = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length
  return Math.sqrt(square) / mean
}

/** Returns Pearson's correlation of the pairs without NaN, or null for fewer than two pairs. */
function correlation(a: ArrayLike<number>, b: ArrayLike<number>): number | null {
  let [n, sumA, sumB, sumAA, sumBB, sumAB] = [0, 0, 0, 0, 0, 0]
  for (let i = 0; i < a.length; i += 1) {
    const [x, y] = [a[i]!, b[i]!]
    if (Number.isNaN(x) || Number.isNaN(y)) continue
    n += 1
    sumA += x
    sumB += y
    sumAA += x * x
    sumBB += y * y
    sumAB += x * y
  }
  return n < 2 ? null : (n * sumAB - sumA * sumB) / Math.sqrt((n * sumAA - sumA ** 2) * (n * sumBB - sumB ** 2))
}
