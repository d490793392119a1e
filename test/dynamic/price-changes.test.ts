import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { gold } from '../support/catalog.ts'
import { buy, json, offer, payment, send } from '../support/agent.ts'
import { openLiveGateway, type LiveGateway, root } from './live-gateway.ts'
import { until } from '../support/until.ts'

const DOCUMENTS = readFileSync(join(root, 'catalog/documents.json'), 'utf8')
/** How long an earlier price is accepted, in seconds. */
const GRACE = 100

interface Change {
  readonly operation: string
  readonly route: string
  readonly old_price_usd: number | null
  readonly new_price_usd: number | null
  readonly changed_at: string
  readonly catalog_version: string
}

describe('after a price change, the gateway', () => {
  let live: LiveGateway
  let url: string
  const start = async (options: Parameters<typeof openLiveGateway>[0] = {}): Promise<void> => {
    const catalog = { 'documents.json': DOCUMENTS, 'gold.json': gold(), ...options.catalog }
    const environment = { QUOTE_GRACE_SECONDS: String(GRACE), ...options.environment }
    live = await openLiveGateway({ plugins: ['gold'], ...options, catalog, environment })
    url = `${live.url}/v1/gold`
  }
  const change = async (document: object): Promise<void> => {
    live.writeCatalog('gold.json', document)
    expect(await live.gateway.reload()).to.deep.equal([])
  }
  const history = async (query = ''): Promise<readonly Change[]> =>
    (await live.json(`/v1/prices/history${query}`))['changes'] as Change[]
  const paid = () => live.settler.transfers.map(({ amount }) => amount)
  const versions = async () => (await live.gateway.journal.list({ limit: 10 })).map((record) => record.priceVersion)

  afterEach(() => live.close())

  it('accepts payments signed at the old price for a while, then refuses them and quotes the new price', async () => {
    await start()
    const before = live.gateway.current.catalog.version
    const [early, late] = [await payment(url, live.wallet), await payment(url, live.wallet)]
    await change(gold({ price: '0.008' }))
    expect((await offer(url)).v1.accepts[0]).to.include({ maxAmountRequired: '8000' })
    live.advance(GRACE - 20)
    const answer = await send(url, early)
    expect([answer.status, (await json(answer))['price']]).to.deep.equal([200, 1900])
    expect(paid()).to.deep.equal([5000n])
    expect(await versions()).to.deep.equal([before])
    live.advance(21)
    const refused = await send(url, late)
    expect(refused.status).to.equal(402)
    const error = await json(refused)
    expect(error).to.include({ code: 'payment_invalid', retry: 'new_quote' })
    expect(error['message']).to.match(/0\.005 USDC.*0\.008 USDC/)
    expect(refused.headers.get('payment-required')).to.be.a('string')
    expect((await buy(url, live.wallet)).status).to.equal(200)
    expect(paid()).to.deep.equal([5000n, 8000n])
    expect((await versions())[0]).to.equal(live.gateway.current.catalog.version)
  })

  it('accepts each of several earlier prices for its own time, even a higher one', async () => {
    await start()
    const first = await payment(url, live.wallet)
    await change(gold({ price: '0.008' }))
    const second = await payment(url, live.wallet)
    live.advance(GRACE / 2)
    await change(gold({ price: '0.006' }))
    expect((await send(url, second)).status).to.equal(200)
    expect((await send(url, first)).status).to.equal(200)
    expect(paid()).to.deep.equal([8000n, 5000n])
  })

  it('does not accept a payment of zero for a route that used to be free', async () => {
    await start({ catalog: { 'gold.json': gold({ price: 'free' }) } })
    await change(gold({ price: '0.005' }))
    const signed = await payment(url, live.wallet)
    const payload = JSON.parse(Buffer.from(signed, 'base64').toString()) as {
      payload: { authorization: { value: string } }
    }
    payload.payload.authorization.value = '0'
    const refused = await send(url, Buffer.from(JSON.stringify(payload)).toString('base64'))
    expect(refused.status).to.equal(402)
    expect(paid()).to.deep.equal([])
  })

  it('lists the change in the price history, with the old and the new price, the time and the catalog version', async () => {
    await start()
    const [first] = await history('?route=GET%20%2Fv1%2Fgold')
    expect(first).to.deep.include({ operation: 'getGold', old_price_usd: null, new_price_usd: 0.005 })
    live.advance(3600)
    const changedAt = live.now().getTime()
    await change(gold({ price: '0.008' }))
    const [latest] = await history('?limit=1')
    const { version } = live.gateway.current.catalog
    expect(latest).to.include({ route: 'GET /v1/gold', old_price_usd: 0.005, new_price_usd: 0.008 })
    expect(latest?.catalog_version).to.equal(version)
    expect(Date.parse(latest?.changed_at ?? '') - changedAt).to.be.within(0, 10_000)
    await change(gold({ summary: 'The same price in other words.', price: '0.008' }))
    expect(await history()).to.have.length(2)
    await change(gold({ price: 'free' }))
    expect((await history('?limit=1'))[0]).to.include({ old_price_usd: 0.008, new_price_usd: 0 })
    live.remove('catalog', 'gold.json')
    await until(async () => (await history()).length === 4)
    expect((await history('?limit=1'))[0]).to.include({ old_price_usd: 0, new_price_usd: null })
    expect((await live.get('/v1/prices/history?limit=0')).status).to.equal(422)
  })

  it('records no change for a route that is not listed, or while a product is disabled', async () => {
    await start({ catalog: { 'gold.json': gold({ listed: false }) } })
    expect(await history()).to.deep.equal([])
    await change(gold())
    const before = await history()
    live.writeCatalog('gold.json', gold({}, { plugin: 'nowhere' }))
    await live.gateway.reload()
    expect(await history()).to.deep.equal(before)
  })

  describe('made while it was down,', () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'tollgate-prices-'))
    const onDisk = { environment: { DATA_DIR: dataDir }, overrides: { inMemory: false } }
    after(() => rmSync(dataDir, { recursive: true, force: true }))

    it('charges the new price from the next start, and still accepts payments signed before', async () => {
      await start(onDisk)
      const before = live.gateway.current.catalog.version
      const signed = await payment(url, live.wallet)
      const signedLater = await payment(url, live.wallet)
      await live.close()
      await start({ ...onDisk, catalog: { 'gold.json': gold({ price: '0.009' }) } })
      expect((await send(url, signed)).status).to.equal(200)
      expect(paid()).to.deep.equal([5000n])
      expect(await versions()).to.deep.equal([before])
      await live.close()
      await start({ ...onDisk, catalog: { 'gold.json': gold({ price: '0.009' }) } })
      expect((await history('?limit=1'))[0]).to.include({ old_price_usd: 0.005, new_price_usd: 0.009 })
      expect((await send(url, signedLater)).status).to.equal(200)
    })
  })
})

