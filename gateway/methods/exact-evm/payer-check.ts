/**
 * A look at a payer before a large request is read for it. It has to be cheap rather than exact, because anybody can name
 * any payer: the check before the handler runs reads the chain again.
 */
import { LRUCache } from 'lru-cache'
import type { Hex } from '../../config/networks.ts'
import type { Refusal } from '../../x402/payment-requirements.ts'
import type { NodeCallCounter } from '../payment-method.ts'
import type { ContractWallets } from './contract-wallets.ts'
import { balanceData, type Transfer } from './eip3009.ts'
import type { Rpc } from './nodes/rpc.ts'

/** Null: the payer could make the transfer. Throws RpcError if the chain cannot be read. */
export type LookAtPayer = (transfer: Transfer, proven: boolean, nodeCalls?: NodeCallCounter) => Promise<Refusal | null>

const MAX_PAYERS = 10_000
/** How long a balance that suffices is remembered. */
const BALANCE_MS = 30_000
/** How long a balance that does not suffice is: buyers add money and try again. */
const TOO_SMALL_MS = 2_000

interface Seen {
  readonly balance: Promise<bigint>
  readonly at: number
}

/** Creates the look for one network. It remembers balances, and whether a payer has code. */
export function createPayerCheck(rpc: Rpc, asset: Hex, wallets: ContractWallets, now = Date.now): LookAtPayer {
  const seen = new LRUCache<Hex, Seen>({ max: MAX_PAYERS })

  async function read(payer: Hex): Promise<bigint> {
    return BigInt(await rpc.call<Hex>('eth_call', { to: asset, data: balanceData(payer) }, 'latest'))
  }

  /** Calls at the same time share one reading. */
  async function balanceOf(
    payer: Hex,
    forMs: number,
    proven: boolean,
    nodeCalls: NodeCallCounter | undefined,
  ): Promise<bigint> {
    const known = seen.get(payer)
    if (known && now() - known.at < forMs) return known.balance
    if (nodeCalls) {
      await nodeCalls.spend(1, proven)
      // Others may have read it meanwhile.
      return balanceOf(payer, forMs, proven, undefined)
    }
    const balance = read(payer)
    seen.set(payer, { balance, at: now() })
    balance.catch(() => seen.delete(payer))
    return balance
  }

  return async ({ from, signature, value }, proven, nodeCalls) => {
    const unsigned = proven ? null : await wallets.refuseWithoutCode(from, signature, nodeCalls)
    if (unsigned) return unsigned
    for (const forMs of [BALANCE_MS, TOO_SMALL_MS])
      if ((await balanceOf(from, forMs, proven, nodeCalls)) >= value) return null
    return TOO_LITTLE
  }
}

const TOO_LITTLE: Refusal = {
  reason: 'insufficient_funds',
  message: "The payer's balance does not cover the payment. Add USDC and send the same request again.",
  retryAfterSeconds: TOO_SMALL_MS / 1000,
}
