import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { createAlertSender } from '../../../gateway/accounting/alert-webhook.ts'
import { createLog } from '../../../gateway/observe/log.ts'

describe('the alert webhook', () => {
  let server: Server
  let received: IncomingMessage[]
  let host: string

  beforeEach(async () => {
    received = []
    server = createServer((request, response) => {
      received.push(request)
      request.resume().on('end', () => response.end())
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterEach(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })

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
