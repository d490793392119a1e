import { expect } from 'chai'
import { type Hex, NETWORKS } from '../../../gateway/config/networks.ts'
import { TOKEN_HEADER } from '../../../gateway/plugin/catalog.ts'
import { ask, json } from '../../support/agent.ts'
import { outcomeOf, type SignedPayment } from '../../support/chain-gateway.ts'
import { PAY_TO } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'
import { drain, expectStates, PLAN, PLAN_PRICE, SETTLED, sendFor, useChainGateway } from './fault-fixture.ts'

const OPERATOR = 'operator-token-of-the-reversal-tests-0123456789'
const REVERSED = [...SETTLED, 'reversed'] as const
const ASKED = { method: 'POST', headers: { 'idempotency-key': 'a-plan-that-is-reversed' } }

describe('a plan whose payment was final in the first block', function () {
  this.timeout(120_000)
  /** How far the clock of the gateway is ahead, in milliseconds: tests do not wait until a payment is given up. */
  let ahead = 0
  const now = (): Date => new Date(Date.now() + ahead)
  const fixture = useChainGateway({ confirmBlocks: 1 }, { config: { OPERATOR_TOKEN: OPERATOR }, now })
  afterEach(() => {
    ahead = 0
  })

  interface Bought {
    readonly payment: SignedPayment
    readonly buyer: Awaited<ReturnType<typeof fixture.gateway.newBuyer>>
    /** The status of a call with the token that was bought. */
    readonly callWithToken: () => Promise<number>
  }

  async function buyPlan(): Promise<Bought> {
    const { gateway } = fixture
    const buyer = await gateway.newBuyer(PLAN_PRICE)
    const payment = await gateway.sign(PLAN, buyer, ASKED)
    const response = await payment.pay()
    expect(response.status).to.equal(200)
    const { token } = (await json(response)) as { token: string }
    await expectStates(payment, SETTLED)
    const callWithToken = async (): Promise<number> =>
      (await ask(`${gateway.url}/v1/late`, { headers: { [TOKEN_HEADER]: token } })).status
    expect(await callWithToken()).to.equal(200)
    await gateway.received()
    return { payment, buyer, callWithToken }
  }

  /** Rolls the newest block back and mines one in which the buyer has spent the money elsewhere. */
  async function spendInstead({ buyer }: Bought): Promise<void> {
    const { gateway } = fixture
    const { rpc } = gateway.chain
    await rpc.call('evm_setAutomine', false)
    await rpc.call('anvil_reorg', 1, [])
    await drain(gateway, buyer.address)
    await gateway.mine(1)
    await rpc.call('evm_setAutomine', true)
  }

  const operator = async (path: string): Promise<string> =>
    (await ask(`${fixture.gateway.url}${path}`, { headers: { authorization: `Bearer ${OPERATOR}` } })).text()

  /** Waits while the chain goes on and the gateway's clock runs a hundred times as fast. */
  async function untilLooked(isTrue: () => Promise<boolean>): Promise<void> {
    await until(async () => {
      await fixture.gateway.mine(1)
      ahead += 25_000
      return isTrue()
    }, 250)
  }

  async function untilReversed({ payment }: Bought): Promise<void> {
    await untilLooked(async () => (await payment.states()).at(-1) === 'reversed')
    expect(await payment.states()).to.deep.equal(REVERSED)
  }

  it('is reversed if a rollback lets the buyer spend the money first: token revoked, debt booked, alarm raised', async () => {
    const { gateway } = fixture
    const bought = await buyPlan()
    await spendInstead(bought)
    expect(await gateway.received()).to.equal(-PLAN_PRICE)
    await untilReversed(bought)
    await until(async () => (await bought.callWithToken()) === 402)

    const { payment } = bought
    const refusal = await payment.pay()
    expect(await outcomeOf(refusal)).to.deep.equal([402, 'settlement_failed'])
    const { key, callId } = await payment.record()
    await until(async () => (await operator('/metrics')).includes('tollgate_alarm{alarm="payments.reversed"} 1'))
    expect(await operator('/metrics')).to.include('tollgate_payments{state="reversed"} 1')

    const month = new Date().toISOString().slice(0, 7)
    const { entries, totals } = JSON.parse(await operator(`/operator/ledger/export?month=${month}&format=json`)) as {
      entries: readonly { payment: string; kind: string; call: string; amount_atomic: string }[]
      totals: readonly { kind: string; amount_atomic: string }[]
    }
    const own = entries.filter((entry) => entry.payment === key)
    expect(own.map(({ kind, call, amount_atomic: amount }) => [kind, call, amount])).to.deep.equal([
      ['sale', callId, String(PLAN_PRICE)],
      ['reversal', callId, String(PLAN_PRICE)],
    ])
    expect(totals.map(({ kind }) => kind)).to.include('reversal')
    const screen = JSON.parse(await operator('/operator/ledger')) as {
      reversals: readonly { payment: string; amount: string }[]
    }
    expect(screen.reversals.map(({ payment: name, amount }) => [name, amount])).to.deep.include([
      key,
      String(PLAN_PRICE),
    ])
    const overview = JSON.parse(await operator('/operator')) as {
      revenue: Record<'reversed' | 'total', { amount: string }>
    }
    expect(overview.revenue.reversed.amount).to.equal(String(PLAN_PRICE))
  })

  it('is settled again, with its token, if the payment is mined after it was reversed', async () => {
    const { gateway } = fixture
    const bought = await buyPlan()
    await spendInstead(bought)
    await untilReversed(bought)
    await until(async () => (await bought.callWithToken()) === 402)
    await gateway.chain.mint(bought.buyer.address, PLAN_PRICE)
    await sendFor(gateway, bought.payment)
    await untilLooked(async () => (await bought.payment.states()).at(-1) === 'settled')
    expect(await bought.payment.states()).to.deep.equal([...REVERSED, 'settled'])
    await until(async () => (await bought.callWithToken()) === 200)
    expect((await bought.payment.pay()).status).to.equal(200)
    await until(async () =>
      (await gateway.journal.reversals(0, 100)).every(
        ({ identity }) => identity !== bought.payment.authorization.nonce,
      ),
    )
  })

  it('stays settled if a rollback only moves its transaction to another block', async () => {
    const { gateway } = fixture
    const bought = await buyPlan()
    await gateway.chain.rpc.call('anvil_reorg', 1, [])
    // The transaction may be sent again with a higher fee, and then has another hash.
    let moved = 0n
    await until(async () => (moved += await gateway.received()) === 0n)
    const due = async (): Promise<boolean> =>
      (await gateway.journal.dueForLook(Number.MAX_SAFE_INTEGER, 1_000)).some(
        ({ identity }) => identity === bought.payment.authorization.nonce,
      )
    expect(await due()).to.equal(true)
    await gateway.mine(70)
    await untilLooked(async () => !(await due()))
    expect(await bought.payment.states()).to.deep.equal(SETTLED)
    const { transaction } = await bought.payment.record()
    expect(await gateway.chain.rpc.call('eth_getTransactionReceipt', transaction)).to.include({ status: '0x1' })
    expect(await bought.callWithToken()).to.equal(200)
  })
})

