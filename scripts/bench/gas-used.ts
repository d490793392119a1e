/** The gas of transactions that were mined. */
import type { Hex } from '../../gateway/config/networks.ts'
import type { Rpc } from '../../gateway/methods/exact-evm/nodes/rpc.ts'

/** Returns the gas that all of these transactions used together. */
export async function gasUsed(rpc: Rpc, hashes: ReadonlySet<Hex>): Promise<number> {
  let gas = 0
  for (const hash of hashes)
    gas += Number((await rpc.call<{ gasUsed: Hex }>('eth_getTransactionReceipt', hash)).gasUsed)
  return gas
}
