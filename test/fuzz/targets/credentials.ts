/** What callers prove who they are with: access tokens, sign-ins, names of purchases, and the operator's session. */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { hashMessage } from 'viem/utils'
import { parseSiweMessage } from 'viem/siwe'
import type { CallerAddress } from '../../../gateway/http/caller-address.ts'
import { OperatorSessions } from '../../../gateway/http/operator-session.ts'
import { headerToken } from '../../../gateway/http/request.ts'
import { createTokens } from '../../../gateway/tokens/access-tokens.ts'
import { parseJson } from '../../../gateway/validation/json-body.ts'
import { isObject } from '../../../gateway/validation/json.ts'
import { identifierInHeader, identifierOf } from '../../../gateway/x402/payment-identifier.ts'
import { isRefusal, readSignIn, signInText } from '../../../gateway/x402/sign-in-with-x.ts'
import { acceptedBy, acceptedLater, type FuzzTarget } from '../target.ts'

const NOW = new Date('2026-06-01T12:00:00Z')
const BASE_URL = 'https://gate.test'
/** A key of this test alone. */
const KEYS = JSON.stringify({
  keys: [
    {
      kty: 'OKP',
      crv: 'Ed25519',
      d: 'nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A',
      x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
    },
  ],
})
const tokens = await createTokens({ keys: KEYS, dataDir: null, issuer: BASE_URL, now: () => NOW })
const grant = { subject: '0xbuyer', plan: 'live-24h', tier: 'live', durationSeconds: 86_400, id: 'token-1' }
const { token: TOKEN } = await tokens.issue(grant)
const { token: EXPIRED } = await tokens.issue({ ...grant, issuedAt: new Date(0) })
const RECEIPT = await tokens.sign('x402-receipt', { paid: 1 })
const OFFER = tokens.signOffer({ price: '1' })
const bytesOf = (token: string): string[] =>
  token.split('.').map((part) => Buffer.from(part, 'base64url').toString('hex'))

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const [, PAYLOAD = '', SIGNATURE = ''] = TOKEN.split('.')

const SIGN_IN = {
  domain: 'gate.test',
  address: '0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A',
  statement: 'Prove that you paid for this answer.',
  uri: `${BASE_URL}/v1/gold`,
  version: '1',
  chainId: 'eip155:84532',
  type: 'eip191',
  nonce: 'a1b2c3d4e5f6a7b8',
  issuedAt: NOW.toISOString(),
  expirationTime: '2026-06-01T12:05:00.000Z',
  notBefore: '2026-06-01T11:59:00.000Z',
  requestId: 'one',
  resources: [`${BASE_URL}/v1/gold`],
  signature: `0x${'ab'.repeat(65)}`,
}
const signInParts = { baseUrl: BASE_URL, now: () => NOW }

/** Checks that an accepted sign-in has one meaning: the text that was signed says what its fields say. */
function readOneSignIn(presented: string | Readonly<Record<string, unknown>>): void {
  const read = readSignIn(signInParts, presented)
  if (isRefusal(read)) return ok(read.reason.startsWith('invalid_siwx') && read.message !== '')
  const text = signInText(read)
  hashMessage(text)
  const parsed = parseSiweMessage(text)
  // Another reader finds the same wallet, nonce and time. Some domains and statements are beyond its grammar.
  const { address, nonce } = { address: read.address.toLowerCase(), nonce: read.nonce }
  if (parsed.address !== undefined) equal(parsed.address.toLowerCase(), address)
  if (parsed.nonce !== undefined) equal(parsed.nonce, nonce)
  equal(text.split('\n').filter((line) => line.startsWith('Nonce: ')).length >= 1, true)
  const optional = [read.expirationTime, read.notBefore, read.requestId].filter((each) => each !== undefined).length
  const resources = read.resources === undefined ? 0 : 1 + read.resources.length
  equal(text.split('\n').length, 9 + (read.statement === undefined ? 0 : 1) + optional + resources)
}

/** New sessions, for a caller who has sent no wrong token yet. */
const openSessions = (): OperatorSessions =>
  new OperatorSessions('operator-token', BASE_URL, {
    now: () => NOW,
    revocations: { ids: new Set(), revoke: async () => {} },
    // Inputs of earlier runs hold the cookie.
    newId: () => 'c0ffee',
  })
