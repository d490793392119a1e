import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { privateKeyToAccount } from 'viem/accounts'
import type { Hex } from '../../../gateway/config/networks.ts'
import { intentOf } from '../../../gateway/methods/exact-evm/settlement-intent.ts'
import { createSigner } from '../../../gateway/methods/exact-evm/chain/transaction-signer.ts'
import { json, receipt } from '../../support/agent.ts'
import { until } from '../../support/until.ts'
import { outcomeOf, type SignedPayment } from '../../support/chain-gateway.ts'
import {
  settlementData,
  drain,
  expectStates,
  GATED,
  GATED_PRICE,
  startHeldCall,
  SETTLED,
  OWED,
  PLAN,
  PLAN_PRICE,
  PRICE,
  RELEASED,
  sendAs,
  sendFor,
  STRANGER,
  useChainGateway,
} from './fault-fixture.ts'

describe('a payment settled on a chain with faults', () => {
  const fixture = useChainGateway({ maxGasPrice: 500_000_000_000n })

  it('releases a payment whose transaction reverted, and delivers no answer', async () => {
    const { gateway } = fixture
    const buyer = await gateway.newBuyer()
    const payment = await gateway.sign('/v1/echo', buyer, GATED)
    const call = await startHeldCall(gateway, payment)
    await drain(gateway, buyer.address)
    const response = await call.finish()
    expect(receipt(response)).to.include({ success: false, errorReason: 'insufficient_funds' })
    expect(await outcomeOf(response)).to.deep.equal([402, 'settlement_failed'])
    await expectStates(payment, RELEASED)
    expect(await gateway.received()).to.equal(0n)
  })

  it('does the work for one of twelve simultaneous payments if the balance covers one, and refuses the others before any work', async () => {
    const { gateway } = fixture
    const buyer = await gateway.newBuyer(PRICE + 1n)
    const payments = await Promise.all(
      Array.from({ length: 12 }, (_, at) => gateway.sign(`/v1/echo/${'abcdefghijkl'[at]}`, buyer)),
    )
    const height = async (): Promise<number> => Number(await gateway.chain.rpc.call<Hex>('eth_blockNumber'))
    const before = await height()
    const outcomes = await Promise.all(payments.map(async (payment) => outcomeOf(await payUntilDecided(payment))))
    const refused = outcomes.filter(([status]) => status !== 200)
    expect(refused).to.deep.equal(Array.from({ length: 11 }, () => [402, 'payment_invalid']))
    const rows = (await Promise.all(payments.map((payment) => payment.record()))).filter((row) => row !== null)
    expect(rows.map(({ state }) => state)).to.deep.equal(['settled'])
    expect((await height()) - before).to.equal(1)
    expect(await gateway.received()).to.equal(PRICE)
  })

  it('settles twelve simultaneous payments if the balance covers exactly all of them', async () => {
    const { gateway } = fixture
    const buyer = await gateway.newBuyer(12n * PRICE)
    const payments = await Promise.all(
      Array.from({ length: 12 }, (_, at) => gateway.sign(`/v1/echo/${'abcdefghijkl'[at]}`, buyer)),
    )
    const early = await Promise.all(
      payments.slice(0, 6).map(async (payment) => outcomeOf(await payUntilDecided(payment))),
    )
    const late = await Promise.all(payments.slice(6).map(async (payment) => outcomeOf(await payUntilDecided(payment))))
    expect(new Set([...early, ...late].map(([status]) => status))).to.deep.equal(new Set([200]))
    expect(await gateway.received()).to.equal(12n * PRICE)
  })

  it('records a debt, and tells the buyer, if somebody else sends a payment after its transaction reverted', async () => {
    const { gateway } = fixture
    const buyer = await gateway.newBuyer()
    // A payment that is released gives up its key, and the buyer still learns what became of it.
    const payment = await gateway.sign('/v1/echo', buyer, {
      ...GATED,
      headers: { 'idempotency-key': 'late' },
    })
    const call = await startHeldCall(gateway, payment)
    await drain(gateway, buyer.address)
    expect((await call.finish()).status).to.equal(402)
    await expectStates(payment, RELEASED)
    await gateway.chain.mint(buyer.address, 1_000_000n)
    await sendFor(gateway, payment)
    const refusal = await json(await payment.pay())
    expect(refusal).to.include({ code: 'payment_owed', retry: 'never' })
    expect(refusal['message']).to.contain('recorded as a debt to you').and.not.contain('Sign a new')
    await expectStates(payment, OWED)
    expect(await payment.record()).to.include({ transaction: refusal['transaction'], answer: null })
    expect(await json(await payment.pay()), 'again').to.include({ code: 'payment_owed' })
    expect((await gateway.journal.debts()).map(({ identity }) => identity)).to.include(payment.authorization.nonce)
    expect(await gateway.received()).to.equal(GATED_PRICE)
  })

  it('delivers and charges once if a transaction reverts because somebody else sent the same authorization first', async () => {
    const { gateway } = fixture
    const payment = await gateway.sign('/v1/echo', await gateway.newBuyer(), GATED)
    const call = await startHeldCall(gateway, payment)
    await gateway.chain.rpc.call('evm_setAutomine', false)
    const answer = call.finish()
    await until(async () => (await payment.states()).includes('submitted'))
    await sendAs(gateway, STRANGER, gateway.chain.network.asset, settlementData(gateway, payment), 40_000_000_000n)
    await gateway.mine(1)
    expect((await answer).status).to.equal(200)
    await expectStates(payment, SETTLED)
    expect(await gateway.received()).to.equal(GATED_PRICE)
  })

  it('sends a payment again under a new nonce if another transaction of the account replaced it, and settles once', async () => {
    const { gateway, key } = fixture
    const payment = await gateway.sign('/v1/echo/replaced', await gateway.newBuyer())
    await gateway.chain.rpc.call('evm_setAutomine', false)
    const answer = payment.pay()
    await until(async () => (await payment.states()).includes('submitted'))
    const intent = intentOf(await payment.record())
    if (intent?.kind !== 'chain') throw new Error('it was not sent to the chain')
    await until(async () => (await gateway.chain.rpc.call('eth_getTransactionByHash', intent.transaction)) !== null)
    await gateway.chain.rpc.call('anvil_dropTransaction', intent.transaction)
    const fees = { maxFeePerGas: 10n ** 11n, maxPriorityFeePerGas: 10n ** 10n }
    const plain = { to: privateKeyToAccount(key).address, data: '0x', gas: 30_000n, nonce: intent.senderNonce } as const
    await gateway.chain.rpc.call(
      'eth_sendRawTransaction',
      createSigner(key, gateway.chain.network.chainId).sign({ ...plain, ...fees }).raw,
    )
    await gateway.mine(1)
    const first = await answer
    await gateway.chain.rpc.call('evm_setAutomine', true)
    expect(await outcomeOf(first)).to.deep.equal([503, 'settlement_pending'])
    await until(async () => (await payment.pay()).status === 200, 50)
    await expectStates(payment, SETTLED)
    expect((await payment.record()).transaction).to.not.equal(intent.transaction)
    expect(await gateway.received()).to.equal(PRICE)
  })

  it('sends a payment again if a reorganisation removes its block after the answer, and settles once', async () => {
    const { gateway } = fixture
    const payment = await gateway.sign('/v1/echo/undone', await gateway.newBuyer())
    expect((await payment.pay()).status).to.equal(200)
    expect(await gateway.received()).to.equal(PRICE)
    await gateway.chain.rpc.call('anvil_reorg', 1, [])
    expect(await gateway.received()).to.equal(-PRICE)
    await until(async () => (await gateway.received()) === PRICE)
    await expectStates(payment, SETTLED)
    expect(await gateway.chain.rpc.call('eth_getTransactionReceipt', (await payment.record()).transaction)).to.include({
      status: '0x1',
    })
  })
})

