import { expect } from 'chai'
import { type Hex, verifyTypedData } from 'viem'
import { json } from '../../support/agent.ts'
import { openGateway } from '../../support/gateway.ts'
import { openSandboxGateway, SHOP, type SandboxGateway } from '../../support/sandbox.ts'
import { TYPES } from '../../support/wallet.ts'
import { skipWithoutAnvil } from './usdc-client.ts'

const page = async (url: string): Promise<string> => (await fetch(url, { headers: { accept: 'text/html' } })).text()

const ask = (url: string, method: string, params?: readonly unknown[], headers = {}): Promise<Response> =>
  fetch(`${url}/sandbox/wallet`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ method, params }),
  })

describe('the test wallet', function () {
  this.timeout(60_000)

  describe('of a sandbox', () => {
    let shop: SandboxGateway
    before(async function () {
      skipWithoutAnvil(this)
      shop = await openSandboxGateway(SHOP)
    })
    after(() => shop?.close())

    const transfer = (changes = {}) => ({
      from: shop.buyer.address,
      to: shop.sandbox.payTo,
      value: '5000',
      validAfter: '0',
      validBefore: '2000000000',
      nonce: `0x${'7'.repeat(64)}`,
      ...changes,
    })
    const sign = (message: object, domain = {}): Promise<Response> =>
      ask(shop.url, 'eth_signTypedData_v4', [shop.buyer.address, JSON.stringify({ domain, message })])

    it('is the buyer with test money, on the chain of the sandbox', async () => {
      expect(await json(await ask(shop.url, 'eth_requestAccounts'))).to.deep.equal({ result: [shop.buyer.address] })
      expect(await json(await ask(shop.url, 'eth_chainId'))).to.deep.equal({ result: '0x14a34' })
    })

    it('signs a payment to the sandbox, always for its own token', async () => {
      const answer = await sign(transfer(), { name: 'USD Coin', version: '2', chainId: 8453 })
      const { domain, chainId, asset } = shop.sandbox.network
      const signed = transfer()
      const valid = await verifyTypedData({
        address: shop.buyer.address,
        domain: { ...domain, chainId, verifyingContract: asset },
        types: TYPES,
        primaryType: 'TransferWithAuthorization',
        message: { ...signed, value: 5000n, validAfter: 0n, validBefore: 2_000_000_000n, nonce: signed.nonce as Hex },
        signature: (await json(answer))['result'] as Hex,
      })
      expect(valid).to.equal(true)
    })

    for (const [what, method, params] of [
      [
        'a payment to others',
        'eth_signTypedData_v4',
        () => ['', JSON.stringify({ message: transfer({ to: shop.buyer.address }) })],
      ],
      ['other data', 'eth_signTypedData_v4', () => ['', JSON.stringify({ message: { hello: 1 } })]],
      ['what is no data', 'eth_signTypedData_v4', () => ['', '{']],
      ['a text, by which a wallet signs in', 'personal_sign', () => ['0x00', '']],
      ['a transaction', 'eth_sendTransaction', () => [{}]],
    ] as const)
      it(`does not sign ${what}`, async () => {
        const answer = await ask(shop.url, method, params())
        expect(answer.status).to.equal(422)
        expect(await json(answer))
          .to.include({ code: 'validation_failed' })
          .and.not.to.have.property('result')
      })

    it('is not for pages of other sites', async () => {
      for (const site of ['cross-site', 'same-site', 'none']) {
        const answer = await ask(shop.url, 'eth_requestAccounts', [], { 'sec-fetch-site': site })
        expect(answer.status, site).to.equal(403)
      }
      const answer = await ask(shop.url, 'eth_chainId')
      expect(answer.headers.get('access-control-allow-origin')).to.equal(null)
      await answer.text()
    })

    it('is lent by the pages, and no page or document has its key', async () => {
      for (const path of ['/docs/getEcho', '/pricing'])
        expect(await page(shop.url + path), path).to.contain('Use a test wallet')
      for (const path of ['/docs/getEcho', '/pricing', '/openapi.json', '/health', '/.well-known/x402']) {
        const text = await page(shop.url + path)
        expect(text, path).not.to.contain(shop.sandbox.buyer.privateKey.slice(2))
        expect(text, path).not.to.contain(shop.sandbox.settleKey.slice(2))
      }
      expect(await page(`${shop.url}/openapi.json`)).not.to.contain('sandbox/wallet')
    })
  })

  it('does not exist on a real network: no route and no button', async () => {
    const gateway = await openGateway()
    for (const method of ['POST', 'GET', 'OPTIONS']) {
      const answer = await fetch(`${gateway.url}/sandbox/wallet`, { method })
      expect(answer.status, method).to.equal(method === 'OPTIONS' ? 204 : 404)
      await answer.text()
    }
    for (const path of ['/docs/getEcho', '/pricing']) {
      const text = await page(gateway.url + path)
      expect(text, path)
        .to.contain('id="wallet-none"')
        .and.not.to.match(/test.wallet/i)
    }
    await gateway.close()
  })
})
