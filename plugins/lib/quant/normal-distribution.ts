/**
 * The standard normal distribution function, Φ(x) = erfc(-x/√2)/2. Relative error about 1e-15, also in the tails.
 *
 * Source: Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.2.29.
 *
 * @example normalCdf(1.96) // 0.9750021048517795
 */
export function normalCdf(x: number): number {
  return 0.5 * erfc(-x / Math.SQRT2)
}

// Coefficients of PPND16 in ascending order, rounded to double precision: centre, near tail, far tail.
const QUANTILE_CENTRE_TOP = [
  3.3871328727963665, 133.14166789178438, 1971.5909503065513, 13731.69376550946, 45921.95393154987, 67265.7709270087,
  33430.57558358813, 2509.0809287301227,
]
const QUANTILE_CENTRE_BOTTOM = [
  1, 42.31333070160091, 687.1870074920579, 5394.196021424751, 21213.794301586597, 39307.89580009271, 28729.085735721943,
  5226.495278852854,
]
const QUANTILE_NEAR_TOP = [
  1.4234371107496835, 4.630337846156546, 5.769497221460691, 3.6478483247632045, 1.2704582524523684, 0.2417807251774506,
  0.022723844989269184, 0.0007745450142783414,
]
const QUANTILE_NEAR_BOTTOM = [
  1, 2.053191626637759, 1.6763848301838038, 0.6897673349851, 0.14810397642748008, 0.015198666563616457,
  0.0005475938084995345, 1.0507500716444169e-9,
]
const QUANTILE_FAR_TOP = [
  6.657904643501103, 5.463784911164114, 1.7848265399172913, 0.29656057182850487, 0.026532189526576124,
  0.0012426609473880784, 2.7115555687434876e-5, 2.0103343992922881e-7,
]
const QUANTILE_FAR_BOTTOM = [
  1, 0.599832206555888, 0.1369298809227358, 0.014875361290850615, 0.0007868691311456133, 1.8463183175100548e-5,
  1.421511758316446e-7, 2.0442631033899397e-15,
]

/**
 * The inverse of the standard normal distribution function, Z(p), for p in [0, 1]: -Infinity at 0, Infinity at 1, NaN
 * outside. Relative error about 1e-16.
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
    return (q * polynomial(QUANTILE_CENTRE_TOP, r)) / polynomial(QUANTILE_CENTRE_BOTTOM, r)
  }
  const tail = q < 0 ? p : 1 - p
  if (tail === 0) return q < 0 ? -Infinity : Infinity
  const r = Math.sqrt(-Math.log(tail))
  const distance =
    r <= 5
      ? polynomial(QUANTILE_NEAR_TOP, r - 1.6) / polynomial(QUANTILE_NEAR_BOTTOM, r - 1.6)
      : polynomial(QUANTILE_FAR_TOP, r - 5) / polynomial(QUANTILE_FAR_BOTTOM, r - 5)
  return q < 0 ? -distance : distance
}

// Coefficients of Cody's rational approximations in ascending order, rounded to double precision.
const ERFC_NEAR_TOP = [
  3209.3775891384694, 377.485237685302, 113.86415415105016, 3.1611237438705655, 0.18577770618460315,
]
const ERFC_NEAR_BOTTOM = [2844.236833439171, 1282.6165260773723, 244.02463793444417, 23.601290952344122, 1]
const ERFC_MIDDLE_TOP = [
  1230.3393547979972, 2051.0783778260716, 1712.0476126340707, 881.952221241769, 298.6351381974001, 66.11919063714163,
  8.883149794388377, 0.5641884969886701, 2.1531153547440383e-8,
]
const ERFC_MIDDLE_BOTTOM = [
  1230.3393548037495, 3439.3676741437216, 4362.619090143247, 3290.7992357334597, 1621.3895745666903, 537.1811018620099,
  117.6939508913125, 15.744926110709835, 1,
]
const ERFC_FAR_TOP = [
  0.0006587491615298378, 0.016083785148742275, 0.12578172611122926, 0.36034489994980445, 0.30532663496123236,
  0.016315387137302097,
]
const ERFC_FAR_BOTTOM = [
  0.0023352049762686918, 0.06051834131244132, 0.5279051029514285, 1.8729528499234673, 2.568520192289822, 1,
]

/**
 * The complementary error function, 2/√π ∫ₓ^∞ exp(-t²) dt. Relative error about 1e-15, also in the tails.
 *
 * Source: W. J. Cody, "Rational Chebyshev approximations for the error function", Math. Comp. 23 (1969) 631-637.
 *
 * @example erfc(1) // 0.15729920705028513
 */
export function erfc(x: number): number {
  const y = Math.abs(x)
  if (y <= 0.46875) return 1 - (x * polynomial(ERFC_NEAR_TOP, y * y)) / polynomial(ERFC_NEAR_BOTTOM, y * y)
  const tail = y <= 4 ? middle(y) : far(y)
  return x < 0 ? 2 - tail : tail
}

function middle(y: number): number {
  return (gauss(y) * polynomial(ERFC_MIDDLE_TOP, y)) / polynomial(ERFC_MIDDLE_BOTTOM, y)
}

function far(y: number): number {
  if (y > 27) return 0
  const z = 1 / (y * y)
  const correction = (z * polynomial(ERFC_FAR_TOP, z)) / polynomial(ERFC_FAR_BOTTOM, z)
  return (gauss(y) * (1 / Math.sqrt(Math.PI) - correction)) / y
}

/** exp(-y²). Splitting y at sixteenths keeps the digits that squaring would lose in the tail. */
function gauss(y: number): number {
  const coarse = Math.trunc(y * 16) / 16
  return Math.exp(-coarse * coarse) * Math.exp(-(y - coarse) * (y + coarse))
}

/**
 * Value of a polynomial by Horner's rule, coefficients in ascending order of power.
 *
 * @example polynomial([1, 2, 3], 2) // 1 + 2·2 + 3·4 = 17
 */
function polynomial(coefficients: readonly number[], x: number): number {
  let value = 0
  for (let power = coefficients.length - 1; power >= 0; power -= 1) value = value * x + coefficients[power]!
  return value
}
