const SHORT = 8
const CHANCE = 0.001

/**
 * The length from which a run is longer than chance: lengths are taken as geometric, their ratio from the runs shorter
 * than eight (so that the runs looked for do not vouch for themselves), and the answer is the shortest length expected
 * less than 0.001 times in the file, n·λ·p^(L-1) < 0.001.
 *
 * @example chanceLength([1, 1, 1, 2, 1, 1, 20], 1000) // 5: p is 0.14, six runs
 */
export function chanceLength(lengths: readonly number[], least: number): number {
  const short = lengths.filter((length) => length < SHORT)
  const total = short.reduce((sum, length) => sum + length, 0)
  const ratio = Math.min(0.98, Math.max(0.05, (total - short.length) / Math.max(1, total)))
  return Math.max(least, Math.ceil(1 + Math.log(CHANCE / Math.max(1, short.length)) / Math.log(ratio)))
}
