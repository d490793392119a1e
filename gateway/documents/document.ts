/** Every document is a pure function of the catalog, built once and served with its version. */
import { createHash } from 'node:crypto'
import { type Call, type Catalog, Reply } from '../plugin/plugin.ts'
import type { Issue } from '../validation/issue.ts'
import type { Edition } from '../products/edition.ts'
import type { Recipients } from '../config/pay-to.ts'
import type { Network } from '../config/networks.ts'
import type { PriceHistory } from '../payments/price-history.ts'
import type { DataMode } from '../plugin/deployment.ts'

const CACHE_CONTROL = 'public, max-age=60'

/** Builds a value once per catalog. A new edition has a new catalog and so gets a new value. */
function oncePerCatalog<Value>(build: (catalog: Catalog) => Value): (catalog: Catalog) => Value {
  const built = new WeakMap<Catalog, { readonly value: Value }>()
  return (catalog) => {
    const known = built.get(catalog) ?? { value: build(catalog) }
    built.set(catalog, known)
    return known.value
  }
}

/**
 * Creates the handler of a document. The ETag is the catalog version plus a digest of the content, so it changes with
 * the catalog and also between two deployments of the same catalog. The media type is application/json by default.
 */
export function documentHandler(build: (catalog: Catalog) => unknown, mediaType?: string): (call: Call) => Reply {
  const replyOf = oncePerCatalog((catalog) => {
    const body = build(catalog)
    return Reply.constant(body, { headers: versionHeaders(catalog, body, mediaType) })
  })
  return ({ catalog }) => replyOf(catalog)
}

function versionHeaders(catalog: Catalog, body: unknown, mediaType: string | undefined): Record<string, string> {
  const digest = createHash('sha256')
    .update(typeof body === 'string' ? body : JSON.stringify(body))
    .digest('hex')
    .slice(0, 12)
  return {
    etag: `"${catalog.version}-${digest}"`,
    'cache-control': CACHE_CONTROL,
    'x-catalog-version': catalog.version,
    ...(mediaType === undefined ? {} : { 'content-type': mediaType }),
  }
}

/** The headers of an answer that changes from call to call and must not be cached. */
export const liveHeaders = oncePerCatalog((catalog) =>
  Object.freeze({ 'cache-control': 'no-store', 'x-catalog-version': catalog.version }),
)

/** Wraps a body that changes from call to call and must not be cached. */
export function liveReply(catalog: Catalog, body: unknown): Reply {
  return new Reply(body, { headers: liveHeaders(catalog) })
}

/** Where the service runs and where payments go. The same for every document of a process. */
export interface Deployment extends Recipients {
  /** Public address without a trailing slash. */
  readonly baseUrl: string
}

/** A setting that the operator should look at. */
export interface Warning {
  /** Never changes. */
  readonly code: string
  /** The fault, and the remedy. */
  readonly message: string
}

export interface DocumentParts extends Deployment {
  now(): Date
  /** Returns the edition that serves new calls. */
  editions(): Edition
  /** Returns the issues of the last build of an edition. */
  issues(): readonly Issue[]
  readonly prices: Pick<PriceHistory, 'history'>
  /** Returns the public keys of access tokens (RFC 7517). */
  jwks(): { readonly keys: readonly object[] }
  readonly started: Date
  readonly dataMode: DataMode
  /** Returns settings that the operator should look at. The list grows only. */
  warnings(): readonly Warning[]
  /** `ready` is false, with a reason, while no payment can be recorded. */
  journalHealth(): { readonly ready: boolean; readonly reason?: string }
  /** `ready` is false, with a reason, while payments cannot be settled on this network, or on any if none is given. */
  settlerHealth(network?: Network): { readonly ready: boolean; readonly reason?: string }
}

/** The `settings` of the product document that names this plugin. */
export interface DocumentSettings {
  /** Path of the pages that document the operations for people. */
  readonly docs: string
  /** The product whose facts are repeated at the top level of /v1/stats. */
  readonly stats: string | null
  /** ISO date of the last change to the pages, for the sitemap. */
  readonly updated: string | null
}

/** A deployment and its settings: the input of a document beside the catalog. */
export interface DocumentContext extends Deployment, DocumentSettings {}

/** JSON Schema of the settings of the plugin "documents". */
export const SETTINGS_SCHEMA = {
  type: 'object',
  properties: {
    docs: { type: 'string', pattern: '^/' },
    stats: { type: 'string' },
    updated: { type: 'string', format: 'date' },
  },
  additionalProperties: false,
} as const

/** Reads the settings of a catalog document and fills in the defaults. */
export function readSettings(settings: Readonly<Record<string, unknown>>): DocumentSettings {
  const text = (name: string): string | null => (typeof settings[name] === 'string' ? settings[name] : null)
  return { docs: text('docs') ?? '/openapi.json', stats: text('stats'), updated: text('updated') }
}
