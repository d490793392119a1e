import { normalQuantile } from './normal.ts'

/** Euler-Mascheroni constant. */
const GAMMA = 0.5772156649015329

/**
 * Expected maximum of `trials` independent standard normals, (1-γ)·Z(1 - 1/N) + γ·Z(1 - 1/(N·e)). One trial has none
 * to choose from: 0. NaN below one.
 *
 * Source: Bailey, Borwein, López de Prado and Zhu, "Pseudo-mathematics and financial charlatanism", Notices of the AMS
 * 61 (2014), proposition 1.
 *
 * @example expectedMaximum(10) // 1.57460…
 */
export function expectedMaximum(trials: number): number {
  if (!(trials >= 1)) return Number.NaN
  if (trials === 1) return 0
  return -(1 - GAMMA) * normalQuantile(1 / trials) - GAMMA * normalQuantile(1 / (trials * Math.E))
}
