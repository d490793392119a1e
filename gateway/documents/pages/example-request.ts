/** The example of an operation as a request, to be shown as code. */
import { type CodeRequest, curl } from '../../../views/assets/snippets.js'
import { fieldsOf, isFileSchema } from '../../catalog/schemas.ts'
import type { Catalog, Operation } from '../../plugin/plugin.ts'

type Shown = Pick<Operation, 'method' | 'path' | 'body' | 'bodyMedia' | 'example'>

/** Returns path and query of the example request. Parameters without an example stay in braces. */
export function examplePath({ path, example }: Pick<Shown, 'path' | 'example'>): string {
  const { params = {}, query = {} } = example?.request ?? {}
  const filled = path.replace(/\{([^}]+)\}/g, (braces, name: string) =>
    params[name] === undefined ? braces : encodeURIComponent(text(params[name])),
  )
  const search = new URLSearchParams(
    Object.entries(query).map(([name, value]): [string, string] => [name, text(value)]),
  ).toString()
  return filled + (search === '' ? '' : `?${search}`)
}

/** Returns the example request. In a form with files, a file has the name of its field. */
export function exampleRequest(operation: Shown, schemas: Catalog['schemas'], baseUrl: string): CodeRequest {
  const { method, bodyMedia, example } = operation
  const url = baseUrl + examplePath(operation)
  const [media] = bodyMedia
  const body = example?.request.body
  if (media === undefined || body === undefined) return { method, url }
  if (media !== 'multipart/form-data') return { method, url, media, body }
  const known = fieldsOf(operation.body, schemas)
  const isFile = ([name]: readonly [string, unknown]): boolean => isFileSchema(known[name])
  const fields = Object.entries(body as object)
  const files = Object.fromEntries(fields.filter(isFile).map(([name]) => [name, name]))
  return { method, url, media, files, body: Object.fromEntries(fields.filter((field) => !isFile(field))) }
}

/** Returns the example request as a curl command. */
export function exampleCurl(operation: Shown, { schemas }: Pick<Catalog, 'schemas'>, baseUrl: string): string {
  return curl(exampleRequest(operation, schemas, baseUrl))
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
