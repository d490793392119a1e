/** One line of the bench: a figure, the bar it must clear, and whether it does. */
export interface Measure {
  readonly part: string
  readonly name: string
  /** As shown. */
  readonly value: string
  /** As shown, e.g. "≥ 0.97"; empty where there is none. */
  readonly bar: string
  /** Null where there is no bar. */
  readonly pass: boolean | null
}

/** A figure that must not be below `least`. */
export function atLeast(part: string, name: string, value: number, least: number, digits = 3): Measure {
  return { part, name, value: value.toFixed(digits), bar: `≥ ${least}`, pass: value >= least }
}

/** A figure that must not be above `most`. */
export function atMost(part: string, name: string, value: number, most: number, digits = 3): Measure {
  const shown = Math.abs(value) < 10 ** -digits && value !== 0 ? value.toExponential(2) : value.toFixed(digits)
  return { part, name, value: shown, bar: `≤ ${most}`, pass: value <= most }
}

/** A figure without a bar. */
export function shown(part: string, name: string, value: string): Measure {
  return { part, name, value, bar: '', pass: null }
}
