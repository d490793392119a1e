/** Figures of a run of the model, and of the baseline that it must beat. */
import {
  type Calibration,
  calibrationOf,
  gradeLabels,
  type Graded,
  type Grades,
} from '../../../plugins/regime/label-grades.ts'
import type { Track } from './model-track.ts'

export interface Figures extends Grades {
  /** Greatest calibration error of the four six-hour blocks of the day. */
  readonly block_ece: number | null
  /** Root mean square of realized over mean volatility, and the mean of v - ln v - 1 of its square v. */
  readonly rms_ratio: number
  readonly qlike: number
  /** Share of hours between the forecast's first and ninth decile. */
  readonly within_p10_p90: number | null
  /** Correlation of the forecast with the log volatility that followed. */
  readonly correlation: number | null
  /** Coefficient of variation of daily volatility, of one unit and of one scaled by the position scalar. */
  readonly daily_vol_cv: number | null
  readonly scaled_daily_vol_cv: number | null
}

/** Returns for every step the log volatility of the hour that follows it; NaN where the track ends before. */
export const forwardOf = ({ realized, stepMinutes, count }: Track): Float64Array => {
  const hour = 60 / stepMinutes
  return Float64Array.from({ length: count }, (_, i) => (i + hour < count ? realized[i + hour]! : NaN))
}

/** Converts a track to the form that is graded: volatilities instead of their logarithms. */
function gradedOf(track: Track, forward: Float64Array): Graded {
  const { stepMinutes, volatile, confidence, boundary } = track
  const probability = confidence.map((sure, i) => (volatile[i] === 1 ? sure : 1 - sure))
  return { stepMinutes, volatile, probability, boundary: boundary.map(Math.exp), forward: forward.map(Math.exp) }
}

/** Returns the calibration of a track. */
export const trackCalibration = (track: Track): Calibration => calibrationOf(gradedOf(track, forwardOf(track)))

/** Returns the figures of the model. */
export function figuresOf(track: Track): Figures {
  const forward = forwardOf(track)
  const [raw, scaled] = dailyVolatility(track)
  const graded = gradedOf(track, forward)
  const known = forward.map((after, i) => (track.p10[i]! <= after && after <= track.p90[i]! ? 1 : after - after))
  return {
    ...gradeLabels(graded),
    ...varianceErrors(track.mean, forward),
    block_ece: blockError(track, graded),
    within_p10_p90: meanOf(known),
    correlation: correlation(track.forecast, forward),
    daily_vol_cv: variation(raw),
    scaled_daily_vol_cv: variation(scaled),
  }
}

const NO_SIZES = { daily_vol_cv: null, scaled_daily_vol_cv: null }

/** Returns the mean of the numbers that are not NaN. */
function meanOf(values: Float64Array): number {
  const known = values.filter((value) => !Number.isNaN(value))
  return known.reduce((sum, value) => sum + value, 0) / known.length
}

/** Grades forecasts of the log volatility of an hour by its variance. */
function varianceErrors(forecast: Float64Array, forward: Float64Array): Pick<Figures, 'rms_ratio' | 'qlike'> {
  const ratios = forward.map((after, i) => Math.exp(2 * (after - forecast[i]!)))
  return {
    rms_ratio: Math.sqrt(meanOf(ratios)),
    qlike: meanOf(ratios.map((ratio) => ratio - Math.log(ratio) - 1)),
  }
}

function blockError({ minute }: Track, graded: Graded): number {
  const errors = [0, 1, 2, 3].map((block) => {
    const forward = Float64Array.from(graded.forward, (after, i) =>
      Math.floor(minute[i]! / 360) % 4 === block ? after : NaN,
    )
    return gradeLabels({ ...graded, forward }).ece
  })
  return Math.max(...errors)
}

/**
 * Returns the figures of the baselines: a label that is VOLATILE while the volatility of the last hour is above the model's
 * boundary, and as forecast of the variance an average with a half-life of 11 hours. They have no probability, so Brier
 * score and ECE are NaN.
 */
export function baselineOf(track: Track): Figures {
  const { realized, boundary } = track
  const volatile = Uint8Array.from(realized, (value, i) => (value > boundary[i]! ? 1 : 0))
  const forward = forwardOf(track)
  const grades = gradeLabels({ ...gradedOf(track, forward), volatile, probability: volatile })
  const nothing = { brier: NaN, ece: NaN, block_ece: null, within_p10_p90: null, ...NO_SIZES }
  return { ...grades, ...nothing, ...varianceErrors(track.ewma, forward), correlation: correlation(realized, forward) }
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
