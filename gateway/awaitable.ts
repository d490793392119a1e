/** Results that may be there at once: a call whose data are in memory is answered without the cost of promises. */

export type Awaitable<Value> = Value | Promise<Value>

/** True for everything that can be awaited, such as the queries of a database. */
export function isPromise<Value>(value: Awaitable<Value>): value is Promise<Value> {
  return typeof (value as { readonly then?: unknown } | null | undefined)?.then === 'function'
}

/** Continues with a value: now if it is there, otherwise when its promise resolves. */
export function andThen<Value, Next>(
  value: Awaitable<Value>,
  next: (value: Value) => Awaitable<Next>,
): Awaitable<Next> {
  return isPromise(value) ? value.then(next) : next(value)
}
