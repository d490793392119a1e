/**
 * The cost of one settlement to the account that pays the gas: the gas, and on chains of the OP Stack also the data
 * that the chain publishes on Ethereum. The contract that prices these data has one address on all of them.
 *
 * Source: OP Stack specification, predeploys (GasPriceOracle).
 */
import { hexToBytes, keccak256, serializeTransaction, toHex } from 'viem/utils'
import type { Hex, Network } from '../../../config/networks.ts'
import type { SettlementCost } from '../../payment-method.ts'
import { settleData, word } from '../eip3009.ts'
import { type Rpc, RpcError } from '../nodes/rpc.ts'

/** Gas of a settlement that is sent alone for a payer whose key signed it, as USDC on Base uses it. */
const PLAIN_GAS = 86_000n

/** The predeploy GasPriceOracle. Chains without it have no code there, and answer a call with no data. */
export const GAS_PRICE_ORACLE: Hex = '0x420000000000000000000000000000000000000F'

const SELECTORS = {
  /** getL1Fee(bytes), of an unsigned transaction: the contract adds the length of a signature. */
  l1Fee: '0x49948e0e',
  /** getOperatorFee(uint256), of an amount of gas. Older versions of the contract do not have it. */
  operatorFee: '0x275aedd2',
} as const

/**
 * Reads what settling one payment alone costs now. A payment in a batch costs less.
 * @param gasPrice in wei per unit of gas
 * @throws RpcError if the chain cannot be read, or if its oracle refuses to say what data cost
 */
export async function readSettlementCost(rpc: Rpc, network: Network, gasPrice: bigint): Promise<SettlementCost> {
  const ask = (data: Hex): Promise<Hex> => rpc.call<Hex>('eth_call', { to: GAS_PRICE_ORACLE, data }, 'latest')
  const [dataFee, operatorFee] = await Promise.all([
    ask(l1FeeData(sampleTransaction(network, gasPrice))),
    ask(`${SELECTORS.operatorFee}${word(PLAIN_GAS)}`).catch(zeroIfRefused),
  ])
  const l1Fee = weiOf(dataFee) + weiOf(operatorFee)
  return { gas: PLAIN_GAS, gasPrice, l1Fee, wei: PLAIN_GAS * gasPrice + l1Fee }
}

/** Call data of getL1Fee(bytes). */
function l1FeeData(transaction: Hex): Hex {
  const bytes = transaction.slice(2)
  const padded = bytes.padEnd(Math.ceil(bytes.length / 64) * 64, '0')
  return `${SELECTORS.l1Fee}${word(32)}${word(bytes.length / 2)}${padded}`
}

/** An unsigned settlement whose addresses, nonce and signature compress as badly as real ones. */
function sampleTransaction({ asset, chainId }: Network, gasPrice: bigint): Hex {
  const random = (seed: number, bytes: number): Hex => keccak256(toHex(seed)).slice(0, 2 + 2 * bytes) as Hex
  const data = settleData({
    from: random(1, 20),
    to: random(2, 20),
    value: 10_000n,
    validAfter: 1_790_000_000n,
    validBefore: 1_790_000_600n,
    nonce: random(3, 32),
    signature: `${random(4, 32)}${random(5, 32).slice(2)}1b`,
  })
  const fees = { maxFeePerGas: 4n * gasPrice, maxPriorityFeePerGas: gasPrice }
  const to = asset.toLowerCase() as Hex
  return serializeTransaction({ type: 'eip1559', chainId, nonce: 10_000, to, data, gas: 200_000n, ...fees })
}

function zeroIfRefused(error: unknown): Hex {
  if (error instanceof RpcError && error.fault === 'refused') return '0x'
  throw error
}

/** A returned uint256; 0 where there is no contract. */
function weiOf(returned: Hex): bigint {
  return returned === '0x' ? 0n : BigInt(`0x${Buffer.from(hexToBytes(returned).subarray(0, 32)).toString('hex')}`)
}
