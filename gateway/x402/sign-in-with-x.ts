/**
 * Sign-in with a wallet: the x402 extension `sign-in-with-x` (CAIP-122), for EVM wallets. A refusal carries a challenge;
 * the client signs it as a message of EIP-4361 and sends it back in the header SIGN-IN-WITH-X. This file knows the wire
 * form, and which messages are meant for this service now. Whether the wallet signed it is checked elsewhere.
 */
import { randomBytes } from 'node:crypto'
import { getAddress } from 'viem/utils'
import type { Hex, Network } from '../config/networks.ts'
import { isObject } from '../validation/json.ts'

type Fields = Readonly<Record<string, unknown>>

/** The name of the extension, and of the request header in lower case. */
export const SIGN_IN_WITH_X = 'sign-in-with-x'

/** A signed message as it was presented: base64 of a JSON object (header), or the object itself (MCP _meta). */
export type PresentedSignIn = string | Fields

/** A signed message. All fields but the signature are part of what was signed. */
export interface SignIn {
  readonly domain: string
  /** The wallet that signed. */
  readonly address: string
  readonly statement?: string
  readonly uri: string
  readonly version: string
  /** CAIP-2. */
  readonly chainId: string
  readonly nonce: string
  readonly issuedAt: string
  readonly expirationTime?: string
  readonly notBefore?: string
  readonly requestId?: string
  readonly resources?: readonly string[]
  readonly signature: string
}

/** Why a sign-in is not accepted: a reason of the extension, and what to do. */
export interface SignInRefusal {
  readonly reason: string
  readonly message: string
}

/** How old a message may be when it arrives. */
export const MAX_AGE_SECONDS = 300
/** How far the clock of a client may be ahead of ours. */
const MAX_AHEAD_SECONDS = 60
/** A message has about 700 characters; the signature of a contract wallet may have a few thousand. */
const MAX_CHARACTERS = 16_384

const STATEMENT = 'Prove that you paid for this answer. This costs nothing.'
/** What a wallet signs that asks for a trial call. */
export const TRIAL_STATEMENT = 'Ask for an answer without payment. This costs nothing.'

const SCHEMA: Fields = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  required: ['domain', 'address', 'uri', 'version', 'chainId', 'type', 'nonce', 'issuedAt', 'signature'],
}

/** The extension of a 402 that asks for a sign-in. Each is new: its nonce is good for one message. */
export type SignInChallenge = (url: string, statement?: string) => Fields

export interface SignInParts {
  /** Public address without a trailing slash. */
  readonly baseUrl: string
  readonly now: () => Date
}

/** Returns the writer of challenges for wallets of these networks. */
export function createSignInChallenge(
  { baseUrl, now }: SignInParts,
  networks: readonly Pick<Network, 'caip2'>[],
): SignInChallenge {
  const domain = new URL(baseUrl).host
  const supportedChains = networks.map(({ caip2 }) => ({ chainId: caip2, type: 'eip191' }))
  return (url, statement = STATEMENT) => {
    const issuedAt = now()
    const expirationTime = new Date(issuedAt.getTime() + MAX_AGE_SECONDS * 1000)
    const info = {
      domain,
      uri: url,
      version: '1',
      nonce: randomBytes(16).toString('hex'),
      issuedAt: issuedAt.toISOString(),
      expirationTime: expirationTime.toISOString(),
      statement,
    }
    return { info, supportedChains, schema: SCHEMA }
  }
}

/**
 * Reads a signed message, and checks that it was written for this service, is complete, and is neither too old nor of
 * the future. The signature is not checked.
 */
export function readSignIn({ baseUrl, now }: SignInParts, presented: PresentedSignIn): SignIn | SignInRefusal {
  const value = typeof presented === 'string' ? decoded(presented) : presented
  const signIn = fieldsOf(value)
  if (!signIn) return refusal('invalid_siwx_payload', 'is not base64 of a JSON object with the fields of the extension')
  const { origin, host } = new URL(baseUrl)
  if (signIn.domain !== host)
    return refusal('invalid_siwx_domain_mismatch', `was signed for another domain than ${host}`)
  if (!URL.canParse(signIn.uri) || new URL(signIn.uri).origin !== origin)
    return refusal('invalid_siwx_uri_mismatch', `was signed for an address that is not below ${origin}`)
  if (signIn.version !== '1') return refusal('invalid_siwx_version', 'must have the version 1')
  return staleness(signIn, now().getTime()) ?? signIn
}

