import type { IncomingMessage } from 'node:http'
import { expect } from 'chai'
import { createAlertSender, type SendAlert } from '../../../gateway/accounting/alert-webhook.ts'
import { createWebhook } from '../../../gateway/accounting/webhook.ts'
import { createLog } from '../../../gateway/observe/log.ts'
import { isGenuine, type Receiver, SECRET, startReceiver } from '../../support/webhook-receiver.ts'
import { type LoopbackServer, startLoopbackServer } from '../../support/loopback-server.ts'

describe('the alert webhook', () => {
  let server: LoopbackServer
  let received: IncomingMessage[]
  let host: string

  beforeEach(async () => {
    received = []
    server = await startLoopbackServer(async (request, response) => {
      received.push(request)
      request.resume().on('end', () => response.end())
    })
    host = new URL(server.url).host
  })
  afterEach(() => server.close())

  it('gets the user name and the password of its address, which appear in no log', async () => {
    let logged = ''
    const log = createLog('info', { write: (line) => (logged += line) })
    const url = `http://watch:s3cret%2F1@${host}/alerts`
    const alert = createAlertSender({ url, service: 'https://shop.example', secrets: [], log, now: () => new Date(0) })
    expect(await alert({ event: 'ledger.owed', message: '1 payment is owed', details: {} })).to.equal(true)
    expect(received.map(({ headers, url: path }) => [headers.authorization, path])).to.deep.equal([
      [`Basic ${Buffer.from('watch:s3cret/1').toString('base64')}`, '/alerts'],
    ])
    expect(logged).to.contain('ledger.owed').and.not.to.contain('s3cret')
  })

  describe('that fails', () => {
    let receiver: Receiver
    let at: number
    let alert: SendAlert
    const owed = { event: 'ledger.owed', message: '1 payment is owed', details: { about: ['a'] } }

    beforeEach(async () => {
      receiver = await startReceiver()
      at = 1_770_000_000_000
      const parts = { secrets: [SECRET], service: 'https://shop.example', log: createLog('silent') }
      alert = createAlertSender({ ...parts, url: receiver.url, now: () => new Date(at) })
    })
    afterEach(() => receiver.close())

    it('gets the same signed message again, after longer and longer waits, until it accepts it', async () => {
      receiver.answer(500)
      for (let seconds = 0; seconds <= 20; seconds++, at += 1_000) expect(await alert(owed)).to.equal(false)
      receiver.answer(200)
      at += 20_000
      expect(await alert({ ...owed, message: 'in other words' })).to.equal(true)
      expect(await alert(owed)).to.equal(true)
      const { received } = receiver
      const times = received.map(({ timestamp }) => timestamp - 1_770_000_000)
      expect(times).to.deep.equal([0, 5, 15, 41, 41])
      expect(new Set(received.slice(0, 4).map(({ id }) => id)).size).to.equal(1)
      expect(received[4]?.id).not.to.equal(received[0]?.id)
      expect(received.every(({ isGenuine }) => isGenuine)).to.equal(true)
      const { message, details } = owed
      const { body } = received[3] as (typeof received)[0]
      expect(body).to.deep.include({ type: 'alert', event: 'ledger.owed', message, details })
      expect(body['timestamp']).to.equal(body['at'])
    })

    it('gets other alerts meanwhile', async () => {
      receiver.answer(500)
      await alert(owed)
      receiver.answer(200)
      expect(await alert({ ...owed, details: { about: ['b'] } })).to.equal(true)
      expect(receiver.received).to.have.length(2)
    })

    it('gets nothing more after it has answered 410', async () => {
      receiver.answer(410)
      expect(await alert(owed)).to.equal(true)
      expect(await alert({ ...owed, event: 'disk.low' })).to.equal(true)
      expect(receiver.received).to.have.length(1)
    })
  })

  it('is signed as the example of the specification', async () => {
    const receiver = await startReceiver()
    try {
      const secrets = ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw']
      const deliver = createWebhook({ url: receiver.url, secrets, now: () => new Date(1_614_265_330_000) })
      await deliver({ id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', body: '{"test": 2432232314}' })
      const signature = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
      expect(receiver.received[0]?.headers['webhook-signature']).to.equal(signature)
    } finally {
      await receiver.close()
    }
  })

  it('is signed by each of two secrets, and its redirects are not followed', async () => {
    const receiver = await startReceiver()
    try {
      const old = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
      const deliver = createWebhook({ url: receiver.url, secrets: [old, SECRET], now: () => new Date(5_999) })
      const body = '{"type":"test"}'
      expect(await deliver({ id: 'msg_1', body })).to.equal('accepted')
      const [one] = receiver.received
      expect(one).to.include({ id: 'msg_1', timestamp: 5, isGenuine: true })
      expect(isGenuine(one?.headers ?? {}, body, old)).to.equal(true)
      expect(isGenuine(one?.headers ?? {}, `${body} `, old)).to.equal(false)
      receiver.answer(307)
      expect(await deliver({ id: 'msg_2', body })).to.deep.equal({ refused: 307 })
    } finally {
      await receiver.close()
    }
  })
})
