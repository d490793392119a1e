/** What a failed sending means. Nodes agree on the words, not on the codes. */
import { KNOWN } from '../nodes/nodes.ts'
import { RpcError } from '../nodes/rpc.ts'

/**
 * known: the node has it already. nonce, fee: to be signed anew. unsent, refused: certainly not taken. unknown,
 * doubtful: perhaps taken.
 */
export type Fault = 'known' | 'nonce' | 'fee' | 'unsent' | 'unknown' | 'refused' | 'doubtful'

/** Words of a node that has certainly not taken a transaction. */
const REFUSED =
  /insufficient funds|intrinsic gas|gas limit|invalid (sender|chain|signature)|not supported|too many|rate limit|cap|txpool is full|oversized/i

/** The fault behind an error of sending; words we do not know prove nothing. Throws what is no RpcError. */
export function faultOf(error: unknown): Fault {
  if (!(error instanceof RpcError)) throw error
  if (error.fault !== 'refused') return error.fault
  if (KNOWN.test(error.message)) return 'known'
  if (/nonce (is )?too low|already used|replacement/i.test(error.message)) return 'nonce'
  if (/underpriced|max fee|fee cap|base fee|gas price/i.test(error.message)) return 'fee'
  return REFUSED.test(error.message) ? 'refused' : 'doubtful'
}
