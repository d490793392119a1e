/**
 * Who may see the operator's side: whoever sends OPERATOR_TOKEN as a bearer, or a browser that logged in with it. The
 * cookie holds an end and a MAC of it, never the token.
 */
import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

export interface Access {
  /** How a request proves itself; null where it does not. */
  of(headers: IncomingHttpHeaders): 'bearer' | 'cookie' | null
  /** Whether this is the token, in constant time. */
  isToken(text: string): boolean
  /** Set-Cookie of a new session. */
  open(): string
  /** Set-Cookie that ends the session. */
  close(): string
  /** The word a form of this session must carry, so that no other page can send it. */
  formWord(headers: IncomingHttpHeaders): string
  /** Whether a form came from a page of ours: its word, and its Origin where the browser tells. */
  isOwnForm(headers: IncomingHttpHeaders, word: string): boolean
}

const NAME = 'operator'
const SESSION_SECONDS = 12 * 3600

export function createAccess(token: string, baseUrl: string, now: () => Date): Access {
  const key = Buffer.from(hkdfSync('sha256', token, '', 'tollgate operator session', 32))
  const mac = (purpose: string, text: string): string =>
    createHmac('sha256', key).update(`${purpose}:${text}`).digest('base64url')
  const secure = baseUrl.startsWith('https:') ? '; Secure' : ''
  const cookie = (value: string, seconds: number): string =>
    `${NAME}=${value}; Path=/operator; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`
  const isToken = (text: string): boolean => same(mac('token', text), mac('token', token))

  function sessionOf({ cookie: sent = '' }: IncomingHttpHeaders): string | null {
    const value = new RegExp(`(?:^|;\\s*)${NAME}=([\\w.-]+)`).exec(sent)?.[1] ?? ''
    const [end = '', proof = ''] = value.split('.')
    return same(proof, mac('session', end)) && Number(end) > now().getTime() ? value : null
  }

  const formWord = (headers: IncomingHttpHeaders): string => mac('form', sessionOf(headers) ?? '')

  return {
    of(headers) {
      const bearer = /^bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1]
      if (bearer !== undefined) return isToken(bearer) ? 'bearer' : null
      return sessionOf(headers) === null ? null : 'cookie'
    },
    isToken,
    open() {
      const end = String(now().getTime() + SESSION_SECONDS * 1000)
      return cookie(`${end}.${mac('session', end)}`, SESSION_SECONDS)
    },
    close: () => cookie('', 0),
    formWord,
    isOwnForm(headers, word) {
      const { origin, 'sec-fetch-site': site } = headers
      const isForeign =
        (site !== undefined && site !== 'same-origin') || (origin !== undefined && !isOwn(origin, headers))
      return !isForeign && same(word, formWord(headers))
    },
  }

  /** The public address, or the very host the page was asked from (a tunnel to loopback). */
  function isOwn(origin: string, { host }: IncomingHttpHeaders): boolean {
    if (origin === new URL(baseUrl).origin) return true
    return URL.canParse(origin) && new URL(origin).host === host
  }
}

function same(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}
