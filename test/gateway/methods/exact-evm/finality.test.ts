import { expect } from 'chai'
import { createLog } from '../../../../gateway/observe/log.ts'
import type { SettledPayment } from '../../../../gateway/methods/payment-method.ts'
import { createFinalityReader } from '../../../../gateway/methods/exact-evm/finality.ts'
import { createNodes } from '../../../../gateway/methods/exact-evm/nodes/nodes.ts'
import { type Lie, type LyingNode, startLyingNode } from '../../../support/lying-node.ts'
import { startProxy } from '../../../support/proxy.ts'
import { type SettlerFixture, useSettlerFixture } from '../../../support/settler-fixture.ts'

const log = createLog('silent')
const ONE_USD = 1_000_000n
const NOTHING: Lie = () => null
const ELSEWHERE: Lie = (receipt) => receipt && { ...receipt, blockHash: `0x${'0e'.repeat(32)}` }
const AT_THE_HEAD: Lie = (block) => ({ ...(block as object), number: '0xffffffff' })

describe('how final a settled payment is', function () {
  this.timeout(60_000)
  const fixture: SettlerFixture = useSettlerFixture()
  const nodes: LyingNode[] = []

  before(async () => {
    for (let node = 0; node < 3; node++) nodes.push(await startLyingNode(fixture.chain.rpcUrl))
  })
  afterEach(() => {
    for (const node of nodes) node.lie({})
  })
  after(async () => {
    await Promise.all(nodes.map((node) => node.close()))
  })

  async function settledPayment(): Promise<SettledPayment> {
    const payload = await fixture.newPayload()
    const outcome = await fixture.settle(await fixture.open(), payload)
    if (outcome.state !== 'settled') throw new Error(`it is ${outcome.state}`)
    return { ...payload, transaction: outcome.transaction }
  }

  /** What the first `count` nodes say, if payments from this amount on need two of them. */
  async function finalityOf(payment: SettledPayment, count: number, from: bigint): Promise<string> {
    const addresses = nodes
      .slice(0, count)
      .map(({ url }) => url)
      .join(',')
    const { network } = fixture.chain
    const read = createFinalityReader(network, { from, nodes: createNodes({ addresses, network, log }), log })
    return (await read([payment]))[0] as string
  }
  const mine = (blocks: number): Promise<unknown> => fixture.chain.rpc.call('anvil_mine', `0x${blocks.toString(16)}`)
  const lie = (node: number, lies: Parameters<LyingNode['lie']>[0]): void => nodes[node]?.lie(lies)

  it('is shallow in its first blocks, and final once the chain has finalized its block', async () => {
    const payment = await settledPayment()
    expect(await finalityOf(payment, 1, ONE_USD)).to.equal('shallow')
    await mine(80)
    expect(await finalityOf(payment, 1, ONE_USD)).to.equal('final')
  })

  it('is read with one receipt for all payments of a transaction', async () => {
    const payment = await settledPayment()
    const proxy = await startProxy(fixture.chain.rpcUrl)
    const { network } = fixture.chain
    const reader = createNodes({ addresses: proxy.url, network, log })
    const found = await createFinalityReader(network, { from: null, nodes: reader, log })([payment, payment, payment])
    await proxy.close()
    expect(found).to.deep.equal(['shallow', 'shallow', 'shallow'])
    expect(proxy.requests.join('').split('eth_getTransactionReceipt')).to.have.length(2)
  })

  it('is counted in blocks where a node does not know which block is finalized', async () => {
    const payment = await settledPayment()
    lie(0, { eth_getBlockByNumber: NOTHING })
    await mine(30)
    expect(await finalityOf(payment, 1, ONE_USD)).to.equal('shallow')
    await mine(40)
    expect(await finalityOf(payment, 1, ONE_USD)).to.equal('final')
  })

  it('is missing if its transaction is in no block, or makes another transfer', async () => {
    const payment = await settledPayment()
    expect(await finalityOf({ ...payment, transaction: `0x${'00'.repeat(32)}` }, 1, ONE_USD)).to.equal('missing')
    expect(await finalityOf({ ...payment, amount: payment.amount + 1n }, 1, 0n)).to.equal('missing')
  })

  it('is not missing because one of two nodes does not know its transaction', async () => {
    const payment = await settledPayment()
    await mine(80)
    lie(0, { eth_getTransactionReceipt: NOTHING })
    expect(await finalityOf(payment, 2, 0n)).to.equal('shallow')
    expect(await finalityOf(payment, 2, ONE_USD), 'a small payment').to.equal('final')
    expect(await finalityOf(payment, 3, 0n), 'with a third node').to.equal('final')
    lie(1, { eth_getTransactionReceipt: NOTHING })
    expect(await finalityOf(payment, 2, 0n)).to.equal('missing')
  })

  it('is not final because one of two nodes says so, or puts it into another block', async () => {
    const payment = await settledPayment()
    lie(0, { eth_getBlockByNumber: AT_THE_HEAD })
    expect(await finalityOf(payment, 2, 0n)).to.equal('shallow')
    await mine(80)
    lie(0, { eth_getTransactionReceipt: ELSEWHERE })
    expect(await finalityOf(payment, 2, 0n)).to.equal('shallow')
    expect(await finalityOf(payment, 3, 0n)).to.equal('final')
  })
})