/** The address that a signed message names, whether or not it signed it. Null if the message cannot be read. */
export function addressOfSignIn(presented: PresentedSignIn): Hex | null {
  const signIn = fieldsOf(typeof presented === 'string' ? decoded(presented) : presented)
  return signIn ? (signIn.address as Hex) : null
}

/** True if a message was not accepted. */
export function isRefusal(read: SignIn | SignInRefusal): read is SignInRefusal {
  return 'reason' in read
}

/** The error for a sign-in that is not accepted. `fault` goes on after "The sign-in". */
export function refusal(reason: string, fault: string): SignInRefusal {
  return { reason, message: `The sign-in ${fault}.` }
}

function staleness({ issuedAt, expirationTime, notBefore }: SignIn, nowMs: number): SignInRefusal | null {
  const at = Date.parse(issuedAt)
  if (!(at <= nowMs + MAX_AHEAD_SECONDS * 1000))
    return refusal('invalid_siwx_issued_at_in_future', 'has an issuedAt that is no time or lies in the future')
  if (at < nowMs - MAX_AGE_SECONDS * 1000)
    return refusal('invalid_siwx_issued_at_too_old', `is older than ${MAX_AGE_SECONDS / 60} minutes`)
  if (expirationTime !== undefined && !(Date.parse(expirationTime) > nowMs))
    return refusal('invalid_siwx_expired', 'has expired')
  if (notBefore !== undefined && !(Date.parse(notBefore) <= nowMs))
    return refusal('invalid_siwx_not_yet_valid', 'is not valid yet')
  return null
}

/**
 * The text that the wallet signs (EIP-4361), with the address in its checksummed form, as clients write it. Times stay as
 * they were sent, which libraries do not promise: they parse and rewrite them.
 */
export function signInText(signIn: SignIn): string {
  const { domain, address, statement, uri, version, chainId, nonce, issuedAt } = signIn
  const { expirationTime, notBefore, requestId, resources } = signIn
  const lines = [
    `${domain} wants you to sign in with your Ethereum account:`,
    getAddress(address),
    '',
    ...(statement === undefined ? [] : [statement]),
    '',
    `URI: ${uri}`,
    `Version: ${version}`,
    `Chain ID: ${chainId.slice('eip155:'.length)}`,
    `Nonce: ${nonce}`,
    `Issued At: ${issuedAt}`,
    ...(expirationTime === undefined ? [] : [`Expiration Time: ${expirationTime}`]),
    ...(notBefore === undefined ? [] : [`Not Before: ${notBefore}`]),
    ...(requestId === undefined ? [] : [`Request ID: ${requestId}`]),
    ...(resources === undefined ? [] : ['Resources:', ...resources.map((uri) => `- ${uri}`)]),
  ]
  return lines.join('\n')
}

function decoded(text: string): unknown {
  if (text.length > MAX_CHARACTERS || !/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return null
  try {
    return JSON.parse(Buffer.from(text, 'base64').toString('utf8'))
  } catch {
    return null
  }
}

const REQUIRED = ['domain', 'address', 'uri', 'version', 'chainId', 'nonce', 'issuedAt', 'signature'] as const
const OPTIONAL = ['statement', 'expirationTime', 'notBefore', 'requestId'] as const
const FORMATS: Readonly<Record<string, RegExp>> = {
  address: /^0x[0-9a-fA-F]{40}$/,
  chainId: /^eip155:[1-9]\d{0,15}$/,
  nonce: /^[A-Za-z0-9]{8,128}$/,
  signature: /^0x([0-9a-fA-F]{2}){1,4096}$/,
}

/** Null if a field is missing or malformed. A line break in a field would make two different messages the same text. */
function fieldsOf(value: unknown): SignIn | null {
  if (!isObject(value)) return null
  const fields: Record<string, string | readonly string[]> = {}
  for (const name of [...REQUIRED, ...OPTIONAL]) {
    const field = value[name]
    const isAbsent = field === undefined || field === null
    if (isAbsent && (OPTIONAL as readonly string[]).includes(name)) continue
    if (!isLine(field) || FORMATS[name]?.test(field) === false) return null
    fields[name] = field
  }
  const { resources } = value
  if (resources !== undefined && resources !== null) {
    if (!Array.isArray(resources) || resources.length > 20 || !resources.every(isLine)) return null
    fields['resources'] = resources
  }
  return fields as unknown as SignIn
}

function isLine(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_CHARACTERS && !/\p{Cc}|\u2028|\u2029/u.test(value)
}
