import { createHash } from 'node:crypto'
import { resolve } from 'node:path'
import { expect } from 'chai'
import { compactVerify, createLocalJWKSet, type JSONWebKeySet } from 'jose'
import { ask, buy, json, type Offer, offer, payment, receipt, send } from '../../support/agent.ts'
import type { PaymentKey } from '../../../gateway/methods/payment-method.ts'
import type { Journal, PaymentRecord } from '../../../gateway/payments/journal/journal.ts'
import { openGateway, type TestGateway } from '../../support/gateway.ts'
import { mkdtempSync, cpSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = resolve(import.meta.dirname, '../../..')

/** The compact JWS in a settlement response. */
function signedOf(response: Response): string {
  const { extensions } = receipt(response) as {
    extensions: Record<string, { info: { receipt: { signature: string } } }>
  }
  return extensions['offer-receipt']?.info.receipt.signature ?? ''
}

/** The signed offers of a 402. */
function offersOf({ v2 }: Offer) {
  const { extensions } = v2 as unknown as {
    extensions: Record<string, { info: { offers: { format: string; acceptIndex: number; signature: string }[] } }>
  }
  return extensions['offer-receipt']?.info.offers ?? []
}

describe('signed receipts', () => {
  let shop: TestGateway
  let catalog: string
  /** Fields that replace those of every payment that the journal finds. */
  let replaced: Partial<PaymentRecord> = {}

  before(async () => {
    catalog = mkdtempSync(join(tmpdir(), 'tollgate-catalog-'))
    cpSync(join(root, 'test/fixtures/shop/catalog'), catalog, { recursive: true })
    cpSync(join(root, 'catalog/documents.json'), join(catalog, 'documents.json'))
    const withReplacedFields = (journal: Journal): Journal =>
      Object.assign(Object.create(journal) as Journal, {
        find: async (key: PaymentKey) => {
          const record = await journal.find(key)
          return record && { ...record, ...replaced }
        },
      })
    shop = await openGateway({ CATALOG_DIR: catalog }, { journal: withReplacedFields })
  })
  after(async () => {
    await shop.close()
    rmSync(catalog, { recursive: true })
  })

  const at = (path: string): string => `${shop.url}${path}`
  const verify = async (jws: string) =>
    json(await ask(at('/v1/receipts/verify'), { method: 'POST', body: { receipt: jws } }))
  const keys = async () =>
    createLocalJWKSet((await json(await ask(at('/.well-known/jwks.json')))) as unknown as JSONWebKeySet)

  it('are refused with the place where a receipt is found if they are not a JWS', async () => {
    const answer = await ask(at('/v1/receipts/verify'), { method: 'POST', body: { receipt: 'a receipt' } })
    expect(answer.status).to.equal(422)
    const { detail } = (await json(answer)) as unknown as { detail: readonly { msg: string; ctx: object }[] }
    expect(detail[0]?.msg).to.match(
      /^Has the wrong form\. A signed receipt .*info\.receipt\.signature of the PAYMENT-RESPONSE header, decoded from base64/,
    )
    expect(detail[0]?.ctx).to.have.property('pattern')
  })

  it('state payer, amount, transaction, request and response, and verify offline with the published keys', async () => {
    const paid = await buy(at('/v1/echo/hello?times=2'), shop.wallet)
    const jws = signedOf(paid)
    const { payload, protectedHeader } = await compactVerify(jws, await keys())
    expect(protectedHeader).to.include({ alg: 'EdDSA', typ: 'x402-receipt' })
    const stated = JSON.parse(Buffer.from(payload).toString()) as Record<string, unknown>
    const body = Buffer.from(await paid.arrayBuffer())
    const row = shop.settler.transfers.at(-1)
    const record = await shop.gateway.journal.find(row?.key ?? '')
    expect(stated).to.deep.equal({
      version: 1,
      network: 'eip155:84532',
      resourceUrl: at('/v1/echo/hello?times=2'),
      payer: shop.wallet.address.toLowerCase(),
      issuedAt: Math.floor((record?.settledAt ?? 0) / 1000),
      transaction: receipt(paid)['transaction'],
      scheme: 'exact',
      asset: record?.asset,
      payTo: record?.payTo,
      amount: '5000',
      nonce: record?.identity,
      requestDigest: `sha256:${record?.fingerprint}`,
      responseDigest: `sha256:${createHash('sha256').update(body).digest('hex')}`,
    })
    expect(await verify(jws)).to.deep.include({ valid: true, reason: null, receipt: stated, ledger: 'settled' })
  })

  it('fail to verify if one byte of any field is changed, offline and at the route', async () => {
    const jws = signedOf(await buy(at('/v1/echo/abc'), shop.wallet))
    const [header = '', payload = '', signature = ''] = jws.split('.')
    const stated = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>
    for (const name of Object.keys(stated)) {
      const changed = { ...stated, [name]: `${JSON.stringify(stated[name])}0` }
      const forged = [header, Buffer.from(JSON.stringify(changed)).toString('base64url'), signature].join('.')
      expect(await verify(forged), name).to.deep.include({ valid: false, receipt: null, ledger: null })
      expect(await compactVerify(forged, await keys()).catch(() => 'refused'), name).to.equal('refused')
    }
  })

  it('are the same, byte for byte, when the answer is sent again, and differ between payments', async () => {
    const header = await payment(at('/v1/echo/again'), shop.wallet)
    const first = await send(at('/v1/echo/again'), header)
    const second = await send(at('/v1/echo/again'), header)
    expect(second.headers.get('idempotent-replay')).to.equal('true')
    expect(second.headers.get('payment-response')).to.equal(first.headers.get('payment-response'))
    expect(signedOf(await buy(at('/v1/echo/again'), shop.wallet))).not.to.equal(signedOf(first))
  })

  it('are part of the answer to an x402 v1 payer too', async () => {
    const paid = await buy(at('/v1/echo/old'), shop.wallet, 1)
    expect((await verify(signedOf(paid)))['valid']).to.equal(true)
    expect(receipt(paid, 'x-payment-response')).to.include({ success: true, network: 'base-sepolia' })
    expect(paid.headers.get('payment-response')?.length).to.be.lessThan(2_048)
  })

  it('leave a long query out, so that no proxy drops the answer for the length of its headers', async () => {
    const [plan, sent] = [at('/v1/passes/late/1h'), { method: 'POST' }]
    const paid = await buy(`${plan}?note=${'x'.repeat(7_000)}`, shop.wallet, 2, sent)
    expect(paid.status).to.equal(200)
    expect(paid.headers.get('payment-response')?.length).to.be.lessThan(3_200)
    expect((await verify(signedOf(paid)))['receipt']).to.include({ resourceUrl: plan })
    const noted = `${plan}?note=${'x'.repeat(600 - plan.length - '?note='.length)}`
    const long = await buy(noted, shop.wallet, 2, sent)
    expect(long.headers.get('payment-response')?.length).to.be.lessThan(3_200)
    expect((await verify(signedOf(long)))['receipt']).to.include({ resourceUrl: noted })
  })

  it('are not accepted as access tokens, nor access tokens as receipts', async () => {
    const { token } = await json(await buy(at('/v1/passes/late/1h'), shop.wallet, 2, { method: 'POST' }))
    expect(await verify(String(token))).to.include({ valid: false })
    const jws = signedOf(await buy(at('/v1/echo/token'), shop.wallet))
    const refused = await ask(at('/v1/late'), { headers: { 'x-service-token': jws } })
    expect(refused.status).to.equal(402)
    expect((await json(refused))['code']).to.equal('token_invalid')
  })

  it('have a counterpart in the 402: a signed offer for the address that was called, without its query', async () => {
    const url = at('/v1/echo/offer')
    const challenge = await offer(`${url}?times=3`)
    const signed = offersOf(challenge)
    expect(signed).to.have.length(1)
    expect(signed[0]).to.include({ format: 'jws', acceptIndex: 0 })
    const { payload, protectedHeader } = await compactVerify(signed[0]?.signature ?? '', await keys())
    expect(protectedHeader).to.include({ alg: 'EdDSA', typ: 'x402-offer' })
    const stated = JSON.parse(Buffer.from(payload).toString()) as Record<string, unknown>
    const [{ scheme, network, amount, asset, payTo } = {}] = challenge.v2.accepts
    expect(stated).to.deep.equal({
      version: 1,
      resourceUrl: url,
      scheme,
      network,
      asset,
      payTo,
      amount,
      validUntil: stated['validUntil'],
    })
    expect(Number(stated['validUntil']) - shop.now().getTime() / 1000).to.be.within(100, 270)
    expect(await verify(signed[0]?.signature ?? '')).to.deep.equal({
      valid: true,
      reason: null,
      receipt: null,
      offer: stated,
      ledger: null,
    })
    expect(offersOf(await offer(url))).to.deep.equal(signed)
    const page = await ask(at(`/receipt?jws=${signed[0]?.signature}`), { headers: { accept: 'text/html' } })
    expect(await page.text()).to.contain('signed this offer')
  })

  it('are shown to people on a page that says whether they are valid', async () => {
    const jws = signedOf(await buy(at('/v1/echo/page'), shop.wallet))
    const page = async (query: string): Promise<string> =>
      (await ask(at(`/receipt${query}`), { headers: { accept: 'text/html' } })).text()
    expect(await page(`?jws=${jws}`))
      .to.contain('Valid.')
      .and.to.contain('$0.005 USDC')
    const [head, stated] = jws.split('.')
    expect(await page(`?jws=${head}.${stated}.${'A'.repeat(86)}`)).to.contain('Not valid.')
    expect(await page('')).to.contain('Paste a signed receipt')
  })

  const sentences: readonly (readonly [change: Partial<PaymentRecord>, sentence: string])[] = [
    [{ state: 'settled' }, 'The payment was settled, according to our records'],
    [{ state: 'owed' }, 'We owe the amount to the payer'],
    [{ state: 'submitted' }, 'The payment was sent and is not final yet'],
    [{ state: 'released' }, 'The payment failed on the chain and was not charged'],
    [{ transaction: `0x${'ab'.repeat(32)}` }, 'not in the records of this deployment'],
  ]
  it('are shown with the state of the payment today, each in its own words', async () => {
    const jws = signedOf(await buy(at('/v1/echo/today'), shop.wallet))
    for (const [change, sentence] of sentences) {
      replaced = change
      const page = await ask(at(`/receipt?jws=${jws}`), { headers: { accept: 'text/html' } })
      const html = await page.text()
      replaced = {}
      const shown = sentences.filter(([, other]) => html.includes(other)).map(([, other]) => other)
      expect(shown).to.deep.equal([sentence])
    }
  })

  it('have a look-up of the payment, which tells its buyer the state from the time it was sent', async () => {
    const url = at('/v1/echo/state')
    const header = await payment(url, shop.wallet)
    const { payload } = JSON.parse(Buffer.from(header, 'base64').toString()) as {
      payload: { signature: string; authorization: { nonce: string } }
    }
    const headers = { 'idempotency-key': 'order-2026-11-23-state' }
    const state = (network: string, sent: Record<string, string> = headers) =>
      ask(at(`/v1/payments/${network}/${shop.wallet.address}/${payload.authorization.nonce}`), { headers: sent })
    expect((await state('base-sepolia')).status, 'before it was sent').to.equal(402)
    shop.settler.next('timeout')
    await send(url, header, 2, { headers })
    expect(await json(await state('base-sepolia'))).to.include({ state: 'submitted', amount: '5000' })
    await send(url, header, 2, { headers })
    const settled = await json(await state('eip155:84532'))
    expect(settled).to.include({ state: 'settled', route: 'GET /v1/echo/{word}', answer_kept: true })
    expect(settled['transaction']).to.match(/^0x[0-9a-f]{64}$/)
    const [foreign, absent] = [await state('base-sepolia', {}), await state('base')]
    expect([foreign.status, absent.status]).to.deep.equal([402, 402])
    expect(await foreign.text()).to.equal(await absent.text())
    const page = await state('base-sepolia', { accept: 'text/html' })
    const html = await page.text()
    expect([page.status, page.headers.get('content-type')]).to.deep.equal([402, 'text/html; charset=utf-8'])
    expect(html).to.contain('Please prove that you paid').and.to.contain('sign in with the wallet that paid')
    expect(page.headers.get('payment-required'), 'the challenge').to.be.a('string')
  })

  it('are not mistaken for offers: an altered offer is refused, and an expired one is reported as expired', async () => {
    const signature = offersOf(await offer(at('/v1/echo/alter')))[0]?.signature ?? ''
    const [header = '', payload = '', seal = ''] = signature.split('.')
    const stated = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>
    for (const name of Object.keys(stated)) {
      const changed = Buffer.from(JSON.stringify({ ...stated, [name]: `${String(stated[name])}0` })).toString(
        'base64url',
      )
      expect(await verify([header, changed, seal].join('.')), name).to.include({ valid: false, offer: null })
    }
    shop.advance(301)
    expect(await verify(signature))
      .to.include({ valid: true })
      .and.have.property('reason')
      .that.contains('has expired')
    expect(offersOf(await offer(at('/v1/echo/alter')))[0]?.signature).to.not.equal(signature)
  })
})
