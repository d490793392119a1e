/** Uploads that announce much and send little, beside those of honest callers. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect } from 'chai'
import { type LiveGateway, openLiveGateway } from '../dynamic/live-gateway.ts'
import { nextRequest, until } from '../support/gateway.ts'

/** Round trips of one symbol in a file of about so many bytes. */
function ledgerOf(bytes: number): Buffer {
  const start = Date.UTC(2021, 0, 4)
  const time = (minutes: number): string => new Date(start + minutes * 60_000).toISOString()
  const price = (at: number): string => (100 + 10 * Math.sin(at / 1000) + Math.cos(at * 7)).toFixed(2)
  const lines = ['symbol,side,qty,entry_time,entry_price,exit_time,exit_price']
  for (let at = 0, size = 0; size < bytes; at += 1) {
    const line = `XYZ,${at % 3 === 0 ? 'short' : 'long'},${'0'.repeat(20)}10,${time(at * 10)},${price(at)},${time(at * 10 + 9)},${price(at + 1)}`
    size += line.length + 1
    lines.push(line)
  }
  return Buffer.from(`${lines.join('\n')}\n`)
}

describe('uploads that announce 39 MB and send 4 kB a second', function () {
  this.timeout(300_000)
  let shop: LiveGateway
  let timer: NodeJS.Timeout
  const sockets: Socket[] = []
  const answers: string[] = []
  before(async () => {
    shop = await openLiveGateway({ own: true })
    const head = [
      'POST /audit HTTP/1.1',
      'Host: a',
      'Accept: application/json',
      'Content-Type: multipart/form-data; boundary=edge',
      'Content-Length: 39000000',
    ]
    const piece = 'x'.repeat(1_000)
    for (let nth = 0; nth < 30; nth += 1) {
      const socket = connect(Number(new URL(shop.url).port), '127.0.0.1')
      answers.push('')
      socket.setEncoding('latin1').on('data', (text: string) => (answers[nth] += text))
      sockets.push(socket.on('error', () => {}))
      await once(socket, 'connect')
      const received = nextRequest(shop)
      socket.write(`${head.join('\r\n')}\r\n\r\n${piece}`)
      await received
    }
    timer = setInterval(() => {
      for (const socket of sockets) if (socket.writable) socket.write(piece)
    }, 250)
  })
  after(async () => {
    clearInterval(timer)
    for (const socket of sockets) socket.destroy()
    await shop.close()
  })

  for (const megabytes of [2, 16])
    it(`take no place from an audit of ${megabytes} MB`, async () => {
      const body = new FormData()
      body.set('file', new Blob([ledgerOf(megabytes * 1_000_000)]), 'ledger.csv')
      const answer = await fetch(`${shop.url}/audit`, { method: 'POST', headers: { accept: 'application/json' }, body })
      expect(answer.status, await answer.text()).to.equal(200)
    })

  it('are cut off by their rate, which leaves a request a quarter of an hour', async () => {
    await until(() => sockets.every((socket) => socket.closed))
    expect(answers.map((answer) => answer.slice(0, 12))).to.deep.equal(sockets.map(() => 'HTTP/1.1 408'))
    expect(shop.gateway.server.requestTimeout).to.equal(900_000)
  })
})
