/**
 * Access tokens: what a plan purchase hands out. JWT (RFC 7519) signed with Ed25519 (RFC 8037), so that a token is
 * checked by arithmetic and nobody who can check one can make one. The first key signs; every key verifies.
 */
import { chmod, link, mkdir, readFile, rename, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createPrivateKey, type JsonWebKey, randomUUID, sign } from 'node:crypto'
import {
  calculateJwkThumbprint,
  compactVerify,
  type CryptoKey,
  errors,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JWK,
  jwtVerify,
  SignJWT,
} from 'jose'
import { LRUCache } from 'lru-cache'
import { ServiceError } from '../errors.ts'

export interface TokenOptions {
  /** JWK set with private keys, as JSON text; null: made once and kept in `dataDir`. */
  readonly keys: string | null
  /** Null: the keys are not kept. */
  readonly dataDir: string | null
  /** The public address of the service: issuer and audience of its tokens. */
  readonly issuer: string
  readonly now: () => Date
  /** Ids of tokens that are refused although they have not ended. */
  readonly revoked?: ReadonlySet<string>
}

export interface TokenGrant {
  /** Address that paid. */
  readonly subject: string
  readonly plan: string
  readonly tier: string
  readonly durationSeconds: number
  readonly id: string
  /** From when it counts; absent: now. */
  readonly issuedAt?: Date
}

export interface VerifiedToken {
  readonly plan: string
  readonly tier: string
  readonly subject: string
  readonly id: string
  readonly expiresAt: Date
}

export interface Tokens {
  issue(grant: TokenGrant): Promise<{ readonly token: string; readonly issuedAt: Date; readonly expiresAt: Date }>
  /** Throws ServiceError token_expired, or token_invalid where it is foreign, altered or revoked. */
  verify(token: string): Promise<VerifiedToken>
  /** Milliseconds until it ends. */
  left(token: Pick<VerifiedToken, 'expiresAt'>): number
  /** The public keys (RFC 7517). */
  jwks(): { readonly keys: readonly JWK[] }
  /**
   * A flat statement that is no token, signed with the same key: a compact JWS (RFC 7515) of this type over its
   * canonical form (RFC 8785: fields by name). At once, since a 402 does not wait.
   */
  sign(type: string, statement: Readonly<Record<string, unknown>>): string
  /** The statement in a JWS of ours and of this type, or null: foreign, altered, or of another type. */
  read(type: string, jws: string): Promise<Readonly<Record<string, unknown>> | null>
}

/** Ed25519 private keys, the first one signs. */
export interface KeySet {
  readonly keys: readonly JWK[]
}

const ALGORITHM = 'EdDSA'
const TYPE = 'JWT'
const FILE = 'token-keys.json'
const CACHED_TOKENS = 1000

/** Opens the key set, or makes it. Throws RangeError where the configured keys are not a set of private Ed25519 keys. */
export async function createTokens({ keys, dataDir, issuer, now, revoked = new Set() }: TokenOptions): Promise<Tokens> {
  const set = await openKeys(keys, dataDir)
  const [signing] = set
  const signingKey = createPrivateKey({ key: signing.jwk as JsonWebKey, format: 'jwk' })
  const publics = new Map(set.map(({ jwk, publicKey }) => [jwk.kid as string, publicKey]))
  const verified = new LRUCache<string, VerifiedToken>({ max: CACHED_TOKENS })

  const keyOfHeader = ({ kid }: { readonly kid?: string }): CryptoKey => {
    const key = publics.get(kid ?? '')
    if (!key) throw new errors.JWKSNoMatchingKey()
    return key
  }

  async function read(token: string): Promise<VerifiedToken> {
    const { payload } = await jwtVerify(token, keyOfHeader, {
      algorithms: [ALGORITHM],
      // What else is signed with the same key (receipts) has a type of its own.
      typ: TYPE,
      issuer,
      audience: issuer,
      currentDate: now(),
      requiredClaims: ['sub', 'jti', 'iat', 'exp', 'plan', 'tier'],
    })
    const { sub = '', jti = '', exp = 0, plan, tier } = payload
    if (typeof plan !== 'string' || typeof tier !== 'string') throw new errors.JWTInvalid()
    return { plan, tier, subject: sub, id: jti, expiresAt: new Date(exp * 1000) }
  }

  return {
    async issue({ subject, plan, tier, durationSeconds, id, issuedAt = now() }) {
      const issued = Math.floor(issuedAt.getTime() / 1000)
      const expires = issued + durationSeconds
      const token = await new SignJWT({ plan, tier })
        .setProtectedHeader({ alg: ALGORITHM, kid: signing.jwk.kid as string, typ: TYPE })
        .setIssuer(issuer)
        .setAudience(issuer)
        .setSubject(subject)
        .setJti(id)
        .setIssuedAt(issued)
        .setExpirationTime(expires)
        .sign(signing.privateKey)
      return { token, issuedAt: new Date(issued * 1000), expiresAt: new Date(expires * 1000) }
    },
    async verify(token) {
      const found = verified.get(token) ?? (await read(token).catch(refuse))
      if (revoked.has(found.id)) throw new ServiceError('token_invalid')
      if (found.expiresAt <= now()) throw new ServiceError('token_expired')
      verified.set(token, found)
      return found
    },
    left: ({ expiresAt }) => expiresAt.getTime() - now().getTime(),
    jwks: () => ({ keys: set.map(({ jwk }) => publicPart(jwk)) }),
    sign(type, statement) {
      const fields = Object.entries(statement).sort(([one], [other]) => (one < other ? -1 : 1))
      const head = { alg: ALGORITHM, kid: signing.jwk.kid as string, typ: type }
      const signed = `${base64url(head)}.${base64url(Object.fromEntries(fields))}`
      return `${signed}.${sign(null, Buffer.from(signed), signingKey).toString('base64url')}`
    },
    async read(type, jws) {
      try {
        const { payload, protectedHeader } = await compactVerify(jws, keyOfHeader, { algorithms: [ALGORITHM] })
        if (protectedHeader.typ !== type) return null
        return JSON.parse(Buffer.from(payload).toString('utf8')) as Record<string, unknown>
      } catch (error) {
        if (error instanceof errors.JOSEError) return null
        throw error
      }
    },
  }
}

