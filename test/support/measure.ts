import type { Claim } from '../../schemas/types.d.ts'

/** A claim as it was measured. The file that it is saved in adds the date. */
export type FoundClaim = Omit<Claim, 'measured_on'>

/** One measured figure with its limit. */
export interface Measure {
  readonly part: string
  readonly name: string
  /** The figure as shown. */
  readonly value: string
  /** The limit as shown, e.g. "≥ 0.97"; empty without a limit. */
  readonly bar: string
  /** Whether the figure meets its limit; null without a limit. */
  readonly pass: boolean | null
  /** What this figure and others show together. */
  readonly claim?: FoundClaim
}

/** Adds a claim to figures. It is met if each of them meets its limit, or each of those that `isJudged` names. */
export function claiming(
  measures: readonly Measure[],
  claim: Omit<FoundClaim, 'met'>,
  isJudged: (name: string) => boolean = () => true,
): Measure[] {
  const judged = measures.filter(({ name }) => isJudged(name))
  const met = judged.length > 0 && judged.every(({ pass }) => pass === true)
  return measures.map((measure) => (measure === judged[0] ? { ...measure, claim: { ...claim, met } } : measure))
}

/** Returns a figure that passes if it is at least `least`. */
export function atLeast(part: string, name: string, value: number, least: number, digits = 3): Measure {
  return { part, name, value: value.toFixed(digits), bar: `≥ ${least}`, pass: value >= least }
}

/** Returns a figure that passes if it is at most `most`. */
export function atMost(part: string, name: string, value: number, most: number, digits = 3): Measure {
  const shown = Math.abs(value) < 10 ** -digits && value !== 0 ? value.toExponential(2) : value.toFixed(digits)
  return { part, name, value: shown, bar: `≤ ${most}`, pass: value <= most }
}

/** Returns a figure that passes if it is within two limits. */
export function within(part: string, name: string, value: number, least: number, most: number): Measure {
  return { part, name, value: value.toFixed(3), bar: `${least} to ${most}`, pass: value >= least && value <= most }
}

/** Returns a figure without a limit. */
export function shown(part: string, name: string, value: string): Measure {
  return { part, name, value, bar: '', pass: null }
}
