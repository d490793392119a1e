/** Immutable data. What is built once per edition is shared by all calls, so nothing may change it. */

/** Freezes a value deeply and returns it. Buffers stay as they are: their bytes cannot be frozen. */
export function frozen<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value) || Object.isFrozen(value)) return value
  Object.freeze(value)
  for (const child of Object.values(value)) frozen(child)
  return value
}

const shared = new WeakSet<object>()
const constants = new WeakSet<object>()

/**
 * Freezes an object deeply and marks it as shared: several calls may get this very object. An answer that is shared is
 * checked against its schema and serialised once.
 */
export function share<Value extends object>(value: Value): Value {
  shared.add(frozen(value))
  return value
}

/** Returns true for an object that `share` or `constant` returned. */
export function isShared(value: unknown): value is object {
  return typeof value === 'object' && value !== null && shared.has(value)
}

/** Shares an object, and marks it as the answer that every call gets while the catalog stays the same. */
export function constant<Value extends object>(value: Value): Value {
  constants.add(share(value))
  return value
}

/** Returns true for an object that `constant` returned. */
export function isConstant(value: unknown): value is object {
  return typeof value === 'object' && value !== null && constants.has(value)
}

const refuse = (): never => {
  throw new TypeError('This map is frozen.')
}

/**
 * Creates a map with frozen values that throws TypeError on every change. Object.freeze alone does not protect the
 * entries of a map. Returns such a map unchanged.
 */
export function frozenMap<Key, Value>(entries: Iterable<readonly [Key, Value]>): ReadonlyMap<Key, Value> {
  if (entries instanceof Map && Object.isFrozen(entries)) return entries
  const map = new Map(entries)
  for (const value of map.values()) frozen(value)
  return Object.freeze(Object.assign(map, { set: refuse, delete: refuse, clear: refuse }))
}
