/** Tests of the connection to the signer, when it is closed and when whoever answers is no signer. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { createLog } from '../../../gateway/observe/log.ts'
import { connectSigner, type SignerClient, SignerError } from '../../../gateway/stores/signer-client.ts'
import { until } from '../../support/until.ts'

const KEYS = JSON.stringify({ keys: { publicKeys: [], offerKeys: [], addresses: {} } })

describe('the connection to the signer', () => {
  let folder: string
  let server: Server
  let client: SignerClient
  /** Every connection that was opened, in order. */
  let sockets: Socket[]
  /** The first line of a connection, and the answer to each request. */
  let greeting: string | null
  let answer: (id: number) => string

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-signer-client-'))
    sockets = []
    greeting = KEYS
    answer = (id) => JSON.stringify({ id, value: 'signed' })
    server = createServer((socket) => {
      sockets.push(socket)
      if (greeting !== null) socket.write(`${greeting}\n`)
      socket
        .on('error', () => {})
        .on('data', (text) => {
          const { id } = JSON.parse(String(text)) as { id: number }
          socket.write(`${answer(id)}\n`)
        })
    })
    server.listen(join(folder, 'socket'))
    await once(server, 'listening')
    client = await connectSigner(join(folder, 'socket'), createLog('silent'))
  })
  afterEach(async () => {
    client.close()
    for (const socket of sockets) socket.destroy()
    await new Promise((done) => server.close(done))
    rmSync(folder, { recursive: true, force: true })
  })

  const sign = (): Promise<unknown> => client.signStatement('JWT', {}).catch((error: unknown) => error)

  it('is not opened again once it was closed', async () => {
    expect(await sign()).to.equal('signed')
    client.close()
    expect(await sign(), 'at once').to.be.instanceOf(SignerError)
    await until(() => sockets[0]?.closed === true)
    expect(await sign(), 'later').to.be.instanceOf(SignerError)
    expect(sockets).to.have.length(1)
  })

  it('ends when it is closed while it is opened again', async () => {
    greeting = null
    sockets[0]?.destroy()
    // The first ones may come before the client knows that the connection was lost.
    const signed: Promise<unknown>[] = []
    await until(() => {
      signed.push(sign())
      return sockets.length === 2
    })
    const closedAt = performance.now()
    client.close()
    for (const each of signed) expect(await each).to.be.instanceOf(SignerError)
    await until(() => sockets[1]?.closed === true)
    // Without an end, the time to answer is 5 seconds.
    expect(performance.now() - closedAt).to.be.lessThan(4_000)
  })

  for (const line of ['it does not speak JSON', 'null', '5'])
    it(`is given up and opened again after the line "${line}"`, async () => {
      const proper = answer
      answer = () => line
      expect(await sign()).to.be.instanceOf(SignerError)
      answer = proper
      expect(await sign()).to.equal('signed')
      expect(sockets).to.have.length(2)
    })
})
