/**
 * Returns a function that makes a value when it is first called, and returns the same one from then on. What takes long to
 * make is made so, because no start should wait for what a later call needs.
 */
export function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined
  return () => (made ??= { value: make() }).value
}
