/**
 * Remembers what pure functions computed from an object that never changes, such as the content of a document. A rebuild
 * of the catalog then computes only what belongs to the files that have changed.
 */
export class Remembered<Value> {
  readonly #known = new WeakMap<object, { readonly inputs: readonly unknown[]; readonly value: Value }>()

  /** Returns what was computed from the object with the same further inputs, or computes it. */
  get(object: object, inputs: readonly unknown[], compute: () => Value): Value {
    const known = this.#known.get(object)
    if (known?.inputs.every((input, at) => input === inputs[at])) return known.value
    const value = compute()
    this.#known.set(object, { inputs, value })
    return value
  }
}
