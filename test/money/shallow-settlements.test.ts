import { expect } from 'chai'
import type { Outcome } from '../../gateway/methods/payment-method.ts'
import { buy } from '../support/agent.ts'
import { openGateway, type TestGateway, until } from '../support/gateway.ts'

const TRANSACTION = `0x${'0a'.repeat(32)}` as const

describe('a payment whose answer left before it was final', () => {
  let shop: TestGateway
  before(async () => {
    // Recovery runs twenty times a second.
    shop = await openGateway({}, { reconcileSeconds: 0.05 })
  })
  after(() => shop.close())

  it('is left alone by recovery while its own call watches it, and no longer', async () => {
    const { settler, gateway, url, wallet } = shop
    let end: (outcome: Outcome) => void = () => {}
    settler.settle = async (_payment, _requirements, { record }) => {
      await record({ kind: 'chain', transaction: TRANSACTION })
      const later = new Promise<Outcome>((resolve) => (end = resolve))
      return { state: 'settled', transaction: TRANSACTION, provisional: true, later }
    }
    let looks = 0
    settler.status = async () => {
      looks += 1
      return { state: 'settled', transaction: TRANSACTION }
    }
    expect((await buy(`${url}/v1/echo/shallow`, wallet)).status).to.equal(200)
    let runs = 0
    const { openPayments } = gateway.journal
    gateway.journal.openPayments = () => {
      runs += 1
      return openPayments.call(gateway.journal)
    }
    // The fourth run of recovery begins once the third has ended. More may begin between two looks.
    await until(() => runs >= 4)
    expect(looks).to.equal(0)
    expect(await gateway.journal.counts()).to.include({ submitted: 1, settled: 0 })
    // What the call watched has not become final in time.
    end({ state: 'pending', transaction: TRANSACTION })
    await until(async () => (await gateway.journal.counts()).settled === 1)
    expect(looks).to.equal(1)
  })
})
