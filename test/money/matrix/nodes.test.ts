import { expect } from 'chai'
import { privateKeyToAccount } from 'viem/accounts'
import { ask, json } from '../../support/agent.ts'
import { until } from '../../support/scene.ts'
import { outcomeOf } from '../../support/till.ts'
import { ends, GATED, GATED_PRICE, hex, ONCE, PRICE, RELEASED, startGatedCall, useTill } from './till.ts'

describe('the chain settler with failing nodes and gas', () => {
  const scene = useTill({ maxGasPrice: 500_000_000_000n })

  it('sends through the other node if one falsely accepts a transaction, and settles once', async () => {
    const { till } = scene
    till.nodes[0].script((_path, body) =>
      body.includes('eth_sendRawTransaction')
        ? { status: 200, body: JSON.stringify({ jsonrpc: '2.0', id: 1, result: `0x${'ab'.repeat(32)}` }) }
        : 'pass',
    )
    const payment = await till.sign('/v1/echo/swallowed', await till.buyer())
    expect((await payment.pay()).status).to.be.oneOf([200, 503])
    await until(async () => (await payment.path()).at(-1) === 'settled')
    expect((await payment.pay()).status).to.equal(200)
    await ends(payment, ONCE)
    expect(await till.received()).to.equal(PRICE)
  })

  it('settles through the other node if one is down, and names it in /health', async () => {
    const { till } = scene
    const payment = await till.sign('/v1/echo/other', await till.buyer())
    await till.nodes[0].down()
    expect((await payment.pay()).status).to.equal(200)
    await ends(payment, ONCE)
    const { nodes = [] } = till.gateway.settlement.settler.health()
    expect(nodes.map(({ ready }) => ready)).to.deep.equal([false, true])
    expect(nodes[0]?.node).to.equal(new URL(till.nodes[0].url).host)
    await till.nodes[0].up()
    expect(await till.received()).to.equal(PRICE)
  })

  it('does no work and charges nothing while all nodes are down, but still serves the 402', async () => {
    const { till } = scene
    const payment = await till.sign('/v1/echo/dark', await till.buyer())
    const runs = async () => (await json(await ask(`${till.url}/v1/runs`)))['getEcho']
    const before = await runs()
    for (const node of till.nodes) await node.down()
    expect(await outcomeOf(await payment.pay())).to.deep.equal([503, 'settler_unavailable'])
    expect(await runs()).to.equal(before)
    expect((await ask(`${till.url}/v1/echo/dark`)).status).to.equal(402)
    expect(await payment.path()).to.deep.equal([])
    for (const node of till.nodes) await node.up()
    await until(() => till.gateway.settlement.settler.health().ready)
    expect((await payment.pay()).status).to.equal(200)
    await ends(payment, ONCE)
    expect(await till.received()).to.equal(PRICE)
  })

  it('releases a payment if all nodes fail between the answer and the sending, so that it may be used again', async () => {
    const { till } = scene
    const payment = await till.sign('/v1/echo', await till.buyer(), GATED)
    const call = await startGatedCall(till, payment)
    for (const node of till.nodes) await node.down()
    expect(await outcomeOf(await call.go())).to.deep.equal([402, 'settlement_failed'])
    await ends(payment, RELEASED)
    for (const node of till.nodes) await node.up()
    await until(() => till.gateway.settlement.settler.health().ready)
    expect((await (await startGatedCall(till, payment, RELEASED.length)).go()).status).to.equal(200)
    expect(await payment.path()).to.deep.equal([...RELEASED, ...ONCE])
    expect(await till.received()).to.equal(GATED_PRICE)
  })

  it('does no work and charges nothing while gas costs more than the cap, and recovers afterwards', async () => {
    const { till } = scene
    const { rpc } = till.chain
    const payment = await till.sign('/v1/echo/dear', await till.buyer())
    await rpc.call('anvil_setNextBlockBaseFeePerGas', hex(600_000_000_000n))
    await till.mine(1)
    const { settler } = till.gateway.settlement
    await until(async () => (await payment.pay()).status === 503)
    expect(await outcomeOf(await payment.pay())).to.deep.equal([503, 'settler_unavailable'])
    await until(() => !settler.health().ready)
    expect(settler.health().reason).to.match(/^gas costs \d+(\.\d+)? gwei, above SETTLE_MAX_GWEI \(500\)$/)
    expect((await ask(`${till.url}/v1/echo/dear`)).status).to.equal(402)
    await rpc.call('anvil_setNextBlockBaseFeePerGas', hex(1_000_000_000n))
    await till.mine(1)
    await until(() => settler.health().ready)
    expect((await payment.pay()).status).to.equal(200)
    expect((await payment.path()).slice(-4)).to.deep.equal(ONCE)
    expect(await till.received()).to.equal(PRICE)
  })

  it('accepts no payments and reports the reason while the gas account is empty, but still serves the 402', async () => {
    const { till, key } = scene
    const { address } = privateKeyToAccount(key)
    await till.chain.fund(address, 0n)
    const payment = await till.sign('/v1/echo/poor', await till.buyer())
    await payment.pay()
    const { settler } = till.gateway.settlement
    await until(() => !settler.health().ready)
    expect(settler.health().reason).to.equal(`${address} holds too little to pay gas`)
    expect(await outcomeOf(await payment.pay())).to.deep.equal([503, 'settler_unavailable'])
    expect((await ask(`${till.url}/v1/echo/poor`)).status).to.equal(402)
    expect((await payment.path()).at(-1)).to.be.oneOf([undefined, 'released'])
    await till.chain.fund(address)
    await until(() => settler.health().ready)
    expect((await payment.pay()).status).to.equal(200)
    expect((await payment.path()).slice(-4)).to.deep.equal(ONCE)
    expect(await till.received()).to.equal(PRICE)
  })
})
