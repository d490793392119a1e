/**
 * Calibrates the probability of a label by what the hours after earlier labels confirmed, for STABLE and VOLATILE and
 * each six-hour block of the day apart. The state is plain data.
 */
export interface Calibration {
  /** By cell: how many labels were judged, and how many more were right than stated. Older ones count less. */
  readonly counts: Float64Array
  readonly excess: Float64Array
  /** Labels whose hour is not over, by their number modulo the length: minute, cell, stated probability and boundary. */
  readonly open: Float64Array
  stated: number
}

const CELLS = 8
const FIELDS = 4
/** Labels of the last hour; of minute bars every seventh is judged. */
const OPEN = 16
const HALF_LIFE_DAYS = 60
/** Labels of this many days, all cells together, count for no correction. */
const TRUSTED_DAYS = 10

/** Creates the calibration of a series that has no labels yet. */
export function createCalibration(): Calibration {
  return {
    counts: new Float64Array(CELLS),
    excess: new Float64Array(CELLS),
    open: new Float64Array(OPEN * FIELDS).fill(NaN),
    stated: 0,
  }
}

/** The cell of a label: minutes since 1970, UTC. */
function cellOf(volatile: boolean, minute: number): number {
  return (volatile ? 4 : 0) + (Math.floor(minute / 360) % 4)
}

/**
 * The probability that a label is right, given what the model states. The correction is largest for a probability of one
 * half, and none for a certain one.
 */
export function calibrate(
  { counts, excess }: Calibration,
  volatile: boolean,
  minute: number,
  stated: number,
  labelsADay: number,
): number {
  const cell = cellOf(volatile, minute)
  const shift = excess[cell]! / (counts[cell]! + (TRUSTED_DAYS * labelsADay) / CELLS)
  return Math.min(1, Math.max(0, stated + 4 * stated * (1 - stated) * shift))
}

/** Notes a label, to be judged an hour later. `stated` is its probability before calibration. */
export function noteLabel(
  calibration: Calibration,
  volatile: boolean,
  minute: number,
  stated: number,
  boundary: number,
): void {
  const slot = (calibration.stated % OPEN) * FIELDS
  calibration.open.set([minute, cellOf(volatile, minute), stated, boundary], slot)
  calibration.stated += 1
}

/** Judges the label of `minute`, if there was one, by the volatility of the hour after it. */
export function judgeLabel(
  { counts, excess, open }: Calibration,
  minute: number,
  realized: number,
  labelsADay: number,
): void {
  for (let slot = 0; slot < open.length; slot += FIELDS) {
    if (open[slot] !== minute) continue
    const cell = open[slot + 1]!
    const isAbove = realized > open[slot + 3]!
    const right = isAbove === cell >= 4 ? 1 : 0
    const kept = 2 ** (-1 / (HALF_LIFE_DAYS * labelsADay))
    for (let i = 0; i < CELLS; i += 1) {
      counts[i]! *= kept
      excess[i]! *= kept
    }
    counts[cell]! += 1
    excess[cell]! += right - open[slot + 2]!
    return
  }
}
