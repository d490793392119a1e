import { once } from 'node:events'
import { expect } from 'chai'
import { buy, payment, receipt } from '../support/agent.ts'
import { until, untilStill } from '../support/until.ts'
import { FILES, useStreams } from './stream-gateway.ts'

describe('a stream from an upstream', () => {
  const shop = useStreams()

  it('is requested with the input of the caller and our secret, and with nothing else about the caller', async () => {
    const header = await payment(shop.url, shop.live.wallet)
    const answer = await shop.head(header, {
      accept: 'video/mp4',
      authorization: 'Bearer callers',
      cookie: 'a=b',
      connection: 'keep-alive, x-forwarded-for',
      'x-service-token': 'token',
      'x-forwarded-for': '10.0.0.1',
      'x-forwarded-host': 'evil.example',
      'idempotency-key': '1234567890123456',
      expect: '100-continue',
      te: 'trailers',
      'proxy-authorization': 'Basic',
      upgrade: 'h2c',
    })
    answer.resume()
    const [request] = shop.upstream.requests
    expect(request?.url).to.equal('/files/big')
    const { host, 'x-call-id': call, connection, ...rest } = request?.headers ?? {}
    expect(host).to.equal(new URL(shop.upstream.url).host)
    expect(call).to.match(/^[0-9a-f-]{36}$/)
    expect(connection).to.be.oneOf(['keep-alive', undefined])
    expect(rest).to.deep.equal({ accept: 'video/mp4', authorization: 'Bearer s3cret' })
  })

  it('is delivered with the headers that describe its body, and with no other header of the upstream', async () => {
    shop.upstream.answer = (response) =>
      response
        .writeHead(200, {
          'content-type': 'text/html',
          'content-disposition': 'attachment; filename="a.html"',
          'set-cookie': ['a=b', 'c=d'],
          server: 'secret/1.0',
          'www-authenticate': 'Basic',
          location: 'http://internal/',
          'access-control-allow-origin': 'http://internal',
          'content-security-policy': 'default-src *',
          'x-internal': 'yes',
          'proxy-authenticate': 'Basic',
          trailer: 'x-late',
          'payment-response': 'forged',
          'alt-svc': 'h3=":443"',
        })
        .end('<script>alert(1)</script>')
    const answer = await buy(shop.url, shop.live.wallet)
    const headers = Object.fromEntries(answer.headers)
    expect(headers).to.include({
      'content-type': 'text/html',
      'content-disposition': 'attachment; filename="a.html"',
      'access-control-allow-origin': '*',
      'content-security-policy': `default-src 'none'; frame-ancestors 'none'`,
    })
    expect(receipt(answer)).to.include({ success: true })
    for (const name of [
      'set-cookie',
      'server',
      'www-authenticate',
      'location',
      'x-internal',
      'proxy-authenticate',
      'trailer',
      'alt-svc',
    ])
      expect(headers).not.to.have.property(name)
  })

  it('waits for a caller who reads slowly instead of filling memory', async () => {
    const TOTAL = 64 * 1024 * 1024
    let written = 0
    shop.upstream.answer = (response) => {
      const chunk = Buffer.alloc(256 * 1024)
      const more = (): void => {
        while (written < TOTAL) {
          written += chunk.length
          if (!response.write(chunk)) return void response.once('drain', more)
        }
        response.end()
      }
      more()
    }
    const answer = await shop.head(await payment(shop.url, shop.live.wallet))
    answer.pause()
    const sent = await untilStill(
      () => written,
      () => shop.live.json('/health'),
    )
    expect(sent).to.be.lessThan(TOTAL / 2)
    let size = 0
    for await (const chunk of answer) size += (chunk as Buffer).length
    expect(size).to.equal(TOTAL)
  })

  it('ends as incomplete for the caller if the upstream breaks off or stops sending', async () => {
    for (const stop of [(response: { destroy(): void }) => response.destroy(), () => {}]) {
      const upstream = new Promise<{ destroy(): void }>((resolve) => {
        shop.upstream.answer = (response) => {
          response.writeHead(200, { 'content-length': '1000' }).write('a part')
          resolve(response)
        }
      })
      const answer = await shop.head(await payment(shop.url, shop.live.wallet))
      await once(answer, 'data')
      stop(await upstream)
      const failure: unknown = await once(answer, 'end').catch((error: unknown) => error)
      expect(failure).to.be.instanceOf(Error)
    }
  })

  it('is cancelled if the caller disconnects', async () => {
    let closed = false
    shop.upstream.answer = (response) => {
      response.write('a part')
      response.on('close', () => (closed = true))
    }
    const answer = await shop.head(await payment(shop.url, shop.live.wallet))
    await once(answer, 'data')
    answer.destroy()
    await until(() => closed)
  })

  it('reuses connections to the upstream', async () => {
    await (await buy(shop.url, shop.live.wallet)).text()
    const before = shop.upstream.connections.size
    for (let count = 0; count < 5; count++) await (await buy(shop.url, shop.live.wallet)).text()
    expect(shop.upstream.connections.size).to.equal(before)
  })

  it('may be free, and then needs no payment', async () => {
    const answer = await fetch(`${shop.live.url}/v1/free/big`)
    expect([answer.status, await answer.text()]).to.deep.equal([200, 'bytes'])
    const head = await fetch(`${shop.live.url}/v1/free/big`, { method: 'HEAD' })
    expect([head.status, await head.text()]).to.deep.equal([200, ''])
  })

  it('continues while the catalog changes', async () => {
    let finish = (): void => {}
    shop.upstream.answer = (response) => {
      response.write('first ')
      finish = () => response.end('last')
    }
    const answer = await shop.head(await payment(shop.url, shop.live.wallet))
    await once(answer, 'data')
    shop.live.writeCatalog('files.json', { ...FILES(shop.upstream.url), title: 'Other files' })
    await shop.live.gateway.reload()
    finish()
    const [last] = (await once(answer, 'data')) as [Buffer]
    expect(last.toString()).to.equal('last')
  })
})
