/** /.well-known/api-catalog (RFC 9727): a linkset (RFC 9264) with links to every description of this API. */
import type { Catalog } from '../plugin/catalog.ts'
import type { DocumentContext } from './document.ts'
import { MCP_PATHS } from './how-to-pay.ts'

/** The content-type of a linkset with the profile of RFC 9727. */
export const LINKSET_TYPE = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'

/** Returns the linkset. The catalog lists the API as an item; the API links to its descriptions, prices and status. */
export function apiCatalog(catalog: Catalog, { baseUrl, docs }: DocumentContext) {
  const link = (path: string, type: string, title: string) => ({ href: baseUrl + path, type, title })
  return {
    linkset: [
      { anchor: `${baseUrl}/.well-known/api-catalog`, item: [{ href: `${baseUrl}/`, title: catalog.service.name }] },
      {
        anchor: `${baseUrl}/`,
        'service-desc': [
          link('/openapi.json', 'application/json', 'OpenAPI 3.1'),
          link('/.well-known/x402', 'application/json', 'x402 discovery'),
        ],
        'service-doc': [
          link(docs, 'text/html', 'Documentation'),
          link('/llms.txt', 'text/plain', 'Index for language models'),
          link('/llms-full.txt', 'text/plain', 'Every operation for language models'),
        ],
        'service-meta': [
          link('/pricing.json', 'application/json', 'Price list'),
          link('/.well-known/jwks.json', 'application/json', 'Token keys'),
        ],
        status: [link('/health', 'application/json', 'Status')],
        item: [
          { href: baseUrl + MCP_PATHS.named, title: 'MCP, streamable HTTP' },
          { href: baseUrl + MCP_PATHS.all, title: 'MCP with every product' },
          link('/server.json', 'application/json', 'MCP server, for registries'),
        ],
      },
    ],
  }
}
