/**
 * Access tokens, which plan purchases return: JWTs (RFC 7519) signed with Ed25519 (RFC 8037). Anyone can verify a token
 * with the public key; only the gateway can issue one. Receipts are signed with the same keys, and offers with keys
 * derived from them.
 */
import { compactVerify, type CryptoKey, errors, importJWK, type JWK, jwtVerify } from 'jose'
import { LRUCache } from 'lru-cache'
import { ServiceError } from '../errors.ts'
import type { Awaitable } from '../awaitable.ts'
import { ALGORITHM, publicPart } from './key-set.ts'
import { openLocalKeys, signWith, type Statement, type StatementSigner } from './statement-signer.ts'

export interface TokenOptions {
  /** JWK set with private keys, as JSON text; null: the set in `dataDir`, created on first use. */
  readonly keys: string | null
  /** Null: the keys are not stored. */
  readonly dataDir: string | null
  /** Signs instead of `keys`, for example another process. */
  readonly signer?: StatementSigner | null
  /** The public address of the service: issuer and audience of its tokens. */
  readonly issuer: string
  readonly now: () => Date
  /** Ids of revoked tokens. */
  readonly revoked?: ReadonlySet<string>
}

export interface TokenGrant {
  /** Address that paid. */
  readonly subject: string
  readonly plan: string
  readonly tier: string
  readonly durationSeconds: number
  readonly id: string
  /** Start of the token's window; default: now. */
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
  /** Throws ServiceError `token_expired`, or `token_invalid` for a token that is foreign, altered or revoked. */
  verify(token: string): Promise<VerifiedToken>
  /** Returns at once what `verify` found before; null if the token has to be verified. Throws as `verify` does. */
  recall(token: string): VerifiedToken | null
  /** Milliseconds until the token expires. */
  remainingMs(token: Pick<VerifiedToken, 'expiresAt'>): number
  /** The public keys as a JWK set (RFC 7517). */
  jwks(): { readonly keys: readonly JWK[] }
  /** Signs a statement that is not a token: a compact JWS (RFC 7515) of this `typ`. */
  sign(type: string, statement: Statement): Awaitable<string>
  /** Signs an offer. Synchronous, because a 402 does not wait. */
  signOffer(statement: Statement): string
  /** The statement of a JWS that we signed with this `typ`; null if it is foreign, altered or of another type. */
  read(type: string, jws: string): Promise<Statement | null>
}

/** `typ` of the JWS of an access token. */
export const TOKEN_TYPE = 'JWT'
/** `typ` of the JWS of an offer, so that it is never accepted as a receipt or an access token. */
export const OFFER_TYPE = 'x402-offer'
const CACHED_TOKENS = 1000
/**
 * The one way to write a token. Decoders also take spaces within a signature, and bits behind its 64 bytes: then one token
 * would have any number of texts, and limits that count a token by its text would not hold.
 */
const ONE_TEXT = /^[\w-]+\.[\w-]+\.[\w-]{85}[AQgw]$/

/**
 * Opens or creates the key set and returns the token service.
 *
 * @throws RangeError if the configured keys are not a set of private Ed25519 keys
 */
export async function createTokens(options: TokenOptions): Promise<Tokens> {
  const { keys, dataDir, issuer, now, revoked = new Set() } = options
  const signer = options.signer ?? (await openLocalKeys(keys, dataDir))
  const publicKeys = await importAll(signer.publicKeys)
  const offerKeys = await importAll(signer.offerKeys.map(publicPart))
  const signOffer = signWith(signer.offerKeys[0] as JWK)
  const verified = new LRUCache<string, VerifiedToken>({ max: CACHED_TOKENS })

  /** Keys of offers verify offers only. */
  const keyOfHeader = ({ kid, typ }: { readonly kid?: string; readonly typ?: string }): CryptoKey => {
    const key = publicKeys.get(kid ?? '') ?? (typ === OFFER_TYPE ? offerKeys.get(kid ?? '') : undefined)
    if (!key) throw new errors.JWKSNoMatchingKey()
    return key
  }

  async function verifySignature(token: string): Promise<VerifiedToken> {
    if (!ONE_TEXT.test(token)) throw new errors.JWTInvalid()
    const { payload } = await jwtVerify(token, keyOfHeader, {
      algorithms: [ALGORITHM],
      // Receipts and offers are signed with the same keys, but have types of their own.
      typ: TOKEN_TYPE,
      issuer,
      audience: issuer,
      currentDate: now(),
      requiredClaims: ['sub', 'jti', 'iat', 'exp', 'plan', 'tier'],
    })
    const { sub = '', jti = '', exp = 0, plan, tier } = payload
    if (typeof plan !== 'string' || typeof tier !== 'string') throw new errors.JWTInvalid()
    return { plan, tier, subject: sub, id: jti, expiresAt: new Date(exp * 1000) }
  }

  /** Throws if the token has been revoked or has expired since it was verified. */
  function stillValid(found: VerifiedToken): VerifiedToken {
    if (revoked.has(found.id)) throw new ServiceError('token_invalid')
    if (found.expiresAt <= now()) throw new ServiceError('token_expired')
    return found
  }

  const recall = (token: string): VerifiedToken | null => {
    const found = verified.get(token)
    return found ? stillValid(found) : null
  }

  return {
    recall,
    async issue({ subject, plan, tier, durationSeconds, id, issuedAt = now() }) {
      const issued = Math.floor(issuedAt.getTime() / 1000)
      const expires = issued + durationSeconds
      const claims = { plan, tier, iss: issuer, aud: issuer, sub: subject, jti: id, iat: issued, exp: expires }
      const token = await signer.sign(TOKEN_TYPE, claims)
      return { token, issuedAt: new Date(issued * 1000), expiresAt: new Date(expires * 1000) }
    },
    async verify(token) {
      const known = recall(token)
      if (known) return known
      const found = stillValid(await verifySignature(token).catch(refuse))
      verified.set(token, found)
      return found
    },
    remainingMs: ({ expiresAt }) => expiresAt.getTime() - now().getTime(),
    jwks: () => ({ keys: [...signer.publicKeys, ...signer.offerKeys.map(publicPart)] }),
    sign: (type, statement) => signer.sign(type, statement),
    signOffer: (statement) => signOffer(OFFER_TYPE, statement),
    async read(type, jws) {
      try {
        const { payload, protectedHeader } = await compactVerify(jws, keyOfHeader, { algorithms: [ALGORITHM] })
        if (protectedHeader.typ !== type) return null
        return JSON.parse(Buffer.from(payload).toString('utf8')) as Statement
      } catch (error) {
        if (error instanceof errors.JOSEError) return null
        throw error
      }
    },
  }
}

/** Imports public keys, by their ids. */
async function importAll(jwks: readonly JWK[]): Promise<ReadonlyMap<string, CryptoKey>> {
  const imported = jwks.map(async (jwk) => [jwk.kid as string, (await importJWK(jwk, ALGORITHM)) as CryptoKey] as const)
  return new Map(await Promise.all(imported))
}

function refuse(error: unknown): never {
  if (error instanceof errors.JWTExpired) throw new ServiceError('token_expired', undefined, { cause: error })
  if (error instanceof errors.JOSEError) throw new ServiceError('token_invalid', undefined, { cause: error })
  throw error
}
