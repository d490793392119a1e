/** What every payment method promises behind a gateway. The suite runs on each method. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Network } from '../../gateway/config/networks.ts'
import type { PaymentMethod } from '../../gateway/methods/payment-method.ts'
import type { PaymentRecord, Journal } from '../../gateway/payments/journal/journal.ts'
import { ask, json, offer, receipt, send } from '../support/agent.ts'
import { openGateway, PAY_TO, type TestGateway } from '../support/gateway.ts'
import { until } from '../support/until.ts'
import { createScriptedSettler, type ScriptedSettler } from '../support/settler.ts'

export interface PayingMethod {
  readonly network: Network
  readonly method: PaymentMethod
  /** Pays one entry of `accepts`: the payload object of a new payment. */
  pay(accepted: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, unknown>>>
  /** Returns the same payment with an invalid proof. */
  forge(payment: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>
}

const header = (payment: object): string => Buffer.from(JSON.stringify(payment)).toString('base64')

/** Describes the suite for one method. */
export function paymentMethodContract(name: string, { network, method, pay, forge }: PayingMethod): void {
  describe(`a gateway that is paid by ${name}`, () => {
    let settler: ScriptedSettler
    let shop: TestGateway
    let dataDir: string

    const open = (): Promise<TestGateway> =>
      openGateway(
        { DATA_DIR: dataDir },
        {
          settlement: { network, payTo: PAY_TO, methods: [method], settler, sandbox: null, close: async () => {} },
          inMemory: false,
          reconcileSeconds: 1,
        },
      )
    const newPayment = async (path: string) => pay((await offer(`${shop.url}${path}`)).v2.accepts[0] as never)
    const rows = (journal: Journal): Promise<readonly PaymentRecord[]> => journal.list({ limit: 10 })
    const states = async (): Promise<readonly string[]> => (await rows(shop.gateway.journal)).map(({ state }) => state)

    beforeEach(async () => {
      dataDir = mkdtempSync(join(tmpdir(), 'tollgate-method-'))
      settler = createScriptedSettler({ network, verify: method.verify })
      shop = await open()
    })
    afterEach(async () => {
      await shop.close()
      rmSync(dataDir, { recursive: true, force: true })
    })

    it('lists the method in the 402', async () => {
      const { response, v2 } = await offer(`${shop.url}/v1/echo/listed`)
      expect(response.status).to.equal(402)
      expect(v2.accepts).to.have.length(1)
      expect(v2.accepts[0]).to.include({ scheme: method.scheme, network: network.caip2, amount: '5000', payTo: PAY_TO })
    })

    it('sells an answer, and stores the identity and the proof of the payment in the journal', async () => {
      const payment = await newPayment('/v1/echo/sold')
      const paid = await send(`${shop.url}/v1/echo/sold`, header(payment))
      expect(paid.status).to.equal(200)
      expect(receipt(paid)).to.include({ success: true, network: network.caip2, amount: '5000' })
      expect(settler.transfers.map(({ amount }) => amount)).to.deep.equal([5000n])
      const [row] = await rows(shop.gateway.journal)
      const decoded = method.decode({
        version: 2,
        scheme: method.scheme,
        network: network.caip2,
        accepted: null,
        extensions: {},
        payload: payment['payload'] as Readonly<Record<string, unknown>>,
      })
      const { envelope, payTo, ...stored } = decoded
      expect(row).to.include({ ...stored, state: 'settled' })
      expect(row?.payTo.toLowerCase()).to.equal(payTo.toLowerCase())
    })

    it('gives the same answer again for the same payment, and charges once', async () => {
      const paymentHeader = header(await newPayment('/v1/echo/repeated'))
      const first = await send(`${shop.url}/v1/echo/repeated`, paymentHeader)
      const second = await send(`${shop.url}/v1/echo/repeated`, paymentHeader)
      expect([first.status, second.status]).to.deep.equal([200, 200])
      expect(second.headers.get('idempotent-replay')).to.equal('true')
      expect(await second.text()).to.equal(await first.text())
      expect(settler.transfers).to.have.length(1)
    })

    it('refuses a payment that was used for another request', async () => {
      const paymentHeader = header(await newPayment('/v1/echo/one'))
      expect((await send(`${shop.url}/v1/echo/one`, paymentHeader)).status).to.equal(200)
      const other = await send(`${shop.url}/v1/echo/other`, paymentHeader)
      expect([other.status, (await json(other))['code']]).to.deep.equal([409, 'payment_conflict'])
      expect(settler.transfers).to.have.length(1)
    })

    it('refuses a forged proof before any work, also of a payment that has bought an answer', async () => {
      const sendForged = async (payment: Readonly<Record<string, unknown>>): Promise<readonly unknown[]> => {
        const response = await send(`${shop.url}/v1/echo/forged`, header(forge(payment)))
        return [response.status, (await json(response))['code']]
      }
      const payment = await newPayment('/v1/echo/forged')
      expect(await sendForged(payment)).to.deep.equal([402, 'payment_invalid'])
      expect(await states()).to.deep.equal([])
      expect((await send(`${shop.url}/v1/echo/forged`, header(payment))).status).to.equal(200)
      expect(await sendForged(payment)).to.deep.equal([402, 'payment_invalid'])
      expect(settler.transfers).to.have.length(1)
    })

    it('answers 503 while a settlement is pending, and delivers once it is found', async () => {
      settler.next('timeout')
      const paymentHeader = header(await newPayment('/v1/echo/pending'))
      const first = await send(`${shop.url}/v1/echo/pending`, paymentHeader)
      expect([first.status, (await json(first))['code']]).to.deep.equal([503, 'settlement_pending'])
      expect((await send(`${shop.url}/v1/echo/pending`, paymentHeader)).status).to.equal(200)
      expect(settler.transfers).to.have.length(1)
    })

    it('settles a pending payment by itself when its buyer does not come back', async () => {
      settler.next('timeout')
      await send(`${shop.url}/v1/echo/left`, header(await newPayment('/v1/echo/left')))
      await until(async () => (await states())[0] === 'settled')
      expect(settler.transfers).to.have.length(1)
    })

    it('releases a payment that was never sent once it can no longer be settled', async () => {
      settler.next('lost')
      await send(`${shop.url}/v1/echo/lost`, header(await newPayment('/v1/echo/lost')))
      expect(await states()).to.deep.equal(['submitted'])
      settler.expire()
      await until(async () => (await states())[0] === 'released')
      expect(settler.transfers).to.have.length(0)
    })

    it('finishes after a restart a settlement that was sent before it, and replays the answer from the data folder', async () => {
      settler.next('late')
      const paymentHeader = header(await newPayment('/v1/echo/restart'))
      expect((await send(`${shop.url}/v1/echo/restart`, paymentHeader)).status).to.equal(503)
      await shop.gateway.close()
      shop = await open()
      expect(await states()).to.deep.equal(['settled'])
      const paid = await send(`${shop.url}/v1/echo/restart`, paymentHeader)
      expect([paid.status, paid.headers.get('idempotent-replay')]).to.deep.equal([200, 'true'])
      expect(settler.transfers).to.have.length(1)
      expect((await ask(`${shop.url}/v1/echo/restart`)).status).to.equal(402)
    })
  })
}
