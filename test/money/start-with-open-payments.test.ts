import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { NETWORKS } from '../../gateway/config/networks.ts'
import { json, payment, send } from '../support/agent.ts'
import { openGateway, PAY_TO, type TestGateway, until } from '../support/gateway.ts'
import { createScriptedSettler } from '../support/settler.ts'

describe('a gateway that starts with payments whose outcome the chain does not say', () => {
  let folder: string
  let first: TestGateway | null = null
  let second: TestGateway | null = null
  let answerOfChain = (): void => {}

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-start-'))
  })
  after(async () => {
    answerOfChain()
    await first?.close()
    await second?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('sells meanwhile, and finishes those payments when the chain answers', async () => {
    first = await openGateway({ DATA_DIR: folder }, { inMemory: false })
    first.settler.next('timeout')
    const header = await payment(`${first.url}/v1/echo/open`, first.wallet)
    const pending = await send(`${first.url}/v1/echo/open`, header)
    expect(await json(pending)).to.include({ code: 'settlement_pending' })
    const [transfer] = first.settler.transfers
    await first.close()
    first = null

    const network = NETWORKS['base-sepolia']
    const settler = createScriptedSettler({ network, now: () => new Date() })
    const isAnswered = new Promise<void>((resolve) => {
      answerOfChain = resolve
    })
    let asked = 0
    const status = async () => {
      asked += 1
      await isAnswered
      return { state: 'settled', transaction: transfer?.transaction ?? '0x' } as const
    }
    const settlement = {
      network,
      payTo: PAY_TO,
      settler: { ...settler, status },
      sandbox: null,
      close: async () => {},
    }
    second = await openGateway({ DATA_DIR: folder }, { inMemory: false, settlement })
    expect(asked).to.equal(1)
    const other = await send(`${second.url}/v1/echo/other`, await payment(`${second.url}/v1/echo/other`, second.wallet))
    expect(other.status).to.equal(200)
    answerOfChain()
    const { journal } = second.gateway
    await until(async () => (await journal.list({ states: ['settled'], limit: 10 })).length === 2)
    expect((await send(`${second.url}/v1/echo/open`, header)).status).to.not.equal(402)
  })
})
