/** Random numbers that a seed repeats, so that a run can be repeated. */

export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** A number from 0 to 1, without 1 (mulberry32). */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }

  /** A whole number from 0 to `end`, without `end`. */
  below(end: number): number {
    return Math.floor(this.fraction() * end)
  }

  /** One of the values. There must be one. */
  oneOf<Value>(values: readonly Value[]): Value {
    return values[this.below(values.length)] as Value
  }

  /** True once in `times`. */
  onceIn(times: number): boolean {
    return this.below(times) === 0
  }
}
