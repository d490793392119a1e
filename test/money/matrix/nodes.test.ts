import { expect } from 'chai'
import { privateKeyToAccount } from 'viem/accounts'
import { ask, json } from '../../support/agent.ts'
import { until } from '../../support/until.ts'
import { outcomeOf } from '../../support/chain-gateway.ts'
import {
  expectStates,
  GATED,
  GATED_PRICE,
  hex,
  readFees,
  SETTLED,
  PRICE,
  RELEASED,
  startHeldCall,
  useChainGateway,
} from './fault-fixture.ts'

describe('the chain settler with failing nodes or expensive gas', () => {
  const fixture = useChainGateway({ maxGasPrice: 500_000_000_000n })

  it('sends through the other node if one falsely accepts a transaction, and settles once', async () => {
    const { gateway } = fixture
    gateway.nodes[0].script((_path, body) =>
      body.includes('eth_sendRawTransaction')
        ? { status: 200, body: JSON.stringify({ jsonrpc: '2.0', id: 1, result: `0x${'ab'.repeat(32)}` }) }
        : 'pass',
    )
    const payment = await gateway.sign('/v1/echo/swallowed', await gateway.newBuyer())
    expect((await payment.pay()).status).to.be.oneOf([200, 503])
    await until(async () => (await payment.states()).at(-1) === 'settled')
    expect((await payment.pay()).status).to.equal(200)
    await expectStates(payment, SETTLED)
    expect(await gateway.received()).to.equal(PRICE)
  })

  it('settles through the other node if one is down, and names it in /health', async () => {
    const { gateway } = fixture
    const payment = await gateway.sign('/v1/echo/other', await gateway.newBuyer())
    await gateway.nodes[0].down()
    expect((await payment.pay()).status).to.equal(200)
    await expectStates(payment, SETTLED)
    const { nodes = [] } = gateway.settler.health()
    expect(nodes.map(({ ready }) => ready)).to.deep.equal([false, true])
    expect(nodes[0]?.node).to.equal(new URL(gateway.nodes[0].url).host)
    await gateway.nodes[0].up()
    expect(await gateway.received()).to.equal(PRICE)
  })

  it('does no work and charges nothing while all nodes are down, but still serves the 402', async () => {
    const { gateway } = fixture
    const payment = await gateway.sign('/v1/echo/dark', await gateway.newBuyer())
    const runs = async () => (await json(await ask(`${gateway.url}/v1/runs`)))['getEcho']
    const before = await runs()
    for (const node of gateway.nodes) await node.down()
    expect(await outcomeOf(await payment.pay())).to.deep.equal([503, 'settler_unavailable'])
    expect(await runs()).to.equal(before)
    expect((await ask(`${gateway.url}/v1/echo/dark`)).status).to.equal(402)
    expect(await payment.states()).to.deep.equal([])
    for (const node of gateway.nodes) await node.up()
    await until(() => gateway.settler.health().ready)
    expect((await payment.pay()).status).to.equal(200)
    await expectStates(payment, SETTLED)
    expect(await gateway.received()).to.equal(PRICE)
  })

  it('releases a payment if all nodes fail between the answer and the sending, so that it may be used again', async () => {
    const { gateway } = fixture
    const payment = await gateway.sign('/v1/echo', await gateway.newBuyer(), GATED)
    await readFees(gateway, payment)
    const call = await startHeldCall(gateway, payment)
    for (const node of gateway.nodes) await node.down()
    expect(await outcomeOf(await call.finish())).to.deep.equal([402, 'settlement_failed'])
    await expectStates(payment, RELEASED)
    for (const node of gateway.nodes) await node.up()
    await until(() => gateway.settler.health().ready)
    expect((await (await startHeldCall(gateway, payment, RELEASED.length)).finish()).status).to.equal(200)
    expect(await payment.states()).to.deep.equal([...RELEASED, ...SETTLED])
    expect(await gateway.received()).to.equal(GATED_PRICE)
  })

  it('does no work and charges nothing while gas costs more than the cap, and recovers afterwards', async () => {
    const { gateway } = fixture
    const { rpc } = gateway.chain
    const payment = await gateway.sign('/v1/echo/dear', await gateway.newBuyer())
    await rpc.call('anvil_setNextBlockBaseFeePerGas', hex(600_000_000_000n))
    await gateway.mine(1)
    const { settler } = gateway
    await until(async () => (await payment.pay()).status === 503, 50)
    expect(await outcomeOf(await payment.pay())).to.deep.equal([503, 'settler_unavailable'])
    await until(() => !settler.health().ready)
    expect(settler.health().reason).to.match(/^gas costs \d+(\.\d+)? gwei, above SETTLE_MAX_GWEI \(500\)$/)
    expect((await ask(`${gateway.url}/v1/echo/dear`)).status).to.equal(402)
    await rpc.call('anvil_setNextBlockBaseFeePerGas', hex(1_000_000_000n))
    await gateway.mine(1)
    await until(() => settler.health().ready)
    expect((await payment.pay()).status).to.equal(200)
    expect((await payment.states()).slice(-SETTLED.length)).to.deep.equal(SETTLED)
    expect(await gateway.received()).to.equal(PRICE)
  })

  it('accepts no payments and reports the reason while the gas account is empty, but still serves the 402', async () => {
    const { gateway, key } = fixture
    const { address } = privateKeyToAccount(key)
    await gateway.chain.fund(address, 0n)
    const payment = await gateway.sign('/v1/echo/poor', await gateway.newBuyer())
    await payment.pay()
    const { settler } = gateway
    await until(() => !settler.health().ready)
    expect(settler.health().reason).to.equal(`${address} holds too little to pay gas`)
    expect(await outcomeOf(await payment.pay())).to.deep.equal([503, 'settler_unavailable'])
    expect((await ask(`${gateway.url}/v1/echo/poor`)).status).to.equal(402)
    expect((await payment.states()).at(-1)).to.be.oneOf([undefined, 'released'])
    await gateway.chain.fund(address)
    await until(() => settler.health().ready)
    expect((await payment.pay()).status).to.equal(200)
    expect((await payment.states()).slice(-SETTLED.length)).to.deep.equal(SETTLED)
    expect(await gateway.received()).to.equal(PRICE)
  })
})
