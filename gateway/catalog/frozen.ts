/** Immutable data: what is built once per edition is read by every call and written by none. */

/** The same value, frozen to its leaves. */
export function frozen<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  Object.freeze(value)
  for (const child of Object.values(value)) frozen(child)
  return value
}

const constants = new WeakSet<object>()

/** The same object, frozen to its leaves and known as one that never changes: it is checked and written once. */
export function constant<Value extends object>(value: Value): Value {
  constants.add(frozen(value))
  return value
}

export function isConstant(value: unknown): value is object {
  return typeof value === 'object' && value !== null && constants.has(value)
}

const refuse = (): never => {
  throw new TypeError('this map is frozen')
}

/** A map that throws TypeError on every change, its values frozen. Object.freeze alone leaves a map open. */
export function frozenMap<Key, Value>(entries: Iterable<readonly [Key, Value]>): ReadonlyMap<Key, Value> {
  const map = new Map(entries)
  for (const value of map.values()) frozen(value)
  return Object.freeze(Object.assign(map, { set: refuse, delete: refuse, clear: refuse }))
}
