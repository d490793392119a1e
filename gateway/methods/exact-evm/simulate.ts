/** Asks the token what it would say to a payment now: balance, used nonce, contract wallets, black list, all in one call. */
import type { Refusal } from '../../x402/payment-requirements.ts'
import type { Hex } from '../../config/networks.ts'
import { aggregateData, aggregateResults } from './multicall.ts'
import { RpcError, type Rpc } from './nodes/rpc.ts'
import { refusalOf, revertText, type Transfer } from './eip3009.ts'
import type { Wallets } from './wallets.ts'

/** Null: the transfer would go through. Throws RpcError where the chain cannot be read. */
export type Simulate = (transfer: Transfer) => Promise<Refusal | null>

export function createSimulate(rpc: Rpc, wallets: Wallets): Simulate {
  return async (transfer) => {
    const settlement = await wallets.settlementOf(transfer)
    if ('reason' in settlement) return settlement
    const { to, gas, parts } = settlement
    // Each part may fail here, so that the token's own words are heard.
    const data = parts ? aggregateData(parts.map((part) => ({ ...part, allowFailure: true }))) : settlement.data
    try {
      const returned = await rpc.call<Hex>('eth_call', { to, data, gas: `0x${gas.toString(16)}` }, 'latest')
      const paid = parts ? aggregateResults(returned).at(-1) : null
      return paid && !paid.success ? refusalOf(revertText(paid.returnData) ?? '') : null
    } catch (error) {
      const revert = revertOf(error)
      if (revert === null) throw error
      // The newest block is some seconds old: a validAfter that has passed by the clock may still be ahead of it.
      if (/not yet valid/i.test(revert)) return null
      return refusalOf(revert)
    }
  }
}

/** The revert text; null where the error is the node's own and says nothing about the payment. */
function revertOf(error: unknown): string | null {
  if (!(error instanceof RpcError) || error.fault !== 'refused') return null
  return revertText(error.data) ?? (/revert|out of gas/i.test(error.message) ? error.message : null)
}
