import { erfc } from './erfc.ts'
import { polynomial } from './polynomial.ts'

/**
 * Standard normal distribution function, Φ(x) = erfc(-x/√2)/2, to about 1e-15 relative, tails included.
 *
 * @example normalCdf(1.96) // 0.9750021048517795
 */
export function normalCdf(x: number): number {
  return 0.5 * erfc(-x / Math.SQRT2)
}

// Coefficients of PPND16, ascending, rounded to double precision: the centre, the near tail, the far tail.
const CENTRE_TOP = [
  3.3871328727963665, 133.14166789178438, 1971.5909503065513, 13731.69376550946, 45921.95393154987, 67265.7709270087,
  33430.57558358813, 2509.0809287301227,
]
const CENTRE_BOTTOM = [
  1, 42.31333070160091, 687.1870074920579, 5394.196021424751, 21213.794301586597, 39307.89580009271, 28729.085735721943,
  5226.495278852854,
]
const NEAR_TOP = [
  1.4234371107496835, 4.630337846156546, 5.769497221460691, 3.6478483247632045, 1.2704582524523684, 0.2417807251774506,
  0.022723844989269184, 0.0007745450142783414,
]
const NEAR_BOTTOM = [
  1, 2.053191626637759, 1.6763848301838038, 0.6897673349851, 0.14810397642748008, 0.015198666563616457,
  0.0005475938084995345, 1.0507500716444169e-9,
]
const FAR_TOP = [
  6.657904643501103, 5.463784911164114, 1.7848265399172913, 0.29656057182850487, 0.026532189526576124,
  0.0012426609473880784, 2.7115555687434876e-5, 2.0103343992922881e-7,
]
const FAR_BOTTOM = [
  1, 0.599832206555888, 0.1369298809227358, 0.014875361290850615, 0.0007868691311456133, 1.8463183175100548e-5,
  1.421511758316446e-7, 2.0442631033899397e-15,
]

/**
 * Inverse of the standard normal distribution function for p in [0, 1]; -Infinity at 0, Infinity at 1, NaN outside.
 * Relative error about 1e-16.
 *
 * Source: M. J. Wichura, "Algorithm AS 241: the percentage points of the normal distribution", Applied Statistics 37
 * (1988) 477-484, routine PPND16. His check values: p = 0.25, 0.001, 1e-20.
 *
 * @example normalQuantile(0.001) // -3.090232306167813
 */
export function normalQuantile(p: number): number {
  if (!(p >= 0 && p <= 1)) return Number.NaN
  const q = p - 0.5
  if (Math.abs(q) <= 0.425) {
    const r = 0.180625 - q * q
    return (q * polynomial(CENTRE_TOP, r)) / polynomial(CENTRE_BOTTOM, r)
  }
  const tail = q < 0 ? p : 1 - p
  if (tail === 0) return q < 0 ? -Infinity : Infinity
  const r = Math.sqrt(-Math.log(tail))
  const distance =
    r <= 5
      ? polynomial(NEAR_TOP, r - 1.6) / polynomial(NEAR_BOTTOM, r - 1.6)
      : polynomial(FAR_TOP, r - 5) / polynomial(FAR_BOTTOM, r - 5)
  return q < 0 ? -distance : distance
}
