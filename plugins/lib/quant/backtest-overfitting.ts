/** Probability of backtest overfitting (PBO) by combinatorially symmetric cross-validation (CSCV). */

export interface Overfitting {
  /** Probability of backtest overfitting: the share of splits whose in-sample winner ranks at or below the median out of sample. */
  readonly pbo: number
  /** Logit of the winner's relative rank out of sample, one per split, in the order of the splits. */
  readonly logits: Float64Array
  /** Slope of the winners' out-of-sample Sharpe ratios on their in-sample ones. Below 1, performance degrades. */
  readonly slope: number
  /** Share of splits whose winner has a negative Sharpe ratio out of sample. */
  readonly lossProbability: number
  readonly blocks: number
}

/**
 * Computes the probability of backtest overfitting.
 *
 * `trials` holds one return series per trial, all of the same length. The function cuts time into `blocks` equal blocks
 * (an even number) and drops surplus periods at the end. For each choice of half of the blocks it takes the trial with
 * the best Sharpe ratio on that half and ranks it on the other half: ω = rank/(N+1), λ = ln(ω/(1-ω)). Ties share their
 * mean rank. Returns null for fewer than two trials, an odd number of blocks, or fewer than two periods per block.
 *
 * Each block is summed once, so the cost is C(blocks, blocks/2)·blocks·N, whatever the length of the series.
 *
 * Source: Bailey, Borwein, López de Prado and Zhu, "The probability of backtest overfitting", J. Computational Finance
 * 20 (2016), section 2.
 *
 * @example probabilityOfOverfitting([[1, 2, 1, 2], [2, 1, 2, 1], [0, 1, 0, 1]].map((r) => Float64Array.from(r)), 2)
 * // { pbo: 0, … }: the trial that wins in one half also ranks above the median in the other
 */
export function probabilityOfOverfitting(trials: readonly ArrayLike<number>[], blocks = 16): Overfitting | null {
  const length = Math.floor(Math.min(...trials.map((trial) => trial.length)) / blocks)
  if (trials.length < 2 || blocks % 2 !== 0 || length < 2) return null
  const sums = trials.map((trial) => blockSums(trial, blocks, length))
  const masks = halves(blocks)
  const logits = new Float64Array(masks.length)
  const inside = new Float64Array(trials.length)
  const outside = new Float64Array(trials.length)
  const pairs: [number, number][] = []
  let below = 0
  let losses = 0
  for (const [split, mask] of masks.entries()) {
    for (const [trial, sum] of sums.entries()) {
      inside[trial] = sharpeOf(sum, mask, blocks, length)
      outside[trial] = sharpeOf(sum, ~mask, blocks, length)
    }
    const winner = indexOfMaximum(inside)
    const omega = rankOf(outside, winner) / (trials.length + 1)
    logits[split] = Math.log(omega / (1 - omega))
    if (omega <= 0.5) below += 1
    if (outside[winner]! < 0) losses += 1
    pairs.push([inside[winner]!, outside[winner]!])
  }
  return { pbo: below / masks.length, logits, slope: slopeOf(pairs), lossProbability: losses / masks.length, blocks }
}

interface BlockSums {
  readonly first: Float64Array
  readonly second: Float64Array
}

function blockSums(values: ArrayLike<number>, blocks: number, length: number): BlockSums {
  const first = new Float64Array(blocks)
  const second = new Float64Array(blocks)
  for (let i = 0; i < blocks * length; i += 1) {
    const block = Math.floor(i / length)
    first[block]! += values[i]!
    second[block]! += values[i]! * values[i]!
  }
  return { first, second }
}

/** All choices of half of the blocks, as bit masks. */
function halves(blocks: number): number[] {
  const masks: number[] = []
  for (let mask = 0; mask < 2 ** blocks; mask += 1) {
    let bits = 0
    for (let rest = mask; rest > 0; rest &= rest - 1) bits += 1
    if (bits === blocks / 2) masks.push(mask)
  }
  return masks
}

/** Sharpe ratio per observation on the blocks of the mask; 0 for a series without variance. */
function sharpeOf({ first, second }: BlockSums, mask: number, blocks: number, length: number): number {
  let sum = 0
  let squares = 0
  for (let block = 0; block < blocks; block += 1) {
    if ((mask >> block) & 1) {
      sum += first[block]!
      squares += second[block]!
    }
  }
  const count = (blocks / 2) * length
  const mean = sum / count
  const variance = squares / count - mean * mean
  return variance > 1e-15 * (squares / count) ? mean / Math.sqrt(variance) : 0
}

function indexOfMaximum(values: Float64Array): number {
  let best = 0
  for (let i = 1; i < values.length; i += 1) if (values[i]! > values[best]!) best = i
  return best
}

/** Rank from 1 (worst) up; ties share their mean rank. */
function rankOf(values: Float64Array, index: number): number {
  let below = 0
  let equal = 0
  for (const value of values) {
    if (value < values[index]!) below += 1
    else if (value === values[index]!) equal += 1
  }
  return below + (equal + 1) / 2
}

/** Least-squares slope; 0 if the in-sample values do not vary. */
function slopeOf(pairs: readonly (readonly [number, number])[]): number {
  const meanX = pairs.reduce((sum, [x]) => sum + x, 0) / pairs.length
  const meanY = pairs.reduce((sum, [, y]) => sum + y, 0) / pairs.length
  let covariance = 0
  let variance = 0
  for (const [x, y] of pairs) {
    covariance += (x - meanX) * (y - meanY)
    variance += (x - meanX) ** 2
  }
  return variance > 0 ? covariance / variance : 0
}
