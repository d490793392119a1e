import { expect } from 'chai'
import { paymentRequired, type Responder } from './fake-internet.ts'
import { listingItem, openOnlineDirectory, PAYEE, type OnlineDirectory } from './online-directory.ts'

const url = 'http://a.example.org/data'
const OTHER_PAYEE = '0x00000000000000000000000000000000000000b2'
const status =
  (code: number): Responder =>
  (_, response) =>
    response.writeHead(code).end('{}')

describe('visits of listed services', () => {
  let directory: OnlineDirectory
  beforeEach(async () => {
    directory = await openOnlineDirectory()
    directory.sources.bazaar.push(listingItem(url))
  })
  afterEach(() => directory.close())

  /** Runs a sweep and the visits that are due, then advances the clock by a day; repeats this `count` times. */
  const days = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i += 1) {
      await directory.run('sweep', 'visit')
      directory.clock += 86_400
    }
  }
  const health = async (query: object = {}) => (await directory.record(url, query)).liveness

  it('mark a service alive after two good visits, and count the visits of 30 days', async () => {
    directory.internet.site('a.example.org', '93.184.216.34', paymentRequired('10000', PAYEE))
    await days(1)
    expect(await health()).to.deep.include({ status: 'unknown', http_status: 402, checks_30d: 1, ok_30d: 1 })
    await days(1)
    expect(await health()).to.include({ status: 'alive', last_alive: '2026-11-21T12:00:00Z', checks_30d: 2, ok_30d: 2 })
    await days(40)
    expect(await health()).to.include({ checks_30d: 30, ok_30d: 30 })
  })

  it('are repeated after ten minutes while they disagree, and once a day otherwise', async () => {
    directory.internet.site('a.example.org', '93.184.216.34', paymentRequired('10000', PAYEE))
    await directory.run('sweep', 'visit', 'visit')
    expect(directory.internet.requests).to.have.length(1)
    directory.clock += 600
    await directory.run('visit')
    directory.clock += 86_399
    await directory.run('visit')
    expect(directory.internet.requests).to.have.length(2)
    directory.clock += 1
    await directory.run('visit')
    expect(directory.internet.requests).to.have.length(3)
  })

  it('hide a service after three bad visits, unless the query asks for hidden ones', async () => {
    directory.internet.site('a.example.org', '93.184.216.34', status(500))
    await days(2)
    expect((await directory.find()).total).to.equal(1)
    await days(1)
    expect((await directory.find()).total).to.equal(0)
    expect(await health({ alive: false })).to.include({ status: 'dead', http_status: 500 })
  })

  it('send GET, then POST after a 404 or 405, and never HEAD', async () => {
    for (const [code, methods] of [
      [402, ['GET']],
      [404, ['GET', 'POST']],
      [405, ['GET', 'POST']],
      [401, ['GET']],
      [500, ['GET']],
    ] as const) {
      directory.internet.site('a.example.org', '93.184.216.34', status(code))
      directory.internet.requests.length = 0
      await days(1)
      expect(
        directory.internet.requests.map((request) => request.split(' ')[0]),
        String(code),
      ).to.deep.equal(methods)
    }
  })

  it('count a POST that asks for a payment as a good visit', async () => {
    directory.internet.site('a.example.org', '93.184.216.34', (request, response) =>
      (request.method === 'POST' ? paymentRequired('10000', PAYEE, 1) : status(405))(request, response),
    )
    await days(2)
    expect(await health()).to.include({ status: 'alive' })
  })

  it('take their turn, however many services of one host are due', async () => {
    directory.sources.bazaar.length = 0
    directory.sources.bazaar.push(...Array.from({ length: 600 }, (_, n) => listingItem(`http://many.example.org/${n}`)))
    directory.internet.site('many.example.org', '93.184.216.35', paymentRequired('10000', PAYEE))
    directory.internet.site('a.example.org', '93.184.216.34', paymentRequired('10000', PAYEE))
    await directory.run('sweep')
    directory.sources.bazaar.push(listingItem(url))
    directory.clock += 6 * 3600
    await directory.run('sweep', 'visit')
    const hosts = directory.internet.requests.map((request) => new URL(request.split(' ')[1]!).host)
    expect(hosts.toSorted()).to.deep.equal(['a.example.org', ...Array.from({ length: 4 }, () => 'many.example.org')])
  })

  it('skip address templates, installable packages and our own service', async () => {
    directory.sources.bazaar.push(listingItem('http://b.example.org/:id'))
    directory.sources.registry.push({
      name: 'me/tools',
      version: '1',
      packages: [{ registryType: 'npm', identifier: 'x' }],
    })
    directory.internet.site('b.example.org', '93.184.216.35', paymentRequired('1', PAYEE))
    await directory.run('self')
    await days(3)
    expect(new Set(directory.internet.resolved)).to.deep.equal(new Set(['a.example.org']))
    expect(await directory.record('http://b.example.org/:id')).to.deep.include({
      url_is_template: true,
      flags: ['template', 'plain_http'],
    })
  })

  it('refuse a public name that resolves to a private address, and record the reason', async () => {
    directory.internet.name('a.example.org', ['169.254.169.254'])
    await days(1)
    expect((await directory.record(url)).flags).to.include('refused')
    await days(2)
    expect(directory.internet.dialled).to.deep.equal([])
    expect((await directory.find()).total).to.equal(0)
  })

  it('take the payTo address from the service itself rather than from a listing', async () => {
    directory.internet.site('a.example.org', '93.184.216.34', paymentRequired('777', PAYEE))
    directory.sources.bazaar[0] = listingItem(url)
    await days(2)
    expect(await directory.record(url)).to.deep.include({
      flags: ['plain_http'],
      provider: { host: 'a.example.org', name: null, verified: true },
    })
    const [offer] = (listingItem(url) as { accepts: object[] }).accepts
    directory.sources.bazaar[0] = listingItem(url, { accepts: [{ ...offer, payTo: OTHER_PAYEE }] })
    await days(1)
    const record = await directory.record(url)
    expect(record.prices.map(({ amount_atomic, pay_to }) => [amount_atomic, pay_to])).to.deep.equal([['777', PAYEE]])
    expect(record.flags).to.include('payto_changed')
  })

  it('flag a service that changes its payTo address', async () => {
    directory.internet.site('a.example.org', '93.184.216.34', paymentRequired('10000', PAYEE))
    await days(2)
    directory.internet.site('a.example.org', '93.184.216.34', paymentRequired('10000', OTHER_PAYEE))
    await days(1)
    const record = await directory.record(url)
    expect(record.prices[0]!.pay_to).to.equal(OTHER_PAYEE)
    expect(record.flags).to.include('payto_changed')
  })

  it('are limited to four per host in each run', async () => {
    directory.internet.site('a.example.org', '93.184.216.34', status(402))
    directory.sources.bazaar.push(...Array.from({ length: 20 }, (_, i) => listingItem(`http://a.example.org/${i}`)))
    await directory.run('sweep', 'visit')
    expect(directory.internet.requests).to.have.length(4)
    expect(directory.internet.peak.byNetwork['93.184.216']).to.equal(1)
  })

  it('do not change answers for earlier times', async () => {
    directory.internet.site('a.example.org', '93.184.216.34', paymentRequired('10000', PAYEE))
    await directory.run('sweep')
    const [before, earlier] = [await directory.find(), directory.clock]
    directory.clock += 5
    await directory.run('visit')
    expect(await directory.find({}, earlier)).to.deep.equal(before)
    expect((await directory.record(url)).last_updated).to.equal('2026-11-20T12:00:05Z')
  })
})

