import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { base64url, decodeJwt, exportJWK, generateKeyPair, importJWK, SignJWT } from 'jose'
import { ServiceError } from '../../../gateway/errors.ts'
import { DataError } from '../../../gateway/stores/data-error.ts'
import { createTokens, type TokenOptions, type Tokens } from '../../../gateway/tokens/access-tokens.ts'
import { createKey, rotateKeys } from '../../../gateway/tokens/key-set.ts'

const ISSUER = 'https://gate.test'
const GRANT = { subject: '0xb2', plan: 'live-24h', tier: 'live', durationSeconds: 86_400, id: 'call-1' }

describe('access tokens', () => {
  let dataDir: string
  let time: number
  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'tollgate-tokens-'))
    time = Date.parse('2026-06-01T12:00:00.750Z')
  })
  afterEach(() => rmSync(dataDir, { recursive: true }))

  const open = async (options: Partial<TokenOptions> = {}): Promise<Tokens> =>
    createTokens({ keys: null, dataDir, issuer: ISSUER, now: () => new Date(time), ...options })

  async function refusal(tokens: Tokens, token: string): Promise<string> {
    const error = await tokens.verify(token).catch((thrown: unknown) => thrown)
    expect(error).to.be.instanceOf(ServiceError)
    return (error as ServiceError).code
  }

  it('carry payer, plan, tier, id, issuer, audience and window, signed with Ed25519', async () => {
    const tokens = await open()
    const { token, issuedAt, expiresAt } = await tokens.issue(GRANT)
    const [header, payload] = token.split('.').map((part) => new TextDecoder().decode(base64url.decode(part)))
    const kid = tokens.jwks().keys[0]?.kid
    expect(JSON.parse(header as string)).to.deep.equal({ alg: 'EdDSA', kid, typ: 'JWT' })
    const iat = Date.parse('2026-06-01T12:00:00Z') / 1000
    expect(JSON.parse(payload as string)).to.deep.equal({
      iss: ISSUER,
      aud: ISSUER,
      sub: '0xb2',
      plan: 'live-24h',
      tier: 'live',
      jti: 'call-1',
      iat,
      exp: iat + 86_400,
    })
    expect([issuedAt, expiresAt]).to.deep.equal([new Date('2026-06-01T12:00:00Z'), new Date('2026-06-02T12:00:00Z')])
    expect(await tokens.verify(token)).to.deep.equal({
      plan: 'live-24h',
      tier: 'live',
      subject: '0xb2',
      id: 'call-1',
      expiresAt,
    })
  })

  it('have one text: no other spelling of the signature is accepted', async () => {
    const tokens = await open()
    const { token } = await tokens.issue(GRANT)
    const [start, last] = [token.slice(0, -1), token.slice(-1)]
    const sameBits = String.fromCharCode(last.charCodeAt(0) + 1)
    const spellings = [`${start}${sameBits}`, `${start} ${last}`, `${start}\t${last}`, `${token}==`, `${token} `]
    expect(spellings).to.not.include(token)
    for (const spelling of spellings) expect(await refusal(tokens, spelling), spelling).to.equal('token_invalid')
    await tokens.verify(token)
  })

  it('expire to the second, whether they are cached or not', async () => {
    const tokens = await open()
    const { token, expiresAt } = await tokens.issue(GRANT)
    time = expiresAt.getTime() - 1
    await tokens.verify(token)
    time = expiresAt.getTime()
    expect(await refusal(tokens, token)).to.equal('token_expired')
    expect(await refusal(await open(), token)).to.equal('token_expired')
  })

  it('are refused when revoked, whether they are cached or not', async () => {
    const revoked = new Set<string>()
    const tokens = await open({ revoked })
    const { token } = await tokens.issue(GRANT)
    await tokens.verify(token)
    revoked.add('call-1')
    expect(await refusal(tokens, token)).to.equal('token_invalid')
    expect(await refusal(await open({ revoked }), token)).to.equal('token_invalid')
  })

  it('are remembered once they are verified, until they expire or are revoked', async () => {
    const revoked = new Set<string>()
    const tokens = await open({ revoked })
    const { token, expiresAt } = await tokens.issue(GRANT)
    expect(tokens.recall(token)).to.equal(null)
    const verified = await tokens.verify(token)
    expect(tokens.recall(token)).to.equal(verified)
    revoked.add('call-1')
    expect(() => tokens.recall(token))
      .to.throw(ServiceError)
      .with.property('code', 'token_invalid')
    revoked.clear()
    time = expiresAt.getTime()
    expect(() => tokens.recall(token))
      .to.throw(ServiceError)
      .with.property('code', 'token_expired')
  })

  it('are refused when altered, foreign, unsigned, signed with another algorithm, or not a token at all', async () => {
    const tokens = await open()
    const { token } = await tokens.issue(GRANT)
    const [header = '', payload = '', signature = ''] = token.split('.')
    const claims = JSON.parse(new TextDecoder().decode(base64url.decode(payload))) as Record<string, unknown>
    const encode = (value: object): string => base64url.encode(JSON.stringify(value))
    const forged = encode({ ...claims, plan: 'live-30d' })
    const kid = tokens.jwks().keys[0]?.kid as string
    const hmac = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'HS256', kid })
      .sign(base64url.decode(tokens.jwks().keys[0]?.x as string))
    const strangers = await open({ keys: JSON.stringify({ keys: [await createKey()] }) })
    const elsewhere = await open({ issuer: 'https://other.test' })
    const refused = {
      altered: `${header}.${forged}.${signature}`,
      unsigned: `${encode({ alg: 'none', kid })}.${payload}.`,
      hmac,
      stranger: (await strangers.issue(GRANT)).token,
      elsewhere: (await elsewhere.issue(GRANT)).token,
      nothing: '',
      words: 'let me in',
    }
    for (const [kind, wrong] of Object.entries(refused))
      expect(await refusal(tokens, wrong), kind).to.equal('token_invalid')
  })

  it('are refused if our own key signed them with another audience, issuer or type', async () => {
    const key = await createKey()
    const tokens = await open({ keys: JSON.stringify({ keys: [key] }) })
    const { token } = await tokens.issue(GRANT)
    const claims = decodeJwt(token)
    const signing = await importJWK(key, 'EdDSA')
    const signed = (change: object, typ?: string): Promise<string> =>
      new SignJWT({ ...claims, ...change })
        .setProtectedHeader({ alg: 'EdDSA', kid: key.kid as string, ...(typ === undefined ? {} : { typ }) })
        .sign(signing)
    expect((await tokens.verify(await signed({}, 'JWT'))).id).to.equal('call-1')
    const refused = {
      audience: await signed({ aud: 'https://other.test' }, 'JWT'),
      issuer: await signed({ iss: 'https://other.test' }, 'JWT'),
      untyped: await signed({}),
      statement: await tokens.sign('receipt', claims),
    }
    for (const [kind, wrong] of Object.entries(refused))
      expect(await refusal(tokens, wrong), kind).to.equal('token_invalid')
    expect(await tokens.read('receipt', token)).to.equal(null)
  })

  it('are refused if a claim is missing', async () => {
    const key = await createKey()
    const tokens = await open({ keys: JSON.stringify({ keys: [key] }) })
    const incomplete = await new SignJWT({ plan: 'live-24h', tier: 'live' })
      .setProtectedHeader({ alg: 'EdDSA', kid: key.kid as string, typ: 'JWT' })
      .setIssuer(ISSUER)
      .setAudience(ISSUER)
      .setExpirationTime('2h')
      .sign(await importJWK(key, 'EdDSA'))
    expect(await refusal(tokens, incomplete)).to.equal('token_invalid')
  })

  describe('signing keys', () => {
    const kept = () => JSON.parse(readFileSync(join(dataDir, 'token-keys.json'), 'utf8')) as { keys: { kid: string }[] }

    it('are created once, readable by this user only, and stored', async () => {
      const { token } = await (await open()).issue(GRANT)
      expect(statSync(join(dataDir, 'token-keys.json')).mode & 0o777).to.equal(0o600)
      expect((await (await open()).verify(token)).id).to.equal('call-1')
    })

    it('are the same for two processes that open them at the same time', async () => {
      const [one, two] = await Promise.all([open(), open()])
      expect(one.jwks()).to.deep.equal(two.jwks())
    })

    it('are published without their private part', async () => {
      const tokens = await open()
      const [key] = tokens.jwks().keys
      expect(key).to.have.keys('kty', 'crv', 'x', 'kid', 'alg', 'use')
      expect(key).to.include({ kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', use: 'sig' })
    })

    it('can be rotated: the new key signs and the old key still verifies', async () => {
      const { token: old } = await (await open()).issue(GRANT)
      const before = kept().keys.map(({ kid }) => kid)
      await rotateKeys(dataDir)
      expect(
        kept()
          .keys.slice(1)
          .map(({ kid }) => kid),
      ).to.deep.equal(before)
      expect(statSync(join(dataDir, 'token-keys.json')).mode & 0o777).to.equal(0o600)
      const tokens = await open()
      const { token } = await tokens.issue(GRANT)
      expect(token.split('.')[0]).not.to.equal(old.split('.')[0])
      expect((await tokens.verify(old)).plan).to.equal('live-24h')
      expect((await tokens.verify(token)).plan).to.equal('live-24h')
    })

    it('are refused at the start if they are not valid keys', async () => {
      const { publicKey } = await generateKeyPair('EdDSA', { extractable: true })
      const wrong = [
        'keys',
        '{}',
        '{"keys":[]}',
        '{"keys":[{}]}',
        JSON.stringify({ keys: [await exportJWK(publicKey)] }),
      ]
      for (const keys of wrong) {
        const error = await open({ keys }).catch((thrown: unknown) => thrown)
        expect((error as Error).message, keys).to.equal(
          'TOKEN_KEYS is not a JWK set with private Ed25519 keys. Create one with: npm run keys',
        )
      }
      writeFileSync(join(dataDir, 'token-keys.json'), 'spoiled')
      expect(await open().catch((thrown: unknown) => thrown)).to.be.instanceOf(DataError)
    })
  })
})
