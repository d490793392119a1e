const HOUR = 3600
/** Settlements are stamped up to some seconds late. */
const JITTER = 0.02
/** Gaps that must agree, counted back from the newest. */
const AGREEING = 2

/**
 * Hours between the settlements of an instrument, from the newest gaps: an interval may change, and old gaps tell of the
 * old one. A missing settlement makes one long gap, so the shorter of the newest gaps counts once two agree. Null where
 * fewer agree.
 *
 * @param times epoch seconds, ascending
 * @example intervalOf([0, 28800.007, 57600.009]) // 8
 */
export function intervalOf(times: readonly number[]): number | null {
  const hours = times.slice(1).map((time, i) => (time - times[i]!) / HOUR)
  const seen = new Map<number, number>()
  for (const gap of hours.toReversed()) {
    const whole = Math.round(gap)
    if (whole < 1 || Math.abs(gap - whole) > JITTER) continue
    const count = (seen.get(whole) ?? 0) + 1
    if (count >= AGREEING) return whole
    seen.set(whole, count)
  }
  return null
}
