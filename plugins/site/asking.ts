/** What the pages ask of other operations. */
import { type Call, type Catalog, type Operation, ServiceError } from 'tollgate/plugin'

const NOTHING = { params: {}, query: {}, body: undefined } as const

/** The answer of an operation, without input unless some is given. */
export async function ask<Answer>(call: Call, operation: string, input: object = {}): Promise<Answer> {
  return (await call.ask(operation, { ...NOTHING, ...input })) as Answer
}

/** The same, or null where the product is not sold or cannot answer: a page has more to show than one product. */
export async function askIfThere<Answer>(call: Call, operation: string, input: object = {}): Promise<Answer | null> {
  if (!call.catalog.operations.has(operation)) return null
  try {
    return await ask<Answer>(call, operation, input)
  } catch (error) {
    if (error instanceof ServiceError) return null
    throw error
  }
}

/** The parts of the discovery document that the pages repeat. */
export interface Discovery {
  readonly base_url: string
  readonly payment: {
    readonly network: string
    readonly currency: string
    readonly how: string
    readonly pay_to: string
    /** Every network, where payments are taken on several. */
    readonly networks?: readonly { readonly network: string; readonly pay_to: string }[]
    readonly client_limits: readonly string[]
    readonly program?: string
  }
}

/** Where payments are taken and who is paid there, the leading network first. */
export function payeesOf({ network, pay_to, networks }: Discovery['payment']) {
  return networks ?? [{ network, pay_to }]
}

/** "base", or "base or base-sepolia". */
export function networksOf(payment: Discovery['payment']): string {
  return payeesOf(payment)
    .map(({ network }) => network)
    .join(' or ')
}

/** Where a product stands on the pages that list products: "#product-gold-price". */
export function anchorOf(product: string): string {
  return `product-${product.toLowerCase().replace(/[^a-z0-9]+/g, '-')}`
}

/** A note on a client's limit, cut in two: what it is and how it is raised; the routes above it, none in another note. */
export function capOf(note: string): { readonly rule: string; readonly routes: readonly string[] } {
  const [rule = '', routes = ''] = note.split(' Above that limit: ')
  return { rule, routes: routes.replace(/\.$/, '').split(', ').filter(Boolean) }
}

/** Operations a page may show. */
export function shown(catalog: Catalog): readonly Operation[] {
  return [...catalog.operations.values()].filter(({ listed, internal, retired }) => listed && !internal && !retired)
}

/** Orders groups of operations by their cheapest price; what is free throughout comes last. */
export function byPrice(one: readonly Priced[], other: readonly Priced[]): number {
  return leastPrice(one) - leastPrice(other)
}

interface Priced {
  readonly price: bigint | null
}

function leastPrice(operations: readonly Priced[]): number {
  return Math.min(Number.MAX_VALUE, ...operations.flatMap(({ price }) => (price === null ? [] : [Number(price)])))
}

export interface ToolRow {
  readonly id: string
  readonly name: string
  readonly summary: string
  readonly price: bigint | null
}

export function tools(catalog: Catalog): readonly ToolRow[] {
  return shown(catalog).flatMap(({ id, tool, summary, price }) =>
    tool === null ? [] : [{ id, name: tool, summary, price }],
  )
}

/** A route split for showing: the method, and the path with * for parameters. */
export function routeParts({ method, displayRoute }: Operation): { readonly method: string; readonly path: string } {
  return { method, path: displayRoute.slice(method.length + 1) }
}
