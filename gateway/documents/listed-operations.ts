/** Selects the operations that the documents show, and formats their URLs and prices. */
import { isEventStream } from '../catalog/validate.ts'
import { promisesFreshData, writtenFreshData } from '../catalog/fresh-data.ts'
import type { Catalog, Operation } from '../plugin/catalog.ts'

/** An operation with a price. */
export type PricedOperation = Operation & { readonly price: bigint }

/** Returns the operations that the documents show: listed, with a route and not retired, in catalog order. */
export function listed(catalog: Catalog): readonly Operation[] {
  return [...catalog.operations.values()].filter(isListed)
}

function isListed(operation: Operation): boolean {
  return operation.listed && !operation.internal && !operation.retired
}

/** Returns true if calls of the operation are paid for. */
export function isPriced(operation: Operation): operation is PricedOperation {
  return operation.price !== null
}

/** Returns the priced operations, including the purchases of plans. */
export function priced(catalog: Catalog): readonly PricedOperation[] {
  return listed(catalog).filter(isPriced)
}

/** Freshness that each route needs to be sold, by route, for those that promise it. */
export function freshRoutes(catalog: Catalog): Readonly<Record<string, object>> {
  const promised = priced(catalog).filter(promisesFreshData)
  return Object.fromEntries(promised.map(({ displayRoute, fresh }) => [displayRoute, writtenFreshData(fresh)]))
}

/** The promise of an operation as a sentence: "Sold only while …". Empty if it promises nothing. */
export function freshSentence(operation: Operation): string {
  if (!promisesFreshData(operation)) return ''
  const { newestSeconds, sources, coverage } = operation.fresh
  const conditions = [
    ...(newestSeconds === undefined ? [] : [`the newest data are at most ${newestSeconds} seconds old`]),
    ...(sources === undefined ? [] : [`${sources} or more sources deliver`]),
    ...(coverage === undefined ? [] : [`${percent(coverage)} or more of the expected data are there`]),
  ]
  const where = operation.plan ? ', on every route that it opens' : ''
  return `Sold only while ${conditions.join(' and ')}${where}; otherwise 503, uncharged.`
}

/** 0.9 is "90%", 0.29 is "29%" and not the "28.999999999999996%" of its product with 100. */
function percent(share: number): string {
  return `${Number((share * 100).toPrecision(12))}%`
}

/** Returns the cheapest priced route that needs no path parameter and no body, for use in examples. */
export function simplest(catalog: Catalog): PricedOperation | undefined {
  return priced(catalog)
    .filter(({ method, path }) => method === 'GET' && !path.includes('{'))
    .sort((one, other) => Number(one.price - other.price))[0]
}

/** The longest body of an example that is still easy to copy. */
const SHORT_BODY = 200

/** Returns the cheapest priced POST without path parameters whose example has a short JSON body, with that body. */
export function simplestPost(catalog: Catalog): { readonly operation: PricedOperation; readonly body: string } | null {
  const found = priced(catalog).flatMap((operation) => {
    const { method, path, bodyMedia, example } = operation
    const isPost = method === 'POST' && !path.includes('{') && bodyMedia[0] === 'application/json'
    const body = isPost && example?.request.body !== undefined ? JSON.stringify(example.request.body) : ''
    return body === '' || body.length > SHORT_BODY ? [] : [{ operation, body }]
  })
  return found.sort((one, other) => Number(one.operation.price - other.operation.price))[0] ?? null
}

/** Returns the listed operations without a price. */
export function free(catalog: Catalog): readonly Operation[] {
  return listed(catalog).filter((operation) => !isPriced(operation))
}

export interface Group {
  readonly title: string
  readonly summary: string
  readonly operations: readonly Operation[]
}

/** Groups the listed operations by product, in catalog order. Products without any are omitted. */
export function groups(catalog: Catalog): readonly Group[] {
  return catalog.products
    .map(({ title, summary, operations }) => ({ title, summary, operations: operations.filter(isListed) }))
    .filter(({ operations }) => operations.length > 0)
}

/** Returns the path with the parameters of the route's example. Parameters without an example stay in braces. */
function examplePath(operation: Operation): string {
  const params = operation.example?.request.params ?? {}
  return operation.path.replace(/\{([^}]+)\}/g, (braces, name: string) =>
    params[name] === undefined ? braces : encodeURIComponent(scalar(params[name])),
  )
}

/** Returns the absolute URL of a route with its example parameters, without a query. */
export function addressOf(operation: Operation, baseUrl: string): string {
  return baseUrl + examplePath(operation)
}

/** Returns the absolute URL with the query of the example. */
export function exampleAddress(operation: Operation, baseUrl: string): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(operation.example?.request.query ?? {})) query.append(name, scalar(value))
  return addressOf(operation, baseUrl) + (query.size > 0 ? `?${query.toString()}` : '')
}

function scalar(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Returns true if an operation is for sale with an answer that a tool call can carry. Plans are bought over HTTP. */
export function isSoldAsJson(operation: Operation, { products }: Catalog): boolean {
  const { price, plan, response, view } = operation
  const streams = products.find(({ id }) => id === operation.product)?.upstream?.stream === true
  const isJson = response !== null && view === null && !streams && !isEventStream(response)
  return price !== null && plan === null && isListed(operation) && isJson
}

/** Returns true if the operation has any input, and so can answer 422. */
export function hasInput(operation: Operation): boolean {
  return operation.params !== null || operation.query !== null || operation.body !== null
}
