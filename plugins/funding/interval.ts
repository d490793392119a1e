const HOUR = 3600
/** Settlements are stamped up to some seconds late. */
const JITTER = 0.02
/** Gaps that must agree, counted back from the newest. */
const AGREEING = 2

/**
 * Hours between the settlements of an instrument, from the newest gaps: an interval may change, and old gaps tell of the
 * old one. A missing settlement makes a gap longer, never shorter: so a newest gap that is shorter than the one before
 * is the interval, and a longer one counts once another agrees. Null where nothing agrees.
 *
 * @param times epoch seconds, ascending
 * @example intervalOf([0, 28800.007, 57600.009]) // 8
 */
export function intervalOf(times: readonly number[]): number | null {
  const gaps = times
    .slice(1)
    .map((time, i) => (time - times[i]!) / HOUR)
    .filter((gap) => Math.round(gap) >= 1 && Math.abs(gap - Math.round(gap)) <= JITTER)
    .map(Math.round)
    .reverse()
  const [newest, before] = gaps
  if (newest !== undefined && before !== undefined && newest < before) return newest
  const seen = new Map<number, number>()
  for (const gap of gaps) {
    const count = (seen.get(gap) ?? 0) + 1
    if (count >= AGREEING) return gap
    seen.set(gap, count)
  }
  return null
}
