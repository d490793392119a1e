import { expect } from 'chai'
import { ask, buy, json, offer, payment, send } from '../../support/agent.ts'
import { openGateway, type TestGateway } from '../../support/gateway.ts'
import { proves } from '../../requirements.ts'

describe('a plan', () => {
  let shop: TestGateway
  let url: string
  let token: string
  before(async () => {
    shop = await openGateway()
    url = shop.url
    const response = await buy(`${url}/v1/passes/late/1h`, shop.wallet, 2, { method: 'POST' })
    expect(response.status).to.equal(200)
    token = String((await json(response))['token'])
  })
  after(() => shop.close())
  const withToken = (path: string, value = token): Promise<Response> =>
    ask(`${url}${path}`, { headers: { 'x-service-token': value } })

  it('is listed for free, with the fields of the interface', async () => {
    proves('plan-catalog', 'plan-record', 'token-header')
    const list = await json(await ask(`${url}/v1/passes`))
    expect(list).to.have.all.keys('service', 'model', 'enabled', 'header', 'note', 'plans')
    expect(list).to.include({ enabled: true, header: 'X-SERVICE-TOKEN' })
    expect(list['plans']).to.deep.equal([
      {
        plan: 'late-1h',
        label: 'Late, one hour',
        tier: 'live',
        max_freshness_seconds: 0,
        duration_seconds: 3600,
        route: 'POST /v1/passes/late/1h',
        price_usd: 1.5,
        url: `${url}/v1/passes/late/1h`,
        authorized_routes: ['GET /v1/late'],
      },
    ])
  })

  it('is chosen by its route, never by query or body', async () => {
    proves('plan-by-route')
    const sent = { method: 'POST', body: { plan: 'other', price: '0.000001' } }
    const { v2 } = await offer(`${url}/v1/passes/late/1h?plan=other&price=0`, sent)
    expect(v2.accepts[0]).to.include({ amount: '1500000' })
    const response = await buy(`${url}/v1/passes/late/1h?plan=other`, shop.wallet, 2, sent)
    expect(await json(response)).to.include({ plan: 'late-1h' })
  })

  it('returns a token that opens its routes without further payment', async () => {
    proves('plan-token', 'token-routes')
    const transfers = shop.settler.transfers.length
    const response = await withToken('/v1/late')
    expect(response.status).to.equal(200)
    expect(await json(response)).to.include({ access: 'token' })
    expect((await withToken('/v1/late', `Bearer ${token}`)).status).to.equal(200)
    expect(shop.settler.transfers.length).to.equal(transfers)
  })

  it('delays data for a token by its tier, and for a payment by the route', async () => {
    proves('token-freshness')
    const dataTime = async (response: Response): Promise<number> => Date.parse(String((await json(response))['as_of']))
    const fresh = await dataTime(await withToken('/v1/late'))
    const late = await dataTime(await buy(`${url}/v1/late`, shop.wallet))
    expect(fresh - late).to.be.within(86_300_000, 86_400_000)
  })

  it('does not open other routes', async () => {
    const { response, v1 } = await offer(`${url}/v1/echo/hello`, { headers: { 'x-service-token': token } })
    expect(response.status).to.equal(402)
    expect(v1.code).to.equal('token_route')
  })

  it('settles no payment if a valid token comes with it', async () => {
    const transfers = shop.settler.transfers.length
    const header = await payment(`${url}/v1/late`, shop.wallet)
    const response = await send(`${url}/v1/late`, header, 2, { headers: { 'x-service-token': token } })
    expect(await json(response)).to.include({ access: 'token' })
    expect(shop.settler.transfers.length).to.equal(transfers)
  })

  it('answers a refused token with the reason and the price', async () => {
    const altered = `${token.slice(0, -4)}AAAA`
    const { response, v1 } = await offer(`${url}/v1/late`, { headers: { 'x-service-token': altered } })
    expect(response.status).to.equal(402)
    expect(v1.code).to.equal('token_invalid')
    expect(v1.accepts).to.have.length(1)
  })

  it('expires at the end of its window, to the second', async () => {
    proves('token-window')
    shop.advance(3590)
    expect((await withToken('/v1/late')).status).to.equal(200)
    shop.advance(11)
    const { response, v1 } = await offer(`${url}/v1/late`, { headers: { 'x-service-token': token } })
    expect(response.status).to.equal(402)
    expect(v1.code).to.equal('token_expired')
  })
})
