/** Powers of ten, which take longer to compute than all else of a rounding. */
const POWERS: readonly number[] = Array.from({ length: 16 }, (_, decimals) => 10 ** decimals)

/**
 * A number rounded to `decimals` places, so that it prints short. Halves round up.
 *
 * @example roundTo(0.87456, 4) // 0.8746
 */
export function roundTo(value: number, decimals: number): number {
  const power = POWERS[decimals] ?? 10 ** decimals
  return Math.round(value * power) / power
}

/**
 * How many decimals basis points are published with: hundredths, or three significant digits of less than one basis
 * point, but never more than six.
 *
 * @example bpsDecimals(12.345) // 2
 * @example bpsDecimals(0.01234) // 4: 0.0123
 */
export const bpsDecimals = (bps: number): number => decimalsFrom(bps, 1, 2)

/** Basis points as they are published. */
export const roundBps = (bps: number): number => roundTo(bps, bpsDecimals(bps))

/**
 * A probability as it is published: four decimals, or three significant digits below 0.01, but never more than six decimals.
 *
 * @example roundProbability(0.04514522) // 0.0451
 * @example roundProbability(0.0000123) // 0.000012
 */
export const roundProbability = (probability: number): number =>
  roundTo(probability, decimalsFrom(probability, 0.01, 4))

/** The usual decimals of numbers of at least `least`; three significant digits of smaller ones, within six decimals. */
function decimalsFrom(value: number, least: number, usual: number): number {
  const size = Math.abs(value)
  return size === 0 || size >= least ? usual : Math.min(6, 2 - Math.floor(Math.log10(size)))
}

/**
 * A number with six significant digits, or as many as are asked for.
 *
 * @example roundSignificant(0.00011904761904761905) // 0.000119048
 */
export const roundSignificant = (value: number, digits = 6): number => Number(value.toPrecision(digits))

/** A number that a venue, a file or a caller wrote: its digits stay, and the noise of a division goes. */
export const roundWritten = (value: number): number => roundSignificant(value, 12)

const WRITTEN = /^(?:price|low|high|qty|volume|tick|factor|observed|expected|beyond)$/

/**
 * Rounds every number of a report by its name, at any depth: basis points (`_bps`), and what was written in a file. Other
 * numbers, among them the probabilities of tests, get six significant digits: they can be checked to a millionth. A list is rounded by the name of the list.
 *
 * @example roundNamed({ t_stat: 2.522323009, psr: 0.96600052137, net_bps: 162.9161 }) // { t_stat: 2.52232, psr: 0.966001, net_bps: 162.92 }
 */
export function roundNamed<Value>(value: Value, name = ''): Value {
  return rounded(value, name) as Value
}

function rounded(value: unknown, name: string): unknown {
  if (typeof value === 'number') return Number.isInteger(value) ? value : roundingOf(name, value)
  if (Array.isArray(value)) return value.map((item) => rounded(item, name))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, rounded(inner, key)]))
}

function roundingOf(name: string, value: number): number {
  if (/_bps(?:_|$)/.test(name)) return roundBps(value)
  if (WRITTEN.test(name)) return roundWritten(value)
  return roundSignificant(value)
}
