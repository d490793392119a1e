/**
 * What is asked of the chain before anybody works for a payment: whether a contract's signature can be one, whether the
 * token would take it now, and whether the balance covers it after the payer's payments under way. Each alone may be
 * covered by what suffices for one only.
 */
import type { Commitment, CheckOptions } from '../payment-method.ts'
import type { Refusal } from '../../x402/payment-requirements.ts'
import type { Hex, Network } from '../../config/networks.ts'
import type { Rpc } from './nodes/rpc.ts'
import type { Simulate } from './simulate.ts'
import { balanceData, stateData, type Transfer } from './eip3009.ts'
import type { Wallets } from './wallets.ts'

export interface CheckParts {
  readonly rpc: Rpc
  readonly network: Network
  readonly wallets: Wallets
  readonly simulate: Simulate
}

/** Null: the payment can be settled as far as the chain knows. Throws RpcError where it cannot be read. */
export type Check = (transfer: Transfer, options?: CheckOptions) => Promise<Refusal | null>

const SHORT: Refusal = {
  reason: 'insufficient_funds',
  message: 'What the payer holds is promised to other payments under way. Wait for them, or add USDC.',
}

/** Calls of one request: nodes refuse more. */
const AT_ONCE = 100

export function createCheck({ rpc, network: { asset }, wallets, simulate }: CheckParts): Check {
  const read = (data: Hex, block: Hex | 'latest') => ['eth_call', { to: asset, data }, block] as const

  async function uncovered({ from, value }: Transfer, ahead: readonly Commitment[]): Promise<Refusal | null> {
    if (ahead.length === 0) return null
    const needed = (some: readonly Commitment[]): bigint => some.reduce((sum, other) => sum + other.amount, value)
    if (BigInt(await rpc.call<Hex>(...read(balanceData(from), 'latest'))) >= needed(ahead)) return null
    // Some of them may be in a block, and have left the balance already: both as of the same block.
    const block = await rpc.call<Hex>('eth_blockNumber')
    const some = ahead.slice(0, AT_ONCE).map(({ identity }) => read(stateData(from, identity as Hex), block))
    const [balance, ...states] = await rpc.batch([read(balanceData(from), block), ...some])
    const waiting = ahead.filter((_, at) => !isUsed(states[at]))
    return typeof balance !== 'string' || BigInt(balance) >= needed(waiting) ? null : SHORT
  }

  return async (transfer, { proven, ahead } = { proven: true, ahead: [] }) => {
    const foreign = proven ? null : await wallets.foreign(transfer.from, transfer.signature)
    if (foreign) return foreign
    const [refusal, short] = await Promise.all([simulate(transfer), uncovered(transfer, ahead)])
    return refusal ?? short
  }
}

/** What the token answers for true; an answer that cannot be read is no reason to think so. */
function isUsed(state: unknown): boolean {
  return typeof state === 'string' && BigInt(state) !== 0n
}
