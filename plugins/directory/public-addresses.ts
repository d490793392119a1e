/** Canonical URLs of listed addresses, and the check that an address is public. */
import { BlockList, isIP, isIPv4 } from 'node:net'

export type CanonicalAddress =
  | { readonly url: string; readonly host: string; readonly isTemplate: boolean; readonly reason: null }
  | { readonly url: null; readonly reason: 'scheme' | 'malformed' | 'private_host' | 'preview' }

const LONGEST = 2048
const PRIVATE_NAMES = /(^|\.)(localhost|local|internal|intranet|lan|home|corp|test|invalid|onion|home\.arpa)$/
/** A host name, or an address in brackets. A placeholder matches neither. */
const HOST = /^([a-z0-9_-]+(\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])$/
/** Preview deployments and tunnels to a developer's machine. */
const PREVIEW = [
  /-git-[^.]+\.vercel\.app$/,
  /-[a-z0-9]{9}(-[^.]+)?\.vercel\.app$/,
  /--[^.]+\.netlify\.app$/,
  /^[0-9a-f]{8}\.[^.]+\.pages\.dev$/,
  /-pr-\d+\.(up\.railway\.app|onrender\.com|herokuapp\.com|fly\.dev)$/,
  /\.(ngrok(-free)?\.(app|dev|io)|ngrok\.io|trycloudflare\.com|loca\.lt|localtunnel\.me|serveo\.net|lhr\.life)$/,
  /\.(app\.github\.dev|gitpod\.io|webcontainer\.io|replit\.dev|csb\.app|tunnelmole\.net|devtunnels\.ms)$/,
]
/** A path segment that stands for a value: :id, {id}, [id], or *. */
const PLACEHOLDER = /(^|\/):[A-Za-z_]\w*|\{[^}]*\}|%7B.*?%7D|\[[^\]]+\]|%5B[^/]+%5D|(^|\/)\*(\/|$)/i

/**
 * The canonical form of an address: http or https, host in lower case (IDNA), no user, default port, fragment or dot
 * segments. Malformed, private and preview addresses get a reason instead of a URL.
 *
 * @example canonicalAddress('HTTPS://user@API.Example.com:443/a/../b#c') // url "https://api.example.com/b"
 */
export function canonicalAddress(text: unknown): CanonicalAddress {
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
  if (isPrivateHost(host)) return { url: null, reason: 'private_host' }
  if (PREVIEW.some((pattern) => pattern.test(host))) return { url: null, reason: 'preview' }
  return { url: url.href, host, isTemplate: PLACEHOLDER.test(url.pathname), reason: null }
}

/** True for names and addresses that are not public. What a public name resolves to is checked at the visit. */
export function isPrivateHost(host: string): boolean {
  const address = host.startsWith('[') ? host.slice(1, -1) : host
  if (isIP(address)) return !isPublic(address)
  return PRIVATE_NAMES.test(host) || !host.includes('.')
}

const PRIVATE_NETWORKS = new BlockList()
/** IANA special-purpose registry, IPv4 (RFC 6890 and successors), and multicast. */
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.31.196.0', 24],
  ['192.52.193.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['192.175.48.0', 24],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const)
  PRIVATE_NETWORKS.addSubnet(network, prefix, 'ipv4')
/** Special networks within global unicast: protocol assignments with Teredo, documentation, 6to4 (hides an IPv4 address). */
for (const [network, prefix] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['2620:4f:8000::', 48],
  ['3fff::', 20],
] as const)
  PRIVATE_NETWORKS.addSubnet(network, prefix, 'ipv6')

const GLOBAL_UNICAST = new BlockList()
GLOBAL_UNICAST.addSubnet('2000::', 3, 'ipv6')

/**
 * True for an address of the public internet. Of IPv6 only global unicast passes, so loopback, link-local, unique local,
 * mapped (::ffff:127.0.0.1), translated (64:ff9b::/96) and compatible addresses are refused.
 *
 * @example isPublic('::ffff:8.8.8.8') // false: an IPv4-mapped address
 */
export function isPublic(address: string): boolean {
  const version = isIP(address)
  if (version === 0) return false
  if (version === 4) return !PRIVATE_NETWORKS.check(address, 'ipv4')
  return GLOBAL_UNICAST.check(address, 'ipv6') && !PRIVATE_NETWORKS.check(address, 'ipv6')
}

/**
 * The network of an address that is visited by one request at a time: /24 of IPv4, /48 of IPv6.
 *
 * @example networkPrefix('93.184.216.34') // "93.184.216"
 */
export function networkPrefix(address: string): string {
  if (isIPv4(address)) return address.split('.').slice(0, 3).join('.')
  const [head = '', tail] = address.split('::')
  const left = head.split(':').filter(Boolean)
  const right = (tail ?? '').split(':').filter(Boolean)
  const groups =
    tail === undefined ? left : [...left, ...Array<string>(8 - left.length - right.length).fill('0'), ...right]
  return groups
    .slice(0, 3)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')
}
