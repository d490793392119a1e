import { expect } from 'chai'
import { createLog } from '../../../gateway/observe/log.ts'
import type { PaymentState } from '../../../gateway/payments/journal/payment-states.ts'
import type { Hex } from '../../../gateway/config/networks.ts'
import { createFacilitatorSettler } from '../../../gateway/methods/exact-evm/facilitator/facilitator-settler.ts'
import { ask, json, receipt } from '../../support/agent.ts'
import { type Facilitator, startFacilitator } from '../../support/facilitator.ts'
import { type Fault, type Proxy, startProxy } from '../../support/proxy.ts'
import { until } from '../../support/until.ts'
import { openChainGateway, outcomeOf, type SignedPayment, type ChainGateway } from '../../support/chain-gateway.ts'
import { expectStates, SETTLED, OWED, PRICE, RELEASED, sendFor } from './fault-fixture.ts'

const HASH: Hex = `0x${'ab'.repeat(32)}`
const SUBMITTED: readonly PaymentState[] = ['reserved', 'submitted']

const answering = (body: object, status = 200): Fault => ({ status, body: JSON.stringify(body) })
const late = (body: object, status = 200): Fault => ({ status, body: JSON.stringify(body), after: true })
const onSettle = (fault: Fault) => (path: string) => (path === '/settle' ? fault : 'pass')
const failing = (errorReason: string): object => ({ success: false, errorReason, transaction: '' })

