/** /sitemap.xml (https://www.sitemaps.org/protocol.html) and /robots.txt (RFC 9309). */
import type { Catalog } from '../plugin/catalog.ts'
import { listed } from './listed-operations.ts'
import type { DocumentContext } from './document.ts'

/** Returns the sitemap: every page without a path parameter. `lastmod` is the date in the settings. */
export function sitemap(catalog: Catalog, { baseUrl, updated }: DocumentContext): string {
  const changed = updated === null ? '' : `<lastmod>${updated}</lastmod>`
  const pages = listed(catalog)
    .filter(({ view, method, path }) => view !== null && method === 'GET' && !path.includes('{'))
    .map(({ path }) => `  <url><loc>${escapeXml(baseUrl + path)}</loc>${changed}</url>`)
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">',
    ...pages,
    '</urlset>',
    '',
  ].join('\n')
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll("'", '&apos;')
}

/**
 * Returns robots.txt. Everything may be crawled except pages with a path parameter ("/report/{rid}"), which may be
 * private. Pages below `docs` are public.
 */
export function robots(catalog: Catalog, { baseUrl, docs }: DocumentContext): string {
  const disallowed = [...catalog.operations.values()]
    .filter(({ view, path }) => view !== null && path.includes('{') && !path.startsWith(`${docs}/`))
    .map(({ path }) => `Disallow: ${path.slice(0, path.indexOf('{'))}`)
  return ['User-agent: *', ...new Set(disallowed), 'Allow: /', '', `Sitemap: ${baseUrl}/sitemap.xml`, ''].join('\n')
}
