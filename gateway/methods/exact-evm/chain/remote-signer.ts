/** Has transactions signed by the signer process, which holds the gas keys. */
import type { SignerClient } from '../../../stores/signer-client.ts'
import { RpcError } from '../nodes/rpc.ts'
import type { Signer } from './transaction-signer.ts'

/**
 * Creates a signer whose key the signer process holds: that of worker `nth`, from 0.
 * @throws Error if it has no such key
 */
export function createRemoteSigner(client: SignerClient, network: string, nth: number): Signer {
  const address = client.keys.addresses[network]?.[nth]
  if (!address) throw new Error(`The signer has no key number ${nth + 1} for ${network}. Add it to its SETTLE_KEY.`)
  return {
    address,
    async sign({ to, data, gas, nonce, maxFeePerGas, maxPriorityFeePerGas }) {
      const fees = { maxFeePerGas: String(maxFeePerGas), maxPriorityFeePerGas: String(maxPriorityFeePerGas) }
      try {
        return await client.signTransaction(network, nth, { to, data, gas: String(gas), nonce, ...fees })
      } catch (error) {
        throw new RpcError('unsent', (error as Error).message, { cause: error })
      }
    },
  }
}
