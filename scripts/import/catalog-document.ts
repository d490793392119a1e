/** Writes the catalog document of an OpenAPI document: one product, and an operation for each that can be sold. */
import { toolName } from '../../gateway/catalog/product-drafts.ts'
import { isObject } from '../../gateway/validation/json.ts'
import { soldAnswer, soldBody } from './bodies.ts'
import { FieldNames, LeftOut, soldParameters } from './parameters.ts'
import { entriesOf, followed, itemsOf, type Json, type OpenApi, textOf } from './read-openapi.ts'
import { type Credentials, credentialsOf, type Secrets } from './security.ts'

/** What an operator decides about an import. */
export interface Wanted {
  /** Id of the product. */
  readonly product: string
  /** "0.01" or "free". */
  readonly price: string
  /** Where routes begin: "/v1/x/petstore", or "" for the root. */
  readonly at: string
  /** The address of the upstream. Without it, the first server of the document. */
  readonly server: string | undefined
  /** Ids of operations by their method and path, as an earlier import gave them. */
  readonly knownIds: ReadonlyMap<string, string>
  /** Ids that other products have. */
  readonly takenIds: ReadonlySet<string>
}

export interface Written {
  readonly product: { readonly title: string; readonly summary: string; readonly upstream: Json }
  /** Operations of the catalog by method and path of the OpenAPI document: "GET /pets/{petId}". */
  readonly operations: ReadonlyMap<string, { readonly id: string; readonly fields: Json }>
  /** What cannot be sold, and why, one line each. */
  readonly leftOut: readonly string[]
  /** What is sold without some of it, one line each. */
  readonly lost: readonly string[]
  readonly secrets: Secrets
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete']
const NOT_SOLD: Readonly<Record<string, string>> = {
  head: 'HEAD has no answer to sell, and a route that is sold with GET answers it',
  options: 'OPTIONS describes a route, and is answered by the gateway',
  trace: 'TRACE would show what the gateway sends',
}
/** MCP clients refuse other names of tools and arguments. */
const TOOL_NAME = /^[\w.-]{1,64}$/

interface Found {
  readonly key: string
  readonly method: string
  readonly path: string
  readonly item: Json
  readonly operation: Json
}

/**
 * Writes the catalog document.
 *
 * @throws Error that says what to do if no server is named, or nothing can be sold
 */
export function writeDocument(openapi: OpenApi, wanted: Wanted): Written {
  const { root } = openapi
  const leftOut: string[] = []
  const lost: string[] = []
  const secrets: Secrets = new Map()
  const base = serverOf(openapi, root['servers'], wanted.server)
  if (typeof base !== 'string') throw new Error(base.reason)
  const servers = itemsOf(root['servers'])
  if (servers.length > 1 && wanted.server === undefined)
    lost.push(`servers: calls go to ${base}, the first of ${servers.length}. Choose another with --server.`)

  const ids = new Ids(wanted)
  const addresses = new Map<string, string>()
  const made = new Map<string, { readonly id: string; readonly fields: Json; readonly credentials: Credentials }>()
  for (const found of operationsOf(openapi, leftOut)) {
    const { key, operation } = found
    for (const [name] of entriesOf(operation['callbacks']))
      lost.push(`${key}: its callback ${name}, because a sold call ends with its answer`)
    try {
      const address = `${found.method} ${found.path.replace(/\{[^}]*\}/g, '{}')}`
      const same = addresses.get(address)
      if (same !== undefined) throw new LeftOut(`it has the same addresses as ${same}`)
      const requirements = operation['security'] ?? root['security']
      const credentials = credentialsOf(openapi, requirements, wanted.product, secrets)
      const id = ids.take(found)
      const fields = fieldsOf(openapi, found, { id, base, wanted, credentials, lost })
      const route = String(fields['route']).replace(/\{[^}]*\}/g, '{}')
      const taken = addresses.get(route)
      if (taken !== undefined) throw new LeftOut(`its route would be that of ${taken}`)
      made.set(key, { id, credentials, fields })
      addresses.set(route, key)
      addresses.set(address, key)
    } catch (error) {
      if (!(error instanceof LeftOut)) throw error
      leftOut.push(`${key}: ${error.message}`)
    }
  }
  for (const [name] of entriesOf(root['webhooks']))
    leftOut.push(`webhook ${name}: the API sends it to its own customers, and no buyer asks for it`)
  const shared = sharedBy([...made.values()].map(({ credentials }) => credentials))
  return {
    product: productOf(openapi, base, shared),
    operations: new Map(
      [...made].map(([key, { id, fields, credentials }]) => [
        key,
        { id, fields: withCredentials(fields, credentials, shared) },
      ]),
    ),
    leftOut,
    lost,
    secrets,
  }
}

