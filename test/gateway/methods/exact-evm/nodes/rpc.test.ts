import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { createRpc, RpcError } from '../../../../../gateway/methods/exact-evm/nodes/rpc.ts'

async function failure(work: Promise<unknown>): Promise<RpcError> {
  const error = await work.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  expect(error).to.be.instanceOf(RpcError)
  return error as RpcError
}

describe('the JSON-RPC client', () => {
  let answer: (body: string) => { status?: number; body: string } | 'cut' | 'hang'
  let server: Server
  let url: string

  before(async () => {
    server = createServer((request, response) => {
      let body = ''
      request.on('data', (chunk) => (body += String(chunk)))
      request.on('end', () => {
        const reply = answer(body)
        if (reply === 'cut') request.socket.destroy()
        else if (reply !== 'hang') response.writeHead(reply.status ?? 200).end(reply.body)
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  after(() => {
    server.closeAllConnections()
    server.close()
  })

  it('returns the result, also if it is null', async () => {
    answer = (body) => {
      expect(JSON.parse(body)).to.deep.equal({ jsonrpc: '2.0', id: 1, method: 'eth_x', params: ['a', 1] })
      return { body: '{"jsonrpc":"2.0","id":1,"result":null}' }
    }
    expect(await createRpc(url).call('eth_x', 'a', 1)).to.equal(null)
  })

  it('distinguishes a node that was not reached from one whose answer was lost', async () => {
    answer = () => 'cut'
    expect((await failure(createRpc(url).call('eth_x'))).fault).to.equal('unknown')
    answer = () => 'hang'
    expect((await failure(createRpc(url, 0.05).call('eth_x'))).fault).to.equal('unknown')
    for (const body of ['bad gateway', '', '[]', '{}', 'null']) {
      answer = () => ({ status: 502, body })
      expect((await failure(createRpc(url).call('eth_x'))).fault).to.equal('unknown')
    }
    const closed = createServer()
    await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve))
    const { port } = closed.address() as AddressInfo
    await new Promise((resolve) => closed.close(resolve))
    expect((await failure(createRpc(`http://127.0.0.1:${port}`).call('eth_x'))).fault).to.equal('unsent')
    expect((await failure(createRpc('http://no-such-host.invalid').call('eth_x'))).fault).to.equal('unsent')
  })

  it('throws the error of the node with its data', async () => {
    answer = () => ({ body: '{"id":1,"error":{"code":3,"message":"execution reverted","data":"0x08"}}' })
    expect(await failure(createRpc(url).call('eth_x'))).to.include({
      fault: 'refused',
      message: 'execution reverted',
      data: '0x08',
    })
  })

  it('returns the results of a batch in order, with an error for each refused call', async () => {
    answer = () => ({
      body: '[{"id":2,"result":"c"},{"id":1,"error":{"message":"no"}},{"id":0,"result":"a"}]',
    })
    const [first, second, third, fourth] = await createRpc(url).batch([['eth_a'], ['eth_b'], ['eth_c'], ['eth_d']])
    expect([first, third]).to.deep.equal(['a', 'c'])
    expect(second).to.include({ fault: 'refused' })
    expect(fourth).to.include({ fault: 'unknown' })
  })
})
