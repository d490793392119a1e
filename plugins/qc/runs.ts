/**
 * The length from which a run is longer than chance. Lengths are taken as geometric with the ratio p estimated from the
 * m runs shorter than `short`, so that the runs looked for do not vouch for themselves; the answer is the shortest length
 * expected less than `chance` times in the file, m·p^(L-1) < chance.
 *
 * p solves the mean of a geometric cut off at short - 1; with `short` 3 that is p/(1+p) = n₂/(n₁+n₂).
 *
 * @example chanceLength([1, 1, 1, 2, 1, 1, 20], { short: 3, chance: 0.001 }) // 7: p is 0.18, six short runs
 */
export function chanceLength(
  lengths: readonly number[],
  { short, chance }: { readonly short: number; readonly chance: number },
): number {
  const counted = lengths.filter((length) => length < short)
  // A little added, so that a file without two in a row still leaves room for them.
  const mean = 1 + (counted.reduce((sum, length) => sum + length - 1, 0) + 0.05) / (counted.length + 1)
  const ratio = ratioOfMean(mean, short - 1)
  return Math.max(1, Math.ceil(1 + Math.log(chance / Math.max(1, counted.length)) / Math.log(ratio)))
}

/** The ratio of a geometric on 1 to `most` with the given mean, by bisection; at most 0.98. */
function ratioOfMean(mean: number, most: number): number {
  const meanOf = (ratio: number): number => {
    let [weight, total, sum] = [1, 0, 0]
    for (let length = 1; length <= most; length += 1) {
      total += weight
      sum += weight * length
      weight *= ratio
    }
    return sum / total
  }
  let [low, high] = [0, 0.98]
  for (let step = 0; step < 50; step += 1) {
    const middle = (low + high) / 2
    if (meanOf(middle) < mean) low = middle
    else high = middle
  }
  return (low + high) / 2
}
