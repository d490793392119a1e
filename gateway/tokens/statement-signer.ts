/**
 * Signs tokens, receipts and offers: compact JWS (RFC 7515) with Ed25519 (RFC 8037) over the canonical form of a flat
 * statement (RFC 8785: fields sorted by name).
 */
import { createPrivateKey, type JsonWebKey, sign } from 'node:crypto'
import type { JWK } from 'jose'
import type { Awaitable } from '../awaitable.ts'
import { type Attestations, openAttestations } from './attestation-keys.ts'
import { ALGORITHM, offerKeyOf, openKeys, publicPart } from './key-set.ts'

/** A flat JSON object. */
export type Statement = Readonly<Record<string, unknown>>

/** Signs access tokens and receipts. It may be another process that holds the keys. */
export interface StatementSigner {
  /** The public keys, that of the signing key first. */
  readonly publicKeys: readonly JWK[]
  /** The keys that sign offers, the current one first and with its private part. There is one for each public key. */
  readonly offerKeys: readonly JWK[]
  /** Signs a statement as a JWS of this `typ`. */
  sign(type: string, statement: Statement): Awaitable<string>
}

/** Keys in this process. */
export interface LocalKeys extends StatementSigner {
  sign(type: string, statement: Statement): string
  readonly attestations: Attestations
}

/**
 * Opens the key set as `openKeys` does, and signs in this process.
 *
 * @param variable returns the value of an environment variable, or null
 */
export async function openLocalKeys(
  keys: string | null,
  dataDir: string | null,
  variable: (name: string) => string | null = () => null,
): Promise<LocalKeys> {
  const set = await openKeys(keys, dataDir)
  const [first, ...others] = await Promise.all(set.map(offerKeyOf))
  return {
    publicKeys: set.map(({ jwk }) => publicPart(jwk)),
    offerKeys: [first as JWK, ...others.map(publicPart)],
    sign: signWith(set[0].jwk),
    attestations: openAttestations(set[0].jwk, variable),
  }
}

/** Returns the function that signs statements with a private key. */
export function signWith(jwk: JWK): (type: string, statement: Statement) => string {
  const key = createPrivateKey({ key: jwk as JsonWebKey, format: 'jwk' })
  return (type, statement) => {
    const fields = Object.entries(statement).sort(([one], [other]) => (one < other ? -1 : 1))
    const header = { alg: ALGORITHM, kid: jwk.kid as string, typ: type }
    const signed = `${base64url(header)}.${base64url(Object.fromEntries(fields))}`
    return `${signed}.${sign(null, Buffer.from(signed), key).toString('base64url')}`
  }
}

const base64url = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
