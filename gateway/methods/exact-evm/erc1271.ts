/** Whether a contract wallet calls a signature its own (ERC-1271): asked of the chain, which alone can run its code. */
import { encodeFunctionData, isErc6492Signature, parseAbi, parseErc6492Signature } from 'viem'
import type { Logger } from '../../plugin/plugin.ts'
import type { Hex, Network } from '../../config/networks.ts'
import { createNodes } from './nodes/nodes.ts'
import { RpcError } from './nodes/rpc.ts'

/**
 * True where the code at `account` of that network accepts the signature of a 32-byte digest. False where it does not,
 * fails, or there is no code: also for a wallet that does not exist yet (ERC-6492). Throws RpcError where the chain
 * cannot be read.
 */
export type Accepts = (network: Pick<Network, 'caip2'>, account: Hex, digest: Hex, signature: Hex) => Promise<boolean>

const ABI = parseAbi(['function isValidSignature(bytes32 digest, bytes signature) view returns (bytes4)'])
/** What isValidSignature(bytes32,bytes) answers for yes: its own selector. */
const YES = '0x1626ba7e'
const GAS: Hex = `0x${(1_000_000).toString(16)}`

/** The nodes of a network; null where there are none to ask. */
export interface Readable {
  readonly network: Network
  readonly addresses: string | null
}

/** Asks these nodes; where a network has none nobody can be asked, and nothing is accepted. */
export function createAccepts(places: readonly Readable[], log: Logger): Accepts {
  const nodes = new Map(
    places.flatMap(({ network, addresses }) =>
      addresses === null ? [] : [[network.caip2, createNodes({ addresses, network, log })] as const],
    ),
  )
  return async ({ caip2 }, account, digest, signature) => {
    const rpc = nodes.get(caip2)
    if (!rpc) return false
    const own = ownSignature(signature)
    if (own === null) return false
    const data = encodeFunctionData({ abi: ABI, functionName: 'isValidSignature', args: [digest, own] })
    try {
      const answer = await rpc.call<Hex>('eth_call', { to: account, data, gas: GAS }, 'latest')
      return answer.length === 66 && answer.startsWith(YES)
    } catch (error) {
      if (isRevert(error)) return false
      throw error
    }
  }
}

/** The wallet's own signature, which some wallets go on wrapping after they exist; null where it cannot be read. */
function ownSignature(signature: Hex): Hex | null {
  if (!isErc6492Signature(signature)) return signature
  try {
    return parseErc6492Signature(signature).signature
  } catch {
    return null
  }
}

/** The wallet's code said no, rather than the node. */
function isRevert(error: unknown): boolean {
  if (!(error instanceof RpcError) || error.fault !== 'refused') return false
  return typeof error.data === 'string' || /revert|out of gas|opcode|invalid jump|stack/i.test(error.message)
}
