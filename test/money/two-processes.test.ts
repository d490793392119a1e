import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { json, payment, send } from '../support/agent.ts'
import { openGateway, type TestGateway } from '../support/gateway.ts'

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
