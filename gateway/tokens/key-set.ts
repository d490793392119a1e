/**
 * The keys that sign access tokens, receipts and offers: a JWK set (RFC 7517) of private Ed25519 keys (RFC 8037). The
 * first key signs; every key verifies.
 */
import { chmod, chown, link, open, readFile, rename, stat, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createPrivateKey, hkdfSync, randomUUID } from 'node:crypto'
import { calculateJwkThumbprint, type CryptoKey, exportJWK, generateKeyPair, importJWK, type JWK } from 'jose'
import { DataError } from '../stores/data-error.ts'
import { makePrivateFolder } from '../stores/private-files.ts'

/** JWS algorithm of the keys (RFC 8037). */
export const ALGORITHM = 'EdDSA'

const FILE = 'token-keys.json'

/** The stored form: private keys, the signing key first. */
export interface KeySet {
  readonly keys: readonly JWK[]
}

/** One key, ready for use. */
export interface SigningKey {
  readonly jwk: JWK
  readonly privateKey: CryptoKey
  readonly publicKey: CryptoKey
}

/** Creates a private key. Its id is its thumbprint (RFC 7638). */
export async function createKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair(ALGORITHM, { extractable: true })
  const jwk = await exportJWK(privateKey)
  return { ...jwk, kid: await calculateJwkThumbprint(jwk), alg: ALGORITHM, use: 'sig' }
}

/**
 * Opens the key set.
 *
 * @param keys JWK set as JSON text; null: the set in `dataDir`, which is created if it does not exist
 * @param dataDir null: a new key for this process only
 * @throws DataError if they are not a set of private Ed25519 keys
 */
export async function openKeys(
  keys: string | null,
  dataDir: string | null,
): Promise<readonly [SigningKey, ...SigningKey[]]> {
  if (keys !== null) return parseKeys(keys, 'TOKEN_KEYS')
  return dataDir === null ? [await importKey(await createKey())] : storedKeys(dataDir)
}

/**
 * Derives the key that signs offers from a token key, the same one in every process (HKDF, RFC 5869). It signs nothing
 * else, so a process that answers 402s can hold it without the token key.
 */
export async function offerKeyOf({ jwk }: SigningKey): Promise<JWK> {
  const seed = Buffer.from(hkdfSync('sha256', Buffer.from(jwk.d as string, 'base64url'), '', 'x402-offer', 32))
  const der = Buffer.concat([ED25519_PKCS8, seed])
  const { kty, crv, d, x } = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }).export({ format: 'jwk' })
  const derived = { kty: kty as string, crv: crv as string, d: d as string, x: x as string }
  return { ...derived, kid: await calculateJwkThumbprint(derived), alg: ALGORITHM, use: 'sig' }
}

/** The prefix of the 32 bytes of an Ed25519 private key in PKCS #8 (RFC 8410, section 7). */
const ED25519_PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex')

/** Adds a new signing key to the set in `dataDir`. The old keys keep verifying what they signed. */
export async function rotateKeys(dataDir: string): Promise<KeySet> {
  const file = join(dataDir, FILE)
  const stored = await readIfExists(file)
  const old = stored === null ? [] : (await parseKeys(stored, file)).map(({ jwk }) => jwk)
  const set = { keys: [await createKey(), ...old] }
  const temporary = await writeTemporary(dataDir, set)
  await giveToOwner(temporary, stored === null ? dataDir : file)
  await rename(temporary, file)
  await syncFolder(dataDir)
  return set
}

/** Gives a file that root has made to whom another one belongs: the user of a service has to read it. */
async function giveToOwner(file: string, other: string): Promise<void> {
  if (process.getuid?.() !== 0) return
  const { uid, gid } = await stat(other)
  await chown(file, uid, gid)
}

/** The key without its private part. */
export function publicPart(jwk: JWK): JWK {
  return Object.fromEntries(Object.entries(jwk).filter(([name]) => name !== 'd'))
}

async function storedKeys(dataDir: string): Promise<[SigningKey, ...SigningKey[]]> {
  const file = join(dataDir, FILE)
  if ((await readIfExists(file)) === null) {
    const temporary = await writeTemporary(dataDir, { keys: [await createKey()] })
    // Another process may have created its set meanwhile. A link never replaces a file, so the first set wins.
    await link(temporary, file).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
    })
    await unlink(temporary)
    await syncFolder(dataDir)
  }
  return parseKeys(await readFile(file, 'utf8'), file)
}

/** Waits until the names in a folder are on the disk: without its keys, no plan that was sold is good any more. */
async function syncFolder(folder: string): Promise<void> {
  const opened = await open(folder)
  try {
    await opened.sync()
  } finally {
    await opened.close()
  }
}

async function writeTemporary(dataDir: string, set: KeySet): Promise<string> {
  makePrivateFolder(dataDir)
  const file = join(dataDir, `.${FILE}.${randomUUID()}`)
  await writeFile(file, `${JSON.stringify(set, null, 2)}\n`, { mode: 0o600, flush: true })
  await chmod(file, 0o600)
  return file
}

async function readIfExists(file: string): Promise<string | null> {
  return readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
}

async function parseKeys(text: string, source: string): Promise<[SigningKey, ...SigningKey[]]> {
  const invalid = new DataError(`${source} is not a JWK set with private Ed25519 keys. Create one with: npm run keys`)
  let jwks: unknown
  try {
    jwks = (JSON.parse(text) as { keys?: unknown }).keys
  } catch {
    throw invalid
  }
  if (!Array.isArray(jwks)) throw invalid
  const keys = await Promise.all(jwks.map((jwk: JWK) => importKey(jwk).catch(() => null)))
  const [first, ...others] = keys
  if (!first || others.includes(null)) throw invalid
  return [first, ...(others as SigningKey[])]
}

async function importKey(jwk: JWK): Promise<SigningKey> {
  if (jwk.kty !== 'OKP' || jwk.crv !== 'Ed25519' || !jwk.d) throw new RangeError('not a private Ed25519 key')
  const named = { ...jwk, kid: jwk.kid ?? (await calculateJwkThumbprint(jwk)), alg: ALGORITHM, use: 'sig' }
  const privateKey = (await importJWK(named, ALGORITHM)) as CryptoKey
  const publicKey = (await importJWK(publicPart(named), ALGORITHM)) as CryptoKey
  return { jwk: named, privateKey, publicKey }
}
