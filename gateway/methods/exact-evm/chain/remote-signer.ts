/** Has transactions signed by the signer process, which holds the gas keys. */
import type { SignerClient } from '../../../stores/signer-client.ts'
import { RpcError } from '../nodes/rpc.ts'
import type { Signer } from './transaction-signer.ts'

/** The message of the signer once it has signed for as much gas as it may in an hour. */
const GAS_BOUND = /SIGNER_GAS_PER_HOUR \(\d+\) is reached/
/** For so long, no work is done for payments that it would refuse. Then one tries again. */
const REFUSED_MS = 10_000

/**
 * Creates a signer whose key the signer process holds: that of worker `nth`, from 0.
 * @throws Error if it has no such key
 */
export function createRemoteSigner(client: SignerClient, network: string, nth: number): Signer {
  const address = client.keys.addresses[network]?.[nth]
  if (!address) throw new Error(`The signer has no key number ${nth + 1} for ${network}. Add it to its SETTLE_KEY.`)
  let refused: { readonly why: string; readonly at: number } | null = null
  return {
    address,
    obstacle: () => (refused !== null && performance.now() - refused.at < REFUSED_MS ? refused.why : null),
    async sign({ to, data, gas, nonce, maxFeePerGas, maxPriorityFeePerGas }) {
      const fees = { maxFeePerGas: String(maxFeePerGas), maxPriorityFeePerGas: String(maxPriorityFeePerGas) }
      try {
        return await client.signTransaction(network, nth, { to, data, gas: String(gas), nonce, ...fees })
      } catch (error) {
        const { message } = error as Error
        const [why] = GAS_BOUND.exec(message) ?? []
        if (why !== undefined) refused = { why, at: performance.now() }
        throw new RpcError('unsent', message, { cause: error })
      }
    },
  }
}
