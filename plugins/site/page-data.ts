/** What several pages need: answers of other operations, and the operations and prices of the catalog. */
import { type Call, type Catalog, type Operation, ServiceError } from 'tollgate/plugin'

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

/** Writes a share as percent with one decimal: 0.5 is "50.0%". */
export const percent = (share: number): string => `${(share * 100).toFixed(1)}%`

/** Returns the id of a product's section in the documentation: "product-gold-price". */
export function anchorOf(product: string): string {
  return `product-${product.toLowerCase().replace(/[^a-z0-9]+/g, '-')}`
}

/** Returns the operations that pages may show. */
export function listedOperations(catalog: Catalog): readonly Operation[] {
  return [...catalog.operations.values()].filter(({ listed, internal, retired }) => listed && !internal && !retired)
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

/** Splits a route into the method and the path with * for parameters. */
export function routeParts({ method, displayRoute }: Operation): { readonly method: string; readonly path: string } {
  return { method, path: displayRoute.slice(method.length + 1) }
}
