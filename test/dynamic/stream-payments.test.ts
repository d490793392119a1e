import { once } from 'node:events'
import { expect } from 'chai'
import type { Outcome } from '../../gateway/methods/payment-method.ts'
import { MAX_REFETCHES } from '../../gateway/payments/replay.ts'
import { buy, json, offer, payment, receipt, send } from '../support/agent.ts'
import { until } from '../support/until.ts'
import type { UpstreamServer } from './upstream-server.ts'
import { useStreams } from './stream-gateway.ts'

describe('the payment for a stream', () => {
  const shop = useStreams()

  it('is settled when the upstream begins a successful answer, and only then is the stream passed on as it arrives', async () => {
    const before = shop.transfers()
    let finish = (): void => {}
    shop.upstream.answer = (response) => {
      expect(shop.transfers()).to.equal(before)
      response.writeHead(200, { 'content-type': 'application/x-thing' }).write('first ')
      finish = () => response.end('last')
    }
    const answer = await shop.head(await payment(shop.url, shop.live.wallet))
    expect(answer.statusCode).to.equal(200)
    expect(answer.headers['content-type']).to.equal('application/x-thing')
    expect(answer.headers['cache-control']).to.equal('private, no-store')
    expect(answer.headers['payment-response']).to.be.a('string')
    const [first] = (await once(answer, 'data')) as [Buffer]
    expect(first.toString()).to.equal('first ')
    expect(shop.transfers()).to.equal(before + 1)
    finish()
    const [last] = (await once(answer, 'data')) as [Buffer]
    expect(last.toString()).to.equal('last')
  })

  it('is required before the upstream is called', async () => {
    expect((await offer(shop.url)).response.status).to.equal(402)
    expect(shop.upstream.requests).to.deep.equal([])
  })

  const failures: readonly (readonly [string, UpstreamServer['answer'], number, string])[] = [
    ['answers 500', (response) => response.writeHead(500).end('no'), 502, 'product_failed'],
    [
      'redirects',
      (response) => response.writeHead(302, { location: 'http://169.254.169.254/secrets' }).end(),
      502,
      'product_failed',
    ],
    ['refuses our key', (response) => response.writeHead(401).end(), 502, 'product_failed'],
    ['does not have what was asked for', (response) => response.writeHead(404).end(), 404, 'not_found'],
    ['refuses the request', (response) => response.writeHead(416).end(), 422, 'validation_failed'],
    ['is busy', (response) => response.writeHead(503, { 'retry-after': '9' }).end(), 503, 'product_suspended'],
    ['sends an answer without content', (response) => response.writeHead(204).end(), 502, 'product_failed'],
    ['sends an empty answer', (response) => response.end(), 404, 'empty_not_sold'],
    ['does not answer in time', () => {}, 504, 'product_timeout'],
    ['closes the connection', (response) => response.destroy(), 502, 'product_failed'],
  ]
  for (const [title, answer, status, code] of failures)
    it(`is not taken if the upstream ${title}, and the buyer gets ${status}`, async () => {
      const before = shop.transfers()
      shop.upstream.answer = answer
      const refused = await buy(shop.url, shop.live.wallet)
      expect([refused.status, (await json(refused))['code']]).to.deep.equal([status, code])
      expect(shop.transfers()).to.equal(before)
      expect(shop.upstream.requests).to.have.length(1)
      shop.upstream.answer = (response) => response.end('well')
      expect((await buy(shop.url, shop.live.wallet)).status).to.equal(200)
    })

  it('cancels the stream before a byte of it is sent if it cannot be settled', async () => {
    shop.live.settler.next('revert')
    let closed = false
    shop.upstream.answer = (response) => {
      response.write('paid content')
      response.on('close', () => (closed = true))
    }
    const refused = await buy(shop.url, shop.live.wallet)
    expect(refused.status).to.equal(402)
    expect(await refused.text()).not.to.contain('paid content')
    await until(() => closed)
  })

  it('opens the stream again while the payment is valid, and is charged once', async () => {
    const before = shop.transfers()
    const header = await payment(shop.url, shop.live.wallet)
    const named = { headers: { 'idempotency-key': 'stream-2026-11-23-0001' } }
    const first = await send(shop.url, header, 2, named)
    expect(await first.text()).to.equal('bytes')
    shop.upstream.answer = (response) => response.end('bytes again')
    const [second, third] = await Promise.all([send(shop.url, header, 2, named), send(shop.url, header, 2, named)])
    expect([await second.text(), await third.text()]).to.deep.equal(['bytes again', 'bytes again'])
    expect(receipt(second)).to.deep.equal(receipt(first))
    expect(second.headers.get('idempotent-replay')).to.equal('true')
    expect(shop.transfers()).to.equal(before + 1)
    expect(shop.upstream.requests).to.have.length(3)
    const other = await send(`${shop.live.url}/v1/files/other`, header, 2, named)
    expect([other.status, (await json(other))['code']]).to.deep.equal([409, 'payment_conflict'])
    shop.live.advance(301)
    const late = await send(shop.url, header, 2, named)
    expect([late.status, (await json(late))['code']]).to.deep.equal([402, 'payment_already_used'])
    expect(shop.upstream.requests).to.have.length(3)
    shop.live.advance(-301)
  })

  it('does not open the stream again without end', async () => {
    const header = await payment(shop.url, shop.live.wallet)
    const named = { headers: { 'idempotency-key': 'stream-2026-11-23-0002' } }
    const open = () => send(shop.url, header, 2, named)
    expect((await open()).status).to.equal(200)
    const statuses: number[] = []
    for (let times = 0; times < MAX_REFETCHES; times++) statuses.push((await open()).status)
    expect(new Set(statuses)).to.deep.equal(new Set([200]))
    const asked = shop.upstream.requests.length
    const refused = await open()
    expect(refused.status).to.equal(402)
    const body = await json(refused)
    expect(body).to.include({ code: 'payment_already_used' })
    expect(body['message']).to.contain(`fetched again ${MAX_REFETCHES} times, which is the limit. Sign a new payment`)
    expect(shop.upstream.requests).to.have.length(asked)
  })

  it('does not open the stream again without end while the payment is in a block that may be replaced', async () => {
    const { settler } = shop.live
    const [settle, status] = [settler.settle.bind(settler), settler.status.bind(settler)]
    const shallow = async (outcome: Promise<Outcome>): Promise<Outcome> => {
      const known = await outcome
      return known.state === 'settled' ? { ...known, provisional: true } : known
    }
    Object.assign(settler, {
      settle: (...parameters: Parameters<typeof settle>) => shallow(settle(...parameters)),
      status: (...parameters: Parameters<typeof status>) => shallow(status(...parameters)),
    })
    try {
      const header = await payment(shop.url, shop.live.wallet)
      const named = { headers: { 'idempotency-key': 'stream-2026-11-23-0004' } }
      const statuses: number[] = []
      for (let times = 0; times < MAX_REFETCHES + 2; times++)
        statuses.push((await send(shop.url, header, 2, named)).status)
      expect(statuses).to.deep.equal([...Array.from({ length: MAX_REFETCHES + 1 }, () => 200), 402])
      expect(await shop.live.gateway.journal.counts()).to.include({ submitted: 1 })
    } finally {
      Object.assign(settler, { settle, status })
    }
  })

  it('does not say that nothing was charged if the stream cannot be opened again', async () => {
    const before = shop.transfers()
    const header = await payment(shop.url, shop.live.wallet)
    const named = { headers: { 'idempotency-key': 'stream-2026-11-23-0003' } }
    const { transaction } = receipt(await send(shop.url, header, 2, named))
    for (const [status, code, how] of [
      [502, 'product_failed', 500],
      [503, 'product_suspended', 503],
      [404, 'not_found', 404],
    ] as const) {
      shop.upstream.answer = (response) => response.writeHead(how).end()
      const failed = await send(shop.url, header, 2, named)
      const body = await json(failed)
      expect([failed.status, body['code'], body['transaction']]).to.deep.equal([status, code, transaction])
      expect(body['message'])
        .to.match(/^This payment was settled before/)
        .and.not.to.match(/nothing was charged/i)
    }
    shop.upstream.answer = (response) => response.end('well')
    expect(await (await send(shop.url, header, 2, named)).text()).to.equal('well')
    expect(shop.transfers()).to.equal(before + 1)
  })

  it('is charged once for three identical requests at the same time, and all get the stream', async () => {
    const before = shop.transfers()
    const header = await payment(shop.url, shop.live.wallet)
    const answers = await Promise.all([send(shop.url, header), send(shop.url, header), send(shop.url, header)])
    expect(await Promise.all(answers.map((answer) => answer.text()))).to.deep.equal(['bytes', 'bytes', 'bytes'])
    expect(shop.transfers()).to.equal(before + 1)
  })

  it('lets the buyer resume a stream that broke off', async () => {
    shop.upstream.answer = (response, { headers }) =>
      headers.range === 'bytes=3-'
        ? response.writeHead(206, { 'content-range': 'bytes 3-4/5', 'content-length': '2' }).end('es')
        : response.end('bytes')
    const header = await payment(shop.url, shop.live.wallet)
    await (await send(shop.url, header)).text()
    const rest = await send(shop.url, header, 2, { headers: { range: 'bytes=3-' } })
    expect([rest.status, await rest.text(), rest.headers.get('content-range')]).to.deep.equal([
      206,
      'es',
      'bytes 3-4/5',
    ])
  })
})
