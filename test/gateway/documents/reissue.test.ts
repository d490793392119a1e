/** Lost access tokens reissued to the wallet that paid. */
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { decodeJwt } from 'jose'
import { createReissue, reissueMessage } from '../../../gateway/documents/plans/reissue.ts'
import type { ServiceError } from '../../../gateway/errors.ts'
import { NodeCallBudget } from '../../../gateway/payments/node-call-budget.ts'
import { createSignInLimit } from '../../../gateway/payments/wallet-sign-in.ts'
import { ask, buy, json, payment, send } from '../../support/agent.ts'
import { newWallet, nextRequest, openGateway, PAY_TO, type TestGateway, until } from '../../support/gateway.ts'

const REISSUE = '/v1/passes/reissue'
const SHOP = resolve(import.meta.dirname, '../../fixtures/shop')

describe('a lost access token', () => {
  let catalog: string
  let shop: TestGateway
  before(async () => {
    catalog = mkdtempSync(join(tmpdir(), 'tollgate-reissue-'))
    cpSync(join(SHOP, 'catalog'), catalog, { recursive: true })
    const plans = JSON.parse(readFileSync(join(catalog, 'plans.json'), 'utf8')) as object
    writeFileSync(join(catalog, 'plans.json'), JSON.stringify({ ...plans, reissue: REISSUE }))
    shop = await openGateway({ CATALOG_DIR: catalog })
  })
  after(async () => {
    await shop.close()
    rmSync(catalog, { recursive: true, force: true })
  })

  async function reissueTo(
    wallet: ReturnType<typeof newWallet>,
    change: Record<string, string> = {},
  ): Promise<Response> {
    const issuedAt = change['issued_at'] ?? shop.now().toISOString()
    const message = reissueMessage(change['base'] ?? shop.url, wallet.address, issuedAt)
    const { base: _, ...rest } = change
    const body = {
      address: wallet.address,
      issued_at: issuedAt,
      signature: await wallet.signMessage({ message }),
      ...rest,
    }
    return ask(`${shop.url}${REISSUE}`, { method: 'POST', body })
  }
  const bought = async (wallet = shop.wallet) =>
    json(await buy(`${shop.url}/v1/passes/late/1h`, wallet, 2, { method: 'POST' }))

  it('is reissued to the wallet that paid, with the same id and the same expiry', async () => {
    const purchase = await bought()
    const { count, tokens } = (await json(await reissueTo(shop.wallet))) as {
      count: number
      tokens: Record<string, unknown>[]
    }
    expect(count).to.equal(1)
    expect({ ...tokens[0], token: null }).to.deep.equal({ ...purchase, token: null })
    const [old, fresh] = [decodeJwt(String(purchase['token'])), decodeJwt(String(tokens[0]?.['token']))]
    expect(fresh).to.deep.equal(old)
    const response = await ask(`${shop.url}/v1/late`, { headers: { 'x-service-token': String(tokens[0]?.['token']) } })
    expect(response.status).to.equal(200)
  })

  it('keeps its expiry even after its stored answer was deleted', async () => {
    const wallet = newWallet()
    const purchase = await bought(wallet)
    await shop.gateway.journal.forgetAnswers(Date.now() + 1e9)
    const { tokens } = (await json(await reissueTo(wallet))) as { tokens: Record<string, unknown>[] }
    expect(tokens[0]).to.include({ expires_at: purchase['expires_at'], issued_at: purchase['issued_at'] })
  })

  it('keeps its expiry if its buyer left before it was paid for, and came back', async () => {
    const wallet = newWallet()
    const url = `${shop.url}/v1/passes/late/1h`
    const header = await payment(url, wallet, 2, { method: 'POST' })
    const headers = { 'idempotency-key': 'reissue-2026-11-26-0001' }
    const settle = shop.settler.settle.bind(shop.settler)
    // The answer exists, and its caller leaves before its payment is sent.
    const leaving = new AbortController()
    Object.assign(shop.settler, {
      async settle(...parameters: Parameters<typeof settle>) {
        const left = once(await received, 'close')
        leaving.abort()
        await left
        return settle(...parameters)
      },
    })
    const received = nextRequest(shop).then(({ response }) => response)
    const first = send(url, header, 2, { method: 'POST', headers, signal: leaving.signal })
    expect(await first.catch(() => 'left')).to.equal('left')
    const kept = async (): Promise<boolean> => (await shop.gateway.journal.counts()).answered === 1
    await until(kept)
    Object.assign(shop.settler, { settle })
    shop.advance(120)
    const purchase = await json(await send(url, header, 2, { method: 'POST', headers }))
    const { tokens } = (await json(await reissueTo(wallet))) as { tokens: { token: string; expires_at: string }[] }
    expect(tokens.map(({ expires_at: end }) => end)).to.deep.equal([purchase['expires_at']])
    expect(decodeJwt(String(tokens[0]?.token))).to.deep.equal(decodeJwt(String(purchase['token'])))
  })

  it('is refused to other wallets, and for an old, future or foreign signature', async () => {
    const stranger = newWallet()
    expect(await json(await reissueTo(stranger))).to.deep.equal({ count: 0, tokens: [] })
    const wrong: Record<string, string>[] = [
      { address: shop.wallet.address },
      { issued_at: new Date(shop.now().getTime() - 601_000).toISOString() },
      { issued_at: new Date(shop.now().getTime() + 601_000).toISOString() },
      { base: 'https://elsewhere.example' },
      { signature: `0x${'11'.repeat(65)}` },
      { signature: '0x' },
      { issued_at: 'yesterday' },
    ]
    for (const change of wrong) {
      const response = await reissueTo(stranger, change)
      expect(response.status, JSON.stringify(change)).to.equal(422)
      expect(JSON.stringify(await json(response)), JSON.stringify(change)).not.to.include('eyJ')
    }
  })

  it('is reissued once per signature, so that an intercepted request is worthless', async () => {
    const wallet = newWallet()
    await bought(wallet)
    const issued_at = shop.now().toISOString()
    expect((await json(await reissueTo(wallet, { issued_at })))['count']).to.equal(1)
    const replay = await reissueTo(wallet, { issued_at })
    expect(replay.status).to.equal(422)
    const text = JSON.stringify(await json(replay))
    expect(text).to.include('used before').and.not.to.include('eyJ')
    // Of several requests at once, only the first succeeds.
    const next = new Date(shop.now().getTime() + 1000).toISOString()
    const answers = await Promise.all(Array.from({ length: 8 }, () => reissueTo(wallet, { issued_at: next })))
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).to.deep.equal([200, ...Array(7).fill(422)])
  })

  it('is not reissued if it was revoked or has expired', async () => {
    const wallet = newWallet()
    const [first, second] = [await bought(wallet), await bought(wallet)]
    await shop.gateway.revocations.revoke(String(decodeJwt(String(first['token'])).jti), 'a test')
    const { tokens } = (await json(await reissueTo(wallet))) as { tokens: { token: string }[] }
    expect(tokens.map(({ token }) => decodeJwt(token).jti)).to.deep.equal([decodeJwt(String(second['token'])).jti])
    shop.advance(3601)
    expect(await json(await reissueTo(wallet))).to.deep.equal({ count: 0, tokens: [] })
  })

  it('is reissued to a contract wallet only for purchases on chains where its contract accepts the signature', async () => {
    const [here, there] = ['eip155:8453', 'eip155:84532']
    const record = (network: string): object => ({
      operation: 'purchasePlanLate1h',
      callId: `of ${network}`,
      createdAt: Date.now(),
      attempt: 1,
      payer: PAY_TO,
      network,
      answer: null,
    })
    const journal = { list: async () => [record(here), record(there)] as never, events: async () => [] }
    const reissue = createReissue({
      journal,
      tokens: { issue: async ({ id }) => ({ token: id, issuedAt: new Date(), expiresAt: new Date() }) },
      baseUrl: shop.url,
      revoked: new Set(),
      nonces: { use: async () => true },
      accepts: async ({ caip2 }) => caip2 === there,
      nodeCalls: new NodeCallBudget({ journal }),
      failures: createSignInLimit(null),
      now: () => new Date(),
    })
    const body = { address: PAY_TO, issued_at: new Date().toISOString(), signature: '0x01' }
    const tokens = await reissue(shop.gateway.current.catalog, body, null)
    expect(tokens.map(({ token }) => token)).to.deep.equal([`of ${there}`])
  })

  it('is no longer looked up for an address from which sixty wrong signatures came within a minute', async () => {
    const journal = { list: async () => [], events: async () => [] }
    const reissue = createReissue({
      journal,
      tokens: { issue: () => Promise.reject(new Error('nothing was bought')) },
      baseUrl: shop.url,
      revoked: new Set(),
      nonces: { use: async () => true },
      accepts: async () => false,
      nodeCalls: new NodeCallBudget({ journal }),
      failures: createSignInLimit(null),
      now: () => new Date(),
    })
    const body = { address: PAY_TO, issued_at: new Date().toISOString(), signature: '0x01' }
    const codes: unknown[] = []
    for (const place of [...Array<string>(61).fill('192.0.2.7'), '192.0.2.8'])
      await reissue(shop.gateway.current.catalog, body, place).catch((error: ServiceError) => codes.push(error.code))
    expect(codes).to.deep.equal([...Array<string>(60).fill('validation_failed'), 'rate_limited', 'validation_failed'])
  })

  it('is documented: the description of the route contains the message to sign', () => {
    const operation = shop.gateway.current.catalog.operations.get('reissueTokens')
    expect(operation).to.include({ price: null, path: REISSUE, listed: true })
    expect(operation?.description).to.include('Give me my access tokens for {base_url} again.')
  })
})
