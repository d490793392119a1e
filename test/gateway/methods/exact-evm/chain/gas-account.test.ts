import { expect } from 'chai'
import { privateKeyToAccount } from 'viem/accounts'
import type { Hex } from '../../../../../gateway/config/networks.ts'
import { createSigner } from '../../../../../gateway/methods/exact-evm/chain/transaction-signer.ts'
import type { GasAccount, Settler } from '../../../../../gateway/methods/payment-method.ts'
import { putGasPriceOracle, removeGasPriceOracle } from '../../../../support/gas-price-oracle.ts'
import { newBuyer } from '../../../../support/payments.ts'
import { useSettlerFixture } from '../../../../support/settler-fixture.ts'
import { until } from '../../../../support/until.ts'

describe('the gas account of a chain settler', () => {
  const fixture = useSettlerFixture()
  afterEach(() => removeGasPriceOracle(fixture.chain))

  const accountOf = (settler: Settler): GasAccount => settler.gasAccounts?.()[0] as GasAccount
  const balanceOf = async (): Promise<bigint> =>
    BigInt(await fixture.chain.rpc.call<Hex>('eth_getBalance', privateKeyToAccount(fixture.key).address, 'latest'))

  it('says what it holds, and what one settlement costs at the price of gas', async () => {
    const { address, network, balance, settlementCost, spent } = accountOf(await fixture.open())
    expect({ address, network: network.name }).to.deep.equal({
      address: privateKeyToAccount(fixture.key).address,
      network: 'base-sepolia',
    })
    expect(balance).to.equal(await balanceOf())
    const { gas, gasPrice, l1Fee, wei } = settlementCost
    expect(gasPrice > 0n).to.equal(true)
    expect({ gas, l1Fee, spent }).to.deep.equal({ gas: 86_000n, l1Fee: 0n, spent: 0n })
    expect(wei).to.equal(86_000n * gasPrice)
  })

  it('adds what a chain of the OP Stack takes for the data of the transaction', async () => {
    await putGasPriceOracle(fixture.chain, 1_000_000_000n)
    const { gasPrice, l1Fee, wei } = accountOf(await fixture.open()).settlementCost
    expect(Number(l1Fee / 1_000_000_000n), 'bytes of an unsigned settlement').to.be.within(320, 420)
    expect(wei).to.equal(86_000n * gasPrice + l1Fee)
  })

  it('settles, and concludes nothing from the cost, if the chain does not say what data cost', async () => {
    await putGasPriceOracle(fixture.chain, null)
    const settler = await fixture.open()
    expect(settler.gasAccounts?.()).to.deep.equal([])
    expect(settler.health()).to.include({ ready: true })
    expect(await fixture.settle(settler, await fixture.newPayload())).to.include({ state: 'settled' })
  })

  it('cannot pay if the data alone cost more than it holds', async () => {
    const { address } = privateKeyToAccount(fixture.key)
    await fixture.chain.fund(address, 10n ** 16n)
    await putGasPriceOracle(fixture.chain, 10n ** 13n)
    expect((await fixture.open()).health()).to.deep.include({
      ready: false,
      reason: `${address} holds too little to pay gas`,
    })
  })

  it('is not ready while its signer would sign nothing', async () => {
    const reason = 'SIGNER_GAS_PER_HOUR (1000000) is reached'
    const local = createSigner(fixture.key, fixture.chain.network.chainId)
    const settler = await fixture.open({ key: { ...local, obstacle: () => reason } })
    expect(settler.health()).to.deep.include({ ready: false, reason })
  })

  it('counts what its transactions have cost, to the wei, and what failed ones have', async () => {
    const before = await balanceOf()
    const settler = await fixture.open()
    expect(await fixture.settle(settler, await fixture.newPayload())).to.include({ state: 'settled' })
    await until(() => accountOf(settler).spent > 0n)
    const afterSuccess = before - (await balanceOf())
    expect(accountOf(settler)).to.include({ spent: afterSuccess, spentOnFailures: 0n })
    const poor = await newBuyer(fixture.chain, 0n)
    expect(await fixture.settle(settler, await fixture.newPayload(poor))).to.include({ state: 'refused' })
    await until(() => accountOf(settler).spentOnFailures > 0n)
    const all = before - (await balanceOf())
    expect(accountOf(settler)).to.include({ spent: all, spentOnFailures: all - afterSuccess })
  })
})
