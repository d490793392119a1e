/**
 * The tables of MetaTrader that name two columns alike. In a list of positions, "Time" and "Price" stand for the entry and
 * again for the exit. pandas writes the second as "Time.1".
 */

const PAIRED = /^(?:time|date|date ?time|price|rate)$/i

/**
 * Names under which the header can be recognised: of two columns "Price", the first is "Entry Price" and the second is
 * "Exit Price". Other names stay, in their place.
 *
 * @example namedByLeg(['Time', 'Type', 'Price', 'Time', 'Price']) // ['Entry Time', 'Type', 'Entry Price', 'Exit Time', 'Exit Price']
 */
export function namedByLeg(names: readonly string[]): readonly string[] {
  const places = new Map<string, number[]>()
  for (const [index, name] of names.entries()) {
    const base = name.replace(/\.1$/, '')
    if (!PAIRED.test(base)) continue
    const key = base.toLowerCase()
    places.set(key, [...(places.get(key) ?? []), index])
  }
  const legs = [...places.values()].filter(({ length }) => length === 2)
  if (legs.length === 0) return names
  const renamed = [...names]
  for (const [entry, exit] of legs as [number, number][]) {
    renamed[entry] = `Entry ${names[entry]}`
    renamed[exit] = `Exit ${names[entry]}`
  }
  return renamed
}
