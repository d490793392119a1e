import { BlockList, isIP, isIPv4 } from 'node:net'

const refused = new BlockList()
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
  refused.addSubnet(network, prefix, 'ipv4')
/** Within global unicast: protocol assignments with Teredo, documentation, 6to4 (which hides an IPv4 address). */
for (const [network, prefix] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['2620:4f:8000::', 48],
  ['3fff::', 20],
] as const)
  refused.addSubnet(network, prefix, 'ipv6')

const global = new BlockList()
global.addSubnet('2000::', 3, 'ipv6')

/**
 * True for an address of the public internet. Of IPv6 only global unicast passes, so loopback, link-local, unique local,
 * mapped (::ffff:127.0.0.1), translated (64:ff9b::/96) and compatible addresses are refused.
 *
 * @example isPublic('::ffff:8.8.8.8') // false: an IPv4 address is written as one
 */
export function isPublic(address: string): boolean {
  const version = isIP(address)
  if (version === 0) return false
  if (version === 4) return !refused.check(address, 'ipv4')
  return global.check(address, 'ipv6') && !refused.check(address, 'ipv6')
}

/**
 * The neighbourhood of an address, which shares one pace: /24 of IPv4, /48 of IPv6.
 *
 * @example neighbourhood('93.184.216.34') // "93.184.216"
 */
export function neighbourhood(address: string): string {
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
