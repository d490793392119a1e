/** Asks the token what it would say to a payment now: balance, used nonce, contract wallets, black list, all in one call. */
import type { Network, PaymentPayload, Refusal } from '../payment.ts'
import { RpcError, type Rpc } from './rpc.ts'
import { refusalOf, revertText, settleData, type Transfer } from './token.ts'

/** Null: the transfer would go through. Throws RpcError where the chain cannot be read. */
export type Simulate = (transfer: Transfer | PaymentPayload) => Promise<Refusal | null>

export function createSimulate(rpc: Rpc, { asset }: Network): Simulate {
  return async (transfer) => {
    try {
      await rpc.call('eth_call', { to: asset, data: settleData(transfer) }, 'latest')
      return null
    } catch (error) {
      const revert = revertOf(error)
      if (revert === null) throw error
      // The newest block is some seconds old: a validAfter that has passed by the clock may still be ahead of it.
      return /not yet valid/i.test(revert) ? null : refusalOf(revert)
    }
  }
}

/** The revert text; null where the error is the node's own and says nothing about the payment. */
function revertOf(error: unknown): string | null {
  if (!(error instanceof RpcError) || error.fault !== 'refused') return null
  return revertText(error.data) ?? (/revert/i.test(error.message) ? error.message : null)
}
