/**
 * Where requests come from. X-Forwarded-For counts only on a connection from a proxy that the operator has named; from
 * anybody else it may be made up. A forwarded header from another peer means that the peer may be a proxy that was not
 * named. The caller behind it is unknown then, so its address grants no rights.
 */
import type { IncomingMessage } from 'node:http'
import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net'
import type { Logger } from '../plugin/plugin.ts'

/** The caller of a request, as far as its connection shows. */
export interface CallerAddress {
  /** The address of the caller, or of its proxy if the caller is unknown. Each address has one spelling here (RFC 5952). */
  readonly address: string
  /** True if the address is that of the caller. If false, others may share it: grant nothing because of it. */
  readonly isKnown: boolean
  /** True if all callers of a public service seem to have this address, because a proxy hides who calls. */
  readonly isShared: boolean
}

/** A setting that the operator should look at. */
export interface ProxyWarning {
  readonly code: 'proxy_not_named' | 'callers_share_an_address'
  readonly message: string
}

export interface CallerAddressOptions {
  /** Addresses and CIDR ranges of the proxies whose X-Forwarded-For counts. */
  readonly trustedProxies: readonly string[]
  /** The public address of the service. */
  readonly baseUrl: string
  /** The address that the gateway listens on. */
  readonly host?: string
  readonly log: Logger
}

/** Headers that proxies write. A caller who sends one directly loses the rights that its address would grant. */
const FORWARDED_HEADERS = ['x-forwarded-for', 'forwarded', 'x-real-ip'] as const
/** A public service that has answered this many requests, all from one private address, is behind a proxy. */
const SHARED_AFTER = 20
/** How many addresses each memory holds. */
const MAX_REMEMBERED = 1_000

const NOT_NAMED: ProxyWarning = {
  code: 'proxy_not_named',
  message:
    'Requests with X-Forwarded-For come from an address that TRUSTED_PROXIES does not name, so the header is ignored: they count as one caller, and nobody gets a right from its address. If it is your proxy, name it in TRUSTED_PROXIES.',
}

const SHARED: ProxyWarning = {
  code: 'callers_share_an_address',
  message:
    'BASE_URL is public, but all requests come from one private address: a proxy hides who calls, so all callers share one rate limit, and nobody gets a right from its address. Let it send X-Forwarded-For, and name it in TRUSTED_PROXIES.',
}

/** Finds the callers of requests, and what is wrong with the proxies in front of the gateway. */
export class CallerAddresses {
  readonly #trusted: BlockList | null
  readonly #log: Logger
  readonly #isPublic: boolean
  /** Whether each peer is a named proxy. */
  readonly #peers = new Map<string, boolean>()
  readonly #warnings: ProxyWarning[] = []
  /** The one private address that all requests came from; null before the first, false once there was another one. */
  #only: string | null | false
  #requests = 0
  #areCallersHidden = false

