import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { inspect } from 'node:util'
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
  let answer: (body: string) => { status?: number; body: string } | 'cut' | 'hang' | 'drip'
  let server: Server
  let url: string
  let authorization: string | undefined

  before(async () => {
    server = createServer((request, response) => {
      let body = ''
      authorization = request.headers.authorization
      request.on('data', (chunk) => (body += String(chunk)))
      request.on('end', () => {
        const reply = answer(body)
        if (reply === 'cut') request.socket.destroy()
        else if (reply === 'drip') {
          const timer = setInterval(() => response.write(' '), 10)
          response.once('close', () => clearInterval(timer))
        } else if (reply !== 'hang') response.writeHead(reply.status ?? 200).end(reply.body)
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

  it('sends the user name and the password of its address as a header, and shows them in no error', async () => {
    answer = () => ({ body: '{"jsonrpc":"2.0","id":1,"result":"0x1"}' })
    const rpc = createRpc(url.replace('http://', 'http://reader:s3cret%2F1@'))
    expect(await rpc.call('eth_chainId')).to.equal('0x1')
    expect(authorization).to.equal(`Basic ${Buffer.from('reader:s3cret/1').toString('base64')}`)
    answer = () => 'cut'
    expect(inspect(await failure(rpc.call('eth_chainId')), { depth: 9 })).not.to.match(/s3cret|cmVhZGVy/)
    const unreached = createRpc('http://reader:s3cret@no-such-host.invalid')
    expect(inspect(await failure(unreached.call('eth_chainId')), { depth: 9 })).not.to.contain('s3cret')
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

  it('gives a node up that sends its answer without an end, slowly or fast', async () => {
    answer = () => 'drip'
    expect((await failure(createRpc(url, 0.05).call('eth_x'))).fault).to.equal('unknown')
    answer = () => ({ body: `${' '.repeat(33_000_000)}{"id":1,"result":"0x1"}` })
    expect((await failure(createRpc(url).call('eth_x'))).fault).to.equal('unknown')
    answer = () => ({ body: `${' '.repeat(8_000_000)}{"id":1,"result":"0x1"}` })
    expect(await createRpc(url).call('eth_x')).to.equal('0x1')
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

  describe('with reads of one moment', () => {
    interface Call {
      readonly id: number
      readonly method: string
      readonly params: readonly string[]
    }
    let requests: (Call | readonly Call[])[] = []
    const reply = ({ id, params: [name] }: Call): object =>
      name === 'bad' ? { id, error: { message: 'execution reverted', data: '0x08' } } : { id, result: `of ${name}` }
    const answerWith = (respond: (request: Call | readonly Call[]) => unknown): void => {
      requests = []
      answer = (body) => {
        const request = JSON.parse(body) as Call | readonly Call[]
        requests.push(request)
        return { body: JSON.stringify(respond(request)) }
      }
    }
    const isList = (request: Call | readonly Call[]): request is readonly Call[] => Array.isArray(request)
    const respondToEach = (request: Call | readonly Call[]): unknown =>
      isList(request) ? request.map(reply).reverse() : reply(request)

    it('sends them in one request, and each has its own result or error', async () => {
      answerWith(respondToEach)
      const rpc = createRpc(url)
      const reads = [rpc.call('eth_call', 'a'), failure(rpc.call('eth_call', 'bad')), rpc.call('eth_getCode', 'b')]
      const [first, error, last] = await Promise.all(reads)
      expect([first, last]).to.deep.equal(['of a', 'of b'])
      expect(error).to.include({ fault: 'refused', message: 'execution reverted', data: '0x08' })
      expect(requests).to.have.length(1)
      expect(await rpc.call('eth_call', 'c')).to.equal('of c')
      expect(requests[1]).to.include({ method: 'eth_call' })
    })

    it('sends each alone if the node refuses the request as a whole', async () => {
      answerWith((request) => (isList(request) ? { error: { message: 'batch too large' } } : reply(request)))
      const rpc = createRpc(url)
      const results = await Promise.all([rpc.call('eth_call', 'a'), failure(rpc.call('eth_call', 'bad'))])
      expect(results[0]).to.equal('of a')
      expect(results[1]).to.include({ fault: 'refused', message: 'execution reverted' })
      expect(requests).to.have.length(3)
    })

    it('reports each as unknown if the answer is lost, and the ones that the node left out', async () => {
      answer = () => 'cut'
      const rpc = createRpc(url)
      const lost = await Promise.all(['a', 'b'].map((name) => failure(rpc.call('eth_call', name))))
      expect(lost.map(({ fault }) => fault)).to.deep.equal(['unknown', 'unknown'])
      answerWith((request) => (isList(request) ? request.slice(1).map(reply) : reply(request)))
      const [missing, present] = await Promise.all([failure(rpc.call('eth_call', 'a')), rpc.call('eth_call', 'b')])
      expect([missing.fault, present]).to.deep.equal(['unknown', 'of b'])
    })

    it('sends a transaction in a request of its own', async () => {
      answerWith(respondToEach)
      const rpc = createRpc(url)
      await Promise.all([rpc.call('eth_sendRawTransaction', 'x'), rpc.call('eth_sendRawTransaction', 'y')])
      expect(requests.map(isList)).to.deep.equal([false, false])
    })

    it('splits many into requests of 50', async () => {
      answerWith(respondToEach)
      const rpc = createRpc(url)
      const names = Array.from({ length: 120 }, (_, at) => `n${at}`)
      expect(await Promise.all(names.map((name) => rpc.call('eth_call', name)))).to.deep.equal(
        names.map((name) => `of ${name}`),
      )
      expect(requests.map((request) => (isList(request) ? request.length : 1))).to.have.members([50, 50, 20])
    })
  })
})
