/**
 * Wallets that are contracts: they sign with whatever their code accepts (ERC-1271), also before they exist (ERC-6492),
 * and a key's own account may have been given code (EIP-7702). Only the chain can judge their signatures.
 */
import { LRUCache } from 'lru-cache'
import { isErc6492Signature, parseErc6492Signature } from 'viem/utils'
import type { Refusal } from '../../x402/payment-requirements.ts'
import type { Hex } from '../../config/networks.ts'
import { aggregateData, MULTICALL3, type Part } from './multicall.ts'
import type { Rpc } from './nodes/rpc.ts'
import { isKeySignature, settleData, type Transfer } from './eip3009.ts'

/** What is sent to the chain for one payment. */
export interface Settlement {
  readonly to: Hex
  readonly data: Hex
  readonly gas: bigint
  /** Where the wallet is made in the same transaction: the calls in it, the transfer last. */
  readonly parts?: readonly Part[]
}

export interface Wallets {
  /** How this payment is settled, or why its wallet cannot be made. Throws RpcError. */
  settlementOf(transfer: Transfer): Promise<Settlement | Refusal>
  /**
   * Why a signature that could not be proved offline is no contract's either; null where the chain must judge it. The
   * payer is somebody's claim at this point: an account without code is asked about once a minute. Throws RpcError.
   */
  foreign(payer: Hex, signature: Hex): Promise<Refusal | null>
}

/** USDC on Base takes 86,000 for a key's signature; unused gas is not paid. */
export const KEY_GAS = 200_000n
/** A contract wallet checks its own signature, and may take its time; what burns more is not served. */
const CONTRACT_GAS = 600_000n
const CREATE_GAS = 1_500_000n
/** How long an account without code is remembered as one, so that repeated nonsense costs one look. */
const PLAIN_MS = 60_000

/** @param factories contracts that may be called to make a wallet; from outside, any other call would be ours */
export function createWallets(rpc: Rpc, asset: Hex, factories: readonly Hex[]): Wallets {
  const allowed = new Set(factories.map((factory) => factory.toLowerCase()))
  const plain = new LRUCache<Hex, true>({ max: 10_000, ttl: PLAIN_MS })

  async function hasCode(account: Hex): Promise<boolean> {
    const code = await rpc.call<Hex>('eth_getCode', account, 'latest')
    if (code === '0x') plain.set(account, true)
    return code !== '0x'
  }

  return {
    async foreign(payer, signature) {
      return isErc6492Signature(signature) || (!plain.has(payer) && (await hasCode(payer))) ? null : FOREIGN
    },

    async settlementOf(transfer) {
      const { signature } = transfer
      const gas = isKeySignature(signature) ? KEY_GAS : CONTRACT_GAS
      if (!isErc6492Signature(signature)) return { to: asset, data: settleData(transfer), gas }
      const unwrapped = unwrap(signature)
      if (!unwrapped) return UNREADABLE
      const data = settleData({ ...transfer, signature: unwrapped.signature })
      if (await hasCode(transfer.from)) return { to: asset, data, gas: CONTRACT_GAS }
      if (!allowed.has(unwrapped.factory.toLowerCase()))
        return {
          reason: 'eip6492_factory_not_allowed',
          message: `The paying wallet does not exist yet, and wallets of ${unwrapped.factory} are not made here. Deploy it first.`,
        }
      // Through Multicall3, which owns nothing: a factory never sees our account as its caller.
      const parts = [
        { target: unwrapped.factory, allowFailure: true, callData: unwrapped.factoryData },
        { target: asset, allowFailure: false, callData: data },
      ]
      return { to: MULTICALL3, data: aggregateData(parts), gas: CREATE_GAS, parts }
    },
  }
}

const FOREIGN: Refusal = {
  reason: 'invalid_exact_evm_payload_signature',
  message: 'The payer did not sign this, and is no contract that could say otherwise.',
}

const UNREADABLE: Refusal = {
  reason: 'invalid_exact_evm_payload_signature',
  message: 'The signature ends like ERC-6492 and cannot be read as one.',
}

/** Factory, its call data and the signature inside an ERC-6492 signature; null where it only ends like one. */
function unwrap(wrapped: Hex): { factory: Hex; factoryData: Hex; signature: Hex } | null {
  try {
    const { address, data, signature } = parseErc6492Signature(wrapped)
    return address && data ? { factory: address, factoryData: data, signature } : null
  } catch {
    return null
  }
}