const FROM: CallerAddress = { address: '203.0.113.7', isKnown: true, isShared: false }
const COOKIE = openSessions().open().split(';', 1)[0] ?? ''

export const CREDENTIALS: readonly FuzzTarget[] = [
  {
    name: 'access-token',
    maxBytes: 16_000,
    seeds: [
      TOKEN,
      EXPIRED,
      RECEIPT,
      OFFER,
      `Bearer ${TOKEN}`,
      `${part({ alg: 'none', typ: 'JWT' })}.${PAYLOAD}.`,
      `${part({ alg: 'HS256', typ: 'JWT' })}.${PAYLOAD}.${SIGNATURE}`,
      `${part({ alg: 'EdDSA', typ: 'JWT', crit: ['b64'], b64: false })}.${PAYLOAD}.${SIGNATURE}`,
      '..',
    ],
    words: ['Bearer ', '.', 'eyJ', 'alg', 'kid', 'typ', 'crit', ...TOKEN.split('.')],
    async read(input) {
      const token = headerToken({ 'x-service-token': input.toString('latin1') })
      if (token === null) return
      const verified = await acceptedLater(() => tokens.verify(token))
      // Several texts spell the same bytes in base64url.
      if (verified) deepEqual(bytesOf(token), bytesOf(TOKEN), 'a foreign token opens a plan')
      for (const type of ['x402-receipt', 'x402-offer']) {
        const statement = await tokens.read(type, token)
        ok(statement === null || isObject(statement))
      }
    },
  },
  {
    name: 'sign-in',
    maxBytes: 20_000,
    seeds: [JSON.stringify(SIGN_IN), JSON.stringify({ ...SIGN_IN, statement: null, resources: [] })],
    words: [...Object.keys(SIGN_IN), 'gate.test', '2026-06-01T12:00:00Z', 'eip155:1', '\u2028', '\n\nURI: '],
    read(input) {
      readOneSignIn(input.toString('base64'))
      readOneSignIn(input.toString('latin1'))
      const object = acceptedBy(() => parseJson(input))
      if (isObject(object)) readOneSignIn(object)
    },
  },
  {
    name: 'idempotency-key',
    maxBytes: 16_000,
    seeds: ['"order-1"', 'order-1', '""', '{"info":{"required":true,"id":"aaaaaaaaaaaaaaaa"}}', '{"info":null}'],
    words: ['"', 'info', 'required', 'id'],
    read(input) {
      const header = input.toString('latin1')
      const id = acceptedBy(() => identifierInHeader(header))
      if (id !== null) {
        ok(/^[\x21-\x7e]{1,255}$/.test(id))
        equal(
          acceptedBy(() => identifierInHeader(`"${id}"`)),
          id,
        )
      }
      const extension = acceptedBy(() => parseJson(input))
      const envelope = { extensions: { 'payment-identifier': extension } } as never
      const own = acceptedBy(() => identifierOf(envelope, undefined))
      ok(own === null || /^[A-Za-z0-9_-]{16,128}$/.test(own))
      acceptedBy(() => identifierOf(envelope, header))
    },
  },
  {
    name: 'operator-session',
    maxBytes: 16_000,
    seeds: [COOKIE, `a=b; ${COOKIE}`, 'Bearer operator-token', 'operator=9999999999999.x', 'null'],
    words: ['operator=', '; ', 'Bearer ', ...COOKIE.split(/[=.]/)],
    read(input) {
      const text = input.toString('latin1')
      const sessions = openSessions()
      const byCookie = sessions.authenticate({ cookie: text }, FROM)
      if (byCookie) ok(text.includes(COOKIE), 'a forged cookie opens the console')
      const byBearer = sessions.authenticate({ authorization: text }, FROM)
      if (byBearer) ok(/^bearer +operator-token$/i.test(text), 'a wrong token opens the console')
      equal(sessions.isOwnForm({ cookie: COOKIE, origin: text, host: text }, 'wrong'), false)
      deepEqual(typeof sessions.csrfToken({ cookie: text }), 'string')
    },
  },
]
