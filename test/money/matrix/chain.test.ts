import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { privateKeyToAccount } from 'viem/accounts'
import type { Hex } from '../../../gateway/config/networks.ts'
import { intentOf } from '../../../gateway/methods/exact-evm/intent.ts'
import { createSigner } from '../../../gateway/methods/exact-evm/chain/transaction-signer.ts'
import { json, receipt } from '../../support/agent.ts'
import { until } from '../../support/scene.ts'
import { outcomeOf, type Signed } from '../../support/till.ts'
import {
  dataOf,
  drain,
  ends,
  GATED,
  GATED_PRICE,
  startGatedCall,
  ONCE,
  OWED,
  PLAN,
  PLAN_PRICE,
  PRICE,
  RELEASED,
  sendAs,
  sendFor,
  STRANGER,
  useTill,
} from './till.ts'

describe('a payment settled on a chain with faults', () => {
  const scene = useTill({ maxGasPrice: 500_000_000_000n })

  it('releases a payment whose transaction reverted, and delivers no answer', async () => {
    const { till } = scene
    const buyer = await till.buyer()
    const payment = await till.sign('/v1/echo', buyer, GATED)
    const call = await startGatedCall(till, payment)
    await drain(till, buyer.address)
    const response = await call.go()
    expect(receipt(response)).to.include({ success: false, errorReason: 'insufficient_funds' })
    expect(await outcomeOf(response)).to.deep.equal([402, 'settlement_failed'])
    await ends(payment, RELEASED)
    expect(await till.received()).to.equal(0n)
  })

  it('works for one of twelve payments at once when the balance covers one, and refuses the others before any work', async () => {
    const { till } = scene
    const buyer = await till.buyer(PRICE + 1n)
    const payments = await Promise.all(
      Array.from({ length: 12 }, (_, at) => till.sign(`/v1/echo/${'abcdefghijkl'[at]}`, buyer)),
    )
    const height = async (): Promise<number> => Number(await till.chain.rpc.call<Hex>('eth_blockNumber'))
    const before = await height()
    const outcomes = await Promise.all(payments.map(async (payment) => outcomeOf(await payUntilDecided(payment))))
    const refused = outcomes.filter(([status]) => status !== 200)
    expect(refused).to.deep.equal(Array.from({ length: 11 }, () => [402, 'payment_invalid']))
    const rows = (await Promise.all(payments.map((payment) => payment.row()))).filter((row) => row !== null)
    expect(rows.map(({ state }) => state)).to.deep.equal(['settled'])
    expect((await height()) - before).to.equal(1)
    expect(await till.received()).to.equal(PRICE)
  })

  it('settles twelve payments at once when the balance covers exactly all of them', async () => {
    const { till } = scene
    const buyer = await till.buyer(12n * PRICE)
    const payments = await Promise.all(
      Array.from({ length: 12 }, (_, at) => till.sign(`/v1/echo/${'abcdefghijkl'[at]}`, buyer)),
    )
    const early = await Promise.all(
      payments.slice(0, 6).map(async (payment) => outcomeOf(await payUntilDecided(payment))),
    )
    const late = await Promise.all(payments.slice(6).map(async (payment) => outcomeOf(await payUntilDecided(payment))))
    expect(new Set([...early, ...late].map(([status]) => status))).to.deep.equal(new Set([200]))
    expect(await till.received()).to.equal(12n * PRICE)
  })

  it('records a debt, and tells the buyer, if somebody else sends a payment after its transaction reverted', async () => {
    const { till } = scene
    const buyer = await till.buyer()
    const payment = await till.sign('/v1/echo', buyer, GATED)
    const call = await startGatedCall(till, payment)
    await drain(till, buyer.address)
    expect((await call.go()).status).to.equal(402)
    await ends(payment, RELEASED)
    await till.chain.mint(buyer.address, 1_000_000n)
    await sendFor(till, payment)
    const again = await payment.pay()
    const refusal = await json(again)
    expect(refusal).to.include({ code: 'payment_already_used' })
    await ends(payment, OWED)
    expect(await payment.row()).to.include({ transaction: refusal['transaction'], answer: null })
    expect((await till.gateway.journal.debts()).map(({ identity }) => identity)).to.include(payment.authorization.nonce)
    expect(await till.received()).to.equal(GATED_PRICE)
  })

  it('delivers and charges once if a transaction reverts because somebody else sent the same authorization first', async () => {
    const { till } = scene
    const payment = await till.sign('/v1/echo', await till.buyer(), GATED)
    const call = await startGatedCall(till, payment)
    await till.chain.rpc.call('evm_setAutomine', false)
    const answer = call.go()
    await until(async () => (await payment.path()).includes('submitted'))
    await sendAs(till, STRANGER, till.chain.network.asset, dataOf(till, payment), 40_000_000_000n)
    await till.mine(1)
    expect((await answer).status).to.equal(200)
    await ends(payment, ONCE)
    expect(await till.received()).to.equal(GATED_PRICE)
  })

  it('sends a payment again under a new nonce if another transaction of the account replaced it, and settles once', async () => {
    const { till, key } = scene
    const payment = await till.sign('/v1/echo/replaced', await till.buyer())
    await till.chain.rpc.call('evm_setAutomine', false)
    const answer = payment.pay()
    await until(async () => (await payment.path()).includes('submitted'))
    const intent = intentOf(await payment.row())
    if (intent?.kind !== 'chain') throw new Error('it was not sent to the chain')
    await until(async () => (await till.chain.rpc.call('eth_getTransactionByHash', intent.transaction)) !== null)
    await till.chain.rpc.call('anvil_dropTransaction', intent.transaction)
    const fees = { maxFeePerGas: 10n ** 11n, maxPriorityFeePerGas: 10n ** 10n }
    const plain = { to: privateKeyToAccount(key).address, data: '0x', gas: 30_000n, nonce: intent.senderNonce } as const
    await till.chain.rpc.call(
      'eth_sendRawTransaction',
      createSigner(key, till.chain.network.chainId).sign({ ...plain, ...fees }).raw,
    )
    await till.mine(1)
    const first = await answer
    await till.chain.rpc.call('evm_setAutomine', true)
    expect(await outcomeOf(first)).to.deep.equal([503, 'settlement_pending'])
    await until(async () => (await payment.pay()).status === 200)
    await ends(payment, ONCE)
    expect((await payment.row()).transaction).to.not.equal(intent.transaction)
    expect(await till.received()).to.equal(PRICE)
  })

  it('sends a payment again if a reorganisation removes its block after the answer, and settles once', async () => {
    const { till } = scene
    const payment = await till.sign('/v1/echo/undone', await till.buyer())
    expect((await payment.pay()).status).to.equal(200)
    expect(await till.received()).to.equal(PRICE)
    await till.chain.rpc.call('anvil_reorg', 1, [])
    expect(await till.received()).to.equal(-PRICE)
    await until(async () => (await till.received()) === PRICE)
    await ends(payment, ONCE)
    expect(await till.chain.rpc.call('eth_getTransactionReceipt', (await payment.row()).transaction)).to.include({
      status: '0x1',
    })
  })
})

