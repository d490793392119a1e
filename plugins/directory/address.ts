/** Addresses that strangers list: one spelling for each, and none that leads inside. */
import { isIP } from 'node:net'
import { isPublic } from './inside.ts'

export type Canonical =
  | { readonly url: string; readonly host: string; readonly isTemplate: boolean; readonly reason: null }
  | { readonly url: null; readonly reason: 'scheme' | 'malformed' | 'private_host' | 'preview' }

const LONGEST = 2048
const INSIDE = /(^|\.)(localhost|local|internal|intranet|lan|home|corp|test|invalid|onion|home\.arpa)$/
/** A name, or an address in brackets; a placeholder is neither. */
const HOST = /^([a-z0-9_-]+(\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])$/
/** Deployments of a branch, tunnels to a developer's machine. */
const PREVIEW = [
  /-git-[^.]+\.vercel\.app$/,
  /-[a-z0-9]{9}(-[^.]+)?\.vercel\.app$/,
  /--[^.]+\.netlify\.app$/,
  /^[0-9a-f]{8}\.[^.]+\.pages\.dev$/,
  /-pr-\d+\.(up\.railway\.app|onrender\.com|herokuapp\.com|fly\.dev)$/,
  /\.(ngrok(-free)?\.(app|dev|io)|ngrok\.io|trycloudflare\.com|loca\.lt|localtunnel\.me|serveo\.net|lhr\.life)$/,
  /\.(app\.github\.dev|gitpod\.io|webcontainer\.io|replit\.dev|csb\.app|tunnelmole\.net|devtunnels\.ms)$/,
]
/** A segment that stands for a value: :id, {id}, [id], or a star. */
const PLACEHOLDER = /(^|\/):[A-Za-z_]\w*|\{[^}]*\}|%7B.*?%7D|\[[^\]]+\]|%5B[^/]+%5D|(^|\/)\*(\/|$)/i

/**
 * One spelling for an address: http or https, host in lower case (IDNA), no user, default port, fragment or dot segments.
 * What is none, leads inside or is somebody's preview gets the reason instead.
 *
 * @example canonical('HTTPS://user@API.Example.com:443/a/../b#c') // url "https://api.example.com/b"
 */
export function canonical(text: unknown): Canonical {
  if (typeof text !== 'string' || text.length > LONGEST) return { url: null, reason: 'malformed' }
  let url: URL
  try {
    url = new URL(text.trim())
  } catch {
    return { url: null, reason: /^[a-z][a-z0-9+.-]*:/i.test(text) && !/^https?:/i.test(text) ? 'scheme' : 'malformed' }
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return { url: null, reason: 'scheme' }
  url.username = ''
  url.password = ''
  url.hash = ''
  url.hostname = url.hostname.replace(/\.$/, '')
  const host = url.hostname
  if (!HOST.test(host)) return { url: null, reason: 'malformed' }
  if (leadsInside(host)) return { url: null, reason: 'private_host' }
  if (PREVIEW.some((pattern) => pattern.test(host))) return { url: null, reason: 'preview' }
  return { url: url.href, host, isTemplate: PLACEHOLDER.test(url.pathname), reason: null }
}

/** True for names and addresses that no stranger can reach; what a public name resolves to is checked when it is visited. */
export function leadsInside(host: string): boolean {
  const address = host.startsWith('[') ? host.slice(1, -1) : host
  if (isIP(address)) return !isPublic(address)
  return INSIDE.test(host) || !host.includes('.')
}
