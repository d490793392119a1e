/** How a facilitator that wants a key is shown it: a token, a header, or a JWT for each request. */
import { createPrivateKey, type KeyObject, randomBytes, randomUUID } from 'node:crypto'
import { SignJWT } from 'jose'

/** Returns the headers of one request. */
export type HeadersFor = (method: 'GET' | 'POST', url: URL) => Promise<Readonly<Record<string, string>>>

/** How long a JWT is good for, as the services that want one allow. */
const JWT_SECONDS = 120
/** What comes before the 32 bytes of an Ed25519 key in PKCS#8 (RFC 8410, section 7). */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex')
/** The bytes of a key that is followed by its public key. */
const KEY_PAIR_BYTES = 64
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/**
 * Reads one entry of FACILITATOR_AUTH: bearer:TOKEN, header:NAME=VALUE, jwt:ISSUER:KEY_ID:SECRET, or - for none. Throws
 * Error, without what was given, for anything else.
 *
 * @example await readFacilitatorAuth('bearer:abc')('GET', url) → { authorization: 'Bearer abc' }
 */
export function readFacilitatorAuth(text: string): HeadersFor {
  if (text === '-') return async () => ({})
  const [kind, ...parts] = text.split(':')
  const rest = parts.join(':')
  if (kind === 'bearer' && rest !== '') return async () => ({ authorization: `Bearer ${rest}` })
  if (kind === 'header') {
    const [, name = '', value = ''] = /^([^=]*)=(.*)$/s.exec(rest) ?? []
    if (HEADER_NAME.test(name) && value !== '') return async () => ({ [name.toLowerCase()]: value })
  }
  if (kind === 'jwt') {
    const [issuer = '', keyId = '', ...secret] = parts
    const key = keyOf(secret.join(':'))
    if (issuer !== '' && keyId !== '' && key !== null)
      return async (method, url) => ({ authorization: `Bearer ${await sign(issuer, keyId, key, method, url)}` })
  }
  throw new Error('FACILITATOR_AUTH is not understood.')
}

/** Reads an Ed25519 key: 64 bytes with the public key, or PKCS#8, also after a prefix such as payai_sk_. Null if it is none. */
function keyOf(secret: string): KeyObject | null {
  const bytes = Buffer.from(secret.replace(/^[a-z]+_sk_/, ''), 'base64')
  const key = bytes.length === KEY_PAIR_BYTES ? Buffer.concat([PKCS8_PREFIX, bytes.subarray(0, 32)]) : bytes
  try {
    const read = createPrivateKey({ key, format: 'der', type: 'pkcs8' })
    return read.asymmetricKeyType === 'ed25519' ? read : null
  } catch {
    return null
  }
}

/** A JWT for one request, with what each of the services checks: the request in `uris`, and a number used once. */
function sign(issuer: string, keyId: string, key: KeyObject, method: string, url: URL): Promise<string> {
  const now = Math.floor(Date.now() / 1000)
  return new SignJWT({ uris: [`${method} ${url.host}${url.pathname}`] })
    .setProtectedHeader({ alg: 'EdDSA', typ: 'JWT', kid: keyId, nonce: randomBytes(16).toString('hex') })
    .setIssuer(issuer)
    .setSubject(keyId)
    .setIssuedAt(now)
    .setNotBefore(now)
    .setExpirationTime(now + JWT_SECONDS)
    .setJti(randomUUID())
    .sign(key)
}
