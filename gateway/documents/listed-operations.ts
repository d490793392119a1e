/** Which operations the documents show, and how they write addresses and prices. */
import type { Catalog, Operation } from '../plugin/catalog.ts'

/** An operation with a price. */
export type PricedOperation = Operation & { readonly price: bigint }

/** What the documents show: everything with a route that is listed and not retired, in catalog order. */
export function listed(catalog: Catalog): readonly Operation[] {
  return [...catalog.operations.values()].filter(isListed)
}

export function isListed(operation: Operation): boolean {
  return operation.listed && !operation.internal && !operation.retired
}

export function isPriced(operation: Operation): operation is PricedOperation {
  return operation.price !== null
}

/** Priced operations, plan purchases included. */
export function priced(catalog: Catalog): readonly PricedOperation[] {
  return listed(catalog).filter(isPriced)
}

/** The cheapest priced route that can be called as it stands: what a first example shows. */
export function simplest(catalog: Catalog): PricedOperation | undefined {
  return priced(catalog)
    .filter(({ method, path }) => method === 'GET' && !path.includes('{'))
    .sort((one, other) => Number(one.price - other.price))[0]
}

export function free(catalog: Catalog): readonly Operation[] {
  return listed(catalog).filter((operation) => !isPriced(operation))
}

export interface Group {
  readonly title: string
  readonly summary: string
  readonly operations: readonly Operation[]
}

/** The shown operations by product, in catalog order; a product with none is left out. */
export function groups(catalog: Catalog): readonly Group[] {
  return catalog.products
    .map(({ title, summary, operations }) => ({ title, summary, operations: operations.filter(isListed) }))
    .filter(({ operations }) => operations.length > 0)
}

/** Dollars of an atomic amount with at least two decimals: 5000n is "0.005", 50000000n is "50.00". */
export function dollars(amount: bigint): string {
  const digits = amount.toString().padStart(7, '0')
  const fraction = digits.slice(-6).replace(/0{1,4}$/, '')
  return `${digits.slice(0, -6)}.${fraction}`
}

/** The path of a route with the parameters of its example filled in; without an example they stay in braces. */
export function examplePath(operation: Operation): string {
  const params = operation.example?.request.params ?? {}
  return operation.path.replace(/\{([^}]+)\}/g, (braces, name: string) =>
    params[name] === undefined ? braces : encodeURIComponent(scalar(params[name])),
  )
}

/** Absolute address of a route that can be called as it stands, without a query. */
export function addressOf(operation: Operation, baseUrl: string): string {
  return baseUrl + examplePath(operation)
}

/** Absolute address with the query of the example. */
export function exampleAddress(operation: Operation, baseUrl: string): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(operation.example?.request.query ?? {})) query.append(name, scalar(value))
  return addressOf(operation, baseUrl) + (query.size > 0 ? `?${query.toString()}` : '')
}

function scalar(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** True where the operation takes anything at all, and so can answer 422. */
export function hasInput(operation: Operation): boolean {
  return operation.params !== null || operation.query !== null || operation.body !== null
}
