import { expect } from 'chai'
import { ask, buy, json } from '../../support/agent.ts'
import { newWallet, openGateway, type TestGateway } from '../../support/gateway.ts'
import { signInHeader } from '../../support/limited-shop.ts'

interface Page {
  readonly payments: readonly Record<string, unknown>[]
  readonly next_cursor: string | null
}

describe('the payments of a wallet', () => {
  let shop: TestGateway
  const wallet = newWallet()
  const words = ['one', 'two', 'three', 'four', 'five']
  const path = (payer: string = wallet.address, network = 'base-sepolia'): string =>
    `${shop.url}/v1/payments/${network}/${payer}`

  before(async () => {
    shop = await openGateway()
    for (const word of words) expect((await buy(`${shop.url}/v1/echo/${word}`, wallet)).status).to.equal(200)
    expect((await buy(`${shop.url}/v1/echo/other`, newWallet())).status).to.equal(200)
    shop.settler.next('revert')
    expect((await buy(`${shop.url}/v1/echo/refused`, wallet)).status).to.equal(402)
  })
  after(() => shop.close())

  /** Signs in with a wallet for this address, and asks. */
  async function listed(query = '', payer = wallet, headers = {}): Promise<Response> {
    const url = path(payer.address)
    return ask(url + query, { headers: { ...(await signInHeader(url, payer)), ...headers } })
  }

  it('are listed for whoever signs in with it, newest first, those that were not charged too', async () => {
    const answer = await listed()
    expect([answer.status, answer.headers.get('cache-control')]).to.deep.equal([200, 'private, no-store'])
    const { payments, next_cursor: next } = (await json(answer)) as unknown as Page
    expect(next).to.equal(null)
    expect(payments.map(({ route, state }) => [route, state])).to.deep.equal([
      ['GET /v1/echo/{word}', 'released'],
      ...words.map(() => ['GET /v1/echo/{word}', 'settled']),
    ])
    const times = payments.map(({ created_at: at }) => String(at))
    expect(times).to.deep.equal(times.toSorted().toReversed())
    expect(payments[1]).to.include({ payer: wallet.address.toLowerCase(), amount: '5000', network: 'eip155:84532' })
    expect(payments[1]).not.to.have.property('answer_kept')
    expect(payments[1]?.['transaction']).to.match(/^0x[0-9a-f]{64}$/)
  })

  it('come in pages, each with a sign-in of its own', async () => {
    const seen: unknown[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const page = (await json(await listed(`?limit=4${cursor}`))) as unknown as Page
      seen.push(...page.payments.map(({ nonce }) => nonce))
      cursor = page.next_cursor === null ? null : `&cursor=${page.next_cursor}`
    }
    expect(seen).to.have.length(words.length + 1)
    expect(new Set(seen).size).to.equal(seen.length)
    const unknown = (await json(await listed(`?cursor=0x${'1'.repeat(64)}`))) as unknown as Page
    expect(unknown).to.deep.equal({ payments: [], next_cursor: null })
  })

  it('are a table for accounts as CSV', async () => {
    const csv = await listed('?format=csv&limit=2')
    const [head = '', ...lines] = (await csv.text()).trim().split('\r\n')
    expect(head.split(',')).to.include.members(['state', 'amount', 'route', 'transaction', 'settled_at'])
    expect(lines).to.have.length(2)
    expect(lines[1]).to.contain('settled,eip155:84532,').and.contain('GET /v1/echo/{word}')
    expect(csv.headers.get('link')).to.match(/\?format=csv&limit=2&cursor=0x[0-9a-f]{64}>; rel="next"$/)
  })

  it('are refused with a challenge to whoever does not prove to be it, whether it has paid or not', async () => {
    const stranger = newWallet()
    const url = path()
    const foreign = await signInHeader(url, stranger)
    const used = await signInHeader(url, wallet)
    expect((await ask(url, { headers: used })).status).to.equal(200)
    for (const headers of [{}, foreign, used, { 'idempotency-key': 'a-key-of-somebody-1' }]) {
      const refused = await ask(url, { headers })
      const { code } = await json(refused)
      expect([refused.status, code]).to.deep.equal([402, 'sign_in_required'])
    }
    const [some, none] = await Promise.all(
      [path(), path(newWallet().address)].map(async (each) => json(await ask(each))),
    )
    expect({ ...some, call_id: '', extensions: {}, accepts: [] }).to.deep.equal({
      ...none,
      call_id: '',
      extensions: {},
      accepts: [],
    })
    expect(await json(await listed('', stranger))).to.deep.equal({ payments: [], next_cursor: null })
    expect((await ask(path('0x12'))).status).to.equal(422)
  })
})