describe('a retired route', () => {
  let live: LiveGateway
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
    live = await openLiveGateway({ catalog: { 'gold.json': gold(), 'documents.json': DOCUMENTS }, plugins: ['gold'] })
    url = `${live.url}/v1/gold`
  })
  after(() => live.close())

  it('answers 410 with its replacement and no redirect, and still delivers what was paid for', async () => {
    const spent = await payment(url, live.wallet)
    const bought = await (await send(url, spent)).text()
    const unspent = await payment(url, live.wallet)
    live.writeCatalog('gold.json', RETIRED)
    expect(await live.gateway.reload()).to.deep.equal([])

    const gone = await fetch(url, { redirect: 'manual' })
    expect(gone.status).to.equal(410)
    expect(gone.headers.get('location')).to.equal(null)
    expect(await json(gone)).to.include({ code: 'retired', replacement: 'GET /v2/gold', retry: 'never' })
    const repeated = await send(url, spent)
    expect([repeated.status, await repeated.text()]).to.deep.equal([200, bought])
    expect(repeated.headers.get('payment-response')).to.be.a('string')
    expect((await send(url, unspent)).status).to.equal(410)
    expect(live.settler.transfers).to.have.length(1)
    expect((await buy(`${live.url}/v2/gold`, live.wallet)).status).to.equal(200)
    const listed = JSON.stringify([await live.json('/pricing.json'), await live.json('/openapi.json')])
    // Not as a key of a list, nor at the end of a route.
    expect(listed).not.to.contain('/v1/gold"')
    expect(listed).to.contain('/v2/gold"')
  })
})