describe('the documents that hosts serve about themselves', () => {
  let directory: OnlineDirectory
  beforeEach(async () => {
    directory = await openOnlineDirectory()
  })
  afterEach(() => directory.close())
  const serve =
    (documents: Record<string, unknown>): Responder =>
    (request, response) => {
      const found = documents[request.url ?? '']
      return found === undefined ? response.writeHead(404).end() : response.end(JSON.stringify(found))
    }

  it('are read from /.well-known/x402 and the agent card, for configured origins and for hosts of listed services', async () => {
    directory.internet.site(
      'own.example.org',
      '93.184.216.34',
      serve({
        '/.well-known/x402': { version: 1, resources: ['http://own.example.org/a', 'http://evil.example.org/b'] },
      }),
    )
    directory.internet.site(
      'b.example.org',
      '93.184.217.34',
      serve({ '/.well-known/agent-card.json': { name: 'B', url: 'http://b.example.org/a2a', skills: [] } }),
    )
    directory.sources.bazaar.push(listingItem('http://b.example.org/x'))
    await directory.run('sweep', 'origins')
    const found = await directory.find()
    expect(found.records.map(({ url, kind }) => [url, kind])).to.deep.equal([
      ['http://b.example.org/a2a', 'a2a_agent'],
      ['http://b.example.org/x', 'http_endpoint'],
      ['http://own.example.org/a', 'http_endpoint'],
    ])
    expect(found.records.map(({ provider }) => provider.verified)).to.deep.equal([true, false, true])
  })

  it('are requested once a day, and never from an origin that resolves to a private address', async () => {
    directory.internet.name('own.example.org', ['10.0.0.1'])
    await directory.run('origins', 'origins')
    expect(directory.internet.resolved).to.deep.equal(['own.example.org', 'own.example.org'])
    expect(directory.internet.dialled).to.deep.equal([])
    directory.clock += 86_400
    await directory.run('origins')
    expect(directory.internet.resolved).to.have.length(4)
  })

  it('include our own service, from our own discovery document', async () => {
    await directory.run('self')
    const record = await directory.record('http://127.0.0.1:4021/v1/x/thing')
    expect(record).to.deep.include({
      name: 'Us: GET /v1/x/thing',
      flags: ['self', 'plain_http'],
      networks: ['eip155:84532'],
    })
    expect(record.prices[0]).to.include({ amount_atomic: '20000', amount_usd: 0.02, pay_to: PAYEE })
    expect(record.liveness.status).to.equal('alive')
  })
})
