import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import type { TransportGateway } from '../http/transport-gateway.ts'
import { CONTRACT, type ContractAnswer, openContractGateway, send } from './requests.ts'

/** An answer, and the titles of the requests that get it. */
interface RecordedAnswer extends ContractAnswer {
  readonly requests: readonly string[]
}

/** Recorded from the stateless server of @modelcontextprotocol/sdk 1.32.2, except where ADR 50 says that ours differ. */
const RECORDED = JSON.parse(
  readFileSync(join(import.meta.dirname, 'recorded-answers.json'), 'utf8'),
) as readonly RecordedAnswer[]

describe('the answer of the MCP endpoint, byte for byte, to', () => {
  let gateway: TransportGateway
  before(async () => {
    gateway = await openContractGateway()
  })
  after(() => gateway.close())

  const answers = new Map(RECORDED.flatMap(({ requests, ...answer }) => requests.map((title) => [title, answer])))

  for (const request of CONTRACT)
    it(`${request.title} is as recorded`, async () => {
      expect(await send(gateway.port, request)).to.deep.equal(answers.get(request.title))
    })

  it('every recorded request is tested', () => {
    expect(CONTRACT.map(({ title }) => title)).to.have.members([...answers.keys()])
  })
})
