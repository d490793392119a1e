/** A stranger who has seen a signed payment and sends it to the chain, for a fee that gets it into the block first. */
import { NETWORKS, type Hex, type Network } from '../../gateway/config/networks.ts'
import { settleData, transferOf } from '../../gateway/methods/exact-evm/eip3009.ts'
import { createExactEvm } from '../../gateway/methods/exact-evm/exact-evm.ts'
import type { Rpc } from '../../gateway/methods/exact-evm/nodes/rpc.ts'
import { decodePayment } from '../../gateway/methods/payment-method.ts'

export const STRANGER: Hex = '0x00000000000000000000000000000000000000d4'

/** Sends the authorization of a payment header. */
export async function sendAsStranger(
  rpc: Rpc,
  header: string,
  network: Network = NETWORKS['base-sepolia'],
): Promise<void> {
  await rpc.call('anvil_setBalance', STRANGER, '0x56bc75e2d63100000')
  await rpc.call('anvil_impersonateAccount', STRANGER)
  const data = settleData(transferOf(decodePayment(header, [createExactEvm(network)])))
  const fees = { maxPriorityFeePerGas: '0x9502f9000', maxFeePerGas: '0x5d21dba000', gas: '0x30d40' }
  await rpc.call('eth_sendTransaction', { from: STRANGER, to: network.asset, data, ...fees })
}