function operationsOf({ root }: OpenApi, leftOut: string[]): readonly Found[] {
  return entriesOf(root['paths']).flatMap(([path, given]) => {
    const item = followed(root, given)
    return entriesOf(item).flatMap(([method, operation]) => {
      const key = `${method.toUpperCase()} ${path}`
      if (method in NOT_SOLD && isObject(operation)) leftOut.push(`${key}: ${NOT_SOLD[method]}`)
      if (!METHODS.includes(method) || !isObject(operation)) return []
      return [{ key, method: method.toUpperCase(), path, item, operation }]
    })
  })
}

function productOf({ root }: OpenApi, base: string, shared: Credentials): Written['product'] {
  const info = followed(root, root['info'])
  const title = textOf(info['title']) || 'API'
  const summary =
    textOf(info['summary']) || firstSentences(textOf(info['description'])) || `${title}, paid by the call.`
  return { title, summary, upstream: { url: base, ...filled({ headers: shared.headers, query: shared.query }) } }
}

/** The first paragraph, or as much of it as is read at a glance. */
function firstSentences(text: string): string {
  const [paragraph = ''] = text.split(/\n\s*\n/)
  const line = paragraph.replace(/\s+/g, ' ').trim()
  if (line.length <= 300) return line
  return `${line.slice(0, 299).replace(/\s\S*$/, '')}…`
}

/** The fields that hold something. */
const filled = (fields: Json): Json =>
  Object.fromEntries(
    Object.entries(fields).filter(([, value]) =>
      Array.isArray(value) ? value.length > 0 : isObject(value) ? Object.keys(value).length > 0 : value !== undefined,
    ),
  )

interface Around {
  readonly id: string
  readonly base: string
  readonly wanted: Wanted
  readonly credentials: Credentials
  readonly lost: string[]
}

/** The fields of one operation in the catalog. */
function fieldsOf(openapi: OpenApi, found: Found, { id, base, wanted, credentials, lost }: Around): Json {
  const { key, method, path, item, operation } = found
  const body = soldBody(openapi, method, operation['requestBody'])
  const answer = soldAnswer(openapi, operation['responses'])
  const arguments_ = 'body' in body ? topFields(body.body) : []
  const fixed = new Set([
    ...Object.keys(credentials.query).map((name) => `query:${name.toLowerCase()}`),
    ...Object.keys(credentials.headers).map((name) => `header:${name}`),
  ])
  const sold = soldParameters(openapi, {
    path,
    own: [...itemsOf(item['parameters']), ...itemsOf(operation['parameters'])],
    fixed,
    names: new FieldNames([...arguments_, 'payment_signature']),
  })
  const server = serverOf(openapi, operation['servers'] ?? item['servers'] ?? null, wanted.server)
  if (typeof server !== 'string') throw new LeftOut(server.reason)
  const others = [...body.lost, ...sold.lost]
  lost.push(...others.map((what) => `${key}: ${what}`))
  const isDeprecated = operation['deprecated'] === true
  if (isDeprecated)
    lost.push(`${key}: deprecated by its maker. Delete it from the document if you do not want to sell it.`)
  const summary = textOf(operation['summary']) || firstSentences(textOf(operation['description'])) || key
  const description = textOf(operation['description'])
  const words = [
    isDeprecated ? 'Deprecated: its maker means to remove it.' : '',
    description === summary ? '' : description,
  ]
  const headers = {
    ...(answer.accept === undefined ? {} : { accept: answer.accept }),
    ...('body' in body && body.contentType !== undefined ? { 'content-type': body.contentType } : {}),
  }
  const isTool = !answer.isText && TOOL_NAME.test(toolName(id)) && arguments_.every((name) => TOOL_NAME.test(name))
  const request = filled({ params: sold.examples.params, query: sold.examples.query })
  return {
    route: `${method} ${wanted.at + sold.path || '/'}`,
    summary,
    ...filled({ description: words.filter(Boolean).join(' ') || undefined }),
    price: wanted.price,
    ...filled({ params: sold.params ?? undefined, query: sold.query ?? undefined }),
    ...('body' in body ? { body: body.body, ...filled({ body_media: body.media }) } : {}),
    response: answer.response,
    upstream: filled({
      url: server === base || server === '' ? sold.url : server.replace(/\/$/, '') + sold.url,
      headers,
      parameters: sold.mapped,
    }),
    ...(isTool ? { tool: true } : {}),
    example: {
      request: { ...request, ...('body' in body && body.example !== undefined ? { body: body.example } : {}) },
      ...(answer.example === undefined ? {} : { response: answer.example }),
    },
  }
}

