import { expect } from 'chai'
import { payment, receipt, send } from '../support/agent.ts'
import { openSandboxGateway, type SandboxGateway, SHOP } from '../support/sandbox.ts'

const PAYMENTS = 24
const PRICE = 5_000n

describe('a gateway under load', () => {
  let gateway: SandboxGateway

  before(async () => {
    gateway = await openSandboxGateway({ ...SHOP, SANDBOX_BLOCK_SECONDS: '1' })
  })
  after(() => gateway?.close())

  it('gives every buyer their own answer, with fewer transactions than payments', async () => {
    const words = Array.from({ length: PAYMENTS }, (_, at) => String.fromCharCode(97 + at).repeat(3))
    const routeOf = (word: string): string => `${gateway.url}/v1/echo/${word}`
    const headers = await Promise.all(words.map((word) => payment(routeOf(word), gateway.buyer)))
    const answers = await Promise.all(words.map((word, at) => send(routeOf(word), headers[at] as string)))
    expect(answers.map(({ status }) => status)).to.deep.equal(words.map(() => 200))
    const bodies = await Promise.all(answers.map((answer) => answer.text()))
    for (const [at, word] of words.entries()) expect(bodies[at]).to.contain(word)
    expect(new Set(answers.map((answer) => receipt(answer)['transaction'])).size).to.be.lessThan(PAYMENTS)
    const charged = BigInt(PAYMENTS) * PRICE
    expect(await gateway.moved()).to.deep.equal({ buyer: -charged, payee: charged })
    expect(await gateway.gateway.journal.counts()).to.include({ settled: PAYMENTS, submitted: 0, owed: 0 })
    const repeated = await send(routeOf('aaa'), headers[0] as string)
    expect([repeated.status, await repeated.text()]).to.deep.equal([200, bodies[0]])
    expect(await gateway.moved()).to.deep.equal({ buyer: 0n, payee: 0n })
  })
})
