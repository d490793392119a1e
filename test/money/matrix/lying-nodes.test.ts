import { expect } from 'chai'
import { createLog } from '../../../gateway/observe/log.ts'
import { createChainSettler } from '../../../gateway/methods/exact-evm/chain/chain-settler.ts'
import { TOPICS, word } from '../../../gateway/methods/exact-evm/eip3009.ts'
import { type ChainGateway, openChainGateway, outcomeOf, type SignedPayment } from '../../support/chain-gateway.ts'
import { LIES_ABOUT_SETTLEMENTS, type Lie, type LyingNode, startLyingNode } from '../../support/lying-node.ts'
import { newSettleKey } from '../../support/payments.ts'
import { until } from '../../support/until.ts'
import { expectStates, PLAN, PLAN_PRICE, PRICE, SETTLED } from './fault-fixture.ts'

const ONE_USD = 1_000_000n

/** What a node says of a payment that never moved: that our transaction is in a block, with the transfer. */
function inventedSuccess(gateway: ChainGateway, { authorization }: SignedPayment, amount: bigint): Record<string, Lie> {
  const { asset } = gateway.chain.network
  const block = { blockHash: `0x${'b1'.repeat(32)}`, blockNumber: '0x1' }
  const payTo = '0x00000000000000000000000000000000000000A1'
  const logsOf = (transactionHash: unknown) =>
    [
      { address: asset, topics: [TOPICS.used, `0x${word(authorization.from)}`, authorization.nonce], data: '0x' },
      {
        address: asset,
        topics: [TOPICS.transfer, `0x${word(authorization.from)}`, `0x${word(payTo)}`],
        data: `0x${word(amount)}`,
      },
    ].map((log) => ({ ...log, ...block, transactionHash }))
  const transaction = `0x${'7e'.repeat(32)}`
  return {
    // It keeps what it should pass on.
    eth_sendRawTransaction: () => transaction,
    eth_getTransactionCount: () => '0x3e8',
    eth_getTransactionReceipt: (_, [hash]) => ({ ...block, status: '0x1', transactionHash: hash, logs: logsOf(hash) }),
    eth_getLogs: () => logsOf(transaction).slice(0, 1),
  }
}

describe('a large payment, settled through two nodes of which one lies', function () {
  this.timeout(60_000)
  let gateway: ChainGateway
  let liar: LyingNode
  let bought = 0

  before(async function () {
    gateway = await openChainGateway(this, async (chain, [, honest]) => {
      liar = await startLyingNode(chain.rpcUrl)
      const key = await newSettleKey(chain)
      const options = { confirmSeconds: 2, pollMs: 30, stuckMs: 60_000, twoNodesFrom: ONE_USD }
      const { network } = chain
      return createChainSettler({
        rpcUrl: `${liar.url},${honest.url}`,
        key,
        network,
        log: createLog('silent'),
        ...options,
      })
    })
  })
  afterEach(async () => {
    liar.lie({})
    for (const node of gateway.nodes) node.script(() => 'pass')
    await gateway.chain.rpc.call('evm_mine')
  })
  // The settler reads its nonce with its first transaction.
  before(async () => {
    const payment = await gateway.sign('/v1/echo/first', await gateway.newBuyer())
    expect((await payment.pay()).status).to.equal(200)
    await gateway.received()
  })
  after(async () => {
    await gateway?.close()
    await liar?.close()
  })

  const buyPlan = async (): Promise<SignedPayment> =>
    gateway.sign(PLAN, await gateway.newBuyer(PLAN_PRICE), {
      method: 'POST',
      headers: { 'idempotency-key': `plan-of-lying-nodes-${(bought += 1)}` },
    })

  it('delivers nothing if one node invents the settlement, and charges nothing', async () => {
    const payment = await buyPlan()
    liar.lie(inventedSuccess(gateway, payment, PLAN_PRICE))
    const first = await payment.pay()
    expect(await outcomeOf(first)).to.deep.equal([503, 'settlement_pending'])
    expect(first.headers.get('retry-after')).to.not.equal(null)
    expect(await outcomeOf(await payment.pay())).to.deep.equal([503, 'settlement_pending'])
    expect(await payment.states()).to.deep.equal(['reserved', 'submitted'])
    expect(await gateway.received()).to.equal(0n)
    liar.lie({})
    await until(async () => (await payment.pay()).status === 200, 50)
    await expectStates(payment, SETTLED)
    expect(await gateway.received()).to.equal(PLAN_PRICE)
  })

  const keyOf = ({ authorization: { from, nonce } }: SignedPayment): string => {
    const { caip2, asset } = gateway.chain.network
    return `${caip2}/${asset}/${from}/${nonce}`.toLowerCase()
  }

  for (const [name, what] of Object.entries(LIES_ABOUT_SETTLEMENTS))
    it(`waits for agreement while one node ${name}, then delivers and charges once`, async () => {
      const payment = await buyPlan()
      liar.lie(what)
      expect(await outcomeOf(await payment.pay())).to.deep.equal([503, 'settlement_pending'])
      expect(await gateway.received()).to.equal(PLAN_PRICE)
      expect(await payment.states()).to.deep.equal(['reserved', 'submitted'])
      liar.lie({})
      await until(async () => (await payment.pay()).status === 200, 50)
      await expectStates(payment, SETTLED)
      expect(await gateway.received()).to.equal(0n)
    })

  it('refuses a large payment before any work while only one node answers, and takes a small one', async () => {
    await gateway.nodes[1].down()
    const small = await gateway.sign('/v1/echo/small', await gateway.newBuyer())
    try {
      const large = await buyPlan()
      expect(await outcomeOf(await large.pay())).to.deep.equal([503, 'settler_unavailable'])
      expect(await gateway.journal.find(keyOf(large))).to.equal(null)
      expect((await small.pay()).status).to.equal(200)
    } finally {
      await gateway.nodes[1].up()
    }
    expect(await gateway.received()).to.equal(PRICE)
  })

  it('refuses a large payment before any work while one node is far behind', async () => {
    liar.lie({ eth_blockNumber: (height) => `0x${Math.max(0, Number(height) - 30).toString(16)}` })
    for (let block = 0; block < 40; block++) await gateway.chain.rpc.call('evm_mine')
    expect(await outcomeOf(await (await buyPlan()).pay())).to.deep.equal([503, 'settler_unavailable'])
    expect(await gateway.received()).to.equal(0n)
  })

  it('takes the word of one node for a small payment', async () => {
    const payment = await gateway.sign('/v1/echo/word', await gateway.newBuyer())
    gateway.nodes[1].script(() => 'hang')
    expect((await payment.pay()).status).to.equal(200)
    expect(await gateway.received()).to.equal(PRICE)
  })
})