describe('a payment settled through facilitators with faults', () => {
  let reference: Facilitator
  let first: Proxy
  let second: Proxy
  let gateway: ChainGateway

  before(async function () {
    gateway = await openChainGateway(this, async (chain, [node]) => {
      reference = await startFacilitator(chain)
      ;[first, second] = [await startProxy(reference.url), await startProxy(reference.url)]
      // The first facilitator is down at the start; the gateway opens nevertheless.
      await first.down()
      const { network } = chain
      const common = { rpcUrl: node.url, network, baseUrl: 'https://shop.example', log: createLog('silent') }
      const settler = createFacilitatorSettler({
        ...common,
        urls: [first.url, second.url],
        timeoutSeconds: 1,
        confirmSeconds: 1,
      })
      await until(() => settler.health().nodes?.[1]?.ready === true)
      return settler
    })
  })
  afterEach(async () => {
    for (const proxy of [first, second]) proxy.script(() => 'pass')
    await gateway.chain.rpc.call('evm_setAutomine', true)
  })
  after(async () => {
    await gateway?.close()
    for (const proxy of [first, second]) await proxy?.close()
    await reference?.close()
  })

  /** Scripts the facilitator that is asked first and the other one, whichever the gateway prefers at the moment. */
  function scriptInOrder(ofFirstAsked: Fault, ofOther: Fault): void {
    let asked: Proxy | null = null
    for (const proxy of [first, second])
      proxy.script((path) => {
        if (path !== '/settle') return 'pass'
        asked ??= proxy
        return asked === proxy ? ofFirstAsked : ofOther
      })
  }
  const sign = async (): Promise<SignedPayment> => gateway.sign('/v1/echo/facilitated', await gateway.newBuyer())
  const settleRequests = (proxy: Proxy): number =>
    proxy.requests.filter((body) => body.includes('paymentPayload')).length
  /** Pays, and counts how often each facilitator was asked to settle. */
  async function pay(
    payment: SignedPayment,
  ): Promise<{ readonly response: Response; readonly asked: readonly number[] }> {
    const before = [settleRequests(first), settleRequests(second)]
    const response = await payment.pay()
    return { response, asked: [settleRequests(first) - (before[0] ?? 0), settleRequests(second) - (before[1] ?? 0)] }
  }
  it('settles through the second facilitator if the first is down at the start, and names it in /health', async () => {
    expect(gateway.settler.health().nodes?.map(({ ready }) => ready)).to.deep.equal([false, true, true])
    const payment = await sign()
    const { response } = await pay(payment)
    expect(response.status).to.equal(200)
    await expectStates(payment, SETTLED)
    expect(await gateway.received()).to.equal(PRICE)
    expect(gateway.settler.health()).to.include({ ready: true })
    await first.up()
  })

  for (const [name, fault] of Object.entries<Fault>({
    'is over its limit': answering({ error: 'slow down' }, 429),
    'does not settle on this network': answering(failing('unsupported_network')),
    'does not know the scheme': answering(failing('unsupported_scheme'), 400),
  }))
    it(`settles through the second facilitator if the first ${name}`, async () => {
      first.script(onSettle(fault))
      second.script(() => 'pass')
      const payment = await sign()
      const { response, asked } = await pay(payment)
      expect(response.status).to.equal(200)
      expect(asked[1]).to.equal(1)
      await expectStates(payment, SETTLED)
      expect(await gateway.received()).to.equal(PRICE)
    })

  it('releases a payment that a facilitator refused before it broadcast anything, and gives the reason', async () => {
    for (const proxy of [first, second])
      proxy.script(onSettle(answering(failing('invalid_exact_evm_payload_signature'))))
    const payment = await sign()
    const { response, asked } = await pay(payment)
    expect(receipt(response)).to.include({ success: false, errorReason: 'invalid_exact_evm_payload_signature' })
    expect(await outcomeOf(response)).to.deep.equal([402, 'settlement_failed'])
    expect(asked.reduce((sum, count) => sum + count)).to.equal(1)
    await expectStates(payment, RELEASED)
    expect(await gateway.received()).to.equal(0n)
  })

  it('records a debt if a refused payment is broadcast later all the same', async () => {
    for (const proxy of [first, second]) proxy.script(onSettle(answering(failing('insufficient_funds'))))
    const payment = await sign()
    expect((await payment.pay()).status).to.equal(402)
    await expectStates(payment, RELEASED)
    await sendFor(gateway, payment)
    expect(await json(await payment.pay())).to.include({ code: 'payment_owed' })
    await expectStates(payment, OWED)
    expect(await gateway.received()).to.equal(PRICE)
  })

  for (const [name, fault] of Object.entries<Fault>({
    'breaks the connection': 'cut',
    'answers 502': late({ error: 'bad gateway' }, 502),
    'reports a failure': late(failing('unexpected_settle_error')),
    'reports a used nonce': late(failing('invalid_exact_evm_nonce_already_used')),
  }))
    it(`delivers and charges once if the facilitator settles and then ${name}`, async () => {
      for (const proxy of [first, second]) proxy.script(onSettle(fault))
      const payment = await sign()
      const { response, asked } = await pay(payment)
      expect(response.status).to.equal(200)
      expect(asked.reduce((sum, count) => sum + count)).to.equal(1)
      await expectStates(payment, SETTLED)
      expect(await gateway.received()).to.equal(PRICE)
    })

  for (const [name, fault] of Object.entries<Fault>({
    'answers 500 once': answering({ error: 'boom' }, 500),
    'answers 200 without a meaning once': answering({ hello: 'world' }),
    'answers something else than JSON once': { status: 200, body: '<html>' },
    'does not answer once': 'hang',
  }))
    it(`asks a facilitator that ${name} again, and delivers within the same call`, async () => {
      let asked = 0
      for (const proxy of [first, second])
        proxy.script((path) => (path === '/settle' && ++asked === 1 ? fault : 'pass'))
      const payment = await sign()
      const response = await payment.pay()
      expect(response.status).to.equal(200)
      expect(asked).to.equal(2)
      await expectStates(payment, SETTLED)
      expect(await gateway.received()).to.equal(PRICE)
    })

  it('delivers through the next facilitator if one answers 500 every time', async () => {
    scriptInOrder(answering({}, 500), 'pass')
    const payment = await sign()
    const { response, asked } = await pay(payment)
    expect(response.status).to.equal(200)
    expect(asked).to.have.members([2, 1])
    await expectStates(payment, SETTLED)
    expect(await gateway.received()).to.equal(PRICE)
  })

  it('charges once if a facilitator is asked again while its transaction waits for a block', async () => {
    const payment = await sign()
    const before = settleRequests(first) + settleRequests(second)
    await gateway.chain.rpc.call('evm_setAutomine', false)
    const call = payment.pay()
    await until(() => settleRequests(first) + settleRequests(second) === before + 2)
    await gateway.chain.rpc.call('evm_setAutomine', true)
    await gateway.mine(1)
    expect((await call).status).to.equal(200)
    await expectStates(payment, SETTLED)
    expect(await gateway.received()).to.equal(PRICE)
  })

  it('does not call a payment refused that one facilitator may have sent and another one refuses', async () => {
    scriptInOrder(answering({}, 500), answering(failing('insufficient_funds')))
    const payment = await sign()
    const { response } = await pay(payment)
    expect(await outcomeOf(response)).to.deep.equal([503, 'settlement_pending'])
    expect(await payment.states()).to.deep.equal(SUBMITTED)
    for (const proxy of [first, second]) proxy.script(() => 'pass')
    await expectStates(payment, SETTLED)
    expect(await gateway.received()).to.equal(PRICE)
  })

  for (const [name, fault] of Object.entries<Fault>({
    'do not answer in time': 'hang',
    'answer 500': answering({ error: 'boom' }, 500),
    'report a settlement that never happened': answering({ success: true, transaction: HASH }),
    'report a pending settlement': answering({ success: false, errorReason: 'settlement_pending', transaction: HASH }),
  }))
    it(`keeps a payment open while all facilitators ${name}, and settles it without the buyer once they work`, async () => {
      for (const proxy of [first, second]) proxy.script(onSettle(fault))
      const payment = await sign()
      const { response, asked } = await pay(payment)
      expect(response.headers.get('payment-required')).to.equal(null)
      expect(await outcomeOf(response)).to.deep.equal([503, 'settlement_pending'])
      expect(asked.reduce((sum, count) => sum + count)).to.be.within(1, 4)
      expect(await payment.states()).to.deep.equal(SUBMITTED)
      expect(await gateway.received()).to.equal(0n)
      for (const proxy of [first, second]) proxy.script(() => 'pass')
      await expectStates(payment, SETTLED)
      expect((await payment.pay()).status).to.equal(200)
      expect(await gateway.received()).to.equal(PRICE)
    })

  it('does no work and charges nothing while all facilitators are down, but still serves the 402', async () => {
    await first.down()
    await second.down()
    const { settler } = gateway
    const payment = await sign()
    // The first payment may be taken before the outage is noticed.
    expect(await outcomeOf(await payment.pay())).to.be.deep.oneOf([
      [402, 'settlement_failed'],
      [503, 'settler_unavailable'],
    ])
    await until(() => !settler.health().ready)
    expect(settler.health().reason).to.equal('no facilitator can be reached')
    const other = await sign()
    expect(await outcomeOf(await other.pay())).to.deep.equal([503, 'settler_unavailable'])
    expect(await other.states()).to.deep.equal([])
    expect((await ask(`${gateway.url}/v1/echo/facilitated`)).status).to.equal(402)
    await first.up()
    await second.up()
    await until(() => settler.health().ready)
    expect((await other.pay()).status).to.equal(200)
    await expectStates(other, SETTLED)
    expect(await gateway.received()).to.equal(PRICE)
  })

  it('does no work and charges nothing while no facilitator supports the network, but still serves the 402', async () => {
    const otherNetwork = answering({ kinds: [{ x402Version: 2, scheme: 'exact', network: 'eip155:1' }] })
    const { settler } = gateway
    for (const proxy of [first, second])
      proxy.script((path) => (path === '/supported' ? otherNetwork : answering(failing('unsupported_network'))))
    const payment = await sign()
    await payment.pay()
    await until(() => !settler.health().ready)
    expect(settler.health().reason).to.equal('no facilitator settles "exact" on base-sepolia')
    expect(await outcomeOf(await payment.pay())).to.deep.equal([503, 'settler_unavailable'])
    expect((await payment.states()).at(-1)).to.equal('released')
    expect((await ask(`${gateway.url}/v1/echo/facilitated`)).status).to.equal(402)
    for (const proxy of [first, second]) proxy.script(() => 'pass')
    await until(() => settler.health().ready)
    expect(await gateway.received()).to.equal(0n)
  })

  it('asks less and less often while a payment cannot be settled, and releases it only once it has expired by the time of the chain', async () => {
    for (const proxy of [first, second]) proxy.script(onSettle(answering({ error: 'boom' }, 500)))
    const payment = await sign()
    const { response } = await pay(payment)
    expect(await outcomeOf(response)).to.deep.equal([503, 'settlement_pending'])
    const asked = (): number => settleRequests(first) + settleRequests(second)
    const before = asked()
    for (let times = 0; times < 20; times++)
      expect(await outcomeOf(await payment.pay())).to.deep.equal([503, 'settlement_pending'])
    expect(asked() - before, 'twenty repeats').to.be.at.most(5)
    await gateway.chain.advance(400)
    await expectStates(payment, RELEASED)
    expect(await gateway.received()).to.equal(0n)
  })
})
