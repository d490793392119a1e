/** /.well-known/jwks.json (RFC 7517): public keys of the access tokens. */
import { type Catalog, Reply } from '../plugin/plugin.ts'

/** The key set. Rotation keeps old keys listed, so a short time in caches is safe. */
export function keySetReply(catalog: Catalog, keys: { readonly keys: readonly object[] }): Reply {
  return new Reply(keys, { headers: { 'cache-control': 'public, max-age=300', 'x-catalog-version': catalog.version } })
}
