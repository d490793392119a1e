import { expect } from 'chai'
import { ask, buy, json } from '../support/agent.ts'
import { newWallet, openGateway, type TestGateway } from '../support/gateway.ts'

const TOKEN = 'correct-horse-battery'
const headers = { authorization: `Bearer ${TOKEN}` }

interface Found {
  readonly searched: string | null
  readonly more: boolean
  readonly payments: readonly {
    readonly state: string
    readonly meaning: string
    readonly call: string
    readonly transaction: string | null
    readonly events: readonly { readonly state: string }[] | null
  }[]
}

describe('the search for payments in the console', () => {
  let shop: TestGateway
  const wallet = newWallet()

  before(async () => {
    shop = await openGateway({ OPERATOR_TOKEN: TOKEN })
  })
  after(() => shop.close())

  const find = async (query: string): Promise<Found> =>
    (await json(
      await ask(`${shop.url}/operator/payments?q=${encodeURIComponent(query)}`, { headers }),
    )) as unknown as Found

  it('finds what a buyer paid by wallet, transaction and call id, with all that happened', async () => {
    const answer = await buy(`${shop.url}/v1/echo/hello`, wallet)
    const call = answer.headers.get('x-call-id') as string
    await answer.text()
    const { payments, ...rest } = await find(wallet.address)
    expect(rest).to.deep.equal({ query: wallet.address, searched: 'payer', more: false })
    expect(payments).to.have.length(1)
    const [{ state, meaning, events, transaction, ...found } = payments[0]!] = payments
    expect([found.call, state]).to.deep.equal([call, 'settled'])
    expect(meaning).to.match(/^Charged, and the /)
    expect(events?.map((each) => each.state)).to.deep.equal(['reserved', 'submitted', 'settled'])
    for (const query of [call, ` ${transaction} `, (transaction as string).toUpperCase().replace('0X', '0x')])
      expect((await find(query)).payments.map((each) => each.call)).to.deep.equal([call])
  })

  it('says what each state means for the buyer', async () => {
    shop.settler.next('revert')
    expect((await buy(`${shop.url}/v1/echo/refused`, wallet)).status).to.equal(402)
    const [refused] = (await find(wallet.address)).payments
    expect(refused).to.include({ state: 'released', meaning: 'Nothing was charged.' })
    await buy(`${shop.url}/v1/echo/lost`, wallet)
    const [sold] = await shop.gateway.journal.list({ payer: wallet.address, states: ['settled'], limit: 1 })
    await shop.gateway.journal.owed(sold!.key, sold!.attempt, 'the answer is lost')
    const [owed] = (await find(wallet.address)).payments
    expect(owed?.meaning).to.contain('send the money back')
  })

  it('finds nothing of a stranger, and explains a query that it cannot read', async () => {
    expect((await find(newWallet().address)).payments).to.deep.equal([])
    expect(await find('')).to.include({ searched: null })
    const refused = await ask(`${shop.url}/operator/payments?q=hello`, { headers })
    expect(refused.status).to.equal(422)
    expect(await refused.text()).to.contain('Is no wallet (0x and 40 digits)')
    const page = await ask(`${shop.url}/operator/payments?q=${wallet.address}`, {
      headers: { ...headers, accept: 'text/html' },
    })
    expect(await page.text())
      .to.contain('What happened')
      .and.contain('Nothing was charged.')
  })
})