describe('a payment settled on a chain with faults and final in the third block', () => {
  const fixture = useChainGateway({ confirmBlocks: 3 })

  it('delivers a plan only once its payment is final, and charges nobody if a reorganisation comes first', async () => {
    const { gateway } = fixture
    const request = { method: 'POST', headers: { 'idempotency-key': 'plan-2026-11-23-0001' } }
    const payment = await gateway.sign(PLAN, await gateway.newBuyer(PLAN_PRICE), request)
    const early = await payment.pay()
    expect(await outcomeOf(early)).to.deep.equal([503, 'settlement_pending'])
    expect(await gateway.received()).to.equal(PLAN_PRICE)
    await gateway.chain.rpc.call('anvil_reorg', 1, [])
    expect(await gateway.received()).to.equal(-PLAN_PRICE)
    await until(async () => (await gateway.received()) === PLAN_PRICE)
    expect(await payment.states()).to.deep.equal(['reserved', 'submitted'])
    await gateway.mine(2)
    await until(async () => (await payment.states()).at(-1) === 'settled')
    const late = await payment.pay()
    expect(late.status).to.equal(200)
    expect(await json(late)).to.have.property('token')
    await expectStates(payment, SETTLED)
  })

  it('delivers a cheap answer in the first block, and keeps its payment open until it is final', async () => {
    const { gateway } = fixture
    const payment = await gateway.sign('/v1/echo/early', await gateway.newBuyer())
    const response = await payment.pay()
    expect(response.status).to.equal(200)
    expect(receipt(response)).to.include({ success: true }).and.have.property('extensions')
    expect(await payment.states()).to.deep.equal(['reserved', 'submitted'])
    const repeated = await payment.pay()
    expect(await repeated.text()).to.equal(await response.text())
    expect(await payment.states()).to.deep.equal(['reserved', 'submitted'])
    await gateway.mine(2)
    await expectStates(payment, SETTLED)
    expect(await gateway.received()).to.equal(PRICE)
  })

  it('releases a payment that a reorganisation removed and that can no longer be executed', async () => {
    const { gateway } = fixture
    const { rpc } = gateway.chain
    const buyer = await gateway.newBuyer()
    const payment = await gateway.sign('/v1/echo/gone', buyer)
    expect((await payment.pay()).status).to.equal(200)
    expect(await gateway.received()).to.equal(PRICE)
    await rpc.call('evm_setAutomine', false)
    await rpc.call('anvil_reorg', 1, [])
    await drain(gateway, buyer.address)
    await gateway.mine(1)
    await rpc.call('evm_setAutomine', true)
    await until(async () => {
      await gateway.mine(1)
      return (await payment.states()).at(-1) === 'released'
    }, 50)
    expect(await payment.states()).to.deep.equal(RELEASED)
    expect(await gateway.received()).to.equal(-PRICE)
    expect(await gateway.chain.balanceOf(buyer.address)).to.equal(0n)
  })

  it('releases a reverted payment only once the revert is final', async () => {
    const { gateway } = fixture
    const buyer = await gateway.newBuyer()
    const payment = await gateway.sign('/v1/echo', buyer, GATED)
    const call = await startHeldCall(gateway, payment)
    await drain(gateway, buyer.address)
    expect(await outcomeOf(await call.finish())).to.deep.equal([503, 'settlement_pending'])
    expect((await payment.states()).at(-1)).to.equal('submitted')
    await gateway.mine(2)
    await expectStates(payment, RELEASED)
    expect(await gateway.received()).to.equal(0n)
  })
})

/** Pays, and repeats the same payment while it is pending: a loaded chain may be slower than the settler waits. */
async function payUntilDecided(payment: SignedPayment): Promise<Response> {
  for (let tries = 1; ; tries++) {
    const response = await payment.pay()
    if (response.status !== 503 || tries === 20) return response
    await delay(250)
  }
}
