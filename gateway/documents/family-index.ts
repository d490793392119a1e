/** /v1/<family>: the machine-readable catalog of one family of products, with prices, schemas and examples. */
import type { Catalog, Operation } from '../plugin/catalog.ts'
import type { Call, JsonSchema, Reply } from '../plugin/plugin.ts'
import { type Bundle, createBundle } from './schema-bundle.ts'
import { documentHandler } from './document.ts'
import { addressOf, isPriced, listed } from './listed-operations.ts'
import type { DocumentContext } from './document.ts'
import { CURRENCY, networkList } from './how-to-pay.ts'

/** Creates the handler of every operation at /v1/<family>. The route names the family, so a new one needs no code. */
export function familyHandler(context: DocumentContext): (call: Call) => Reply {
  const handlers = new Map<string, (call: Call) => Reply>()
  return (call) => {
    const { path } = call.operation
    const handler = handlers.get(path) ?? documentHandler((catalog) => family(catalog, context, path))
    handlers.set(path, handler)
    return handler(call)
  }
}

/**
 * Returns the index of the family at `path` ("/v1/x"): every operation whose product names the family or whose route is
 * below `path`. Schemas refer to `schemas` in the same document.
 */
export function family(catalog: Catalog, context: DocumentContext, path: string) {
  const name = path.slice(path.lastIndexOf('/') + 1)
  const bundle = createBundle(catalog.schemas, '#/schemas/')
  const members = listed(catalog).filter(
    (operation) => operation.path !== path && (operation.family === name || operation.path.startsWith(`${path}/`)),
  )
  const products = [...new Set(members.map(({ product }) => product))].map((id) => {
    const product = catalog.products.find((product) => product.id === id)
    const operations = members.filter(({ product }) => product === id)
    return {
      product: id,
      title: product?.title ?? id,
      summary: product?.summary ?? '',
      tags: product?.tags ?? [],
      operations: operations.map((operation) => describe(operation, context, bundle)),
    }
  })
  return {
    family: name,
    version: catalog.version,
    network: context.network.name,
    currency: CURRENCY,
    pay_to: context.payTo,
    ...networkList(context),
    openapi: `${context.baseUrl}/openapi.json`,
    products,
    schemas: bundle.schemas,
  }
}

function describe(operation: Operation, { baseUrl }: DocumentContext, bundle: Bundle): object {
  const shown = (schema: JsonSchema | null) => (schema === null ? null : bundle.add(schema, operation.id))
  return {
    operation: operation.id,
    route: operation.displayRoute,
    method: operation.method,
    path: operation.path,
    url: addressOf(operation, baseUrl),
    price_usd: isPriced(operation) ? Number(operation.price) / 1e6 : 0,
    summary: operation.summary,
    description: operation.description,
    tool: operation.tool,
    max_freshness_seconds: operation.maxFreshnessSeconds,
    params: shown(operation.params),
    query: shown(operation.query),
    body: shown(operation.body),
    response: shown(operation.response),
    example: operation.example,
  }
}
