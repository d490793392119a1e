import { expect } from 'chai'
import {
  costText,
  createCostComparison,
  operationsBelowCost,
} from '../../../gateway/accounting/settlement-against-prices.ts'
import { NETWORKS } from '../../../gateway/config/networks.ts'
import type { GasAccount, SettlementCost } from '../../../gateway/methods/payment-method.ts'
import type { Operation } from '../../../gateway/plugin/catalog.ts'

/** Costs $0.003 at $3,000 for a coin. */
const COST: SettlementCost = {
  gas: 86_000n,
  gasPrice: 10_000_000n,
  l1Fee: 140_000_000_000n,
  wei: 1_000_000_000_000n,
}
const COIN = 3_000_000_000n

const operation = (id: string, price: bigint | null, more: Partial<Operation> = {}): Operation =>
  ({ id, price, priceText: `0.00${price}`, accepts: null, retired: false, ...more }) as Operation

const OPERATIONS = [
  operation('getFree', null),
  operation('getCheap', 2_999n),
  operation('getFair', 3_000n),
  operation('getElsewhere', 1n, { accepts: ['base-sepolia'] }),
  operation('getOld', 1n, { retired: true }),
]

const limits = (coinPrice: bigint | null, maxPercent: number) => ({
  coinPrices: new Map([['base', coinPrice]]),
  maxPercent,
})
const below = (coinPrice: bigint | null, maxPercent: number): readonly string[] =>
  operationsBelowCost(OPERATIONS, 'base', COST, limits(coinPrice, maxPercent)).map(({ id }) => id)

describe('the comparison of a settlement with prices', () => {
  it('names what sells on the network for less than its settlement costs, to the millionth of a dollar', () => {
    expect(below(COIN, 100)).to.deep.equal(['getCheap'])
    expect(below(COIN, 99)).to.deep.equal(['getCheap', 'getFair'])
    expect(below(COIN, 101)).to.deep.equal([])
  })

  it('names nothing while the operator has not said what the coin is worth', () => {
    expect(below(null, 1)).to.deep.equal([])
  })

  it('says what a settlement costs and of what that is made', () => {
    expect(costText('base', COST, COIN)).to.equal(
      'settling one payment alone on base costs $0.003 now (86000 gas at 0.01 gwei, and 0.00000014 for its data)',
    )
    expect(costText('base', { ...COST, l1Fee: 0n }, null)).to.equal(
      'settling one payment alone on base costs 0.000001 now (86000 gas at 0.01 gwei)',
    )
  })

  it('goes on naming an operation for an hour after gas was that dear last', () => {
    let at = 1_790_000_000_000
    let cost = COST
    const compare = createCostComparison({
      accounts: () => [{ network: NETWORKS.base, settlementCost: cost } as unknown as GasAccount],
      operations: () => OPERATIONS,
      limits: limits(COIN, 100),
      now: () => new Date(at),
    })
    expect(compare()?.about).to.deep.equal(['base/getCheap'])
    expect(compare()?.message).to.contain('costs $0.003 now').and.contain('getCheap ($0.002999)')
    cost = { ...COST, wei: 1n }
    at += 3_600_000
    expect(compare()?.about).to.deep.equal(['base/getCheap'])
    at += 1
    expect(compare()).to.equal(null)
  })
})
