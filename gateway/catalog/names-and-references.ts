/** Names across documents: every name is unique, and every reference leads to something that exists. */
import { type Draft, type OperationDraft, parseRoute } from './product-drafts.ts'
import type { Catalog } from '../plugin/catalog.ts'
import { type Issue, pointerOf } from '../validation/issue.ts'

/** Returns the file of the document that had a name in the previous edition. That document keeps the name. */
export type NameOwner = (kind: NameKind, name: string) => string | undefined

/** Kinds of names that must be unique. */
type NameKind = 'product' | 'operation' | 'route' | 'tool'

const noOwner: NameOwner = () => undefined

/**
 * Lists the issues of names. Products, operation ids, routes and tools must be unique, `uses` and `replacement` must name
 * what exists, and products must not use each other in a circle. `taken` are operations that no product document
 * describes, such as those of plans.
 */
export function nameIssues(
  drafts: readonly Draft[],
  taken: readonly OperationDraft[],
  ownerOf: NameOwner = noOwner,
): Issue[] {
  const operations = [...drafts.flatMap((draft) => draft.operations), ...taken]
  const byId = new Map(operations.map((operation) => [operation.id, operation]))
  const products = [
    ...taken.slice(0, 1),
    ...drafts.map(({ file, product }) => ({ file, product, pointer: '/product' })),
  ]
  return [
    ...duplicateNames(products, 'product', ownerOf, ({ product }) => [product, `The product ${product}`]),
    ...duplicateNames(operations, 'operation', ownerOf, ({ id }) => [id, `The operation ${id}`]),
    ...duplicateNames(operations, 'route', ownerOf, ({ route }) =>
      route ? [route.shape, `The route ${route.method} ${route.path}`] : null,
    ),
    ...duplicateNames(operations, 'tool', ownerOf, ({ id, tool }) =>
      tool ? [tool, `The tool ${tool} of ${id}`] : null,
    ),
    ...overlappingRoutes(operations, ownerOf),
    ...drafts.flatMap((draft) => usesIssues(draft, byId)),
    ...circularUses(drafts, byId),
    ...replacementIssues(operations),
  ]
}

interface Placed {
  readonly file: string
  readonly pointer: string
}

/** Reports each item whose name another item owns: the one that had it in the previous edition, or else the first. */
function duplicateNames<Item extends Placed>(
  items: readonly Item[],
  kind: NameKind,
  ownerOf: NameOwner,
  nameOf: (item: Item) => readonly [name: string, description: string] | null,
): Issue[] {
  const owners = new Map<string, Item>()
  const named = items.flatMap((item) => {
    const name = nameOf(item)
    return name ? [{ item, name: name[0], description: name[1] }] : []
  })
  for (const { item, name } of named)
    if (!owners.has(name) || (ownerOf(kind, name) === item.file && owners.get(name)?.file !== item.file))
      owners.set(name, item)
  return named.flatMap(({ item, name, description }) => {
    const other = owners.get(name) as Item
    if (other === item) return []
    const { file, pointer } = item
    const message = `${description} is already defined at ${other.file}#${other.pointer}. Choose another.`
    return [{ file, pointer: kind === 'route' ? `${pointer}/route` : pointer, rule: `${kind}-taken`, message }]
  })
}

/** Reports routes of different products that match the same address. One of the two is blamed. */
function overlappingRoutes(operations: readonly OperationDraft[], ownerOf: NameOwner): Issue[] {
  const issues: Issue[] = []
  const roots = new Map<string, RouteTree>()
  for (const second of operations) {
    const { route } = second
    if (!route) continue
    const segments = route.path.split('/')
    const root = roots.get(route.method) ?? new RouteTree()
    roots.set(route.method, root)
    for (const first of root.sharing(segments)) {
      if (first.product === second.product || first.route?.shape === route.shape) continue
      const isOwner = (one: OperationDraft): boolean => ownerOf('route', one.route?.shape ?? '') === one.file
      const [owner, blamed] = isOwner(second) && !isOwner(first) ? [second, first] : [first, second]
      const message =
        `The route ${blamed.routeText} shares addresses with ${owner.routeText} at ${owner.file}#${owner.pointer}. ` +
        'Write a path that only this product has.'
      issues.push({ file: blamed.file, pointer: `${blamed.pointer}/route`, rule: 'route-taken', message })
    }
    root.add(segments, second)
  }
  return issues
}

