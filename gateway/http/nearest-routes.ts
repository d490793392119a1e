/** Where the visitor of an address that does not exist may have wanted to go. */
import type { Catalog, Operation } from '../plugin/catalog.ts'

export interface NearRoute {
  /** The page itself, or the documentation of the route. */
  readonly href: string
  readonly path: string
  readonly summary: string
}

const MAX_ROUTES = 4
/** Nobody mistypes a longer address, and to compare takes time with the square of it. */
const MAX_LENGTH = 80
/** Anybody can ask for any address, so it is compared only with those that are most like it in length. */
const MAX_COMPARED = 100
/** The share of an address that may differ. */
const MAX_DIFFERENCE = 0.45

/** Returns the listed routes whose paths are spelled most like `path`, or contain its last segment. The nearest is first. */
export function nearestRoutes(path: string, { operations }: Catalog): readonly NearRoute[] {
  if (path.length > MAX_LENGTH) return []
  const asked = path.toLowerCase()
  return [...operations.values()]
    .filter(({ listed, retired, view, path }) => listed && !retired && (view === null || !path.includes('{')))
    .sort((one, other) => Math.abs(one.path.length - path.length) - Math.abs(other.path.length - path.length))
    .slice(0, MAX_COMPARED)
    .map((operation) => ({ operation, difference: difference(asked, operation.path) }))
    .filter((one) => one.difference <= MAX_DIFFERENCE)
    .sort((one, other) => one.difference - other.difference)
    .slice(0, MAX_ROUTES)
    .map(({ operation }) => ({ href: hrefOf(operation), path: operation.path, summary: operation.summary }))
}

const hrefOf = ({ id, path, method, view }: Operation): string =>
  method === 'GET' && view !== null ? path : `/docs/${id}`

/** From 0, the same, to 1, nothing in common. */
function difference(asked: string, path: string): number {
  const share = editDistance(asked, path) / Math.max(asked.length, path.length)
  const last = asked.split('/').findLast((segment) => segment.length > 2)
  return last !== undefined && path.includes(last) ? Math.min(share, MAX_DIFFERENCE) : share
}

/** How many letters must be written, left out or changed to make one text of the other (Levenshtein). */
function editDistance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let at = 0; at < one.length; at += 1) {
    const next = [at + 1]
    for (let to = 0; to < other.length; to += 1) {
      const changed = (row[to] as number) + (one[at] === other[to] ? 0 : 1)
      next.push(Math.min(changed, (row[to + 1] as number) + 1, (next[to] as number) + 1))
    }
    row = next
  }
  return row[other.length] as number
}
