import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { expect } from 'chai'
import { decodeProtectedHeader, jwtVerify } from 'jose'
import { readFacilitatorAuth } from '../../../gateway/config/facilitator-auth.ts'

const SETTLE = new URL('https://facilitator.example/platform/v2/x402/settle')

/** The 64 bytes that some services hand out: the seed, and the public key. */
function rawKey(key: ReturnType<typeof createPrivateKey>): string {
  const { d = '', x = '' } = key.export({ format: 'jwk' })
  return Buffer.concat([Buffer.from(d, 'base64url'), Buffer.from(x, 'base64url')]).toString('base64')
}

describe('the authorization that a facilitator wants', () => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const pkcs8 = privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64')

  for (const [form, secret] of [
    ['64 bytes', rawKey(privateKey)],
    ['PKCS#8', pkcs8],
    ['PKCS#8 after a prefix', `payai_sk_${pkcs8}`],
  ] as const)
    it(`is a JWT for each request, signed with a key of ${form}`, async () => {
      const headersFor = readFacilitatorAuth(`jwt:cdp:key/1:${secret}`)
      const tokens = await Promise.all([headersFor('POST', SETTLE), headersFor('POST', SETTLE)])
      expect(tokens[0]).to.not.deep.equal(tokens[1])
      for (const { authorization = '' } of tokens) {
        const token = authorization.replace(/^Bearer /, '')
        const { payload, protectedHeader } = await jwtVerify(token, publicKey, { issuer: 'cdp', subject: 'key/1' })
        expect(payload['uris']).to.deep.equal(['POST facilitator.example/platform/v2/x402/settle'])
        expect(protectedHeader).to.include({ alg: 'EdDSA', typ: 'JWT', kid: 'key/1' })
        expect(decodeProtectedHeader(token)['nonce']).to.match(/^[0-9a-f]{32}$/)
        expect((payload.exp as number) - (payload.iat as number)).to.equal(120)
        expect(payload.jti).to.be.a('string')
      }
    })

  it('is a token, or a header of any name', async () => {
    expect(await readFacilitatorAuth('bearer:abc:1')('GET', SETTLE)).to.deep.equal({ authorization: 'Bearer abc:1' })
    expect(await readFacilitatorAuth('header:X-Api-Key=a=b')('GET', SETTLE)).to.deep.equal({ 'x-api-key': 'a=b' })
    expect(await readFacilitatorAuth('-')('GET', SETTLE)).to.deep.equal({})
  })

  it('is refused without showing it, if it has no known form', () => {
    const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const secret = ec.privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64')
    const wrong = ['s3cret', 'bearer:', 'header:s3cret', 'header:a b=s3cret', 'jwt:cdp:s3cret', `jwt:cdp:id:${secret}`]
    for (const text of [...wrong, 'jwt:cdp:id:s3cret', 'jwt::id:s3cret'])
      expect(() => readFacilitatorAuth(text), text)
        .to.throw(/not understood/)
        .with.property('message')
        .that.does.not.match(/s3cret|MIG/)
  })
})