const base64url = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

function refuse(error: unknown): never {
  if (error instanceof errors.JWTExpired) throw new ServiceError('token_expired', undefined, { cause: error })
  if (error instanceof errors.JOSEError) throw new ServiceError('token_invalid', undefined, { cause: error })
  throw error
}

/** A fresh private key, named by its thumbprint (RFC 7638). */
export async function createKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair(ALGORITHM, { extractable: true })
  const jwk = await exportJWK(privateKey)
  return { ...jwk, kid: await calculateJwkThumbprint(jwk), alg: ALGORITHM, use: 'sig' }
}

/** Puts a new key in front of those kept in `dataDir`. The old ones go on verifying what they signed. */
export async function rotateKeys(dataDir: string): Promise<KeySet> {
  const file = join(dataDir, FILE)
  const old = await readIfThere(file)
  const kept = old === null ? [] : (await checkedKeys(old, file)).map(({ jwk }) => jwk)
  const set = { keys: [await createKey(), ...kept] }
  await rename(await written(dataDir, set), file)
  return set
}

interface Key {
  readonly jwk: JWK
  readonly privateKey: CryptoKey
  readonly publicKey: CryptoKey
}

async function openKeys(keys: string | null, dataDir: string | null): Promise<[Key, ...Key[]]> {
  if (keys !== null) return checkedKeys(keys, 'TOKEN_KEYS')
  return dataDir === null ? [await keyOf(await createKey())] : storedKeys(dataDir)
}

async function storedKeys(dataDir: string): Promise<[Key, ...Key[]]> {
  const file = join(dataDir, FILE)
  if ((await readIfThere(file)) === null) {
    const fresh = await written(dataDir, { keys: [await createKey()] })
    // Another process may have made its set in the meantime: a link never replaces a file, so the first one stays.
    await link(fresh, file).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
    })
    await unlink(fresh)
  }
  return checkedKeys(await readFile(file, 'utf8'), file)
}

async function written(dataDir: string, set: KeySet): Promise<string> {
  await mkdir(dataDir, { recursive: true })
  const file = join(dataDir, `.${FILE}.${randomUUID()}`)
  await writeFile(file, `${JSON.stringify(set, null, 2)}\n`, { mode: 0o600 })
  await chmod(file, 0o600)
  return file
}

async function readIfThere(file: string): Promise<string | null> {
  return readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
}

async function checkedKeys(text: string, source: string): Promise<[Key, ...Key[]]> {
  const wrong = new RangeError(`${source} is not a JWK set with private Ed25519 keys. Make one with: npm run keys`)
  let jwks: unknown
  try {
    jwks = (JSON.parse(text) as { keys?: unknown }).keys
  } catch {
    throw wrong
  }
  if (!Array.isArray(jwks)) throw wrong
  const keys = await Promise.all(jwks.map((jwk: JWK) => keyOf(jwk).catch(() => null)))
  const [first, ...rest] = keys
  if (!first || rest.includes(null)) throw wrong
  return [first, ...(rest as Key[])]
}

async function keyOf(jwk: JWK): Promise<Key> {
  if (jwk.kty !== 'OKP' || jwk.crv !== 'Ed25519' || !jwk.d) throw new RangeError('not a private Ed25519 key')
  const named = { ...jwk, kid: jwk.kid ?? (await calculateJwkThumbprint(jwk)), alg: ALGORITHM, use: 'sig' }
  const privateKey = (await importJWK(named, ALGORITHM)) as CryptoKey
  const publicKey = (await importJWK(publicPart(named), ALGORITHM)) as CryptoKey
  return { jwk: named, privateKey, publicKey }
}

function publicPart(jwk: JWK): JWK {
  return Object.fromEntries(Object.entries(jwk).filter(([name]) => name !== 'd'))
}
