/** What clients that people use make of an answer that leaves before their upload has arrived. */
import { spawnSync } from 'node:child_process'
import { Agent, request } from 'node:http'
import { Readable } from 'node:stream'
import axios from 'axios'
import { expect } from 'chai'
import { openSlowLine } from '../support/connections/slow-line.ts'
import { UPLOADS } from '../support/connections/uploads.ts'
import { openTransportGateway, PRICED, route, type TransportGateway } from './transport-gateway.ts'

const PATH = '/upload'
const MAX_BYTES = 48_000_000
/** Small enough for a test, and far more than the buffers of a connection hold. */
const SLOW = { bytes: 8_000_000, megabits: 20 }

const jsonOf = (bytes: number): Buffer => Buffer.from(JSON.stringify('x'.repeat(bytes - 2)))

function* piecesOf(body: Buffer): Generator<Buffer> {
  for (let at = 0; at < body.length; at += 16_384) yield body.subarray(at, at + 16_384)
}

const isInstalled = (program: string): boolean => spawnSync(program, ['--version']).status === 0

/** Sends a body whole or as a stream, and resolves to the status. */
type Post = (url: string, headers: Readonly<Record<string, string>>, body: Buffer, isStream: boolean) => Promise<number>

describe('an answer that leaves before an upload has arrived', function () {
  this.timeout(120_000)
  let gateway: TransportGateway
  const agent = new Agent({ keepAlive: true })

  before(async () => {
    gateway = await openTransportGateway([
      route('upload', `POST ${PATH}`, { ...PRICED, bodyMedia: ['application/json'], maxBytes: MAX_BYTES }),
    ])
  })
  after(async () => {
    agent.destroy()
    await gateway.close()
  })

  for (const [name, upload] of Object.entries(UPLOADS)) {
    const isMissing = /curl|Python/.test(name) && !isInstalled(name.includes('curl') ? 'curl' : 'python3')
    it(`is read by ${name}, after 40 MB`, async function () {
      if (isMissing) return this.skip()
      expect(await upload(gateway.url + PATH, jsonOf(40_000_000))).to.equal(402)
    })

    it(`is read by ${name}, on a slow line`, async function () {
      if (isMissing) return this.skip()
      const line = await openSlowLine(gateway.port, SLOW.megabits)
      try {
        expect(await upload(`http://127.0.0.1:${line.port}${PATH}`, jsonOf(SLOW.bytes))).to.equal(402)
      } finally {
        await line.close()
      }
    })
  }

  const CLIENTS: Readonly<Record<string, Post>> = {
    fetch: async (url, headers, body, isStream) => {
      const content = isStream ? Readable.toWeb(Readable.from(piecesOf(body))) : new Uint8Array(body)
      const init = { method: 'POST', headers, body: content, duplex: 'half' } as RequestInit
      const response = await fetch(url, init)
      await response.arrayBuffer()
      return response.status
    },
    'axios with an agent': async (url, headers, body, isStream) => {
      const content = isStream ? Readable.from(piecesOf(body)) : body
      const options = { headers, httpAgent: agent, maxBodyLength: Infinity, validateStatus: null }
      return (await axios.post(url, content, options)).status
    },
    'node:http with an agent': (url, headers, body, isStream) =>
      new Promise((resolve, reject) => {
        const length = isStream ? {} : { 'content-length': String(body.length) }
        const outgoing = request(url, { method: 'POST', agent, headers: { ...headers, ...length } }, (response) => {
          response.resume().on('end', () => resolve(response.statusCode ?? 0))
        })
        outgoing.on('error', reject)
        if (isStream) Readable.from(piecesOf(body)).pipe(outgoing)
        else outgoing.end(body)
      }),
  }

  for (const [name, post] of Object.entries(CLIENTS))
    for (const bytes of [100_000, 5_000_000])
      for (const isStream of [false, true])
        it(`lets ${name} pay with its next request: ${bytes / 1000} kB ${isStream ? 'in chunks' : 'with a length'}`, async () => {
          const [url, headers, body] = [gateway.url + PATH, { 'content-type': 'application/json' }, jsonOf(bytes)]
          for (let times = 0; times < 5; times += 1) {
            expect(await post(url, headers, body, isStream)).to.equal(402)
            expect(await post(url, { ...headers, 'x-payment': 'e30=' }, body, isStream)).to.equal(200)
          }
        })
})
