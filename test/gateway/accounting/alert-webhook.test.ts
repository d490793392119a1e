import type { IncomingMessage } from 'node:http'
import { expect } from 'chai'
import { createAlertSender } from '../../../gateway/accounting/alert-webhook.ts'
import { createLog } from '../../../gateway/observe/log.ts'
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
    const alert = createAlertSender({ url, service: 'https://shop.example', log, now: () => new Date(0) })
    expect(await alert({ event: 'ledger.owed', message: '1 payment is owed', details: {} })).to.equal(true)
    expect(received.map(({ headers, url: path }) => [headers.authorization, path])).to.deep.equal([
      [`Basic ${Buffer.from('watch:s3cret/1').toString('base64')}`, '/alerts'],
    ])
    expect(logged).to.contain('ledger.owed').and.not.to.contain('s3cret')
  })
})
