/** What the documents must keep among each other: names are unique, and every name leads somewhere. */
import { type Draft, type OperationDraft, type Route, parseRoute } from './product-drafts.ts'
import type { Catalog } from '../plugin/catalog.ts'
import { type Issue, pointerOf } from '../validation/issue.ts'

/** Which document had a name in the edition before: it keeps it, whatever order the files are in. */
export type NameOwner = (kind: 'product' | 'operation' | 'route' | 'tool', name: string) => string | undefined

const nobody: NameOwner = () => undefined

/** One operation id, route, tool and product each; `uses` and `replacement` name what exists; nobody asks in a circle. */
export function nameIssues(
  drafts: readonly Draft[],
  taken: readonly OperationDraft[],
  held: NameOwner = nobody,
): Issue[] {
  const operations = [...drafts.flatMap((draft) => draft.operations), ...taken]
  const byId = new Map(operations.map((operation) => [operation.id, operation]))
  const products = [
    ...taken.slice(0, 1),
    ...drafts.map(({ file, product }) => ({ file, product, pointer: '/product' })),
  ]
  return [
    ...duplicateNames(products, 'product', held, ({ product }) => [product, `The product ${product}`]),
    ...duplicateNames(operations, 'operation', held, ({ id }) => [id, `The operation ${id}`]),
    ...duplicateNames(operations, 'route', held, ({ route }) =>
      route ? [route.shape, `The route ${route.method} ${route.path}`] : null,
    ),
    ...duplicateNames(operations, 'tool', held, ({ id, tool }) => (tool ? [tool, `The tool ${tool} of ${id}`] : null)),
    ...overlappingRoutes(operations, held),
    ...drafts.flatMap((draft) => usesIssues(draft, byId)),
    ...circularUses(drafts, byId),
    ...replacementIssues(operations),
  ]
}

interface Placed {
  readonly file: string
  readonly pointer: string
}

/** A mistake for each item whose name another has: the one that held it before, else the first. */
function duplicateNames<Item extends Placed>(
  items: readonly Item[],
  kind: 'product' | 'operation' | 'route' | 'tool',
  held: NameOwner,
  nameOf: (item: Item) => readonly [name: string, words: string] | null,
): Issue[] {
  const owners = new Map<string, Item>()
  const named = items.flatMap((item) => {
    const name = nameOf(item)
    return name ? [{ item, name: name[0], words: name[1] }] : []
  })
  for (const { item, name } of named)
    if (!owners.has(name) || (held(kind, name) === item.file && owners.get(name)?.file !== item.file))
      owners.set(name, item)
  return named.flatMap(({ item, name, words }) => {
    const other = owners.get(name) as Item
    if (other === item) return []
    const { file, pointer } = item
    const message = `${words} is already at ${other.file}#${other.pointer}. Write another.`
    return [{ file, pointer: kind === 'route' ? `${pointer}/route` : pointer, rule: `${kind}-taken`, message }]
  })
}

/** A mistake for each route that shares an address with a route of another product: nobody answers for another. */
function overlappingRoutes(operations: readonly OperationDraft[], held: NameOwner): Issue[] {
  const issues: Issue[] = []
  const rivals = new Map<string, Routed[]>()
  for (const { route, file, product, pointer } of operations) {
    if (!route) continue
    const segments = route.path.split('/')
    const second = { route, file, product, pointer, segments }
    const length = `${route.method} ${segments.length}`
    const earlier = rivals.get(length) ?? []
    rivals.set(length, earlier)
    for (const first of earlier) {
      if (first.product === product || !isShared(first, second)) continue
      const isHeld = (one: Routed): boolean => held('route', one.route.shape) === one.file
      const [owner, blamed] = isHeld(second) && !isHeld(first) ? [second, first] : [first, second]
      const message =
        `The route ${blamed.route.method} ${blamed.route.path} shares addresses with ${owner.route.method} ` +
        `${owner.route.path} at ${owner.file}#${owner.pointer}. Write a path of this product's own.`
      issues.push({ file: blamed.file, pointer: `${blamed.pointer}/route`, rule: 'route-taken', message })
    }
    earlier.push(second)
  }
  return issues
}

