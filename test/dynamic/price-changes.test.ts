import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { gold } from '../support/catalog.ts'
import { buy, json, offer, payment, send } from '../support/agent.ts'
import { openLiveGateway, type LiveGateway, root, until } from './live-gateway.ts'

const DOCUMENTS = readFileSync(join(root, 'catalog/documents.json'), 'utf8')
const GRACE = 100

interface Change {
  readonly operation: string
  readonly route: string
  readonly old_price_usd: number | null
  readonly new_price_usd: number | null
  readonly changed_at: string
  readonly catalog_version: string
}

describe('a change of a price', () => {
  let place: LiveGateway
  let url: string
  const start = async (options: Parameters<typeof openLiveGateway>[0] = {}): Promise<void> => {
    const catalog = { 'documents.json': DOCUMENTS, 'gold.json': gold(), ...options.catalog }
    const environment = { QUOTE_GRACE_SECONDS: String(GRACE), ...options.environment }
    place = await openLiveGateway({ plugins: ['gold'], ...options, catalog, environment })
    url = `${place.url}/v1/gold`
  }
  const change = async (document: object): Promise<void> => {
    place.catalog('gold.json', document)
    expect(await place.gateway.reload()).to.deep.equal([])
  }
  const history = async (query = ''): Promise<readonly Change[]> =>
    (await place.json(`/v1/prices/history${query}`))['changes'] as Change[]
  const paid = () => place.settler.transfers.map(({ amount }) => amount)
  const versions = async () => (await place.gateway.journal.list({ limit: 10 })).map((record) => record.priceVersion)

  afterEach(() => place.close())

  it('honours a signed older quote for a while, and then refuses it with a new quote', async () => {
    await start()
    const before = place.gateway.current.catalog.version
    const [early, late] = [await payment(url, place.wallet), await payment(url, place.wallet)]
    await change(gold({ price: '0.008' }))
    expect((await offer(url)).v1.accepts[0]).to.include({ maxAmountRequired: '8000' })
    place.advance(GRACE - 20)
    const answer = await send(url, early)
    expect([answer.status, (await json(answer))['price']]).to.deep.equal([200, 1900])
    expect(paid()).to.deep.equal([5000n])
    expect(await versions()).to.deep.equal([before])
    place.advance(21)
    const refused = await send(url, late)
    expect(refused.status).to.equal(402)
    const why = await json(refused)
    expect(why).to.include({ code: 'payment_invalid', retry: 'new_quote' })
    expect(why['message']).to.match(/5000.*8000/)
    expect(refused.headers.get('payment-required')).to.be.a('string')
    expect((await buy(url, place.wallet)).status).to.equal(200)
    expect(paid()).to.deep.equal([5000n, 8000n])
    expect((await versions())[0]).to.equal(place.gateway.current.catalog.version)
  })

  it('honours each of several former prices for its own time, even a higher one', async () => {
    await start()
    const first = await payment(url, place.wallet)
    await change(gold({ price: '0.008' }))
    const second = await payment(url, place.wallet)
    place.advance(GRACE / 2)
    await change(gold({ price: '0.006' }))
    expect((await send(url, second)).status).to.equal(200)
    expect((await send(url, first)).status).to.equal(200)
    expect(paid()).to.deep.equal([8000n, 5000n])
  })

  it('does not honour a price that was never offered, or zero for a route that was free', async () => {
    await start({ catalog: { 'gold.json': gold({ price: 'free' }) } })
    await change(gold({ price: '0.005' }))
    const signed = await payment(url, place.wallet)
    const payload = JSON.parse(Buffer.from(signed, 'base64').toString()) as {
      payload: { authorization: { value: string } }
    }
    payload.payload.authorization.value = '0'
    const refused = await send(url, Buffer.from(JSON.stringify(payload)).toString('base64'))
    expect(refused.status).to.equal(402)
    expect(paid()).to.deep.equal([])
  })

  it('is in the price history, with the old and the new price, the time and the version', async () => {
    await start()
    const [appeared] = await history('?route=GET%20%2Fv1%2Fgold')
    expect(appeared).to.deep.include({ operation: 'getGold', old_price_usd: null, new_price_usd: 0.005 })
    place.advance(3600)
    const at = place.now().getTime()
    await change(gold({ price: '0.008' }))
    const [latest] = await history('?limit=1')
    const { version } = place.gateway.current.catalog
    expect(latest).to.include({ route: 'GET /v1/gold', old_price_usd: 0.005, new_price_usd: 0.008 })
    expect(latest?.catalog_version).to.equal(version)
    expect(Date.parse(latest?.changed_at ?? '') - at).to.be.within(0, 10_000)
    await change(gold({ summary: 'The same price in other words.', price: '0.008' }))
    expect(await history()).to.have.length(2)
    await change(gold({ price: 'free' }))
    expect((await history('?limit=1'))[0]).to.include({ old_price_usd: 0.008, new_price_usd: 0 })
    place.remove('catalog', 'gold.json')
    await until(async () => (await history()).length === 4)
    expect((await history('?limit=1'))[0]).to.include({ old_price_usd: 0, new_price_usd: null })
    expect((await place.get('/v1/prices/history?limit=0')).status).to.equal(422)
  })

  it('is not recorded if a product is disabled for a while or its route is not listed', async () => {
    await start({ catalog: { 'gold.json': gold({ listed: false }) } })
    expect(await history()).to.deep.equal([])
    await change(gold())
    const known = await history()
    place.catalog('gold.json', gold({}, { plugin: 'nowhere' }))
    await place.gateway.reload()
    expect(await history()).to.deep.equal(known)
  })

  describe('while the gateway is down', () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'tollgate-prices-'))
    const lasting = { environment: { DATA_DIR: dataDir }, overrides: { inMemory: false } }
    after(() => rmSync(dataDir, { recursive: true, force: true }))

    it('takes effect at the next start, and quotes signed before are honoured', async () => {
      await start(lasting)
      const before = place.gateway.current.catalog.version
      const signed = await payment(url, place.wallet)
      const stale = await payment(url, place.wallet)
      await place.close()
      await start({ ...lasting, catalog: { 'gold.json': gold({ price: '0.009' }) } })
      expect((await send(url, signed)).status).to.equal(200)
      expect(paid()).to.deep.equal([5000n])
      expect(await versions()).to.deep.equal([before])
      await place.close()
      await start({ ...lasting, catalog: { 'gold.json': gold({ price: '0.009' }) } })
      expect((await history('?limit=1'))[0]).to.include({ old_price_usd: 0.005, new_price_usd: 0.009 })
      expect((await send(url, stale)).status).to.equal(200)
    })
  })
})

