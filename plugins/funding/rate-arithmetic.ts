/**
 * Converts funding rates to other periods. A rate is a fraction per interval, positive when longs pay shorts. Results keep
 * the digits of the venue, so that 0.000086 over 8 hours prints as 0.00001075 an hour.
 */
import { roundBps, roundWritten } from '../lib/quant/rounding.ts'

const HOURS_A_YEAR = 8760

/**
 * The rate over another number of hours, simple: rate × hours / interval.
 *
 * @example rateOver(0.000086, 8, 1) // 0.00001075
 */
export function rateOver(rate: number, intervalHours: number, hours: number): number {
  return roundWritten((rate * hours) / intervalHours)
}

/**
 * Simple annual rate, a fraction: rate × 8760 / interval.
 *
 * @example aprOf(0.000086, 8) // 0.09417: 9.417% a year
 */
export function aprOf(rate: number, intervalHours: number): number {
  return roundWritten((rate * HOURS_A_YEAR) / intervalHours)
}

/**
 * Compounded annual rate, a fraction: (1 + rate)^(8760 / interval) − 1. A rate of −1 or less gives −1.
 *
 * @example apyOf(0.00000625, 8) // 0.0068672, a little above the simple 0.00684375
 */
export function apyOf(rate: number, intervalHours: number): number {
  if (rate <= -1) return -1
  return roundWritten(Math.expm1((HOURS_A_YEAR / intervalHours) * Math.log1p(rate)))
}

/**
 * Cost of a long position per day, in basis points: rate × 24 / interval × 10⁴.
 *
 * @example carryOf(0.0001, 8) // 3
 */
export function carryOf(rate: number, intervalHours: number): number {
  return roundBps(((rate * 24) / intervalHours) * 1e4)
}
