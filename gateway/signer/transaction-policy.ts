/**
 * Which transactions the signer signs: those that settle payments to our own account, as the chain settler makes them, and
 * the empty transaction that fills a gap of nonces.
 */
import type { Hex } from '../config/networks.ts'
import { recipientOfSettlement } from '../methods/exact-evm/eip3009.ts'
import { aggregateParts, MULTICALL3, type Part } from '../methods/exact-evm/multicall.ts'
import type { UnsignedTransaction } from '../methods/exact-evm/chain/transaction-signer.ts'

/** The policy for transactions of one network. */
export interface TransactionRules {
  /** The token. */
  readonly asset: Hex
  readonly payTo: Hex
  /** Contracts that may be called to deploy a wallet, in the transaction that charges it. */
  readonly factories: readonly Hex[]
  /** The most wei per unit of gas; null: no limit. */
  readonly maxGasPrice: bigint | null
}

const EMPTY_CALL_GAS = 21_000n
/** Gas of a call on its own, and of each part of several. Several times what settlements need. */
const MAX_CALL_GAS = 2_000_000n
const MAX_PART_GAS = 500_000n
const MAX_PARTS = 100

/**
 * Returns why a transaction is not signed, or null if it is. It moves no ether: transactions have no value.
 * @param sender the account whose key would sign
 */
export function refusalOfTransaction(
  { to, data, gas, maxFeePerGas, maxPriorityFeePerGas }: UnsignedTransaction,
  sender: Hex,
  rules: TransactionRules,
): string | null {
  const { maxGasPrice } = rules
  if (maxGasPrice !== null && (maxFeePerGas > maxGasPrice || maxPriorityFeePerGas > maxGasPrice))
    return 'the gas price is above SETTLE_MAX_GWEI'
  if (isSame(to, sender)) return data === '0x' && gas <= EMPTY_CALL_GAS ? null : 'a call of our own account has data'
  if (isSame(to, rules.asset)) {
    if (gas > MAX_CALL_GAS) return 'it may use too much gas'
    return isSettlement(data, rules) ? null : 'it does not transfer an authorised payment to PAY_TO'
  }
  if (!isSame(to, MULTICALL3)) return 'it calls a contract that is not the token'
  const parts = aggregateParts(data)
  if (parts === null || parts.length === 0 || parts.length > MAX_PARTS) return 'it is not a batch of payments'
  if (gas > MAX_CALL_GAS + MAX_PART_GAS * BigInt(parts.length)) return 'it may use too much gas'
  const isAllowed = isDeployment(parts, rules) || parts.every((part) => isPayment(part, rules))
  return isAllowed ? null : 'a part of the batch is not a payment to PAY_TO'
}

/** A wallet is deployed by a factory that is allowed, and then charged. */
function isDeployment(parts: readonly Part[], rules: TransactionRules): boolean {
  const [factory, payment, ...others] = parts
  if (!factory || !payment || others.length > 0 || payment.allowFailure) return false
  return rules.factories.some((allowed) => isSame(allowed, factory.target)) && isPayment(payment, rules)
}

function isPayment({ target, callData }: Part, rules: TransactionRules): boolean {
  return isSame(target, rules.asset) && isSettlement(callData, rules)
}

function isSettlement(data: Hex, { payTo }: TransactionRules): boolean {
  const recipient = recipientOfSettlement(data)
  return recipient !== null && isSame(recipient, payTo)
}

function isSame(one: Hex, other: Hex): boolean {
  return one.toLowerCase() === other.toLowerCase()
}
