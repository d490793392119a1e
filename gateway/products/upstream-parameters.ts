/**
 * Writes the fields of a call into a request to an upstream: address, query, headers and cookies, in the styles of OpenAPI
 * (Parameter Object, `style` and `explode`).
 */
import { paramsOf } from '../catalog/product-drafts.ts'
import { InvalidInput } from '../errors.ts'
import type { UpstreamParameter } from '../plugin/catalog.ts'
import type { Input } from '../plugin/plugin.ts'

/** Half of a character. JSON can write it, but no address can. */
const LONE_SURROGATE = /\p{Surrogate}/u
/** What a path must not have as a segment: it would lead to another address. */
const NO_SEGMENT = /^\.{0,2}$/
/** What a header may hold (RFC 9110, section 5.5). */
const HEADER_TEXT = /^[\t\x20-\x7e\x80-\xff]*$/

/** How an operation calls its upstream. Secrets are filled in. */
export interface UpstreamCall {
  /** The whole address, with parameters in braces. */
  readonly url: string
  /** Headers to send, by lower-case name. They win over fields of the caller. */
  readonly headers: Readonly<Record<string, string>>
  /** Fields to add to the query. They win over fields of the caller. */
  readonly query: Readonly<Record<string, string>>
  readonly parameters: readonly UpstreamParameter[]
}

/**
 * Returns the address and the headers of the request. Whatever the caller sends, the address stays below that of the
 * catalog.
 *
 * @throws InvalidInput if a field cannot be written where it belongs
 */
export function placeFields(
  call: UpstreamCall,
  { params, query }: Pick<Input, 'params' | 'query'>,
): { readonly url: URL; readonly headers: Readonly<Record<string, string>> } {
  const placed = new Map(call.parameters.map((parameter) => [parameter.field, parameter]))
  let filled = call.url
  for (const name of paramsOf(call.url))
    filled = filled.replaceAll(`{${name}}`, () => segmentOf(name, String(params[name]), placed.get(name)))
  const url = new URL(filled)
  const pieces: string[] = []
  const headers: Record<string, string> = {}
  const cookies: string[] = []
  for (const [field, value] of Object.entries(query)) {
    const parameter = placed.get(field)
    const items = [value].flat().map(String)
    const place = parameter?.in ?? 'query'
    if (place === 'query' && Object.hasOwn(call.query, parameter?.name ?? field)) continue
    if (!parameter) for (const item of items) url.searchParams.append(field, item)
    else if (parameter.in === 'header') headers[parameter.name.toLowerCase()] = headerText(field, items.join(','))
    else if (parameter.in === 'cookie') cookies.push(`${parameter.name}=${items.map(encode).join(',')}`)
    else pieces.push(...queryPieces(parameter, Array.isArray(value), items))
  }
  for (const [name, value] of Object.entries(call.query)) pieces.push(`${encode(name)}=${encode(value)}`)
  // A delimiter between the items of a list is not encoded, so it cannot go through URLSearchParams.
  if (pieces.length > 0) url.search = [url.search.slice(1), ...pieces].filter(Boolean).join('&')
  const { cookie } = call.headers
  if (cookies.length > 0) headers['cookie'] = [...(cookie ? [cookie] : []), ...cookies].join('; ')
  return { url, headers: { ...call.headers, ...onlyNew(headers, call.headers) } }
}

/** The headers of a caller that the catalog does not set itself. Cookies were joined. */
function onlyNew(headers: Readonly<Record<string, string>>, fixed: Readonly<Record<string, string>>) {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => name === 'cookie' || !Object.hasOwn(fixed, name)),
  )
}

/** Half a character becomes U+FFFD, as in a query. */
const encode = (text: string): string => encodeURIComponent(Buffer.from(text).toString('utf8'))

/** The text of a parameter in the path. The commas of a list stay, if the document says that it is one. */
function segmentOf(field: string, value: string, parameter: UpstreamParameter | undefined): string {
  if (NO_SEGMENT.test(value)) throw new InvalidInput('Must not be empty, "." or "..".', ['path', field])
  if (LONE_SURROGATE.test(value)) throw new InvalidInput('Must be text that has a UTF-8 form.', ['path', field])
  if (parameter === undefined) return encode(value)
  const { style, explode, name } = parameter
  const items = value.split(',').map(encode)
  if (items.some((item) => NO_SEGMENT.test(item)))
    throw new InvalidInput('Must be values with commas between them, none of them empty, "." or "..".', ['path', field])
  if (style === 'label') return `.${items.join(explode ? '.' : ',')}`
  if (style === 'matrix') return explode ? items.map((item) => `;${name}=${item}`).join('') : `;${name}=${items.join()}`
  return items.join()
}

const DELIMITERS: Readonly<Record<string, string>> = { spaceDelimited: '%20', pipeDelimited: '%7C' }

/** The pairs of a parameter in the query, encoded. */
function queryPieces({ name, style, explode }: UpstreamParameter, isList: boolean, items: readonly string[]): string[] {
  const key = encode(name)
  if (style === 'deepObject' && isList)
    return items.map((item, index) => `${encode(`${name}[${index}]`)}=${encode(item)}`)
  if (explode) return items.map((item) => `${key}=${encode(item)}`)
  return [`${key}=${items.map(encode).join(DELIMITERS[style] ?? ',')}`]
}

function headerText(field: string, value: string): string {
  if (!HEADER_TEXT.test(value)) throw new InvalidInput('Must be text that a header can hold.', ['query', field])
  return value.trim()
}
