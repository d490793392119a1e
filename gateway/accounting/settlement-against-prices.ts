/**
 * Compares what a settlement costs with the prices of operations. The cost is that of a payment settled alone, as
 * happens while it is quiet; payments that share a transaction cost less.
 */
import { formatEther, formatGwei, formatUnits } from 'viem/utils'
import type { Operation } from '../plugin/catalog.ts'
import type { GasAccount, SettlementCost } from '../methods/payment-method.ts'

/** Settings of the comparison, beside the cost and the prices. */
export interface CostLimits {
  /** By name of the network: what a coin that pays for gas is worth, in millionths of a USD. Null: not known. */
  readonly coinPrices: ReadonlyMap<string, bigint | null>
  /** The share of a price that its settlement may cost, in percent. */
  readonly maxPercent: number
}

/** Prices are in millionths of a USD too: atomic units of USDC. */
type Priced = Pick<Operation, 'id' | 'price' | 'priceText' | 'accepts' | 'retired'>

const WEI_PER_COIN = 10n ** 18n

/**
 * Lists the operations for sale on a network whose settlement costs more than the allowed share of their price. Empty
 * if the price of the coin is not known.
 */
export function operationsBelowCost<Of extends Priced>(
  operations: Iterable<Of>,
  network: string,
  { wei }: SettlementCost,
  { coinPrices, maxPercent }: CostLimits,
): readonly Of[] {
  const coinPrice = coinPrices.get(network) ?? null
  if (coinPrice === null) return []
  const isBelow = (price: bigint): boolean => wei * coinPrice * 100n > price * WEI_PER_COIN * BigInt(maxPercent)
  return [...operations].filter(
    ({ price, accepts, retired }) =>
      price !== null && !retired && (accepts === null || accepts.includes(network)) && isBelow(price),
  )
}

/**
 * Says what settling one payment costs.
 * @example costText('base', cost, 3_000_000_000n) → "settling one payment alone on base costs $0.00258 now (86000 gas at 0.01 gwei)"
 */
export function costText(network: string, cost: SettlementCost, coinPrice: bigint | null): string {
  const { gas, gasPrice, l1Fee, wei } = cost
  const data = l1Fee === 0n ? '' : `, and ${formatEther(l1Fee)} for its data`
  const price = coinPrice === null ? formatEther(wei) : usdText(wei, coinPrice)
  return `settling one payment alone on ${network} costs ${price} now (${gas} gas at ${formatGwei(gasPrice)} gwei${data})`
}

/** Value of an amount of wei. @example usdText(10n ** 12n, 3_000_000_000n) → "$0.003" */
function usdText(wei: bigint, coinPrice: bigint): string {
  return `$${formatUnits((wei * coinPrice) / 10n ** 12n, 12)}`
}

/** @example pricesText([{ id: 'getGold', priceText: '0.001' }]) → "getGold ($0.001)" */
export function pricesText(operations: readonly Pick<Priced, 'id' | 'priceText'>[]): string {
  return operations.map(({ id, priceText }) => `${id} ($${priceText})`).join(', ')
}

/**
 * How long an operation stays listed after it was last found below its cost: the price of gas rises and falls within
 * minutes.
 */
const NAMED_MS = 3_600_000

/** The message about operations that sell below their cost. */
export interface BelowCost {
  readonly message: string
  /** Network and operation, joined by "/". */
  readonly about: readonly string[]
}

/**
 * Returns a function that compares the cost of settlements with the current prices. It returns null if nothing sells
 * below its cost.
 */
export function createCostComparison(parts: {
  readonly accounts: () => readonly GasAccount[]
  readonly operations: () => Iterable<Operation>
  readonly limits: CostLimits
  readonly now: () => Date
}): () => BelowCost | null {
  const { accounts, operations, limits, now } = parts
  const found = new Map<string, { readonly text: string; readonly at: number }>()
  return () => {
    const at = now().getTime()
    for (const { network, settlementCost } of accounts()) {
      const { name } = network
      const cost = costText(name, settlementCost, limits.coinPrices.get(name) ?? null)
      for (const operation of operationsBelowCost(operations(), name, settlementCost, limits))
        found.set(`${name}/${operation.id}`, { text: `${cost}: ${pricesText([operation])}`, at })
    }
    for (const [about, { at: foundAt }] of found) if (foundAt < at - NAMED_MS) found.delete(about)
    const [first] = found.values()
    if (!first) return null
    const more = found.size > 1 ? `, and ${found.size - 1} more` : ''
    const message = `operations sell for less than their settlement costs (GAS_MAX_PERCENT): ${first.text}${more}`
    return { message, about: [...found.keys()] }
  }
}
