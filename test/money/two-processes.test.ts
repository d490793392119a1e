import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { json, payment, send } from '../support/agent.ts'
import { openGateway, type TestGateway, until } from '../support/gateway.ts'

describe('the same payment at two processes that share a journal', () => {
  let folder: string
  let here: TestGateway
  let there: TestGateway

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-two-'))
    here = await openGateway({ DATA_DIR: folder }, { inMemory: false })
    there = await openGateway({ DATA_DIR: folder }, { inMemory: false })
  })
  after(async () => {
    await here?.close()
    await there?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  /** Lets the other process serve the payment while this one checks it. The check then fails with `reason`. */
  function overtake(sendToOther: () => Promise<Response>, reason: string): { response: Response | null } {
    const { settler } = here
    const check = settler.check.bind(settler)
    const overtaken: { response: Response | null } = { response: null }
    settler.check = async () => {
      settler.check = check
      overtaken.response = await sendToOther()
      return { reason, message: 'No.' }
    }
    return overtaken
  }

  for (const reason of ['invalid_transaction_state', 'insufficient_funds'])
    it(`is never reported as uncharged if the other process settled it meanwhile (${reason})`, async () => {
      const word = reason.slice(0, 7)
      const header = await payment(`${here.url}/v1/echo/${word}`, here.wallet)
      const overtaken = overtake(() => send(`${there.url}/v1/echo/${word}`, header), reason)
      const answer = await send(`${here.url}/v1/echo/${word}`, header)
      expect(overtaken.response?.status).to.equal(200)
      expect(answer.status).to.equal(200)
      expect(await answer.text()).to.equal(await overtaken.response?.text())
      expect(answer.headers.get('idempotent-replay')).to.equal('true')
    })

  it('is pending at both while the other process does not know the outcome yet', async () => {
    const header = await payment(`${here.url}/v1/echo/slow`, here.wallet)
    there.settler.next('lost')
    const overtaken = overtake(() => send(`${there.url}/v1/echo/slow`, header), 'insufficient_funds')
    const answer = await send(`${here.url}/v1/echo/slow`, header)
    expect([overtaken.response?.status, answer.status]).to.deep.equal([503, 503])
    expect(await json(answer)).to.include({ code: 'settlement_pending', retry: 'same_payment' })
  })

  it('is refused if nobody has used it', async () => {
    const header = await payment(`${here.url}/v1/echo/poor`, here.wallet)
    here.settler.next('refuse')
    expect((await send(`${here.url}/v1/echo/poor`, header)).status).to.equal(402)
  })
})

describe('one balance at two processes that share a journal', () => {
  let folder: string
  let gateways: readonly TestGateway[]
  let balance: bigint
  let releases: readonly (() => void)[]

  /** The price of a call. */
  const PRICE = 5_000n

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-two-'))
    const open = () => openGateway({ DATA_DIR: folder }, { inMemory: false })
    gateways = [await open(), await open()]
    releases = gateways.map(({ settler }) => settler.hold())
    for (const { settler } of gateways) {
      const check = settler.check.bind(settler)
      settler.check = async (payment, requirements, options) => {
        const ahead = options?.ahead.reduce((sum, { amount }) => sum + amount, 0n) ?? 0n
        if (ahead + payment.amount > balance) return { reason: 'insufficient_funds', message: 'Reserved.' }
        return check(payment, requirements, options)
      }
    }
  })
  afterEach(async () => {
    releases.forEach((release) => release())
    for (const gateway of gateways) await gateway.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('pays for as many answers as it covers, whichever process gets the payments', async () => {
    const [here, there] = gateways as readonly [TestGateway, TestGateway]
    balance = 2n * PRICE
    const words = ['one', 'two', 'three', 'four', 'five', 'six']
    const calls = words.map(async (word, at) => {
      const { url } = at % 2 === 0 ? here : there
      const header = await payment(`${url}/v1/echo/${word}`, here.wallet)
      const answer = await send(`${url}/v1/echo/${word}`, header)
      return { status: answer.status, body: await json(answer) }
    })
    const refused = new Set<number>()
    calls.forEach((call, at) => void call.then(({ status }) => status === 402 && refused.add(at)))
    await until(() => refused.size === 4)
    releases.forEach((release) => release())
    const answers = await Promise.all(calls)
    expect(answers.map(({ status }) => status)).to.have.members([200, 200, 402, 402, 402, 402])
    for (const { status, body } of answers) if (status === 402) expect(body).to.include({ error: 'insufficient_funds' })
    const sent = gateways.flatMap(({ settler }) => settler.transfers)
    expect(sent).to.have.length(2)
  })

  it('covers a later payment at one process once the first has settled at the other', async () => {
    const [here, there] = gateways as readonly [TestGateway, TestGateway]
    balance = PRICE
    const first = await payment(`${here.url}/v1/echo/first`, here.wallet)
    const second = await payment(`${there.url}/v1/echo/second`, here.wallet)
    const pending = send(`${here.url}/v1/echo/first`, first)
    await until(async () => (await here.gateway.journal.openPayments()).length === 1)
    expect((await send(`${there.url}/v1/echo/second`, second)).status).to.equal(402)
    releases.forEach((release) => release())
    expect((await pending).status).to.equal(200)
    expect((await send(`${there.url}/v1/echo/second`, second)).status, 'the refused payment was released').to.equal(200)
  })
})
