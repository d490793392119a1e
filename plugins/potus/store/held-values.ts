/** Values that are the same at every moment of a span of time, kept for the next caller of a moment within it. */

/** Moments from `from`, inclusive, to `until`, exclusive. */
export interface Span {
  readonly from: number
  readonly until: number
}

export interface Held<Value> extends Span {
  readonly value: Value
}

/** The moments that lie in all of these spans. */
export function overlapOf(spans: readonly Span[]): Span {
  let [from, until] = [-Infinity, Infinity]
  for (const span of spans) {
    if (span.from > from) from = span.from
    if (span.until < until) until = span.until
  }
  return { from, until }
}

/** Callers of so many different delays find their values again. */
const MAX_SPANS = 8

/** Keeps the newest values, each with the span in which it holds. */
export class HeldValues<Value> {
  #held: readonly Held<Value>[] = []

  /** The value at a moment. Calls `compute` only if no kept span contains the moment; the span that it returns must. */
  at(moment: number, compute: () => Held<Value>): Held<Value> {
    const known = this.#held.find(({ from, until }) => from <= moment && moment < until)
    if (known) return known
    const computed = compute()
    this.#held = [computed, ...this.#held.slice(0, MAX_SPANS - 1)]
    return computed
  }

  clear(): void {
    this.#held = []
  }
}
