import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { ask, json, offer, payment, send } from '../../support/agent.ts'
import { newWallet, openGateway, type TestGateway } from '../../support/gateway.ts'
import { base64, signPayment } from '../../support/wallet.ts'

type Fields = Record<string, unknown>

const CATALOG = resolve(import.meta.dirname, '../../fixtures/shop/catalog')
const LARGE = 100_000

describe('the body of a request', () => {
  let shop: TestGateway
  let url: string
  const folder = mkdtempSync(join(tmpdir(), 'catalog-'))
  const ofShop = { method: 'POST' } as const

  /** Changes the operation that takes a body, for the next edition. */
  function change(fields: Fields): void {
    const document = JSON.parse(readFileSync(join(folder, 'echo.json'), 'utf8')) as { operations: { postEcho: Fields } }
    Object.assign(document.operations.postEcho, fields)
    writeFileSync(join(folder, 'echo.json'), JSON.stringify(document))
  }

  before(async () => {
    cpSync(CATALOG, folder, { recursive: true })
    change({ max_bytes: 5_000_000 })
    shop = await openGateway({ CATALOG_DIR: folder, QUOTE_GRACE_SECONDS: '0' })
    url = `${shop.url}/v1/echo`
  })
  after(async () => {
    await shop.close()
    rmSync(folder, { recursive: true, force: true })
  })

  /** Announces a body and sends none of it. Returns the answer, which therefore came without the body. */
  async function announce(headers: Fields, size = 5_000_000): Promise<{ status: number; body: Fields }> {
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    await once(socket, 'connect')
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}`)
    const length = Number.isFinite(size) ? `Content-Length: ${size}` : 'Transfer-Encoding: chunked'
    const type = 'Content-Type: application/json'
    socket.write(['POST /v1/echo HTTP/1.1', 'Host: a', type, length, ...lines, '', ''].join('\r\n'))
    let text = ''
    for await (const chunk of socket) {
      text += String(chunk)
      const [head = '', body = ''] = text.split('\r\n\r\n')
      if (text.includes('\r\n\r\n') && body.length >= Number(/content-length: (\d+)/i.exec(head)?.[1])) break
    }
    socket.destroy()
    const [head = '', body = '{}'] = text.split('\r\n\r\n')
    return { status: Number(head.slice(9, 12)), body: JSON.parse(body) as Fields }
  }

  /** The header of a payment for the route, with changes to what it is signed for. */
  async function paymentWith(
    requirement: Fields,
    options: Partial<Parameters<typeof signPayment>[0]> = {},
  ): Promise<string> {
    const { v1 } = await offer(url, ofShop)
    const asked = { ...(v1.accepts[0] as unknown as Fields), ...requirement }
    return signPayment({ account: shop.wallet, requirement: asked as never, version: 1, ...options })
  }

  it('is not read for a payment that cannot be accepted, and the 402 says why', async () => {
    const nowSeconds = Math.floor(shop.now().getTime() / 1000)
    const refused: readonly (readonly [string, string])[] = [
      ['e30=', 'invalid_x402_version'],
      ['junk', 'invalid_payload'],
      [base64(null), 'invalid_payload'],
      [base64({ x402Version: 1, scheme: 'exact', network: 'base', payload: {} }), 'invalid_network'],
      [
        await paymentWith({}, { nowSeconds: nowSeconds - 1_000 }),
        'invalid_exact_evm_payload_authorization_valid_before',
      ],
      [await paymentWith({ maxAmountRequired: '9999' }), 'invalid_exact_evm_payload_authorization_value_mismatch'],
      [await paymentWith({ payTo: newWallet().address }), 'invalid_exact_evm_payload_recipient_mismatch'],
      [await paymentWith({}, { claimed: { from: newWallet().address } }), 'invalid_exact_evm_payload_signature'],
    ]
    for (const [header, reason] of refused)
      for (const size of [100, 5_000_000, Number.POSITIVE_INFINITY]) {
        const { status, body } = await announce({ 'X-PAYMENT': header }, size)
        expect([status, body['code'], body['error']], header).to.deep.equal([402, 'payment_invalid', reason])
        expect(body['accepts']).to.have.length(1)
      }
  })

  it('is not read for a token that is not valid, or not for the route', async () => {
    const plan = `${shop.url}/v1/passes/late/1h`
    const { token } = await json(await send(plan, await payment(plan, shop.wallet, 2, ofShop), 2, ofShop))
    for (const [sent, code] of [
      ['a.b.c', 'token_invalid'],
      [String(token), 'token_route'],
    ]) {
      const { status, body } = await announce({ 'X-SERVICE-TOKEN': sent })
      expect([status, body['code']]).to.deep.equal([402, code])
    }
  })

  it('is not checked before the payment, so that invalid input costs nothing without one', async () => {
    const invalid = { method: 'POST', body: { text: 1 }, headers: { 'x-payment': 'e30=' } }
    expect((await ask(url, invalid)).status).to.equal(402)
    const valid = await send(url, await payment(url, shop.wallet, 2, ofShop), 2, { ...ofShop, body: { text: 1 } })
    expect(valid.status).to.equal(422)
  })

  it('of more than 64 kB is not read for a payer without the money', async () => {
    const account = newWallet()
    shop.settler.impoverish(account.address)
    const header = await payment(url, account, 1, ofShop)
    const { status, body } = await announce({ 'X-PAYMENT': header }, LARGE)
    expect([status, body['error']]).to.deep.equal([402, 'insufficient_funds'])
    // A small one is read, and the payment is checked in full.
    expect((await send(url, header, 1, { ...ofShop, body: { text: 1 } })).status).to.equal(422)
  })

  it('of more than 64 kB is not read while no payment can be settled', async () => {
    const header = await payment(url, newWallet(), 1, ofShop)
    shop.settler.down('no node')
    const { status, body } = await announce({ 'X-PAYMENT': header }, LARGE)
    shop.settler.down(null)
    expect([status, body['code']]).to.deep.equal([503, 'settler_unavailable'])
  })

  it('of more than 64 kB is read 20 times a minute for a payer who does not pay, and any number of times for one who does', async () => {
    const [idle, buyer] = [newWallet(), newWallet()]
    const large = (account: typeof idle, text: unknown) => async (): Promise<number> => {
      const { v1 } = await offer(url, ofShop)
      const header = await signPayment({ account, requirement: v1.accepts[0] as never, version: 1 })
      const body = { text, ...(text === 'bought' ? {} : { filler: '' }) }
      const padded = `${JSON.stringify(body)}${' '.repeat(LARGE)}`
      const headers = { 'content-type': 'application/json', 'x-payment': header }
      return (await fetch(url, { ...ofShop, headers, body: padded })).status
    }
    const repeat = async (times: number, work: () => Promise<number>) => {
      const statuses: number[] = []
      for (let at = 0; at < times; at += 1) statuses.push(await work())
      return [...new Set(statuses)]
    }
    expect(await repeat(22, large(buyer, 'bought'))).to.deep.equal([200])
    expect(await repeat(20, large(idle, 'not bought'))).to.deep.equal([422])
    expect(await repeat(1, large(idle, 'bought'))).to.deep.equal([429])
    expect(await repeat(1, large(buyer, 'bought'))).to.deep.equal([200])
    const header = await payment(url, idle, 1, ofShop)
    expect((await announce({ 'X-PAYMENT': header }, LARGE)).status).to.equal(429)
  })

  it('is read for a payment that has bought it, after its price and its time have passed', async () => {
    const account = newWallet()
    const header = await payment(url, account, 2, ofShop)
    const named = { 'idempotency-key': 'kept-text-1' }
    const bought = { ...ofShop, body: { text: 'kept' }, headers: named }
    const first = await send(url, header, 2, bought)
    expect(first.status).to.equal(200)
    change({ price: '0.02' })
    await shop.gateway.reload()
    shop.advance(4_000)
    const again = await send(url, header, 2, bought)
    expect([again.status, again.headers.get('idempotent-replay')]).to.deep.equal([200, 'true'])
    expect(await again.text()).to.equal(await first.text())
    const other = await send(url, header, 2, { ...bought, body: { text: 'other' } })
    expect([other.status, (await json(other))['code']]).to.deep.equal([409, 'payment_conflict'])
    // Who knows the transfer and not its signature gets the 402.
    const paid = JSON.parse(Buffer.from(header, 'base64').toString()) as { payload: Fields }
    const signature = `0x${'11'.repeat(64)}1b`
    const forged = { ...paid, payload: { ...paid.payload, signature } }
    expect((await announce({ 'X-PAYMENT': base64(forged) }, 100)).status).to.equal(402)
  })
})
