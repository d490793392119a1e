/** What an operation sends to be let in, from the security requirements of OpenAPI. Secrets are named, never written. */
import { isObject } from '../../gateway/validation/json.ts'
import { LeftOut } from './parameters.ts'
import { entriesOf, followed, itemsOf, type Json, type OpenApi, textOf } from './read-openapi.ts'

export interface Credentials {
  readonly headers: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string>>
}

/** The environment variables that the document names, and what each has to hold. */
export type Secrets = Map<string, string>

const NONE: Credentials = { headers: {}, query: {} }

/**
 * Chooses the first of the alternatives that a service can meet by itself.
 *
 * @param prefix what the names of environment variables have after UPSTREAM
 * @throws LeftOut if each alternative needs a person, or is of a kind that an upstream cannot meet
 */
export function credentialsOf(openapi: OpenApi, requirements: unknown, prefix: string, secrets: Secrets): Credentials {
  const alternatives = itemsOf(requirements).filter(isObject)
  if (alternatives.length === 0) return NONE
  const reasons: string[] = []
  for (const alternative of alternatives) {
    const tried = credentialsFor(openapi, Object.keys(alternative), prefix)
    if (typeof tried === 'string') reasons.push(tried)
    else {
      for (const [name, what] of tried.secrets) secrets.set(name, what)
      return tried
    }
  }
  throw new LeftOut([...new Set(reasons)].join('; '))
}

/** The credentials of schemes that are all needed, or why there are none. */
function credentialsFor(
  openapi: OpenApi,
  schemes: readonly string[],
  prefix: string,
): (Credentials & { secrets: Secrets }) | string {
  const described = followed(openapi.root, openapi.root['components'])['securitySchemes']
  const headers: Record<string, string> = {}
  const query: Record<string, string> = {}
  const secrets: Secrets = new Map()
  for (const name of schemes) {
    const scheme = followed(openapi.root, isObject(described) ? described[name] : undefined)
    const asked = askedBy(name, scheme)
    if (typeof asked === 'string') return asked
    const variable = variableOf(prefix, name)
    secrets.set(variable, asked.holds)
    const place = asked.place === 'query' ? query : headers
    if (asked.field in place) return `two security schemes need the header ${asked.field} at once`
    place[asked.field] = `env:${variable}`
  }
  return { headers, query, secrets }
}

/**
 * The name of an environment variable. It begins with UPSTREAM, so that no document can name a secret that is there for
 * something else, and have it sent to its server.
 *
 * @example variableOf('pet-store', 'api_key') // "UPSTREAM_PET_STORE_API_KEY"
 */
function variableOf(prefix: string, scheme: string): string {
  return `upstream_${prefix}_${scheme}`
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/[^A-Za-z0-9]+/g, '_')
    .toUpperCase()
}

interface Asked {
  readonly place: 'headers' | 'query'
  readonly field: string
  readonly holds: string
}

/** What a security scheme asks for, or why it cannot be met. */
function askedBy(id: string, scheme: Json): Asked | string {
  const [type, name] = [textOf(scheme['type']), textOf(scheme['name'])]
  const bearer: Asked = { place: 'headers', field: 'authorization', holds: '"Bearer " and the token' }
  if (type === 'apiKey') {
    const place = textOf(scheme['in'])
    if (place === 'query')
      return { place: 'query', field: name, holds: `the key, which is sent as ${name} in the query` }
    if (place === 'cookie') return { place: 'headers', field: 'cookie', holds: `"${name}=" and the key` }
    return { place: 'headers', field: name.toLowerCase(), holds: `the key, which is sent in the header ${name}` }
  }
  if (type === 'http') {
    const kind = textOf(scheme['scheme']).toLowerCase()
    if (kind === 'bearer') return bearer
    if (kind === 'basic')
      return { place: 'headers', field: 'authorization', holds: '"Basic " and base64 of "user:password"' }
    return `${id} is HTTP ${kind}, which Tollgate does not speak`
  }
  if (type === 'oauth2') {
    if (entriesOf(scheme['flows']).some(([flow]) => flow === 'clientCredentials'))
      return { ...bearer, holds: '"Bearer " and a token that lasts: Tollgate does not renew it' }
    return `${id} is OAuth 2 in the name of a person, who would have to agree`
  }
  if (type === 'openIdConnect') return `${id} is OpenID Connect, which signs a person in`
  if (type === 'mutualTLS') return `${id} is mutual TLS, and an upstream is called without a certificate`
  return `the security scheme ${id} is not described`
}
