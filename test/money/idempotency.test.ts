import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { ask, buy, json, offer, payment, receipt, send } from '../support/agent.ts'
import { newWallet, openGateway, type TestGateway } from '../support/gateway.ts'
import { base64, createPayment } from '../support/wallet.ts'

const KEY = 'order-2026-11-20-0001'

describe('an idempotency key', () => {
  let shop: TestGateway
  let url: string
  const headers = { 'idempotency-key': KEY }
  const runs = async (): Promise<number> => ((await json(await ask(`${shop.url}/v1/runs`)))['getEcho'] ?? -1) as number
  /** A payment with the id in the x402 extension. */
  const paymentWithIdentifier = async (account = shop.wallet, id = KEY): Promise<string> => {
    const { v2 } = await offer(url)
    const declared = (v2 as unknown as { extensions: Record<string, { info: object; schema: object }> }).extensions
    const extension = declared['payment-identifier'] as { info: object; schema: object }
    const extensions = { ...declared, 'payment-identifier': { ...extension, info: { ...extension.info, id } } }
    const requirement = v2.accepts[0] as never
    return base64(await createPayment({ account, requirement, version: 2, envelope: { extensions } }))
  }
  beforeEach(async () => {
    shop = await openGateway()
    url = `${shop.url}/v1/echo/once`
  })
  afterEach(() => shop.close())

  it('returns the stored status, body and receipt for the same payment and request, and marks the replay', async () => {
    const header = await payment(url, shop.wallet)
    const first = await send(url, header, 2, { headers })
    const bytes = await first.text()
    const before = shop.settler.calls.length
    const repeated = await send(url, header, 2, { headers })
    expect(repeated.status).to.equal(first.status)
    expect(await repeated.text()).to.equal(bytes)
    expect(receipt(repeated)).to.deep.equal(receipt(first))
    expect(repeated.headers.get('idempotent-replay')).to.equal('true')
    expect(first.headers.get('idempotent-replay')).to.equal(null)
    expect(shop.settler.calls.length).to.equal(before)
    expect(await runs()).to.equal(1)
  })

  for (const [form, sendPayment] of [
    ['the header', async () => send(url, await payment(url, shop.wallet), 2, { headers })],
    ['the extension payment-identifier', async () => send(url, await paymentWithIdentifier())],
  ] as const)
    it(`in ${form} protects an agent that signs a new payment from paying twice`, async () => {
      expect((await sendPayment()).status).to.equal(200)
      const second = await sendPayment()
      expect(second.status).to.equal(409)
      const body = await json(second)
      expect(body).to.include({ code: 'idempotency_conflict', retry: 'same_payment' })
      expect(body).to.not.have.property('said')
      expect(second.headers.get('payment-required')).to.equal(null)
      expect(shop.settler.transfers).to.have.length(1)
      expect(await runs()).to.equal(1)
    })

  it('means the same in the header and in the extension', async () => {
    expect((await send(url, await paymentWithIdentifier())).status).to.equal(200)
    expect((await send(url, await payment(url, shop.wallet), 2, { headers })).status).to.equal(409)
    const conflicting = await send(url, await paymentWithIdentifier(), 2, {
      headers: { 'idempotency-key': 'something-else-1' },
    })
    expect(conflicting.status).to.equal(422)
    expect(shop.settler.transfers).to.have.length(1)
  })

  it('is refused with a 409 for the same payment and another request', async () => {
    const header = await payment(url, shop.wallet)
    await send(url, header, 2, { headers })
    const other = await send(`${shop.url}/v1/echo/other`, header, 2, { headers })
    expect(other.status).to.equal(409)
    expect(await json(other)).to.include({ code: 'payment_conflict' })
  })

  it('is separate for each payer', async () => {
    expect((await send(url, await payment(url, shop.wallet), 2, { headers })).status).to.equal(200)
    expect((await send(url, await payment(url, newWallet()), 2, { headers })).status).to.equal(200)
    expect(shop.settler.transfers).to.have.length(2)
  })

  it('returns nothing without the payment', async () => {
    const header = await payment(url, shop.wallet)
    await send(url, header, 2, { headers })
    const unpaid = await ask(url, { headers })
    expect(unpaid.status).to.equal(402)
    expect(await unpaid.text()).to.not.contain('said')
  })

  it('can be used again if nothing was charged', async () => {
    shop.settler.next('revert')
    expect((await buy(url, shop.wallet, 2, { headers })).status).to.equal(402)
    expect((await buy(url, shop.wallet, 2, { headers })).status).to.equal(200)
  })

  it('accepts only one of several new payments that arrive at once', async () => {
    const payments = await Promise.all(Array.from({ length: 8 }, () => payment(url, shop.wallet)))
    const responses = await Promise.all(payments.map((header) => send(url, header, 2, { headers })))
    const statuses = responses.map(({ status }) => status).toSorted((a, b) => a - b)
    expect(statuses).to.deep.equal([200, 409, 409, 409, 409, 409, 409, 409])
    expect(shop.settler.transfers).to.have.length(1)
  })

  it('makes a duplicate request wait for the first, and gives both the same answer', async () => {
    const gated = { method: 'POST', body: { text: 'slow', fault: 'gate' }, headers }
    const echoUrl = `${shop.url}/v1/echo`
    const header = await payment(echoUrl, shop.wallet, 2, gated)
    const first = send(echoUrl, header, 2, gated)
    const second = send(echoUrl, header, 2, gated)
    const isOpen = first.then(() => true)
    while (!(await Promise.race([isOpen, new Promise<boolean>((wake) => setTimeout(() => wake(false), 20))])))
      await ask(`${shop.url}/v1/gate`, { method: 'POST' })
    const [firstBody, secondBody] = [await (await first).text(), await (await second).text()]
    expect(firstBody).to.equal(secondBody)
    const replays = [await first, await second].map((response) => response.headers.get('idempotent-replay'))
    expect(replays.filter((value) => value === 'true')).to.have.length(1)
    expect(shop.settler.transfers).to.have.length(1)
  })

  it('is refused before anything is charged if it is malformed', async () => {
    const refused = await send(url, await payment(url, shop.wallet), 2, { headers: { 'idempotency-key': 'two words' } })
    expect(refused.status).to.equal(422)
    expect(JSON.stringify(await json(refused))).to.contain('Idempotency-Key')
    expect((await send(url, await paymentWithIdentifier(shop.wallet, 'short'))).status).to.equal(402)
    expect(shop.settler.transfers).to.have.length(0)
  })

  it('still works after a restart', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-key-'))
    try {
      const environment = { DATA_DIR: folder }
      await shop.close()
      shop = await openGateway(environment, { inMemory: false })
      url = `${shop.url}/v1/echo/once`
      const header = await payment(url, shop.wallet)
      const bytes = await (await send(url, header, 2, { headers })).text()
      const { wallet } = shop
      await shop.close()
      shop = await openGateway(environment, { inMemory: false })
      url = `${shop.url}/v1/echo/once`
      const repeated = await send(url, header, 2, { headers })
      expect([repeated.status, await repeated.text()]).to.deep.equal([200, bytes])
      expect(repeated.headers.get('idempotent-replay')).to.equal('true')
      expect((await buy(url, wallet, 2, { headers })).status).to.equal(409)
      expect(shop.settler.transfers).to.have.length(0)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})

describe('a route that requires an idempotency key', () => {
  const catalog = resolve(import.meta.dirname, '../fixtures/shop/catalog')
  let folder: string
  let shop: TestGateway
  let url: string

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-required-'))
    cpSync(catalog, folder, { recursive: true })
    const file = join(folder, 'echo.json')
    const document = JSON.parse(readFileSync(file, 'utf8')) as { operations: { getEcho: Record<string, unknown> } }
    document.operations.getEcho['identifier'] = 'required'
    writeFileSync(file, JSON.stringify(document))
    shop = await openGateway({ CATALOG_DIR: folder })
    url = `${shop.url}/v1/echo/once`
  })
  after(async () => {
    await shop?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('says so in its 402, and answers a payment without one with a 400 and no charge', async () => {
    const { v2 } = await offer(url)
    const { extensions } = v2 as unknown as { extensions: Record<string, { info: object }> }
    expect(extensions['payment-identifier']?.info).to.deep.equal({ required: true })
    const { v2: other } = await offer(`${shop.url}/v1/late`)
    const { extensions: others } = other as unknown as { extensions: Record<string, { info: object }> }
    expect(others['payment-identifier']?.info).to.deep.equal({ required: false })
    const header = await payment(url, shop.wallet)
    const refused = await send(url, header)
    expect(refused.status).to.equal(400)
    expect(await json(refused)).to.include({ code: 'identifier_required', retry: 'after_fix' })
    expect(shop.settler.calls).to.deep.equal([])
    const paid = await send(url, header, 2, { headers: { 'idempotency-key': KEY } })
    expect(paid.status, 'the same payment with a key').to.equal(200)
    expect((await send(url, header)).status, 'a repetition from the same address without a key').to.equal(402)
    const repeated = await send(url, header, 2, { headers: { 'idempotency-key': KEY } })
    expect([repeated.status, repeated.headers.get('idempotent-replay')], 'a repetition with the key').to.deep.equal([
      200,
      'true',
    ])
    expect(shop.settler.transfers).to.have.length(1)
  })
})
