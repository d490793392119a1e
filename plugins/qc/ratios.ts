/** Split ratios and how often each is announced, as a share of all splits; rough, from years of US lists. */
const FORWARD: readonly (readonly [number, number, number])[] = [
  [2, 1, 0.4], [3, 1, 0.07], [4, 1, 0.04], [5, 1, 0.03], [6, 1, 0.005], [7, 1, 0.005], [8, 1, 0.004], [10, 1, 0.03],
  [15, 1, 0.004], [20, 1, 0.008], [25, 1, 0.003], [30, 1, 0.002], [50, 1, 0.003], [100, 1, 0.002],
  [3, 2, 0.18], [5, 4, 0.04], [4, 3, 0.015], [6, 5, 0.003], [5, 2, 0.006], [5, 3, 0.005], [7, 5, 0.001],
] // prettier-ignore
const REVERSE: readonly (readonly [number, number, number])[] = [
  [1, 2, 0.008], [1, 3, 0.01], [1, 4, 0.015], [1, 5, 0.02], [1, 6, 0.006], [1, 7, 0.006], [1, 8, 0.01], [1, 10, 0.04],
  [1, 12, 0.004], [1, 15, 0.01], [1, 20, 0.015], [1, 25, 0.006], [1, 30, 0.006], [1, 40, 0.004], [1, 50, 0.004],
  [1, 100, 0.002], [2, 3, 0.0002], [4, 5, 0.0001], [3, 4, 0.0001], [5, 6, 0.0001], [2, 5, 0.0001], [3, 5, 0.0001],
  [5, 7, 0.0001],
] // prettier-ignore

export interface Ratio {
  /** "7:1": each old share became seven. */
  readonly name: string
  /** New shares per old share; prices before the split are divided by it. */
  readonly factor: number
  readonly popularity: number
}

export const RATIOS: readonly Ratio[] = [...FORWARD, ...REVERSE].map(([a, b, popularity]) => ({
  name: `${a}:${b}`,
  factor: a / b,
  popularity,
}))
