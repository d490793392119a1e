/** /robots.txt (RFC 9309): everything may be read except pages whose address names something private. */
import type { Catalog } from '../plugin/catalog.ts'
import type { Place } from './parts.ts'

/** Robots rules. A page with a path parameter ("/report/{rid}") is closed from the parameter on, below `docs` excepted. */
export function robots(catalog: Catalog, { baseUrl, docs }: Place): string {
  const closed = [...catalog.operations.values()]
    .filter(({ view, path }) => view !== null && path.includes('{') && !path.startsWith(`${docs}/`))
    .map(({ path }) => `Disallow: ${path.slice(0, path.indexOf('{'))}`)
  return ['User-agent: *', ...new Set(closed), 'Allow: /', '', `Sitemap: ${baseUrl}/sitemap.xml`, ''].join('\n')
}
