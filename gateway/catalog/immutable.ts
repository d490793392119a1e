/** Immutable data. What is built once per edition is shared by all calls, so nothing may change it. */

/** Freezes a value deeply and returns it. */
export function frozen<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  Object.freeze(value)
  for (const child of Object.values(value)) frozen(child)
  return value
}

const constants = new WeakSet<object>()

/**
 * Freezes an object deeply and marks it as constant. An answer that is constant is checked against its schema and
 * serialised once.
 */
export function constant<Value extends object>(value: Value): Value {
  constants.add(frozen(value))
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
 * entries of a map.
 */
export function frozenMap<Key, Value>(entries: Iterable<readonly [Key, Value]>): ReadonlyMap<Key, Value> {
  const map = new Map(entries)
  for (const value of map.values()) frozen(value)
  return Object.freeze(Object.assign(map, { set: refuse, delete: refuse, clear: refuse }))
}
