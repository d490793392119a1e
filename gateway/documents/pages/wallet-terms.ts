/** What a page tells a browser wallet of the networks that payments are taken on. */
import { type Recipients, recipientsOf } from '../../config/pay-to.ts'
import type { Network } from '../../config/networks.ts'

export interface WalletTerms {
  /** Parameters of wallet_addEthereumChain (EIP-3085), for a wallet that does not know a network. */
  readonly chains: readonly object[]
  /** Whether the gateway lends a wallet with test money. */
  readonly hasTestWallet: boolean
}

/** @param sandboxRpcUrl the node of the sandbox; null on real networks */
export function walletTerms(recipients: Recipients, sandboxRpcUrl: string | null): WalletTerms {
  return {
    chains: recipientsOf(recipients).flatMap(({ network }) => chainOf(network, sandboxRpcUrl)),
    hasTestWallet: sandboxRpcUrl !== null,
  }
}

function chainOf({ chainId, name, wallet }: Network, sandboxRpcUrl: string | null): readonly object[] {
  const rpcUrl = sandboxRpcUrl ?? wallet?.rpcUrl
  if (rpcUrl === undefined) return []
  return [
    {
      chainId: `0x${chainId.toString(16)}`,
      chainName: sandboxRpcUrl === null ? (wallet?.title ?? name) : 'Sandbox (local chain)',
      nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18, ...wallet?.nativeCurrency },
      rpcUrls: [rpcUrl],
      ...(wallet && sandboxRpcUrl === null ? { blockExplorerUrls: [wallet.explorerUrl] } : {}),
    },
  ]
}
