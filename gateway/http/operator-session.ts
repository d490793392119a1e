/**
 * Access to the operator console. A request sends the operator token as a bearer token, or a browser logs in with it and
 * gets a session cookie. The cookie holds when the session ends, a number that no other session has, and a MAC of both,
 * never the token. A session that was logged out is listed with the revoked access tokens, so that it has ended in every
 * process, and after a restart.
 */
import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Revocations } from '../tokens/revocations.ts'
import type { CallerAddress } from './caller-address.ts'
import { LoginLimit } from './login-limit.ts'

const COOKIE_NAME = 'operator'
const SESSION_SECONDS = 12 * 3600
const LOGGED_OUT = 'the operator logged out'

export interface SessionParts {
  readonly now: () => Date
  readonly revocations: Pick<Revocations, 'ids' | 'revoke'>
  /** Makes the number of a session, in hexadecimal digits. Default: a random one. */
  readonly newId?: () => string
}

const randomId = (): string => randomBytes(9).toString('hex')

/** Checks and issues credentials of the operator console. */
export class OperatorSessions {
  readonly #limit: LoginLimit
  readonly #tokenMac: string
  readonly #baseUrl: string
  readonly #now: () => Date
  readonly #key: Buffer
  readonly #revocations: Pick<Revocations, 'ids' | 'revoke'>

  readonly #newId: () => string

  constructor(token: string, baseUrl: string, { now, revocations, newId = randomId }: SessionParts) {
    this.#revocations = revocations
    this.#newId = newId
    this.#limit = new LoginLimit(now)
    this.#baseUrl = baseUrl
    this.#now = now
    this.#key = Buffer.from(hkdfSync('sha256', token, '', 'tollgate operator session', 32))
    this.#tokenMac = this.#mac('token', token)
  }

  /** Returns how a request is authenticated, or null if it is not. Throws as `isToken` does. */
  authenticate(headers: IncomingHttpHeaders, from: CallerAddress): 'bearer' | 'cookie' | null {
    // A token that an operator chooses may be several words.
    const bearer = /^bearer +(\S.*)$/i.exec(headers.authorization ?? '')?.[1]
    if (bearer !== undefined) return this.isToken(bearer, from) ? 'bearer' : null
    return this.#sessionOf(headers) === null ? null : 'cookie'
  }

  /**
   * Returns true if `text` is the operator token. Compares in constant time.
   * @throws RateLimited, without comparing, if the caller has sent too many wrong tokens and has to wait
   */
  isToken(text: string, from: CallerAddress): boolean {
    this.#limit.assertMayTry(from)
    const mac = this.#mac('token', text)
    const isRight = isEqual(mac, this.#tokenMac)
    if (isRight) this.#limit.succeeded(from)
    else this.#limit.failed(from, mac)
    return isRight
  }

  /** Returns the Set-Cookie header of a new session. */
  open(): string {
    const end = this.#now().getTime() + SESSION_SECONDS * 1000
    const session = `${end}-${this.#newId()}`
    return this.#cookie(`${session}.${this.#mac('session', session)}`, SESSION_SECONDS)
  }

  /** Ends the session of a request, and returns the Set-Cookie header that removes its cookie. */
  async close(headers: IncomingHttpHeaders): Promise<string> {
    const session = this.#sessionOf(headers)
    if (session !== null) await this.#revocations.revoke(this.#idOf(session), LOGGED_OUT)
    return this.#cookie('', 0)
  }

  /** Returns the CSRF token that every form of this session must send back. */
  csrfToken(headers: IncomingHttpHeaders): string {
    return this.#mac('form', this.#sessionOf(headers) ?? '')
  }

  /** Returns true if a form was sent from the console's own pages: right CSRF token, and no foreign Origin. */
  isOwnForm(headers: IncomingHttpHeaders, csrfToken: string): boolean {
    const { origin, 'sec-fetch-site': site } = headers
    if (site !== undefined && site !== 'same-origin') return false
    if (origin !== undefined && !this.#isOwnOrigin(origin, headers)) return false
    return isEqual(csrfToken, this.csrfToken(headers))
  }

  /** The public address, or the host from which the page was loaded, such as a tunnel to loopback. */
  #isOwnOrigin(origin: string, { host }: IncomingHttpHeaders): boolean {
    if (origin === new URL(this.#baseUrl).origin) return true
    return URL.canParse(origin) && new URL(origin).host === host
  }

  /** The open session of a request, without its MAC. */
  #sessionOf({ cookie = '' }: IncomingHttpHeaders): string | null {
    const value = new RegExp(`(?:^|;\\s*)${COOKIE_NAME}=([\\w.-]+)`).exec(cookie)?.[1] ?? ''
    // Nothing else may stand in the cookie: a session has one name.
    const [, session = '', end, mac = ''] = /^((\d+)-[\da-f]+)\.([\w-]+)$/.exec(value) ?? []
    const isOpen = isEqual(mac, this.#mac('session', session)) && Number(end) > this.#now().getTime()
    return isOpen && !this.#revocations.ids.has(this.#idOf(session)) ? session : null
  }

  /** The name of a session in the list of revocations, from which its cookie cannot be made. */
  #idOf(session: string): string {
    return `operator:${this.#mac('ended', session)}`
  }

  #mac(purpose: string, text: string): string {
    return createHmac('sha256', this.#key).update(`${purpose}:${text}`).digest('base64url')
  }

  #cookie(value: string, seconds: number): string {
    const secure = this.#baseUrl.startsWith('https:') ? '; Secure' : ''
    return `${COOKIE_NAME}=${value}; Path=/operator; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`
  }
}

function isEqual(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}