describe('a payment settled on a chain with faults and final in the third block', () => {
  const scene = useTill({ confirmBlocks: 3 })

  it('delivers a plan only once its payment is that deep, and charges nobody for a reorganisation before', async () => {
    const { till } = scene
    const payment = await till.sign(PLAN, await till.buyer(PLAN_PRICE), { method: 'POST' })
    const early = await payment.pay()
    expect(await outcomeOf(early)).to.deep.equal([503, 'settlement_pending'])
    expect(await till.received()).to.equal(PLAN_PRICE)
    await till.chain.rpc.call('anvil_reorg', 1, [])
    expect(await till.received()).to.equal(-PLAN_PRICE)
    await until(async () => (await till.received()) === PLAN_PRICE)
    expect(await payment.path()).to.deep.equal(['reserved', 'answered', 'submitted'])
    await till.mine(2)
    await until(async () => (await payment.path()).at(-1) === 'settled')
    const late = await payment.pay()
    expect(late.status).to.equal(200)
    expect(await json(late)).to.have.property('token')
    await ends(payment, ONCE)
  })

  it('delivers a cheap answer in the first block, and keeps its payment open until it is final', async () => {
    const { till } = scene
    const payment = await till.sign('/v1/echo/early', await till.buyer())
    const response = await payment.pay()
    expect(response.status).to.equal(200)
    expect(receipt(response)).to.include({ success: true }).and.have.property('extensions')
    expect(await payment.path()).to.deep.equal(['reserved', 'answered', 'submitted'])
    const again = await payment.pay()
    expect(await again.text()).to.equal(await response.text())
    expect(await payment.path()).to.deep.equal(['reserved', 'answered', 'submitted'])
    await till.mine(2)
    await ends(payment, ONCE)
    expect(await till.received()).to.equal(PRICE)
  })

  it('releases a payment that a reorganisation removed and that can no longer be executed', async () => {
    const { till } = scene
    const { rpc } = till.chain
    const buyer = await till.buyer()
    const payment = await till.sign('/v1/echo/gone', buyer)
    expect((await payment.pay()).status).to.equal(200)
    expect(await till.received()).to.equal(PRICE)
    await rpc.call('evm_setAutomine', false)
    await rpc.call('anvil_reorg', 1, [])
    await drain(till, buyer.address)
    await till.mine(1)
    await rpc.call('evm_setAutomine', true)
    await until(async () => {
      await till.mine(1)
      return (await payment.path()).at(-1) === 'released'
    })
    expect(await payment.path()).to.deep.equal(RELEASED)
    expect(await till.received()).to.equal(-PRICE)
    expect(await till.chain.balanceOf(buyer.address)).to.equal(0n)
  })

  it('releases a reverted payment only once the revert is final', async () => {
    const { till } = scene
    const buyer = await till.buyer()
    const payment = await till.sign('/v1/echo', buyer, GATED)
    const call = await startGatedCall(till, payment)
    await drain(till, buyer.address)
    expect(await outcomeOf(await call.go())).to.deep.equal([503, 'settlement_pending'])
    expect((await payment.path()).at(-1)).to.equal('submitted')
    await till.mine(2)
    await ends(payment, RELEASED)
    expect(await till.received()).to.equal(0n)
  })
})

/** Pays, and repeats the same payment while it is pending: a loaded chain may be slower than the settler waits. */
async function payUntilDecided(payment: Signed): Promise<Response> {
  for (let tries = 1; ; tries++) {
    const response = await payment.pay()
    if (response.status !== 503 || tries === 20) return response
    await delay(250)
  }
}
