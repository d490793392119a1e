/** Who may speak to /mcp from a browser: guards against DNS rebinding (MCP, transports, security warning). */
import type { IncomingHttpHeaders } from 'node:http'

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

/** Null where Host and Origin are ours, loopback or absent (Origin); else a sentence that says which is foreign. */
export function foreignCaller({ host, origin }: IncomingHttpHeaders, baseUrl: string): string | null {
  const own = new URL(baseUrl)
  const named = parse(`http://${host ?? ''}`)
  if (named === null || (host?.toLowerCase() !== own.host && !LOOPBACK.test(named.hostname)))
    return `The Host header is not ${own.host}.`
  if (origin === undefined || origin === own.origin) return null
  const from = parse(origin)
  return from !== null && LOOPBACK.test(from.hostname) ? null : `Web pages of ${origin} may not use this endpoint.`
}

function parse(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null
}
