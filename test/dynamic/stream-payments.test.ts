import { once } from 'node:events'
import { expect } from 'chai'
import { buy, json, offer, payment, receipt, send } from '../support/agent.ts'
import { until } from './live-gateway.ts'
import type { UpstreamServer } from './upstream-server.ts'
import { useStreams } from './stream-gateway.ts'

describe('the payment for a stream', () => {
  const shop = useStreams()

  it('is settled once the upstream begins a successful answer, which is passed on only then, while it arrives', async () => {
    const before = shop.transfers()
    let finish = (): void => {}
    shop.source.answer = (response) => {
      expect(shop.transfers()).to.equal(before)
      response.writeHead(200, { 'content-type': 'application/x-thing' }).write('first ')
      finish = () => response.end('last')
    }
    const answer = await shop.head(await payment(shop.url, shop.place.wallet))
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
    expect(shop.source.asked).to.deep.equal([])
  })

  const failures: readonly (readonly [string, UpstreamServer['answer'], number, string])[] = [
    ['fails', (response) => response.writeHead(500).end('no'), 502, 'product_failed'],
    [
      'redirects',
      (response) => response.writeHead(302, { location: 'http://169.254.169.254/secrets' }).end(),
      502,
      'product_failed',
    ],
    ['refuses our key', (response) => response.writeHead(401).end(), 502, 'product_failed'],
    ['has no such thing', (response) => response.writeHead(404).end(), 404, 'not_found'],
    ['refuses the request', (response) => response.writeHead(416).end(), 422, 'validation_failed'],
    ['is busy', (response) => response.writeHead(503, { 'retry-after': '9' }).end(), 503, 'product_suspended'],
    ['sends nothing', (response) => response.writeHead(204).end(), 502, 'product_failed'],
    ['says nothing', () => {}, 504, 'product_timeout'],
    ['hangs up', (response) => response.destroy(), 502, 'product_failed'],
  ]
  for (const [title, answer, status, code] of failures)
    it(`is not taken if the upstream ${title}, and the answer is ${status}`, async () => {
      const before = shop.transfers()
      shop.source.answer = answer
      const refused = await buy(shop.url, shop.place.wallet)
      expect([refused.status, (await json(refused))['code']]).to.deep.equal([status, code])
      expect(shop.transfers()).to.equal(before)
      expect(shop.source.asked).to.have.length(1)
      shop.source.answer = (response) => response.end('well')
      expect((await buy(shop.url, shop.place.wallet)).status).to.equal(200)
    })

  it('cannot be settled: the stream is dropped and no byte of it is sent', async () => {
    shop.place.settler.next('revert')
    let closed = false
    shop.source.answer = (response) => {
      response.write('paid content')
      response.on('close', () => (closed = true))
    }
    const refused = await buy(shop.url, shop.place.wallet)
    expect(refused.status).to.equal(402)
    expect(await refused.text()).not.to.contain('paid content')
    await until(() => closed)
  })

  it('opens the stream again while it is valid, and is charged once', async () => {
    const before = shop.transfers()
    const header = await payment(shop.url, shop.place.wallet)
    const first = await send(shop.url, header)
    expect(await first.text()).to.equal('bytes')
    shop.source.answer = (response) => response.end('bytes again')
    const [again, twin] = await Promise.all([send(shop.url, header), send(shop.url, header)])
    expect([await again.text(), await twin.text()]).to.deep.equal(['bytes again', 'bytes again'])
    expect(receipt(again)).to.deep.equal(receipt(first))
    expect(again.headers.get('idempotent-replay')).to.equal('true')
    expect(shop.transfers()).to.equal(before + 1)
    expect(shop.source.asked).to.have.length(3)
    const other = await send(`${shop.place.url}/v1/files/other`, header)
    expect([other.status, (await json(other))['code']]).to.deep.equal([409, 'payment_conflict'])
    shop.place.advance(301)
    const late = await send(shop.url, header)
    expect([late.status, (await json(late))['code']]).to.deep.equal([402, 'payment_already_used'])
    expect(shop.source.asked).to.have.length(3)
    shop.place.advance(-301)
  })

  it('is charged once for two identical requests at the same time, and both get the stream', async () => {
    const before = shop.transfers()
    const header = await payment(shop.url, shop.place.wallet)
    const answers = await Promise.all([send(shop.url, header), send(shop.url, header), send(shop.url, header)])
    expect(await Promise.all(answers.map((answer) => answer.text()))).to.deep.equal(['bytes', 'bytes', 'bytes'])
    expect(shop.transfers()).to.equal(before + 1)
  })

  it('resumes a stream that was broken off', async () => {
    shop.source.answer = (response, { headers }) =>
      headers.range === 'bytes=3-'
        ? response.writeHead(206, { 'content-range': 'bytes 3-4/5', 'content-length': '2' }).end('es')
        : response.end('bytes')
    const header = await payment(shop.url, shop.place.wallet)
    await (await send(shop.url, header)).text()
    const rest = await send(shop.url, header, 2, { headers: { range: 'bytes=3-' } })
    expect([rest.status, await rest.text(), rest.headers.get('content-range')]).to.deep.equal([
      206,
      'es',
      'bytes 3-4/5',
    ])
  })
})
