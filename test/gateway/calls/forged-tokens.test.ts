/** Forged access tokens over both transports, and what tokens leave in the log. */
import { expect } from 'chai'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { base64url, decodeJwt, importJWK, type JWK, type JWTPayload, SignJWT } from 'jose'
import { reissueMessage } from '../../../gateway/documents/plans/reissue.ts'
import { createLog } from '../../../gateway/observe/log.ts'
import { createKey } from '../../../gateway/tokens/key-set.ts'
import { ask, buy, json, payment, send } from '../../support/agent.ts'
import { openGateway, type TestGateway } from '../../support/gateway.ts'

describe('an access token that our own key signed', () => {
  let shop: TestGateway
  let key: JWK
  let claims: JWTPayload
  let client: Client
  let presented = ''
  let logged = ''
  before(async () => {
    key = await createKey()
    const log = createLog('trace', { write: (line: string) => void (logged += line) })
    shop = await openGateway({ TOKEN_KEYS: JSON.stringify({ keys: [key] }) }, { log })
    const purchase = await json(await buy(`${shop.url}/v1/passes/late/1h`, shop.wallet, 2, { method: 'POST' }))
    claims = decodeJwt(String(purchase['token']))
    client = new Client({ name: 'test', version: '1' })
    const withToken: typeof fetch = (input, init) => {
      const headers = new Headers(init?.headers)
      headers.set('x-service-token', presented)
      return fetch(input, { ...init, headers })
    }
    await client.connect(new StreamableHTTPClientTransport(new URL(`${shop.url}/mcp`), { fetch: withToken }))
  })
  after(async () => {
    await client.close()
    await shop.close()
  })

  async function signed(change: Record<string, unknown>, header: Record<string, unknown> = {}): Promise<string> {
    const signing = await importJWK(key, 'EdDSA')
    const payload = JSON.parse(JSON.stringify({ ...claims, ...change })) as JWTPayload
    return new SignJWT(payload)
      .setProtectedHeader({ alg: 'EdDSA', kid: key.kid as string, typ: 'JWT', ...header })
      .sign(signing)
  }
  /** Presents a token over HTTP and over MCP. Returns 'opens' or the error code, which must be the same on both. */
  async function presentToken(token: string): Promise<string> {
    const response = await ask(`${shop.url}/v1/late`, { headers: { 'x-service-token': token } })
    const code = response.status === 200 ? 'opens' : String((await json(response))['code'])
    if (response.status !== 200)
      expect([response.status, response.headers.get('cache-control')]).to.deep.equal([402, 'no-store'])
    presented = token
    const { isError, structuredContent } = await client.callTool({ name: 'get_late', arguments: {} })
    expect(isError ? (structuredContent as { code?: string }).code : 'opens').to.equal(code)
    return code
  }
  const seconds = (): number => Math.floor(shop.now().getTime() / 1000)

  it('opens the routes of its plan if all its claims are genuine', async () => {
    expect(await presentToken(await signed({}))).to.equal('opens')
  })

  it('is refused if audience, issuer, type or another claim is wrong', async () => {
    const other = 'https://other.example'
    const wrong: Record<string, string> = {
      'a foreign audience': await signed({ aud: other }),
      'no audience': await signed({ aud: undefined }),
      'a foreign issuer': await signed({ iss: other }),
      'another type': await signed({}, { typ: 'receipt' }),
      'a key we do not have': await signed({}, { kid: '../../token-keys' }),
      'not before tomorrow': await signed({ nbf: seconds() + 86_400 }),
      'no expiry': await signed({ exp: undefined }),
      'no id': await signed({ jti: undefined }),
      'a plan that is not sold': await signed({ plan: 'live-forever' }),
      'a plan that is not a string': await signed({ plan: { toString: 'late-1h' } }),
    }
    for (const [claim, token] of Object.entries(wrong))
      expect(await presentToken(token), claim).to.equal('token_invalid')
  })

  it('is refused once it has expired, even by one second', async () => {
    expect(await presentToken(await signed({ exp: seconds() + 3600 }))).to.equal('opens')
    expect(await presentToken(await signed({ exp: seconds() - 1 }))).to.equal('token_expired')
    expect(await presentToken(await signed({ exp: seconds() }))).to.equal('token_expired')
    expect(await presentToken(await signed({ exp: 0 }))).to.equal('token_expired')
  })

  it('is refused without a signature, and with an HMAC that uses the public key as its secret', async () => {
    const [header, payload] = (await signed({})).split('.') as [string, string]
    const none = base64url.encode(JSON.stringify({ alg: 'none', kid: key.kid, typ: 'JWT' }))
    const { d: _, ...publicKey } = key
    const secrets = [
      Buffer.from(JSON.stringify(publicKey)),
      Buffer.from(publicKey.x as string, 'base64url'),
      Buffer.from(publicKey.x as string),
    ]
    const signedWithPublicKey = secrets.map((secret) =>
      new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid: key.kid as string, typ: 'JWT' }).sign(secret),
    )
    for (const token of [
      `${none}.${payload}.`,
      `${none}.${payload}`,
      `${header}.${payload}.`,
      ...(await Promise.all(signedWithPublicKey)),
    ])
      expect(await presentToken(token)).to.equal('token_invalid')
  })

  it('does not prevent a payment in the same call', async () => {
    const url = `${shop.url}/v1/late`
    const before = shop.settler.transfers.length
    const header = await payment(url, shop.wallet)
    const response = await send(url, header, 2, { headers: { 'x-service-token': await signed({ exp: 0 }) } })
    expect(await json(response)).to.include({ access: 'payment' })
    expect(shop.settler.transfers.length).to.equal(before + 1)
  })

  it('gets answers that no cache stores, no answer to HEAD, and CORS headers for any page', async () => {
    const headers = { 'x-service-token': await signed({}), origin: 'https://page.example' }
    const answer = await ask(`${shop.url}/v1/late`, { headers })
    expect(answer.headers.get('cache-control')).to.equal('private, no-store')
    expect(answer.headers.get('etag')).to.equal(null)
    const head = await ask(`${shop.url}/v1/late`, { method: 'HEAD', headers })
    expect([head.status, head.headers.get('cache-control')]).to.deep.equal([402, 'no-store'])
    const options = await ask(`${shop.url}/v1/late`, { method: 'OPTIONS', headers: { origin: headers.origin } })
    const allowed = options.headers.get('access-control-allow-headers')?.toLowerCase().split(', ')
    expect(allowed).to.include.members(['x-service-token', 'last-event-id', 'accept'])
    expect(options.headers.get('access-control-allow-credentials')).to.equal(null)
  })

  it('never appears in the log, not even at trace level', async () => {
    const issued_at = shop.now().toISOString()
    const message = reissueMessage(shop.url, shop.wallet.address, issued_at)
    const signature = await shop.wallet.signMessage({ message })
    const body = { address: shop.wallet.address, issued_at, signature }
    await ask(`${shop.url}/v1/passes/reissue`, { method: 'POST', body })
    const token = await signed({})
    await presentToken(token)
    await presentToken(`${token}x`)
    await ask(`${shop.url}/v1/late?token=${token}`, { headers: { 'x-service-token': token } })
    await ask(`${shop.url}/v1/${token}`)
    expect(logged.split('\n').length).to.be.greaterThan(20)
    expect(logged).not.to.include('eyJ')
    expect(logged).not.to.include(token.split('.')[2])
    expect(logged).not.to.include(signature.slice(2, 40))
  })
})