interface Routed extends Pick<OperationDraft, 'file' | 'product' | 'pointer'> {
  readonly route: Route
  readonly segments: readonly string[]
}

/** True where some address fits both, and they are not one route: segment by segment equal, or a parameter. */
function isShared({ segments, route }: Routed, other: Routed): boolean {
  const fits = (segment: string, at: number): boolean => {
    const theirs = other.segments[at] as string
    return segment === theirs || segment.startsWith('{') || theirs.startsWith('{')
  }
  return segments.every(fits) && route.shape !== other.route.shape
}

function usesIssues({ file, product, uses }: Draft, byId: ReadonlyMap<string, OperationDraft>): Issue[] {
  return uses.flatMap((id, index) => {
    const at = { file, pointer: pointerOf('uses', index) }
    const asked = byId.get(id)
    if (!asked)
      return [{ ...at, rule: 'uses-unknown', message: `No product has the operation ${id}. ${nearest(id, byId)}` }]
    if (asked.product === product)
      return [
        {
          ...at,
          rule: 'uses-own',
          message: `${id} is this product's own operation. Remove it; the plugin can call it.`,
        },
      ]
    if (asked.isRetired) return [{ ...at, rule: 'uses-retired', message: `${id} is retired. Name another operation.` }]
    return []
  })
}

/** Reported once per circle, at the first product of it. */
function circularUses(drafts: readonly Draft[], byId: ReadonlyMap<string, OperationDraft>): Issue[] {
  const asks = new Map(
    drafts.map(({ product, uses }) => [
      product,
      [...new Set(uses.map((id) => byId.get(id)?.product ?? ''))].filter((asked) => asked !== product),
    ]),
  )
  const found = new Set<string>()
  return drafts.flatMap(({ file, product }) => {
    if (found.has(product)) return []
    const circle = cycleFrom(product, asks)
    if (!circle) return []
    circle.forEach((member) => found.add(member))
    const message = `${[...circle, product].join(' asks ')}: a circle. Remove one of these uses.`
    return [{ file, pointer: '/uses', rule: 'uses-circle', message }]
  })
}

/** The way from a product back to itself, or null. */
function cycleFrom(start: string, asks: ReadonlyMap<string, readonly string[]>): string[] | null {
  const seen = new Set<string>()
  function search(product: string, way: readonly string[]): string[] | null {
    for (const next of asks.get(product) ?? []) {
      if (next === start) return [...way, product]
      if (seen.has(next)) continue
      seen.add(next)
      const circle = search(next, [...way, product])
      if (circle) return circle
    }
    return null
  }
  return search(start, [])
}

function replacementIssues(operations: readonly OperationDraft[]): Issue[] {
  const living = new Set(operations.filter(({ isRetired }) => !isRetired).map(({ routeText }) => routeText))
  return operations.flatMap(({ file, pointer, fields }) => {
    const { replacement } = fields
    if (typeof replacement !== 'string' || living.has(replacement)) return []
    const message = `${replacement} is not a route that is served. Write one that is.`
    return [{ file, pointer: `${pointer}/replacement`, rule: 'retired', message }]
  })
}

/** Advice for a misspelt id: one that differs only in case, or that contains it or is contained. */
export function nearest(id: string, byId: ReadonlyMap<string, unknown>): string {
  const low = id.toLowerCase()
  const near = [...byId.keys()].find((other) => {
    const candidate = other.toLowerCase()
    return candidate.includes(low) || low.includes(candidate)
  })
  return near ? `Write ${near}, perhaps.` : 'Write the id of an operation of the catalog.'
}

/** The names of a catalog by the file of the document that has them. */
export function nameOwners({ products }: Catalog): NameOwner {
  const files = new Map<string, string>()
  for (const { id, file, operations } of products) {
    files.set(`product ${id}`, file)
    for (const operation of operations) {
      files.set(`operation ${operation.id}`, file)
      const route = parseRoute(operation.route)
      if (route) files.set(`route ${route.shape}`, file)
      if (operation.tool !== null) files.set(`tool ${operation.tool}`, file)
    }
  }
  return (kind, name) => files.get(`${kind} ${name}`)
}
