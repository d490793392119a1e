/** What the documents must keep among each other: names are unique, and every name leads somewhere. */
import type { Draft, OperationDraft } from './draft.ts'
import { type Mistake, pointerOf } from './mistake.ts'

/** One operation id, route, tool and product each; `uses` and `replacement` name what exists; nobody asks in a circle. */
export function nameMistakes(drafts: readonly Draft[], taken: readonly OperationDraft[]): Mistake[] {
  const operations = [...drafts.flatMap((draft) => draft.operations), ...taken]
  const byId = new Map(operations.map((operation) => [operation.id, operation]))
  return [
    ...repeated(
      [...taken.slice(0, 1), ...drafts.map(({ file, product }) => ({ file, product, pointer: '/product' }))],
      'product',
      ({ product }) => [product, `The product ${product}`],
    ),
    ...repeated(operations, 'operation', ({ id }) => [id, `The operation ${id}`]),
    ...repeated(operations, 'route', ({ route }) =>
      route ? [route.shape, `The route ${route.method} ${route.path}`] : null,
    ),
    ...repeated(operations, 'tool', ({ id, tool }) => (tool ? [tool, `The tool ${tool} of ${id}`] : null)),
    ...drafts.flatMap((draft) => useMistakes(draft, byId)),
    ...circles(drafts, byId),
    ...replacementMistakes(operations),
  ]
}

interface Placed {
  readonly file: string
  readonly pointer: string
}

/** A mistake for each item whose name an earlier one has. */
function repeated<Item extends Placed>(
  items: readonly Item[],
  kind: string,
  nameOf: (item: Item) => readonly [name: string, words: string] | null,
): Mistake[] {
  const first = new Map<string, Item>()
  return items.flatMap((item) => {
    const named = nameOf(item)
    if (!named) return []
    const [name, words] = named
    const other = first.get(name)
    if (!other) {
      first.set(name, item)
      return []
    }
    const { file, pointer } = item
    const message = `${words} is already at ${other.file}#${other.pointer}. Write another.`
    return [{ file, pointer: kind === 'route' ? `${pointer}/route` : pointer, rule: `${kind}-taken`, message }]
  })
}

function useMistakes({ file, product, uses }: Draft, byId: ReadonlyMap<string, OperationDraft>): Mistake[] {
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
function circles(drafts: readonly Draft[], byId: ReadonlyMap<string, OperationDraft>): Mistake[] {
  const asks = new Map(
    drafts.map(({ product, uses }) => [
      product,
      [...new Set(uses.map((id) => byId.get(id)?.product ?? ''))].filter((asked) => asked !== product),
    ]),
  )
  const found = new Set<string>()
  return drafts.flatMap(({ file, product }) => {
    if (found.has(product)) return []
    const circle = circleFrom(product, asks)
    if (!circle) return []
    circle.forEach((member) => found.add(member))
    const message = `${[...circle, product].join(' asks ')}: a circle. Remove one of these uses.`
    return [{ file, pointer: '/uses', rule: 'uses-circle', message }]
  })
}

/** The way from a product back to itself, or null. */
function circleFrom(start: string, asks: ReadonlyMap<string, readonly string[]>): string[] | null {
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

function replacementMistakes(operations: readonly OperationDraft[]): Mistake[] {
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
