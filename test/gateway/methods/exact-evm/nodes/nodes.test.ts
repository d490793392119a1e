import { expect } from 'chai'
import { createLog } from '../../../../../gateway/observe/log.ts'
import { NETWORKS, type Hex } from '../../../../../gateway/config/networks.ts'
import { createChainSettler } from '../../../../../gateway/methods/exact-evm/chain/chain-settler.ts'
import { createNodes, type Nodes } from '../../../../../gateway/methods/exact-evm/nodes/nodes.ts'
import { createSigner } from '../../../../../gateway/methods/exact-evm/chain/transaction-signer.ts'
import { startChain, type TestChain } from '../../../../support/chain.ts'
import { type Fault, type Proxy, startProxy } from '../../../../support/proxy.ts'
import { newSettleKey } from '../../../../support/payments.ts'
import { until } from '../../../../support/until.ts'

const refusing = (message: string): Fault => {
  return { status: 200, body: JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code: -32000, message } }) }
}
const answering = (result: unknown): Fault => {
  return { status: 200, body: JSON.stringify({ jsonrpc: '2.0', id: 1, result }) }
}
const on = (method: string, fault: Fault) => (_path: string, body: string) => (body.includes(method) ? fault : 'pass')

describe('several nodes of one network', () => {
  let chain: TestChain
  let first: Proxy
  let second: Proxy
  let nodes: Nodes

  before(async function () {
    chain = await startChain(this)
  })
  beforeEach(async () => {
    ;[first, second] = [await startProxy(chain.rpcUrl), await startProxy(chain.rpcUrl)]
    nodes = createNodes({ addresses: `${first.url}, ${second.url}`, network: chain.network, log: createLog('silent') })
  })
  afterEach(async () => {
    await first.close()
    await second.close()
  })
  after(() => chain?.stop())

  const requestCount = (proxy: Proxy, method = 'eth_blockNumber'): number =>
    proxy.requests.filter((body) => body.includes(method)).length
  const height = (): Promise<Hex> => nodes.call<Hex>('eth_blockNumber')
  const faultOf = (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => 'none',
      (error: { fault: string }) => error.fault,
    )
  const raw = async (): Promise<Hex> => {
    const signer = createSigner(await newSettleKey(chain), chain.network.chainId)
    const fees = { maxFeePerGas: 10n ** 10n, maxPriorityFeePerGas: 10n ** 9n }
    return signer.sign({ to: signer.address, data: '0x', gas: 30_000n, nonce: 0, ...fees }).raw
  }

  it('are asked in order, the second only if the first fails', async () => {
    await height()
    expect([requestCount(first), requestCount(second)]).to.deep.equal([1, 0])
    await first.down()
    await height()
    await nodes.batch([['eth_blockNumber'], ['eth_chainId']])
    expect(requestCount(second)).to.equal(2)
    expect(nodes.states().map(({ ready }) => ready)).to.deep.equal([false, true])
    expect(nodes.states()[0]).to.deep.equal({
      node: new URL(first.url).host,
      ready: false,
      reason: 'the node cannot be reached',
    })
    await first.up()
    expect(await nodes.refresh()).to.equal(null)
    expect(nodes.states().every(({ ready }) => ready)).to.equal(true)
    await height()
    expect(requestCount(first)).to.equal(2)
  })

  for (const [name, fault] of Object.entries<Fault>({
    'answers 502': { status: 502, body: 'bad gateway' },
    'is over its limit': refusing('rate limit exceeded'),
    'breaks the connection': 'cut',
  }))
    it(`are read through the second if the first ${name}, and the gateway stays with it`, async () => {
      first.script(on('eth_blockNumber', fault))
      await height()
      await height()
      expect([requestCount(first), requestCount(second)]).to.deep.equal([1, 2])
    })

  it('pass on the error of a call without asking another node', async () => {
    first.script(on('eth_call', refusing('execution reverted: no')))
    expect(await faultOf(nodes.call('eth_call', {}, 'latest'))).to.equal('refused')
    expect(requestCount(second, 'eth_call')).to.equal(0)
  })

  it('never use a node of another chain, at the start or later', async () => {
    first.script(on('eth_chainId', answering('0x1')))
    expect(await nodes.refresh()).to.equal(null)
    expect(nodes.wrongChain()).to.contain('chain 84532').and.contain(new URL(first.url).host)
    await height()
    expect([requestCount(first), requestCount(second)]).to.deep.equal([0, 1])
    second.script(on('eth_chainId', answering('0x1')))
    expect(await nodes.refresh()).to.contain('chain 84532')
    expect(await faultOf(height())).to.equal('unsent')
    expect([requestCount(first), requestCount(second)]).to.deep.equal([0, 1])
  })

  it('prevent the start of the settler if one of them is of another chain, and name it', async () => {
    second.script(on('eth_chainId', answering('0x1')))
    const common = { network: chain.network, log: createLog('silent'), confirmSeconds: 1 }
    const rpcUrl = `${first.url},${second.url}`
    const opening = createChainSettler({ ...common, rpcUrl, key: await newSettleKey(chain) })
    const failure = await opening.then(
      () => '',
      (error: Error) => error.message,
    )
    expect(failure).to.contain('chain 84532').and.contain(new URL(second.url).host)
  })

  it('are checked for their chain again after every failure', async () => {
    await height()
    await first.down()
    await height()
    await second.down()
    expect(await faultOf(height())).to.be.oneOf(['unsent', 'unknown'])
    first.script(on('eth_chainId', answering('0x1')))
    await first.up()
    await second.up()
    await height()
    expect([requestCount(first), requestCount(second)]).to.deep.equal([1, 2])
  })

  it('are named without the API keys in their addresses', () => {
    const addresses = 'https://user:secret@one.example/v2/secret https://two.example:8443/secret'
    const nodesWithKeys = createNodes({ addresses, network: NETWORKS.base, log: createLog('silent') })
    expect(nodesWithKeys.states().map(({ node }) => node)).to.deep.equal(['one.example', 'two.example:8443'])
    expect(JSON.stringify(nodesWithKeys.states())).to.not.contain('secret')
  })

  describe('that get a transaction', () => {
    const send = async (): Promise<unknown> => nodes.call('eth_sendRawTransaction', await raw())

    it('accept it if the first refuses it for its own reasons and the second takes it', async () => {
      first.script(on('eth_sendRawTransaction', refusing('too many requests')))
      expect(await send()).to.match(/^0x[0-9a-f]{64}$/)
    })

    it('report it as possibly sent if one of them gave no answer, whatever the other answers', async () => {
      first.script(on('eth_sendRawTransaction', { status: 502, body: '' }))
      second.script(on('eth_sendRawTransaction', refusing('insufficient funds for gas * price + value')))
      expect(await faultOf(send())).to.equal('unknown')
    })

    it('mine it once if the first took it and its answer was lost', async () => {
      first.script(on('eth_sendRawTransaction', 'cut'))
      const before = Number(await chain.rpc.call('eth_blockNumber'))
      const outcome = await send().catch((error: Error) => error.message)
      expect(outcome).to.match(/^0x|already|nonce|did not answer/)
      await until(async () => Number(await chain.rpc.call('eth_blockNumber')) > before)
      expect(Number(await chain.rpc.call('eth_blockNumber'))).to.equal(before + 1)
    })

    it('report it as not sent if none of them was reached', async () => {
      await first.down()
      await second.down()
      expect(await faultOf(send())).to.equal('unsent')
    })

    it('all get a broadcast, so that a node which drops transactions delays none', async () => {
      first.script(on('eth_sendRawTransaction', answering(`0x${'ab'.repeat(32)}`)))
      const before = Number(await chain.rpc.call('eth_blockNumber'))
      await nodes.broadcast(await raw())
      await until(async () => Number(await chain.rpc.call('eth_blockNumber')) > before)
      expect(Number(await chain.rpc.call('eth_blockNumber'))).to.equal(before + 1)
      for (const proxy of [first, second]) proxy.script(on('eth_sendRawTransaction', refusing('insufficient funds')))
      expect(await faultOf(nodes.broadcast(await raw()))).to.equal('refused')
    })
  })
})