describe('a retired route', () => {
  let place: LiveGateway
  let url: string
  const { getGold, getGoldColumns } = gold().operations
  const RETIRED = {
    ...gold(),
    operations: {
      getGold: { ...getGold, retired: true, replacement: 'GET /v2/gold' },
      getBetterGold: { ...getGold, route: 'GET /v2/gold', handler: 'getGold' },
      getGoldColumns,
    },
  }
  before(async () => {
    place = await openLiveGateway({ catalog: { 'gold.json': gold(), 'documents.json': DOCUMENTS }, plugins: ['gold'] })
    url = `${place.url}/v1/gold`
  })
  after(() => place.close())

  it('names its replacement with 410, does not redirect, and still delivers what was paid for', async () => {
    const spent = await payment(url, place.wallet)
    const bought = await (await send(url, spent)).text()
    const unspent = await payment(url, place.wallet)
    place.catalog('gold.json', RETIRED)
    expect(await place.gateway.reload()).to.deep.equal([])

    const gone = await fetch(url, { redirect: 'manual' })
    expect(gone.status).to.equal(410)
    expect(gone.headers.get('location')).to.equal(null)
    expect(await json(gone)).to.include({ code: 'retired', replacement: 'GET /v2/gold', retry: 'never' })
    const again = await send(url, spent)
    expect([again.status, await again.text()]).to.deep.equal([200, bought])
    expect(again.headers.get('payment-response')).to.be.a('string')
    expect((await send(url, unspent)).status).to.equal(410)
    expect(place.settler.transfers).to.have.length(1)
    expect((await buy(`${place.url}/v2/gold`, place.wallet)).status).to.equal(200)
    const listed = JSON.stringify([await place.json('/pricing.json'), await place.json('/openapi.json')])
    expect(listed).not.to.contain('/v1/gold')
    expect(listed).to.contain('/v2/gold')
  })
})
