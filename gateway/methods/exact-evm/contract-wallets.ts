/**
 * Payments of contract wallets. The code of such a wallet decides which signatures it accepts (ERC-1271). The wallet
 * may not be deployed yet (ERC-6492), and an ordinary account may have been given code (EIP-7702). So only a call to
 * the chain can verify these signatures.
 */
import { LRUCache } from 'lru-cache'
import { isErc6492Signature, keccak256, parseErc6492Signature } from 'viem/utils'
import type { Refusal } from '../../x402/payment-requirements.ts'
import type { NodeCallCounter } from '../payment-method.ts'
import type { Hex, Network } from '../../config/networks.ts'
import { createKeyCheck } from './authorization-check.ts'
import { aggregateData, MULTICALL3, type Part } from './multicall.ts'
import type { Rpc } from './nodes/rpc.ts'
import { isKeySignature, settleData, type Transfer } from './eip3009.ts'
import { REFUSED_SECONDS } from './recent-refusals.ts'

/** The call that settles one payment. */
export interface SettlementCall {
  readonly to: Hex
  readonly data: Hex
  readonly gas: bigint
  /**
   * Whether it may share a transaction with other payments: a key signed it and the payer is known to have no code. So its
   * gas is known, and it runs no code of the payer that could use up the gas of the others.
   */
  readonly mayShare: boolean
  /** Set if the same transaction deploys the wallet: its calls, the transfer last. */
  readonly parts?: readonly Part[]
}

export interface ContractWallets {
  /** Returns the call that settles a payment, or why its wallet cannot be deployed. Throws RpcError. */
  settlementOf(transfer: Transfer): Promise<SettlementCall | Refusal>
  /**
   * Refuses a signature that failed the offline check if no contract can have made it. Null: the payer may be a
   * contract wallet. Anybody can name any payer, so what was found is good for some seconds, in which a wallet may be
   * deployed. Throws RpcError.
   * @param nodeCalls what the look-up counts for
   */
  refuseWithoutCode(payer: Hex, signature: Hex, nodeCalls?: NodeCallCounter): Promise<Refusal | null>
  /** Finds out whether a payer has code, at most once a minute per payer. Throws RpcError. */
  lookUp(payer: Hex): Promise<void>
  /** Whether `lookUp` would ask no node. */
  isKnown(payer: Hex): boolean
  /** The keccak-256 of a payer's code, as it was last read. Null: it had none, or was never read. */
  codeHashOf(payer: Hex): Hex | null
}

/** Gas limit of a transfer signed by a key. USDC on Base uses 86,000; unused gas is not charged. */
export const KEY_GAS = 200_000n
/** Gas limit of a transfer by a contract wallet, which runs its own code to check the signature. */
const CONTRACT_GAS = 600_000n
/** Gas limit if the transaction also deploys the wallet. */
const DEPLOY_GAS = 1_500_000n
/** How long it is remembered whether an account has code. */
const CODE_MS = 60_000
const NO_CODE: Hex = '0x'

/**
 * Creates the part of a settler that knows contract wallets.
 * @param factories contracts that may be called to deploy a wallet; a payment could name any other contract, and we
 *   would pay for the call
 */
export function createContractWallets(
  rpc: Rpc,
  network: Network,
  factories: readonly Hex[],
  codeMs = CODE_MS,
): ContractWallets {
  const { asset } = network
  const isSignedByKey = createKeyCheck(network)
  const allowed = new Set(factories.map((factory) => factory.toLowerCase()))
  /** The hash of each account's code, or NO_CODE. */
  const codes = new LRUCache<Hex, Hex>({ max: 10_000, ttl: codeMs, noDeleteOnStaleGet: true })

  async function hasCode(account: Hex): Promise<boolean> {
    const code = await rpc.call<Hex>('eth_getCode', account, 'latest')
    codes.set(account, code === '0x' ? NO_CODE : keccak256(code))
    return code !== '0x'
  }

  return {
    async refuseWithoutCode(payer, signature, nodeCalls) {
      if (isErc6492Signature(signature)) return null
      const known = codes.get(payer)
      const isFresh = codeMs - codes.getRemainingTTL(payer) < REFUSED_SECONDS * 1000
      if (known !== undefined && isFresh) return known === NO_CODE ? NOT_SIGNED : null
      await nodeCalls?.spend(1, false)
      return (await hasCode(payer)) ? null : NOT_SIGNED
    },

    isKnown: (payer) => codes.has(payer),

    async lookUp(payer) {
      if (!codes.has(payer)) await hasCode(payer)
    },

    codeHashOf(payer) {
      // Not only of the last minute: a payment may be checked in it and reserved after it.
      const hash = codes.peek(payer, { allowStale: true })
      return hash === undefined || hash === NO_CODE ? null : hash
    },

    async settlementOf(transfer) {
      const { from, signature } = transfer
      const isKey = isKeySignature(signature)
      const gas = isKey ? KEY_GAS : CONTRACT_GAS
      const mayShare = isKey && codes.get(from) === NO_CODE
      if (!isErc6492Signature(signature)) return { to: asset, data: settleData(transfer), gas, mayShare }
      const unwrapped = unwrapErc6492(signature)
      if (!unwrapped) return UNREADABLE
      const inner = { ...transfer, signature: unwrapped.signature }
      const data = settleData(inner)
      if (await hasCode(from)) return { to: asset, data, gas: CONTRACT_GAS, mayShare: false }
      // A key needs no wallet. It could have a factory burn the gas of a deployment with every payment.
      if (isSignedByKey(inner)) return { to: asset, data, gas: KEY_GAS, mayShare: false }
      if (!allowed.has(unwrapped.factory.toLowerCase()))
        return {
          reason: 'eip6492_factory_not_allowed',
          message: `The paying wallet is not deployed yet, and this gateway does not deploy wallets of ${unwrapped.factory}. Deploy it first.`,
        }
      // Through Multicall3, which owns nothing: the factory never sees our account as its caller.
      const parts = [
        { target: unwrapped.factory, allowFailure: true, callData: unwrapped.factoryData },
        { target: asset, allowFailure: false, callData: data },
      ]
      return { to: MULTICALL3, data: aggregateData(parts), gas: DEPLOY_GAS, mayShare: false, parts }
    },
  }
}

const NOT_SIGNED: Refusal = {
  reason: 'invalid_exact_evm_payload_signature',
  message: 'The payer did not sign this, and has no contract code that could accept the signature.',
}

const UNREADABLE: Refusal = {
  reason: 'invalid_exact_evm_payload_signature',
  message: 'The signature ends like an ERC-6492 signature and cannot be decoded as one.',
}

/** Decodes an ERC-6492 signature: the factory, its call data and the wallet's signature. Null if it is malformed. */
export function unwrapErc6492(wrapped: Hex): { factory: Hex; factoryData: Hex; signature: Hex } | null {
  try {
    const { address, data, signature } = parseErc6492Signature(wrapped)
    return address && data ? { factory: address, factoryData: data, signature } : null
  } catch {
    return null
  }
}
