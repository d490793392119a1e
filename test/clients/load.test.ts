import { expect } from 'chai'
import { openSandboxGateway, SHOP, type SandboxGateway } from '../support/sandbox.ts'
import { payment, send } from '../support/agent.ts'

describe('two hundred buyers who pay at the same time, on a chain with one block per second,', function () {
  this.timeout(120_000)
  let shop: SandboxGateway
  before(async () => {
    shop = await openSandboxGateway({ ...SHOP, SANDBOX_BLOCK_SECONDS: '1' })
  })
  after(() => shop.close())

  it('all get their answer, and no payment is lost to a nonce conflict', async () => {
    const url = `${shop.url}/v1/echo/crowd`
    const payments = await Promise.all(Array.from({ length: 200 }, () => payment(url, shop.buyer)))
    const responses = await Promise.all(payments.map((header) => send(url, header)))
    const statuses = responses.map((response) => response.status)
    expect(statuses.filter((status) => status === 200)).to.have.length(200)
    expect(await shop.moved()).to.deep.equal({ buyer: -1_000_000n, payee: 1_000_000n })
  })
})