/** Routes by the segments of their paths, so that those that share an address with a new one are found without trying all. */
class RouteTree {
  readonly #next = new Map<string, RouteTree>()
  readonly #routes: OperationDraft[] = []

  add([segment, ...rest]: readonly string[], operation: OperationDraft): void {
    if (segment === undefined) return void this.#routes.push(operation)
    const key = segment.startsWith('{') ? ANY : segment
    const next = this.#next.get(key) ?? new RouteTree()
    this.#next.set(key, next)
    next.add(rest, operation)
  }

  /** The routes with as many segments that match some address of a path. A parameter matches any segment. */
  sharing([segment, ...rest]: readonly string[]): readonly OperationDraft[] {
    if (segment === undefined) return this.#routes
    const isAny = segment.startsWith('{')
    const next = isAny ? [...this.#next.values()] : [this.#next.get(segment), this.#next.get(ANY)]
    return next.flatMap((tree) => tree?.sharing(rest) ?? [])
  }
}

/** Stands for any parameter. No segment of a path contains a brace. */
const ANY = '{}'

function usesIssues({ file, product, uses }: Draft, byId: ReadonlyMap<string, OperationDraft>): Issue[] {
  return uses.flatMap((id, index) => {
    const at = { file, pointer: pointerOf('uses', index) }
    const used = byId.get(id)
    if (!used)
      return [{ ...at, rule: 'uses-unknown', message: `No product has the operation ${id}. ${nearest(id, byId)}` }]
    if (used.product === product)
      return [
        {
          ...at,
          rule: 'uses-own',
          message: `${id} is this product's own operation. Remove it; the plugin can call it.`,
        },
      ]
    if (used.isRetired) return [{ ...at, rule: 'uses-retired', message: `${id} is retired. Name another operation.` }]
    return []
  })
}

/** Reports each circle once, at its first product. */
function circularUses(drafts: readonly Draft[], byId: ReadonlyMap<string, OperationDraft>): Issue[] {
  const usesOf = new Map(
    drafts.map(({ product, uses }) => [
      product,
      [...new Set(uses.map((id) => byId.get(id)?.product ?? ''))].filter((used) => used !== product),
    ]),
  )
  const found = new Set<string>()
  return drafts.flatMap(({ file, product }) => {
    if (found.has(product)) return []
    const circle = cycleFrom(product, usesOf)
    if (!circle) return []
    circle.forEach((member) => found.add(member))
    const message = `Products use each other in a circle: ${[...circle, product].join(' uses ')}. Remove one of these uses.`
    return [{ file, pointer: '/uses', rule: 'uses-circle', message }]
  })
}

/** Finds the products on the way from a product back to itself. Null if there is no way. */
function cycleFrom(start: string, usesOf: ReadonlyMap<string, readonly string[]>): string[] | null {
  const seen = new Set<string>()
  function search(product: string, path: readonly string[]): string[] | null {
    for (const next of usesOf.get(product) ?? []) {
      if (next === start) return [...path, product]
      if (seen.has(next)) continue
      seen.add(next)
      const circle = search(next, [...path, product])
      if (circle) return circle
    }
    return null
  }
  return search(start, [])
}

function replacementIssues(operations: readonly OperationDraft[]): Issue[] {
  const served = new Set(operations.filter(({ isRetired }) => !isRetired).map(({ routeText }) => routeText))
  return operations.flatMap(({ file, pointer, fields }) => {
    const { replacement } = fields
    if (typeof replacement !== 'string' || served.has(replacement)) return []
    const message = `${replacement} is not a route of the catalog. Write a route that is served.`
    return [{ file, pointer: `${pointer}/replacement`, rule: 'retired', message }]
  })
}

/** Advice for a misspelt id: an id that contains it or is contained in it, in any case. */
export function nearest(id: string, byId: ReadonlyMap<string, unknown>): string {
  const low = id.toLowerCase()
  const near = [...byId.keys()].find((other) => {
    const candidate = other.toLowerCase()
    return candidate.includes(low) || low.includes(candidate)
  })
  return near ? `Did you mean ${near}?` : 'Write the id of an operation of the catalog.'
}

/** Returns which document of a catalog has which names. */
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