  constructor({ trustedProxies, baseUrl, host, log }: CallerAddressOptions) {
    this.#trusted = trustedProxies.length === 0 ? null : blockListOf(trustedProxies)
    this.#log = log
    this.#isPublic = isPublic(new URL(baseUrl).hostname)
    this.#only = this.#isPublic ? null : false
    // Callers from elsewhere come through a proxy on this machine.
    const isLocal = host === 'localhost' || (host !== undefined && isLoopback(host))
    if (this.#isPublic && isLocal && !this.#trusted) this.#hideCallers()
  }

  /** Warnings for the operator. The same array until something is added. */
  get warnings(): readonly ProxyWarning[] {
    return this.#warnings
  }

  /** Logs what is known to be wrong before the first request. */
  warnAtStart(): void {
    for (const { code, message } of this.#warnings) this.#log.warn({ code }, message)
  }

  /** The caller of a request. */
  of(request: Pick<IncomingMessage, 'headers' | 'socket'>): CallerAddress {
    const caller = this.#callerOf(request)
    if (this.#only !== false) this.#compare(caller.address)
    return caller
  }

  /** Whether the connection of a request is that of a named proxy, so that many callers share it. */
  isOfProxy({ socket }: Pick<IncomingMessage, 'socket'>): boolean {
    return this.#trusted !== null && this.#isProxy(plainAddress(socket.remoteAddress ?? ''))
  }

  #callerOf(request: Pick<IncomingMessage, 'headers' | 'socket'>): CallerAddress {
    const { headers, socket } = request
    const peer = plainAddress(socket.remoteAddress ?? '')
    if (this.isOfProxy(request)) return this.#forwarded(headers['x-forwarded-for'], peer)
    if (FORWARDED_HEADERS.every((name) => headers[name] === undefined))
      return { address: peer, isKnown: peer !== '', isShared: this.#areCallersHidden && isPrivate(peer) }
    if (!this.#warnings.includes(NOT_NAMED)) {
      this.#warnings.push(NOT_NAMED)
      this.#log.warn({ code: NOT_NAMED.code, peer }, NOT_NAMED.message)
    }
    return { address: peer, isKnown: false, isShared: true }
  }

  /** The last address in the header that is not a proxy's: what stands before it was written by the caller. */
  #forwarded(header: string | string[] | undefined, peer: string): CallerAddress {
    const text = typeof header === 'string' ? header : ''
    let proxy = peer
    for (let end = text.length; end > 0;) {
      const start = text.lastIndexOf(',', end - 1) + 1
      const address = addressIn(text.slice(start, end))
      if (address === null) break
      if (!this.#isProxy(address)) return { address, isKnown: true, isShared: false }
      proxy = address
      end = start - 1
    }
    return { address: proxy, isKnown: false, isShared: true }
  }

  #hideCallers(): void {
    this.#areCallersHidden = true
    this.#warnings.push(SHARED)
  }

  #isProxy(address: string): boolean {
    const known = this.#peers.get(address)
    if (known !== undefined) return known
    const isProxy = this.#trusted?.check(address, isIPv6(address) ? 'ipv6' : 'ipv4') ?? false
    if (this.#peers.size >= MAX_REMEMBERED) this.#peers.clear()
    this.#peers.set(address, isProxy)
    return isProxy
  }

  /** Warns if the service is public, and all its callers have one private address. */
  #compare(address: string): void {
    if (this.#only === null && isPrivate(address)) this.#only = address
    if (this.#only !== address) this.#only = false
    this.#requests += 1
    if (this.#only === false || this.#requests < SHARED_AFTER) return
    if (!this.#warnings.includes(SHARED)) {
      this.#hideCallers()
      this.#log.warn({ code: SHARED.code, peer: address }, SHARED.message)
    }
    this.#only = false
  }
}

function blockListOf(ranges: readonly string[]): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    const [address = '', bits] = range.split('/')
    const family = isIPv6(address) ? 'ipv6' : 'ipv4'
    if (bits === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(bits), family)
  }
  return list
}

/** An address of X-Forwarded-For, without the port that some proxies add; null if it is none. */
function addressIn(text: string): string | null {
  const trimmed = text.trim()
  const [, bracketed, before] = /^\[([^\]]+)\](?::\d+)?$|^([\d.]+):\d+$/.exec(trimmed) ?? []
  const address = bracketed ?? before ?? trimmed
  return isIP(address) === 0 ? null : plainAddress(address)
}

/** Spellings of IPv6 addresses that were read, and the one of each address that counts. */
const plainAddresses = new Map<string, string>()

/**
 * Returns the one spelling of an address: an IPv6 address as RFC 5952 writes it, without a zone, and the plain IPv4 address
 * if it stands for one ("::ffff:7f00:1" becomes "127.0.0.1"). Addresses of NAT64 (64:ff9b::/96) stay IPv6: as plain ones they
 * could claim to be this machine. Any other text is returned as it is.
 */
function plainAddress(text: string): string {
  if (!text.includes(':')) return text
  const known = plainAddresses.get(text)
  if (known !== undefined) return known
  if (!isIPv6(text)) return text
  const [address = ''] = text.split('%', 1)
  const spelled = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const [, high, low] = /^::ffff:([\da-f]+):([\da-f]+)$/.exec(spelled) ?? []
  const isIpv4 = high !== undefined && low !== undefined
  const plain = isIpv4 ? [high, low].map(decimals).join('.') : spelled
  if (plainAddresses.size >= MAX_REMEMBERED) plainAddresses.clear()
  // A zone can be long.
  if (text === address) plainAddresses.set(text, plain)
  return plain
}

/** @example decimals('7f00') → '127.0' */
function decimals(group: string): string {
  const value = parseInt(group, 16)
  return `${value >> 8}.${value & 255}`
}

/** True for an address of this machine, in any spelling. */
export function isLoopback(address: string): boolean {
  if (address.startsWith('127.')) return isIPv4(address)
  // No other IPv6 address can be one.
  if (!/^[0:]/.test(address)) return false
  const plain = plainAddress(address)
  return plain === '::1' || plain.startsWith('127.')
}

const PRIVATE = blockListOf(
  '10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 169.254.0.0/16 100.64.0.0/10 127.0.0.0/8 ::1 fc00::/7 fe80::/10'.split(' '),
)

/** True for an address that does not exist on the Internet. */
function isPrivate(address: string): boolean {
  return isIP(address) !== 0 && PRIVATE.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
}

/** True for the host of an address that others can reach. */
function isPublic(host: string): boolean {
  const name = plainAddress(host.replace(/^\[|\]$/g, ''))
  return !isPrivate(name) && name !== 'localhost' && !name.endsWith('.localhost')
}

/**
 * Returns the key of the place that an address belongs to, the same for each of its spellings. An IPv6 customer usually holds
 * a whole /64, so the key is the first four groups: "2001:db8::1" becomes "2001:db8:0:0". Every loopback address is "loopback".
 */
export function placeOf(address: string): string {
  if (isLoopback(address)) return 'loopback'
  const plain = plainAddress(address)
  if (!plain.includes(':')) return plain
  const [head = '', tail] = plain.split('::')
  const before = head.split(':').filter(Boolean)
  const after = (tail ?? '').split(':').filter(Boolean)
  const zeros = tail === undefined ? [] : Array<string>(8 - before.length - after.length).fill('0')
  return [...before, ...zeros, ...after].slice(0, 4).join(':')
}

/** Returns the place whose limits a caller counts for; null for a known caller on this machine, who has none. */
export function limitedPlaceOf({ address, isKnown, isShared }: CallerAddress): string | null {
  const place = placeOf(address)
  return place === 'loopback' && isKnown && !isShared ? null : place
}
