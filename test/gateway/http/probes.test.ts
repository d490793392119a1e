import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect } from 'chai'
import { createLog } from '../../../gateway/observe/log.ts'
import { ask, json } from '../../support/agent.ts'
import { openGateway, type TestGateway } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'

describe('a probe', () => {
  let logged = ''
  let shop: TestGateway
  beforeEach(async () => {
    logged = ''
    const log = createLog('info', { write: (line) => void (logged += line) })
    shop = await openGateway({ OPERATOR_TOKEN: 'correct-horse-battery', TRUSTED_PROXIES: '127.0.0.1' }, { log })
  })
  afterEach(() => shop?.close())

  const probe = async (path: string): Promise<readonly [number, unknown]> => {
    const response = await ask(`${shop.url}${path}`)
    return [response.status, await json(response)]
  }

  it('hears that the process lives and can sell', async () => {
    expect(await probe('/livez')).to.deep.equal([200, { live: true }])
    expect(await probe('/readyz')).to.deep.equal([200, { ready: true, not_ready: [] }])
    const head = await ask(`${shop.url}/readyz`, { method: 'HEAD' })
    expect([head.status, await head.text(), head.headers.get('cache-control')]).to.deep.equal([200, '', 'no-store'])
    expect((await ask(`${shop.url}/readyz`, { method: 'POST' })).status).to.equal(404)
  })

  it('hears that nothing can be settled, without the reason, and that the process lives all the same', async () => {
    shop.settler.down('the node at http://user:secret@node.test does not answer')
    expect(await probe('/readyz')).to.deep.equal([503, { ready: false, not_ready: ['settler'] }])
    expect(await probe('/livez')).to.deep.equal([200, { live: true }])
    shop.settler.down(null)
    expect((await probe('/readyz'))[0]).to.equal(200)
  })

  it('is neither limited, logged nor counted', async () => {
    const headers = { 'x-forwarded-for': '203.0.113.9' }
    const statusOf = async (path: string): Promise<number> => (await ask(`${shop.url}${path}`, { headers })).status
    const metrics = async (): Promise<string> => {
      const bearer = { authorization: 'Bearer correct-horse-battery' }
      return (await (await ask(`${shop.url}/metrics`, { headers: bearer })).text()).replace(/^(?!tollgate_).*\n/gm, '')
    }
    // On a slow machine a window may end between two calls: the caller is over its limit before and after the probes.
    await until(async () => {
      const burst = await Promise.all(Array.from({ length: 100 }, () => statusOf('/v1/runs')))
      if (!burst.includes(429)) return false
      expect([await statusOf('/livez'), await statusOf('/readyz')]).to.deep.equal([200, 200])
      return (await statusOf('/v1/runs')) === 429
    })
    expect(logged).not.to.match(/livez|readyz/)
    expect(await metrics())
      .to.contain('tollgate_')
      .and.not.match(/livez|readyz/)
    expect(await (await ask(`${shop.url}/openapi.json`)).text()).not.to.match(/livez|readyz/)
  })

  it('hears of a stop as soon as it begins', async () => {
    const arrived = once(shop.gateway.server, 'connection') as Promise<[Socket]>
    const socket = connect(Number(new URL(shop.url).port), '127.0.0.1')
    let answer = ''
    socket.on('data', (bytes) => (answer += String(bytes)))
    // A request that has begun keeps its connection through the stop.
    const begin = 'GET /readyz HTTP/1.1\r\nHost: shop\r\n'
    socket.write(begin)
    const [peer] = await arrived
    await until(() => peer.bytesRead === begin.length)
    const closed = shop.gateway.close()
    socket.write('\r\n')
    await Promise.all([closed, once(socket, 'close')])
    expect(answer).to.match(/^HTTP\/1\.1 503 /)
    expect(answer).to.match(/\{"ready":false,"not_ready":\["shutdown"\]\}$/)
  })
})
