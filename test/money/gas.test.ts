import { expect } from 'chai'
import { createChainSettler } from '../../gateway/methods/exact-evm/chain/chain-settler.ts'
import { createLog } from '../../gateway/observe/log.ts'
import { ask, json } from '../support/agent.ts'
import { type ChainGateway, openChainGateway } from '../support/chain-gateway.ts'
import { until } from '../support/gateway.ts'
import { putGasPriceOracle } from '../support/gas-price-oracle.ts'
import { newSettleKey } from '../support/payments.ts'

const TOKEN = 'correct-horse-battery'
const bearer = { authorization: `Bearer ${TOKEN}` }

interface Alarm {
  readonly name: string
  readonly message: string
  readonly about: readonly string[]
}

describe('a gateway whose settlements cost more than some of its prices', () => {
  let shop: ChainGateway
  before(async function () {
    shop = await openChainGateway(
      this,
      async (chain) => {
        const { rpcUrl, network } = chain
        // The data of a settlement cost 0.0000035 of a coin or a little more: $0.0105.
        await chain.rpc.call('anvil_setNextBlockBaseFeePerGas', '0x1')
        await chain.rpc.call('evm_mine')
        await putGasPriceOracle(chain, 10_000_000_000n)
        const key = await newSettleKey(chain)
        return createChainSettler({ rpcUrl, key, network, log: createLog('silent'), confirmSeconds: 10 })
      },
      { config: { OPERATOR_TOKEN: TOKEN, GAS_COIN_USD: '3000' } },
    )
  })
  after(() => shop?.close())

  it('sells on, and names those that are below the cost of their settlement', async () => {
    const alarms = async (): Promise<readonly Alarm[]> =>
      ((await json(await ask(`${shop.url}/operator`, { headers: bearer }))) as { alarms: Alarm[] }).alarms
    await until(async () => (await alarms()).length > 0)
    const [alarm] = await alarms()
    expect(alarm?.name).to.equal('gas.above_price')
    expect(alarm?.message).to.match(
      /^operations sell for less than their settlement costs.*on base-sepolia costs \$0\.01\d* now \(86000 gas at .* for its data\): getEcho \(\$0\.005\)/,
    )
    const { about } = alarm as Alarm
    expect(about).to.include('base-sepolia/getEcho')
    expect(about.some((each) => each.includes('Plan'))).to.equal(false)
    const payment = await shop.sign('/v1/echo/gas', await shop.newBuyer())
    expect((await payment.pay()).status).to.equal(200)
  })
})

describe('a gateway whose gas account is nearly empty and burns too much', () => {
  let shop: ChainGateway
  before(async function () {
    const config = { OPERATOR_TOKEN: TOKEN, GAS_LOW_SETTLEMENTS: '1000', GAS_ALARM_PER_HOUR: '0.000001' }
    shop = await openChainGateway(
      this,
      async (chain) => {
        const { rpcUrl, network } = chain
        // Gas costs about 1 gwei on a new chain, so a plain settlement costs less than 0.0002.
        const key = await newSettleKey(chain, 4n * 10n ** 15n)
        return createChainSettler({ rpcUrl, key, network, log: createLog('silent'), confirmSeconds: 10, pollMs: 50 })
      },
      { config },
    )
  })
  after(() => shop?.close())

  const alarms = async (): Promise<readonly Alarm[]> =>
    ((await json(await ask(`${shop.url}/operator`, { headers: bearer }))) as { alarms: Alarm[] }).alarms
  const alarm = async (name: string): Promise<Alarm | undefined> => (await alarms()).find((each) => each.name === name)
  const metric = async (name: string): Promise<number> => {
    const text = await (await ask(`${shop.url}/metrics`, { headers: bearer })).text()
    return Number(new RegExp(`^${name}\\{network="base-sepolia"\\} (\\S+)$`, 'm').exec(text)?.[1])
  }

  it('sells on, and raises gas.low, which the metrics explain', async () => {
    await until(async () => (await alarm('gas.low')) !== undefined)
    const left = await metric('tollgate_gas_settlements_left')
    expect((await alarm('gas.low'))?.message).to.contain(`has gas for ${left} more settlements on base-sepolia`)
    expect(left).to.be.within(1, 999)
    expect(await metric('tollgate_gas_balance_wei')).to.equal(4e15)
    expect(await metric('tollgate_settlement_cost_wei')).to.be.greaterThan(0)
    expect(await metric('tollgate_gas_spent_wei')).to.equal(0)
    expect(await alarm('gas.burnt')).to.equal(undefined)
  })

  it('raises gas.burnt once the gas of its settlements has cost more than the limit', async () => {
    const payment = await shop.sign('/v1/echo/gas', await shop.newBuyer())
    expect((await payment.pay()).status).to.equal(200)
    await until(async () => (await alarm('gas.burnt')) !== undefined)
    expect((await alarm('gas.burnt'))?.message).to.match(
      /^the gas of the last hour cost 0\.0\d+ on base-sepolia, 0 of it/,
    )
    expect(await metric('tollgate_gas_spent_wei')).to.be.greaterThan(1e12)
  })
})
