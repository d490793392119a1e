import { polynomial } from './polynomial.ts'

// Coefficients of Cody's rational approximations, ascending, rounded to double precision.
const NEAR_TOP = [3209.3775891384694, 377.485237685302, 113.86415415105016, 3.1611237438705655, 0.18577770618460315]
const NEAR_BOTTOM = [2844.236833439171, 1282.6165260773723, 244.02463793444417, 23.601290952344122, 1]
const MIDDLE_TOP = [
  1230.3393547979972, 2051.0783778260716, 1712.0476126340707, 881.952221241769, 298.6351381974001, 66.11919063714163,
  8.883149794388377, 0.5641884969886701, 2.1531153547440383e-8,
]
const MIDDLE_BOTTOM = [
  1230.3393548037495, 3439.3676741437216, 4362.619090143247, 3290.7992357334597, 1621.3895745666903, 537.1811018620099,
  117.6939508913125, 15.744926110709835, 1,
]
const FAR_TOP = [
  0.0006587491615298378, 0.016083785148742275, 0.12578172611122926, 0.36034489994980445, 0.30532663496123236,
  0.016315387137302097,
]
const FAR_BOTTOM = [
  0.0023352049762686918, 0.06051834131244132, 0.5279051029514285, 1.8729528499234673, 2.568520192289822, 1,
]

/**
 * Complementary error function, 2/√π ∫ₓ^∞ exp(-t²) dt, to about 1e-15 relative, tails included.
 *
 * Source: W. J. Cody, "Rational Chebyshev approximations for the error function", Math. Comp. 23 (1969) 631-637.
 *
 * @example erfc(1) // 0.15729920705028513
 */
export function erfc(x: number): number {
  const y = Math.abs(x)
  if (y <= 0.46875) return 1 - (x * polynomial(NEAR_TOP, y * y)) / polynomial(NEAR_BOTTOM, y * y)
  const tail = y <= 4 ? middle(y) : far(y)
  return x < 0 ? 2 - tail : tail
}

function middle(y: number): number {
  return (gauss(y) * polynomial(MIDDLE_TOP, y)) / polynomial(MIDDLE_BOTTOM, y)
}

function far(y: number): number {
  if (y > 27) return 0
  const z = 1 / (y * y)
  const correction = (z * polynomial(FAR_TOP, z)) / polynomial(FAR_BOTTOM, z)
  return (gauss(y) * (1 / Math.sqrt(Math.PI) - correction)) / y
}

/** exp(-y²) with y split at sixteenths, so that squaring loses no digits in the tail. */
function gauss(y: number): number {
  const coarse = Math.trunc(y * 16) / 16
  return Math.exp(-coarse * coarse) * Math.exp(-(y - coarse) * (y + coarse))
}