/** The fields of a body, which are arguments of the tool beside those of path and query. */
function topFields(body: Json): string[] {
  const { properties, allOf, $ref } = body
  const defs = isObject(body['$defs']) ? body['$defs'] : {}
  const target = typeof $ref === 'string' ? defs[$ref.slice('#/$defs/'.length)] : undefined
  return [
    properties,
    ...[target, ...itemsOf(allOf)].map((part) =>
      isObject(part) ? Object.fromEntries(topFields({ $defs: defs, ...part }).map((name) => [name, 0])) : {},
    ),
  ].flatMap((each) => (isObject(each) ? Object.keys(each) : []))
}

/** Headers and query fields that every operation sends. */
function sharedBy(all: readonly Credentials[]): Credentials {
  const common = (part: 'headers' | 'query') =>
    Object.fromEntries(
      Object.entries(all[0]?.[part] ?? {}).filter(([name, value]) => all.every((each) => each[part][name] === value)),
    )
  return { headers: common('headers'), query: common('query') }
}

function withCredentials(fields: Json, credentials: Credentials, shared: Credentials): Json {
  const own = (part: 'headers' | 'query') =>
    Object.fromEntries(Object.entries(credentials[part]).filter(([name]) => !(name in shared[part])))
  const upstream = fields['upstream'] as Json
  const headers = { ...(upstream['headers'] as Json | undefined), ...own('headers') }
  const { url, parameters } = upstream
  return { ...fields, upstream: filled({ url, headers, query: own('query'), parameters }) }
}

/**
 * The address of the first server, with the defaults of its variables. "" if the node names none (null), so that the one of
 * the document counts.
 */
function serverOf(
  { address }: OpenApi,
  servers: unknown,
  chosen: string | undefined,
): string | { readonly reason: string } {
  if (chosen !== undefined) return servers === null ? '' : chosen.replace(/\/+$/, '')
  if (servers === null) return ''
  const [first] = itemsOf(servers).filter(isObject)
  const variables = isObject(first?.['variables']) ? first['variables'] : {}
  const template = textOf(first?.['url']) || '/'
  const url = template.replace(/\{([^}]*)\}/g, (braced, name: string) => {
    const variable = variables[name]
    const usual = isObject(variable) ? variable['default'] : undefined
    return typeof usual === 'string' || typeof usual === 'number' ? String(usual) : braced
  })
  const advice = 'Say where the API is with --server https://…'
  if (!/^https?:\/\//i.test(url) && address === null)
    return { reason: `The document does not say at which address its API is (${template}). ${advice}` }
  if (url.includes('{') || !URL.canParse(url, address ?? undefined))
    return { reason: `The server ${template} has a variable without a default, or is no address. ${advice}` }
  return new URL(url, address ?? undefined).href.replace(/\/+$/, '')
}

/** Gives each operation an id of its own: camelCase, from operationId, or from method and path. */
class Ids {
  readonly #wanted: Wanted
  readonly #taken: Set<string>

  constructor(wanted: Wanted) {
    this.#wanted = wanted
    this.#taken = new Set([...wanted.takenIds, ...wanted.knownIds.values()])
  }

  take({ key, method, path, operation }: Found): string {
    const known = this.#wanted.knownIds.get(key)
    if (known !== undefined) return known
    const byPath = camelCase(`${method.toLowerCase()} ${path}`)
    const named = camelCase(textOf(operation['operationId']))
    const wish = named === '' ? byPath : /^\d/.test(named) ? `${method.toLowerCase()}${named}` : named
    const wishes = [wish, byPath, camelCase(`${wish} of ${this.#wanted.product}`)]
    for (let count = 2; wishes.every((each) => this.#taken.has(each)); count += 1) wishes.push(`${wish}${count}`)
    const id = wishes.find((each) => !this.#taken.has(each)) as string
    this.#taken.add(id)
    return id
  }
}

/** @example camelCase('repos/get-content') → "reposGetContent" */
function camelCase(text: string): string {
  const words = text
    .normalize('NFKD')
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .split(/[^A-Za-z0-9]+/)
    .filter(Boolean)
    .map((word) => word.toLowerCase())
  return words.map((word, index) => (index === 0 ? word : word.charAt(0).toUpperCase() + word.slice(1))).join('')
}
