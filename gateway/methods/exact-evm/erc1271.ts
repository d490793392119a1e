/** Asks a contract wallet whether it accepts a signature (ERC-1271). */
import { encodeFunctionData, isErc6492Signature, parseAbi } from 'viem/utils'
import type { Logger } from '../../plugin/plugin.ts'
import type { Hex, Network } from '../../config/networks.ts'
import { unwrapErc6492 } from './contract-wallets.ts'
import { createNodes } from './nodes/nodes.ts'
import { quantity, RpcError } from './nodes/rpc.ts'

/**
 * Whether the contract at `account` accepts a signature of a 32-byte digest. False if the call fails or the account has
 * no code, which is also the case for a wallet that is not deployed yet (ERC-6492).
 * @throws RpcError if the chain cannot be read
 */
export type Erc1271Check = (
  network: Pick<Network, 'caip2'>,
  account: Hex,
  digest: Hex,
  signature: Hex,
) => Promise<boolean>

const ABI = parseAbi(['function isValidSignature(bytes32 digest, bytes signature) view returns (bytes4)'])
/** isValidSignature returns its own selector if the signature is valid (ERC-1271). */
const MAGIC_VALUE = '0x1626ba7e'
const GAS = quantity(1_000_000)

/** A network and its nodes: addresses separated by commas or spaces, or null if there are none. */
export interface NodesOfNetwork {
  readonly network: Network
  readonly addresses: string | null
}

/** Creates the check for several networks. On a network without nodes, no signature is accepted. */
export function createErc1271Check(networks: readonly NodesOfNetwork[], log: Logger): Erc1271Check {
  const nodes = new Map(
    networks.flatMap(({ network, addresses }) =>
      addresses === null ? [] : [[network.caip2, createNodes({ addresses, network, log })] as const],
    ),
  )
  return async ({ caip2 }, account, digest, signature) => {
    const rpc = nodes.get(caip2)
    if (!rpc) return false
    // Some wallets still wrap their signatures (ERC-6492) after their deployment.
    const own = isErc6492Signature(signature) ? unwrapErc6492(signature)?.signature : signature
    if (own === undefined) return false
    const data = encodeFunctionData({ abi: ABI, functionName: 'isValidSignature', args: [digest, own] })
    try {
      const answer = await rpc.call<Hex>('eth_call', { to: account, data, gas: GAS }, 'latest')
      return answer.length === 66 && answer.startsWith(MAGIC_VALUE)
    } catch (error) {
      if (isRevert(error)) return false
      throw error
    }
  }
}

/** Whether the wallet's code rejected the signature, as opposed to an error of the node. */
function isRevert(error: unknown): boolean {
  if (!(error instanceof RpcError) || error.fault !== 'refused') return false
  return typeof error.data === 'string' || /revert|out of gas|opcode|invalid jump|stack/i.test(error.message)
}
