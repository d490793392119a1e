/** Intervals of prediction that hold as often as they say, whatever the distribution of the errors. */
import { createSortedWindow, pushSorted, type SortedWindow } from './sorted-window.ts'

export interface ErrorInterval {
  readonly low: number
  readonly high: number
}

/**
 * The quantile of `size` ascending errors below which the next one falls with `probability`: that of rank (n + 1)p, linear
 * between ranks, and the smallest or largest error beyond them. For exchangeable errors the next one has any rank among
 * the n + 1 with the same chance. Infinite errors are allowed.
 *
 * Source: Vovk, Gammerman and Shafer, "Algorithmic Learning in a Random World" (2005); Romano, Patterson and Candès,
 * "Conformalized quantile regression", NeurIPS 32 (2019), theorem 2, each tail apart. The estimate itself stands for both
 * of their regressions, so the score is the error.
 *
 * @example conformalQuantile([1, 2, 3, 4, 5, 6, 7, 8, 9], 0.9) // 9: of ten values, the next is the largest in one case of ten
 */
export function conformalQuantile(ascending: ArrayLike<number>, probability: number, size = ascending.length): number {
  const rank = Math.min(size, Math.max(1, (size + 1) * probability))
  const below = Math.floor(rank)
  const [low, high] = [ascending[below - 1]!, ascending[Math.min(size, below + 1) - 1]!]
  return rank === below || low === high ? low : low + (rank - below) * (high - low)
}

/**
 * One step of the share of errors that a tail leaves out: α + γ(target − missed). Misses widen the interval and hits narrow
 * it, so that in the long run the target is met even if the errors drift.
 *
 * Source: Gibbs and Candès, "Adaptive conformal inference under distribution shift", NeurIPS 34 (2021), equation 2.
 *
 * @example adaptedShare(0.1, { target: 0.1, rate: 0.01, missed: 1 }) // 0.091
 */
export function adaptedShare(
  share: number,
  { target, rate, missed }: { readonly target: number; readonly rate: number; readonly missed: number },
): number {
  return Math.min(0.5, Math.max(0, share + rate * (target - missed)))
}

export interface IntervalOptions {
  /** The share of errors to leave out in each tail. */
  readonly tail: number
  /** How many of the last errors count. */
  readonly window: number
  /** γ: how fast the tails follow a drift. */
  readonly rate: number
}

/** The interval of the next error, learnt from those before it. */
export class AdaptiveInterval {
  readonly #options: IntervalOptions
  readonly #errors: SortedWindow
  #lowShare: number
  #highShare: number

  constructor(options: IntervalOptions) {
    this.#options = options
    this.#errors = createSortedWindow(options.window)
    this.#lowShare = this.#highShare = options.tail
  }

  /** Errors that the interval is learnt from. */
  get cases(): number {
    return this.#errors.size
  }

  /** Null without errors. An end is infinite if so many of the errors are. */
  interval(): ErrorInterval | null {
    const { sorted, size } = this.#errors
    if (size === 0) return null
    return {
      low: conformalQuantile(sorted, this.#lowShare, size),
      high: conformalQuantile(sorted, 1 - this.#highShare, size),
    }
  }

  /** Learns errors that became known together. None of them is judged by the others. `isJudged` false leaves the tails. */
  learn(errors: readonly number[], isJudged: boolean): void {
    const { tail: target, rate } = this.#options
    const before = isJudged ? this.interval() : null
    if (before)
      for (const error of errors) {
        // An infinite end holds everything, which says nothing of the share.
        if (Number.isFinite(before.low))
          this.#lowShare = adaptedShare(this.#lowShare, { target, rate, missed: error < before.low ? 1 : 0 })
        if (Number.isFinite(before.high))
          this.#highShare = adaptedShare(this.#highShare, { target, rate, missed: error > before.high ? 1 : 0 })
      }
    for (const error of errors) pushSorted(this.#errors, error)
  }
}
