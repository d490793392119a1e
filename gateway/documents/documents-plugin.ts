/** The built-in plugin that serves the documents made from the catalog. Each document has a file in this folder. */
import { type Call, type Catalog, definePlugin, type Plugin, Reply } from '../plugin/plugin.ts'
import { apiCatalog, LINKSET_TYPE } from './api-catalog.ts'
import { discovery } from './discovery.ts'
import {
  documentHandler,
  type DocumentParts,
  liveReply,
  type DocumentContext,
  readSettings,
  SETTINGS_SCHEMA,
} from './document.ts'
import { familyHandler } from './family-index.ts'
import { createHealth, createStats } from './health-and-stats.ts'
import { llms } from './llms.ts'
import { llmsFull } from './llms-full.ts'
import { openapi } from './openapi.ts'
import { type HistoryInput, priceHistory, priceList } from './pricing.ts'
import { serverJson } from './server-json.ts'
import { robots, sitemap } from './sitemap.ts'

export type { DocumentParts } from './document.ts'

const PLAIN = 'text/plain; charset=utf-8'
const XML = 'application/xml; charset=utf-8'

/**
 * Creates the plugin "documents". Static documents have an ETag and the catalog version; status and statistics are never
 * cached.
 */
export function createDocumentsPlugin(parts: DocumentParts): Plugin {
  return definePlugin({
    name: 'documents',
    settings: SETTINGS_SCHEMA,
    setup(context) {
      const documentContext: DocumentContext = {
        baseUrl: parts.baseUrl,
        network: parts.network,
        payTo: parts.payTo,
        others: parts.others ?? [],
        ...readSettings(context.settings),
      }
      const document = (build: (catalog: Catalog, documentContext: DocumentContext) => unknown, mediaType?: string) =>
        documentHandler((catalog) => build(catalog, documentContext), mediaType)
      const health = createHealth(parts)
      const stats = createStats(parts, documentContext.stats)
      return {
        handlers: {
          getPricing: document(priceList),
          getDiscovery: document(discovery),
          getOpenapi: document(openapi),
          getLlms: document(llms, PLAIN),
          getLlmsFull: document(llmsFull, PLAIN),
          getServerJson: document(serverJson),
          getSitemap: document(sitemap, XML),
          getRobots: document(robots, PLAIN),
          getApiCatalog: document(apiCatalog, LINKSET_TYPE),
          getFamily: familyHandler(documentContext),
          getHealth: ({ catalog }) => health(catalog),
          getStats: ({ catalog }) => stats(catalog),
          getPriceHistory: async (call: Call<HistoryInput>) =>
            liveReply(call.catalog, await priceHistory(call, parts.prices)),
          getKeySet: ({ catalog }) => keySetReply(catalog, parts.jwks()),
        },
      }
    },
  })
}

/** The key set at /.well-known/jwks.json (RFC 7517). Old keys stay in it after a rotation, so it can be cached briefly. */
function keySetReply(catalog: Catalog, keys: { readonly keys: readonly object[] }): Reply {
  return new Reply(keys, { headers: { 'cache-control': 'public, max-age=300', 'x-catalog-version': catalog.version } })
}
