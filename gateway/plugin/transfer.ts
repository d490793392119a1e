/** Results of `context.work` whose buffers move to the event loop instead of being copied. */
const buffersOf = new WeakMap<object, readonly ArrayBuffer[]>()

/**
 * Marks buffers of a result to move instead of being copied. Use it in a function that `context.work` runs; the function
 * must not use the buffers afterwards. Returns the value.
 *
 * @example return transfer({ prices }, [prices.buffer])
 */
export function transfer<Value extends object>(value: Value, buffers: readonly ArrayBuffer[]): Value {
  buffersOf.set(value, buffers)
  return value
}

/** Returns the buffers of a result that move. */
export function transferOf(value: unknown): readonly ArrayBuffer[] {
  return (typeof value === 'object' && value !== null ? buffersOf.get(value) : undefined) ?? []
}
