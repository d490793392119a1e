/** What the caller would rather have: data or a page; a fresh copy or none. */
import type { Request } from 'express'

/** A browser, or another caller whose Accept names text/html and prefers it to JSON. A plain star gets JSON. */
export function wantsPage(request: Request): boolean {
  const accept = request.headers.accept
  if (accept === undefined || !/text\/html/i.test(accept)) return false
  return request.accepts('application/json', 'text/html') === 'text/html'
}

/** True where If-None-Match names this tag (RFC 9110, section 13.1.2: weak comparison). */
export function isFresh(request: Request, etag: string | undefined): boolean {
  const known = request.headers['if-none-match']
  if (known === undefined || etag === undefined || (request.method !== 'GET' && request.method !== 'HEAD')) return false
  if (known.trim() === '*') return true
  return known.split(',').some((tag) => opaque(tag) === opaque(etag))
}

const opaque = (tag: string): string => tag.trim().replace(/^W\//, '')
