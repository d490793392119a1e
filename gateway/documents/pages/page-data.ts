/** What several pages need: answers of other operations, and the operations and prices of the catalog. */
import { type Call, type Catalog, type Operation, ServiceError } from '../../plugin/plugin.ts'
import { listed } from '../listed-operations.ts'

/** Returns the answer of an operation, by default without input. */
export async function ask<Answer>(call: Call, operation: string, input: object = {}): Promise<Answer> {
  return (await call.ask(operation, input)) as Answer
}

/** Returns the answer, or null if the product is not in the catalog or fails, so that the rest of a page still works. */
export async function askIfAvailable<Answer>(
  call: Call,
  operation: string,
  input: object = {},
): Promise<Answer | null> {
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
    /** All networks, if payments are accepted on more than one. */
    readonly networks?: readonly { readonly network: string; readonly pay_to: string }[]
    readonly client_limits: readonly string[]
    readonly program?: string
  }
}

/** Returns the networks and the address that is paid on each, the main network first. */
export function recipientsOf({ network, pay_to, networks }: Discovery['payment']) {
  return networks ?? [{ network, pay_to }]
}

/** Lists the networks: "base" or "base or base-sepolia". */
export function networksOf(payment: Discovery['payment']): string {
  return recipientsOf(payment)
    .map(({ network }) => network)
    .join(' or ')
}

/** Returns the id of a product's section on pages that list products: "product-gold-price". */
export function anchorOf(product: string): string {
  return `product-${product.toLowerCase().replace(/[^a-z0-9]+/g, '-')}`
}

/** Splits a note on a client's spending limit into the rule and the routes above the limit. */
export function clientLimitOf(note: string): { readonly rule: string; readonly routes: readonly string[] } {
  const [rule = '', routes = ''] = note.split(' Above that limit: ')
  return { rule, routes: routes.replace(/\.$/, '').split(', ').filter(Boolean) }
}

/** Returns the priced GET routes without path parameters, the cheapest first. */
export function pricedGets(catalog: Catalog): readonly Operation[] {
  return listed(catalog)
    .filter(({ price, method, path }) => price !== null && method === 'GET' && !path.includes('{'))
    .sort((one, other) => byPrice([one], [other]))
}

/** Compares groups of operations by their lowest price. Groups with only free operations come last. */
export function byPrice(one: readonly Priced[], other: readonly Priced[]): number {
  return lowestPrice(one) - lowestPrice(other)
}

interface Priced {
  readonly price: bigint | null
}

function lowestPrice(operations: readonly Priced[]): number {
  return Math.min(Number.MAX_VALUE, ...operations.flatMap(({ price }) => (price === null ? [] : [Number(price)])))
}

export interface ToolRow {
  readonly id: string
  readonly name: string
  readonly summary: string
  readonly price: bigint | null
}

/** Returns the MCP tools. */
export function tools(catalog: Catalog): readonly ToolRow[] {
  return listed(catalog).flatMap(({ id, tool, summary, price }) =>
    tool === null ? [] : [{ id, name: tool, summary, price }],
  )
}

/** Splits a route into the method and the path with * for parameters. */
export function routeParts({ method, displayRoute }: Operation): { readonly method: string; readonly path: string } {
  return { method, path: displayRoute.slice(method.length + 1) }
}

/** Messages for a form that was sent back with an error code. */
const MESSAGES: Readonly<Record<string, string>> = {
  validation_failed: 'Your input was not accepted. Please check it and send it again.',
  rate_limited: 'Too many requests from your network address. Please try again later.',
  product_suspended: 'This is not available at the moment. Please try again later.',
}

/**
 * Returns the message for an error code, or null without a code. Unknown codes get a general one: whoever writes a link
 * chooses the code, and must not choose what the page says.
 */
export function problemMessage(code: unknown): string | null {
  if (typeof code !== 'string' || code === '') return null
  const message = Object.hasOwn(MESSAGES, code) ? MESSAGES[code] : undefined
  return message ?? 'Something went wrong. Please try again in a minute.'
}
