import { expect } from 'chai'
import { ask, buy, json } from '../support/agent.ts'
import { newWallet, openGateway, type TestGateway } from '../support/gateway.ts'

const TOKEN = 'correct-horse-battery'
const headers = { authorization: `Bearer ${TOKEN}` }

interface Row {
  readonly operation: string
  readonly route: string
  readonly calls: Readonly<Record<string, number>>
  readonly refusals: readonly { readonly reason: string; readonly count: number }[]
  readonly revenue: string
  readonly seconds: { readonly count: number; readonly p50: number | null; readonly p99: number | null }
  readonly buyers: number
  readonly top_buyers: readonly { readonly payer: string; readonly payments: number; readonly amount: string }[]
}

describe('the routes in the console', () => {
  let shop: TestGateway
  const [often, once] = [newWallet(), newWallet()]

  before(async () => {
    shop = await openGateway({ OPERATOR_TOKEN: TOKEN })
  })
  after(() => shop.close())

  const rows = async (): Promise<readonly Row[]> =>
    ((await json(await ask(`${shop.url}/operator/routes`, { headers }))) as unknown as { routes: readonly Row[] })
      .routes

  it('count the calls of each route, how long sales took, and who paid most', async () => {
    const before = await rows()
    expect(before.every(({ buyers, seconds }) => buyers === 0 && seconds.p99 === null)).to.equal(true)
    for (const wallet of [often, once, often]) await (await buy(`${shop.url}/v1/echo/hello`, wallet)).text()
    await (await ask(`${shop.url}/v1/echo/hello`)).text()
    shop.settler.next('revert')
    expect((await buy(`${shop.url}/v1/echo/refused`, once)).status).to.equal(402)
    const [row, ...others] = await rows()
    expect(row?.route).to.equal('GET /v1/echo/{word}')
    expect(row?.calls).to.include({ delivered: 3, refused: 1, not_charged: 0, repeated: 0 })
    expect(row?.calls['offered']).to.be.at.least(4)
    expect(row?.refusals.map(({ count }) => count)).to.deep.equal([1])
    expect(row?.seconds.count).to.equal(3)
    expect(row?.seconds.p50)
      .to.be.above(0)
      .and.at.most(row?.seconds.p99 ?? 0)
    expect(row?.buyers).to.equal(2)
    const price = Number(row?.revenue) / 3
    expect(row?.top_buyers).to.deep.equal([
      { payer: often.address.toLowerCase(), payments: 2, amount: String(2 * price) },
      { payer: once.address.toLowerCase(), payments: 1, amount: String(price) },
    ])
    for (const { revenue } of others) expect(revenue).to.equal('0')
  })

  it('are a page that leads to the payments of a buyer', async () => {
    const page = await ask(`${shop.url}/operator/routes`, { headers: { ...headers, accept: 'text/html' } })
    expect(await page.text())
      .to.contain('GET /v1/echo/{word}')
      .and.contain(`/operator/payments?q=${often.address.toLowerCase()}`)
  })
})