describe('a plan whose payment is final in the fifth block', function () {
  this.timeout(120_000)
  const fixture = useChainGateway({ confirmBlocks: 5 })

  it('is never delivered if a rollback lets the buyer spend the money first', async () => {
    const { gateway } = fixture
    const buyer = await gateway.newBuyer(PLAN_PRICE)
    const payment = await gateway.sign(PLAN, buyer, ASKED)
    expect(await outcomeOf(await payment.pay())).to.deep.equal([503, 'settlement_pending'])
    expect(await gateway.received()).to.equal(PLAN_PRICE)
    const { rpc } = gateway.chain
    await rpc.call('evm_setAutomine', false)
    await rpc.call('anvil_reorg', 1, [])
    await drain(gateway, buyer.address)
    await gateway.mine(1)
    await rpc.call('evm_setAutomine', true)
    await gateway.mine(10)
    const [status, code] = await outcomeOf(await payment.pay())
    expect([status, code]).to.deep.be.oneOf([
      [402, 'settlement_failed'],
      [503, 'settlement_pending'],
    ])
    expect(await payment.states()).to.not.include('settled')
    expect(await gateway.received()).to.equal(-PLAN_PRICE)
  })
})

describe('a plan sold for real money where payments are final in the fifth block', function () {
  this.timeout(120_000)
  const CONFIRM_BLOCKS = 5
  const fixture = useChainGateway({ confirmBlocks: CONFIRM_BLOCKS }, { network: NETWORKS.base })

  /** Rolls as many blocks back as CONFIRM_BLOCKS says, and mines others in which the buyer has spent the money elsewhere. */
  async function rollBackAndSpend(buyer: Hex): Promise<void> {
    const { gateway } = fixture
    const { rpc } = gateway.chain
    await rpc.call('evm_setAutomine', false)
    await rpc.call('anvil_reorg', CONFIRM_BLOCKS, [])
    if ((await gateway.chain.balanceOf(buyer)) > 0n) await drain(gateway, buyer)
    await gateway.mine(CONFIRM_BLOCKS)
    await rpc.call('evm_setAutomine', true)
  }

  it('is delivered one block deeper than that, so that a rollback of exactly five blocks cannot take it back', async () => {
    const { gateway } = fixture
    const buyer = await gateway.newBuyer(PLAN_PRICE)
    const headers = { 'idempotency-key': 'a-plan-for-real-money' }
    const payment = await gateway.sign(PLAN, buyer, { method: 'POST', headers })
    const first = payment.pay()
    await until(async () => (await payment.states()).includes('submitted'))
    await until(async () => (await gateway.chain.balanceOf(PAY_TO)) > 0n)
    let delivered: Response | null = null
    let blocks = 1
    while (!delivered && blocks <= 2 * CONFIRM_BLOCKS) {
      await gateway.mine(1)
      blocks += 1
      // The first call waits for its block; a repeat of it reads the chain once.
      if (blocks >= CONFIRM_BLOCKS) {
        const response = blocks === CONFIRM_BLOCKS ? await first : await payment.pay()
        if (response.status === 200) delivered = response
      }
    }
    const { token } = (await json(delivered as Response)) as { token: string }
    await gateway.received()
    await rollBackAndSpend(buyer.address)
    expect(await gateway.received(), 'what the rollback took back').to.equal(0n)
    expect(await payment.states()).to.deep.equal(SETTLED)
    expect((await ask(`${gateway.url}/v1/late`, { headers: { [TOKEN_HEADER]: token } })).status).to.equal(200)
  })
})
