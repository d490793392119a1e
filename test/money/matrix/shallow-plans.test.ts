import { expect } from 'chai'
import { createLog } from '../../../gateway/observe/log.ts'
import { NETWORKS } from '../../../gateway/config/networks.ts'
import { createChainSettler } from '../../../gateway/methods/exact-evm/chain/chain-settler.ts'
import { json } from '../../support/agent.ts'
import { type ChainGateway, openChainGateway, outcomeOf } from '../../support/chain-gateway.ts'
import { newSettleKey } from '../../support/payments.ts'
import { until } from '../../support/until.ts'
import { expectStates, PLAN, PLAN_PRICE, SETTLED } from './fault-fixture.ts'

const SAFE_BLOCKS = 5

function useRealMoney(config: Readonly<Record<string, string>>): { gateway: ChainGateway } {
  const fixture = {} as { gateway: ChainGateway }
  before(async function () {
    const open = async (chain: ChainGateway['chain'], [node]: ChainGateway['nodes']) => {
      const { network } = chain
      const key = await newSettleKey(chain)
      const timing = { confirmSeconds: 0.5, pollMs: 30, confirmBlocks: 1 }
      return createChainSettler({ rpcUrl: node.url, key, network, log: createLog('silent'), ...timing })
    }
    fixture.gateway = await openChainGateway(this, open, { network: NETWORKS.base, config })
  })
  after(() => fixture.gateway?.close())
  return fixture
}

const OTHER_REQUEST = { method: 'POST', headers: { 'idempotency-key': 'another-plan-for-real-money' } }
const request = { method: 'POST', headers: { 'idempotency-key': 'a-plan-for-real-money' } }

describe('a plan sold for real money where payments are final in the first block', function () {
  this.timeout(90_000)
  const fixture = useRealMoney({})

  it('says to a buyer without an Idempotency-Key that the repeat has to sign in, as long as the payment is pending', async () => {
    const { gateway } = fixture
    const payment = await gateway.sign(PLAN, await gateway.newBuyer(PLAN_PRICE), { method: 'POST' })
    const named = await gateway.sign(PLAN, await gateway.newBuyer(PLAN_PRICE), request)
    // Each waits as long as five blocks may take.
    const [pending, pendingOfNamed] = await Promise.all([payment.pay(), named.pay()])
    expect([pending.status, pendingOfNamed.status]).to.deep.equal([503, 503])
    const { message } = (await json(pending)) as { message: string }
    expect(message).to.contain('do not sign a new one').and.contain('sign in with the wallet that paid')
    const again = await json(await payment.pay())
    expect(again).to.include({ code: 'sign_in_required' })
    expect((await json(pendingOfNamed))['message']).to.not.contain('sign in')
  })

  it('is delivered only once its payment is five blocks deep, though cheap answers leave at once', async () => {
    const { gateway } = fixture
    const cheap = await gateway.sign('/v1/echo/cheap', await gateway.newBuyer())
    expect((await cheap.pay()).status).to.equal(200)
    await expectStates(cheap, SETTLED)
    const payment = await gateway.sign(PLAN, await gateway.newBuyer(PLAN_PRICE), OTHER_REQUEST)
    expect(await outcomeOf(await payment.pay())).to.deep.equal([503, 'settlement_pending'])
    await gateway.mine(SAFE_BLOCKS - 2)
    expect(await outcomeOf(await payment.pay())).to.deep.equal([503, 'settlement_pending'])
    expect(await payment.states()).to.deep.equal(['reserved', 'submitted'])
    await gateway.mine(1)
    await until(async () => (await payment.states()).at(-1) === 'settled')
    const late = await payment.pay()
    expect(late.status).to.equal(200)
    expect(await json(late)).to.have.property('token')
  })
})

describe('a plan of an operator who allows shallow plans', function () {
  this.timeout(90_000)
  const fixture = useRealMoney({ ALLOW_SHALLOW_PLANS: 'true' })

  it('is delivered as soon as its payment is final by the setting of all payments', async () => {
    const { gateway } = fixture
    const payment = await gateway.sign(PLAN, await gateway.newBuyer(PLAN_PRICE), request)
    const response = await payment.pay()
    expect(response.status).to.equal(200)
    expect(await json(response)).to.have.property('token')
    await expectStates(payment, SETTLED)
  })
})
