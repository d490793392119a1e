/** A document: a pure function of the catalog, made once per catalog and served with its version. */
import { createHash } from 'node:crypto'
import { constant } from '../catalog/frozen.ts'
import { type Call, type Catalog, Reply } from '../plugin/plugin.ts'
import type { Issue } from '../validation/issue.ts'
import type { Edition } from '../editions/edition.ts'
import type { Recipients } from '../config/pay-to.ts'
import type { Network } from '../config/networks.ts'
import type { Prices } from '../payments/price-history.ts'
import type { DataMode } from '../config/config.ts'

const CACHE_CONTROL = 'public, max-age=60'

/** Makes a value once for each catalog; a new edition brings a new catalog and so a new value. */
export function oncePerCatalog<Value>(build: (catalog: Catalog) => Value): (catalog: Catalog) => Value {
  const built = new WeakMap<Catalog, { readonly value: Value }>()
  return (catalog) => {
    const known = built.get(catalog) ?? { value: build(catalog) }
    built.set(catalog, known)
    return known.value
  }
}

/**
 * The handler of a document. The ETag is the catalog version and a digest of the content, so it changes with the
 * catalog and also between two deployments of one catalog. `mediaType` is for what is not application/json.
 */
export function documentHandler(build: (catalog: Catalog) => unknown, mediaType?: string): (call: Call) => Reply {
  const replyOf = oncePerCatalog((catalog) => {
    const body = build(catalog)
    return constant(new Reply(body, { headers: versionHeaders(catalog, body, mediaType) }))
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

/** Headers of what changes from moment to moment. */
export function liveReply(catalog: Catalog, body: unknown): Reply {
  return new Reply(body, { headers: { 'cache-control': 'no-store', 'x-catalog-version': catalog.version } })
}

/** Where the service stands and how it is paid: the same for every document of a process. */
export interface Deployment extends Recipients {
  /** Public address without a trailing slash. */
  readonly baseUrl: string
}

export interface DocumentParts extends Deployment {
  now(): Date
  /** The edition serving new calls. */
  editions(): Edition
  /** What the last build of an edition found wrong. */
  mistakes(): readonly Issue[]
  readonly prices: Pick<Prices, 'history'>
  /** Public keys of access tokens (RFC 7517). */
  jwks(): { readonly keys: readonly object[] }
  readonly started: Date
  readonly dataMode: DataMode
  /** False, with a reason, while payments cannot be settled: on this network, or absent on any. */
  settlerHealth(network?: Network): { readonly ready: boolean; readonly reason?: string }
}

/** The `settings` of the product document that names this plugin. */
export interface DocumentSettings {
  /** Path of the pages that document the operations for people. */
  readonly docs: string
  /** The product whose facts stand at the top of /v1/stats. */
  readonly stats: string | null
  /** ISO date of the last change to the pages, for the sitemap. */
  readonly updated: string | null
}

/** A deployment with its settings: what a document is a function of, beside the catalog. */
export interface Place extends Deployment, DocumentSettings {}

export const SETTINGS_SCHEMA = {
  type: 'object',
  properties: {
    docs: { type: 'string', pattern: '^/' },
    stats: { type: 'string' },
    updated: { type: 'string', format: 'date' },
  },
  additionalProperties: false,
} as const

/** Settings as a catalog document gives them, with what stands where it is silent. */
export function readSettings(settings: Readonly<Record<string, unknown>>): DocumentSettings {
  const text = (name: string): string | null => (typeof settings[name] === 'string' ? settings[name] : null)
  return { docs: text('docs') ?? '/openapi.json', stats: text('stats'), updated: text('updated') }
}
