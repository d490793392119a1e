/** A document: a pure function of the catalog, made once per catalog and served with its version. */
import { createHash } from 'node:crypto'
import { constant } from '../catalog/frozen.ts'
import { type Call, type Catalog, Reply } from '../plugin/plugin.ts'

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
