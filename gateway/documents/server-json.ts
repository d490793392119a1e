/** /server.json: what the MCP registry wants to know of a remote server (https://modelcontextprotocol.io/registry/remote-servers). */
import type { Catalog } from '../plugin/catalog.ts'
import type { DocumentContext } from './document.ts'
import { MCP_PATHS } from './how-to-pay.ts'

const SCHEMA = 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json'
/** The longest description that the registry takes. */
const MAX_DESCRIPTION = 100

/** Returns the document. Whoever owns the domain of BASE_URL may publish it under its name: gate.example is `example.gate`. */
export function serverJson({ service }: Catalog, { baseUrl }: DocumentContext) {
  const domain = new URL(baseUrl).hostname.split('.').toReversed().join('.')
  const name = service.name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')
  return {
    $schema: SCHEMA,
    name: `${domain}/${name.replaceAll(/^-|-$/g, '') || 'shop'}`,
    title: service.name,
    description: shortened(service.title),
    version: service.version,
    websiteUrl: baseUrl,
    remotes: [{ type: 'streamable-http', url: baseUrl + MCP_PATHS.named }],
  }
}

const shortened = (text: string): string =>
  text.length <= MAX_DESCRIPTION ? text : `${text.slice(0, MAX_DESCRIPTION - 1)}…`
