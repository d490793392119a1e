import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import type { LocalAccount } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import type { Overrides } from '../../gateway/compose.ts'
import type { Hex } from '../../gateway/config/networks.ts'
import type { Journal } from '../../gateway/payments/journal/journal.ts'
import { word } from '../../gateway/methods/exact-evm/eip3009.ts'
import { json, payment, send } from '../support/agent.ts'
import { startChain, type TestChain } from '../support/chain.ts'
import { newWallet, openGateway, type TestGateway, until } from '../support/gateway.ts'
import { newBuyer, newSettleKey } from '../support/payments.ts'
import { sendAsStranger, STRANGER } from '../support/stranger.ts'

const PRICE = 5_000n

interface SentAlert {
  readonly service: string
  readonly event: string
  readonly message: string
  readonly details: { readonly about?: readonly string[] }
}

/** A gateway with a journal of its own, settling on a chain that others use too. */
interface Sibling extends TestGateway {
  /** The account that pays its gas, in lower case. */
  readonly account: string
  /** The alarms that it has sent about payments of others. */
  alarms(): readonly SentAlert[]
}

describe('two gateways with one PAY_TO and a journal each', () => {
  let chain: TestChain
  let webhook: Server
  let alerts: SentAlert[]
  let buyer: LocalAccount
  let payTo: Hex
  const open: Sibling[] = []

  before(async function () {
    chain = await startChain(this)
    for (let block = 0; block < 3; block++) await chain.rpc.call('evm_mine')
    webhook = createServer((request, response) => {
      let text = ''
      request.on('data', (chunk: Buffer) => (text += chunk.toString()))
      request.on('end', () => {
        alerts.push(JSON.parse(text) as SentAlert)
        response.end('{}')
      })
    })
    await new Promise<void>((resolve) => webhook.listen(0, '127.0.0.1', resolve))
  })
  beforeEach(async () => {
    alerts = []
    buyer = await newBuyer(chain)
    payTo = newWallet().address
  })
  afterEach(async () => {
    await chain.rpc.call('evm_setAutomine', true)
    await chain.rpc.call('evm_mine')
    await Promise.all(open.splice(0).map((each) => each.close()))
  })
  after(async () => {
    await chain?.stop()
    await new Promise((resolve) => webhook?.close(resolve))
  })

  /** Opens a gateway that settles with this key. Its alarms come within a second. */
  async function openSibling(key: Hex, settlement: 'any' | 'strict', more: Overrides = {}): Promise<Sibling> {
    const environment = {
      NETWORK: 'base-sepolia',
      PAY_TO: payTo,
      SETTLE_RPC_URL: chain.rpcUrl,
      SETTLE_KEY: key,
      SETTLEMENT: settlement,
      ALERT_WEBHOOK_URL: `http://127.0.0.1:${(webhook.address() as AddressInfo).port}/`,
    }
    // Without a scripted settlement, the configuration says how payments are settled.
    const overrides = {
      settlement: undefined as never,
      lookSeconds: 0.5,
      alarmSeconds: 0.5,
      reconcileSeconds: 1,
      ...more,
    }
    const opened = await openGateway(environment, overrides)
    const isOurs = ({ event, service }: SentAlert): boolean => event === 'payments.foreign' && service === opened.url
    const sibling = {
      ...opened,
      account: privateKeyToAccount(key).address.toLowerCase(),
      alarms: () => alerts.filter(isOurs),
    }
    open.push(sibling)
    return sibling
  }

  async function openTwo(settlement: 'any' | 'strict', haveOneKey: boolean): Promise<readonly [Sibling, Sibling]> {
    const key = await newSettleKey(chain)
    return [
      await openSibling(key, settlement),
      await openSibling(haveOneKey ? key : await newSettleKey(chain), settlement),
    ]
  }

  /** Sends the same payment to both at once, and mines a block once both have recorded what they send. */
  async function payBoth(here: Sibling, there: Sibling): Promise<readonly [Response, Response]> {
    const header = await payment(`${here.url}/v1/echo/same`, buyer)
    await chain.rpc.call('evm_setAutomine', false)
    const answers = Promise.all([here, there].map(({ url }) => send(`${url}/v1/echo/same`, header)))
    const areSent = async (): Promise<boolean> => {
      const counts = await Promise.all([here, there].map(({ gateway }) => gateway.journal.counts()))
      return counts.every(({ submitted }) => submitted === 1)
    }
    await until(areSent)
    let isDone = false
    void answers.then(() => (isDone = true))
    await until(async () => {
      await chain.rpc.call('evm_mine')
      return isDone
    }, 500)
    return (await answers) as [Response, Response]
  }

  async function transactionOf({ gateway }: Sibling): Promise<string | undefined> {
    return (await gateway.journal.list({ limit: 1 }))[0]?.transaction ?? undefined
  }

  async function received(work: () => Promise<unknown>): Promise<bigint> {
    const before = await chain.balanceOf(payTo)
    await work()
    return (await chain.balanceOf(payTo)) - before
  }

  /** Has a stranger send a payment's authorization before the gateway's own transaction is mined. */
  async function frontRun(header: string): Promise<void> {
    await sendAsStranger(chain.rpc, header, chain.network)
  }

  /** Pays while a stranger sends the same authorization for a higher fee. */
  async function payFrontRun({ url, gateway }: Sibling, path: string): Promise<{ response: Response; header: string }> {
    const header = await payment(`${url}${path}`, buyer)
    await chain.rpc.call('evm_setAutomine', false)
    const call = send(`${url}${path}`, header)
    await until(async () => (await gateway.journal.counts()).submitted === 1)
    await frontRun(header)
    await chain.rpc.call('evm_mine')
    await chain.rpc.call('evm_setAutomine', true)
    return { response: await call, header }
  }

  for (const [keys, haveOneKey] of [
    ['a gas key each', false],
    ['one gas key', true],
  ] as const) {
    it(`both deliver the same payment by default, and the one that did not send it alarms (${keys})`, async () => {
      const [here, there] = await openTwo('any', haveOneKey)
      const answers: Response[] = []
      expect(await received(async () => answers.push(...(await payBoth(here, there))))).to.equal(PRICE)
      expect(answers.map(({ status }) => status)).to.deep.equal([200, 200])
      expect(await transactionOf(here)).to.equal(await transactionOf(there))
      await until(() => here.alarms().length + there.alarms().length > 0)
      const [alarm] = [...here.alarms(), ...there.alarms()]
      expect(alarm?.message).to.contain('One PAY_TO needs one journal')
      const receipt = await chain.rpc.call<{ from: string }>('eth_getTransactionReceipt', await transactionOf(here))
      expect(alarm?.details.about).to.deep.equal([receipt.from.toLowerCase()])
      expect([here.account, there.account]).to.include(receipt.from.toLowerCase())
    })

    it(`exactly one delivers the same payment in strict mode, and the other one owes it (${keys})`, async () => {
      const [here, there] = await openTwo('strict', haveOneKey)
      const answers: Response[] = []
      expect(await received(async () => answers.push(...(await payBoth(here, there))))).to.equal(PRICE)
      expect(answers.map(({ status }) => status)).to.have.members([200, 402])
      const [owing, refusal] =
        answers[0]?.status === 402 ? ([here, answers[0]] as const) : ([there, answers[1] as Response] as const)
      const body = await json(refusal)
      expect(body).to.include({ code: 'payment_owed', transaction: await transactionOf(owing) })
      expect(body['message']).to.contain('recorded as a debt to you')
      expect(await owing.gateway.journal.counts()).to.include({ owed: 1, settled: 0 })
      expect((await owing.gateway.journal.debts()).map(({ amount }) => amount)).to.deep.equal([PRICE])
      await until(() => owing.alarms().length > 0)
    })
  }

  it('alarm about a payment that only the other one has sold, and name who sent it', async () => {
    const [here, there] = await openTwo('any', false)
    const header = await payment(`${here.url}/v1/echo/mine`, buyer)
    expect((await send(`${here.url}/v1/echo/mine`, header)).status).to.equal(200)
    await chain.rpc.call('evm_mine')
    await until(() => there.alarms().length > 0)
    expect(there.alarms()[0]?.details.about).to.deep.equal([here.account])
    const rows = alerts.filter(({ event, service }) => event === 'reconciliation.unknown' && service === there.url)
    expect(JSON.stringify(rows)).to.contain(here.account)
  })

  it('raise no alarm about plain transfers, nor about payments of their own', async () => {
    const gateway = await openSibling(await newSettleKey(chain), 'any')
    const header = await payment(`${gateway.url}/v1/echo/mine`, buyer)
    expect((await send(`${gateway.url}/v1/echo/mine`, header)).status).to.equal(200)
    await chain.rpc.call('anvil_impersonateAccount', buyer.address)
    await chain.fund(buyer.address)
    const data = `0xa9059cbb${word(payTo)}${word(7n)}`
    await chain.rpc.call('eth_sendTransaction', { from: buyer.address, to: chain.network.asset, data })
    await chain.rpc.call('anvil_mine', '0x10')
    await until(() => JSON.stringify(alerts).includes('a transfer without an authorization'))
    expect(gateway.alarms()).to.deep.equal([])
  })

  it('deliver by default if a stranger sends the authorization first, and alarm', async () => {
    const gateway = await openSibling(await newSettleKey(chain), 'any')
    const { response } = await payFrontRun(gateway, '/v1/echo/run')
    expect(response.status).to.equal(200)
    await until(() => JSON.stringify(gateway.alarms()).includes(STRANGER.toLowerCase()))
  })

  it('owe the payment in strict mode if a stranger sends the authorization first, whoever asks again', async () => {
    const gateway = await openSibling(await newSettleKey(chain), 'strict')
    const { response, header } = await payFrontRun(gateway, '/v1/echo/run')
    expect(response.status).to.equal(402)
    expect(await json(response)).to.include({ code: 'payment_owed' })
    const again = await json(await send(`${gateway.url}/v1/echo/run`, header))
    expect(again).to.include({ code: 'payment_owed' })
    expect(again['message']).to.contain('Another transaction than ours')
    expect(await gateway.gateway.journal.counts()).to.include({ owed: 1, settled: 0 })
  })

  it('deliver nothing in strict mode while the debt is not recorded yet, and owe it when it can be', async () => {
    let isRefused = true
    const journal = (opened: Journal): Journal => ({
      ...opened,
      owed: (...move) => (isRefused ? Promise.reject(new Error('the process was killed')) : opened.owed(...move)),
    })
    const gateway = await openSibling(await newSettleKey(chain), 'strict', { journal })
    const { response, header } = await payFrontRun(gateway, '/v1/echo/run')
    expect(response.status).to.equal(503)
    for (let times = 0; times < 2; times++) {
      const again = await send(`${gateway.url}/v1/echo/run`, header)
      expect(again.status).to.equal(402)
      const body = await json(again)
      expect(body).to.include({ code: 'payment_owed' })
      expect(body['message']).to.contain('recorded as a debt to you')
    }
    isRefused = false
    await until(async () => (await gateway.gateway.journal.counts()).owed === 1)
    const [debt] = await gateway.gateway.journal.debts()
    expect(debt?.reason).to.match(/^owed: settled by a transaction that this gateway did not send, but 0x/)
  })

  it('settle payments of their own in strict mode as ever', async () => {
    const gateway = await openSibling(await newSettleKey(chain), 'strict')
    const paths = ['a', 'b', 'c', 'd'].map((name) => `/v1/echo/${name}`)
    const headers = await Promise.all(paths.map((path) => payment(`${gateway.url}${path}`, buyer)))
    const answers = await Promise.all(paths.map((path, at) => send(`${gateway.url}${path}`, headers[at] ?? '')))
    expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 200, 200])
    expect(await gateway.gateway.journal.counts()).to.include({ settled: 4, owed: 0 })
  })
})
