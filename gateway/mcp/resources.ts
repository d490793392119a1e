/** MCP resources: what can be read free and without arguments, such as the documents. Each has the address it has over HTTP. */
import type { Resource } from '@modelcontextprotocol/sdk/types.js'
import { isEventStream } from '../catalog/validate.ts'
import { dereference } from '../catalog/schemas.ts'
import { listed } from '../documents/listed-operations.ts'
import type { Catalog, Operation } from '../plugin/catalog.ts'

/** A resource, and the operation that answers it. */
export interface ReadableResource {
  readonly operation: Operation
  /** The entry of resources/list. */
  readonly definition: Resource
}

/** Returns the resources of a catalog by address. */
export function createResources(catalog: Catalog, baseUrl: string): ReadonlyMap<string, ReadableResource> {
  return new Map(
    listed(catalog)
      .filter((operation) => isReadable(operation, catalog))
      .map((operation) => [baseUrl + operation.path, { operation, definition: describe(operation, baseUrl) }]),
  )
}

/** Whether a plain GET of the address answers something that is not a page. */
function isReadable({ method, price, params, query, view, response }: Operation, { schemas }: Catalog): boolean {
  const required = query === null ? [] : ((dereference(query, schemas)['required'] ?? []) as readonly string[])
  const isPlain = method === 'GET' && price === null && params === null && required.length === 0
  return isPlain && view === null && response !== null && !isEventStream(response)
}

function describe({ id, path, summary, description, response }: Operation, baseUrl: string): Resource {
  const media = response?.['contentMediaType']
  return {
    uri: baseUrl + path,
    name: id,
    title: path,
    description: [summary, description].filter(Boolean).join(' '),
    mimeType: typeof media === 'string' ? media : 'application/json',
  }
}
