/** Reads an OpenAPI document from a file or an address, JSON or YAML, with everything that it refers to. */
import { $RefParser } from '@apidevtools/json-schema-ref-parser'
import { stepsOf } from '../../gateway/validation/issue.ts'
import { isObject } from '../../gateway/validation/json.ts'

export type Json = Readonly<Record<string, unknown>>

/** An OpenAPI document. Every reference in it leads to a place inside it. */
export interface OpenApi {
  readonly root: Json
  /** Whether its schemas are those of OpenAPI 3.0, which are not yet JSON Schema. */
  readonly is30: boolean
  /** Its address, or null if it is a file. Relative addresses of servers begin there. */
  readonly address: string | null
}

const READ_MS = 30_000

/**
 * Reads an OpenAPI document.
 *
 * @param source a file, or an address that begins with http:// or https://
 * @throws Error that says what to do: nothing can be read there, it is not OpenAPI 3.0 or 3.1, or a reference is broken
 */
export async function readOpenApi(source: string): Promise<OpenApi> {
  const isAddress = /^https?:\/\//i.test(source)
  const parser = new $RefParser<object>()
  const options = {
    // What comes from the web must not read files of this machine. What an operator names may be on the same network.
    resolve: { file: isAddress ? false : {}, http: { safeUrlResolver: false, timeout: READ_MS } },
    bundle: { optimizeInternalRefs: false },
  } as const
  let root: unknown
  try {
    root = await parser.parse(source, options)
  } catch (error) {
    throw new Error(`${source} cannot be read: ${reasonOf(error)}\n${isAddress ? SAVE_IT : CHECK_PATH}`, {
      cause: error,
    })
  }
  const version = versionOf(root, source)
  try {
    root = await parser.bundle(source, root as object, options)
  } catch (error) {
    throw new Error(
      `${source} refers to something that is not there: ${reasonOf(error)}\nCorrect that $ref, and import again.`,
      { cause: error },
    )
  }
  return { root: root as Json, is30: version.startsWith('3.0'), address: isAddress ? source : null }
}

const SAVE_IT = 'Check the address, or save the document and name the file.'
const CHECK_PATH = 'Name a file or an http(s) address of an OpenAPI document in JSON or YAML.'

/** The first line of what a reader threw, with a full stop. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as Error
  const inner =
    cause instanceof Error && cause.message !== '' && !message.includes(cause.message) ? `: ${cause.message}` : ''
  const [line = ''] = `${message}${inner}`.split('\n')
  return line.endsWith('.') ? line : `${line.trim()}.`
}

/** Returns the version of OpenAPI. Throws if it is not one that can be imported. */
function versionOf(root: unknown, source: string): string {
  const { swagger, openapi, info, paths, webhooks } = isObject(root) ? root : {}
  if (swagger !== undefined)
    throw new Error(
      `${source} is Swagger ${JSON.stringify(swagger)}. Convert it to OpenAPI 3 first, for example at https://converter.swagger.io, and import the result.`,
    )
  if (typeof openapi !== 'string')
    throw new Error(`${source} is not an OpenAPI document: it has no field "openapi". ${CHECK_PATH}`)
  if (!/^3\.[01](\.|$)/.test(openapi))
    throw new Error(`${source} is OpenAPI ${openapi}. Tollgate imports 3.0 and 3.1; save it as one of these.`)
  if (!isObject(info) || (!isObject(paths) && !isObject(webhooks)))
    throw new Error(`${source} has no "info" or no "paths", which every OpenAPI document has. Complete it.`)
  return openapi
}

/** Returns what a `$ref` leads to, or undefined. Bundling has checked those of the document. */
export function pointed(root: Json, ref: string): unknown {
  let found: unknown = root
  for (const step of stepsOf(decodeURIComponent(ref.slice(1))))
    found = isObject(found) || Array.isArray(found) ? (found as Record<string, unknown>)[step] : undefined
  return found
}

/** Follows the references of a node until there is none, and returns the object there, empty if it is something else. */
export function followed(root: Json, node: unknown): Json {
  const seen = new Set<string>()
  let found = node
  while (isObject(found) && typeof found['$ref'] === 'string' && !seen.has(found['$ref'])) {
    seen.add(found['$ref'])
    found = pointed(root, found['$ref'])
  }
  return isObject(found) ? found : {}
}

/** The entries of an object, none for any other value. */
export const entriesOf = (value: unknown): [string, unknown][] => (isObject(value) ? Object.entries(value) : [])
/** The items of a list, none for any other value. */
export const itemsOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
/** A text, or nothing. */
export const textOf = (value: unknown): string => (typeof value === 'string' ? value.trim() : '')
