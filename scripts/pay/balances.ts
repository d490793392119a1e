/** USDC balances, by asking the chain. */
import { createPublicClient, erc20Abi, http } from 'viem'
import type { Hex, Network } from '../../gateway/config/networks.ts'

export interface Balances {
  /** Atomic units, in the order asked. Null where the chain cannot be asked. */
  read(accounts: readonly Hex[]): Promise<readonly bigint[] | null>
  /** Waits a while for a transaction to be in a block. */
  settle(transaction: Hex): Promise<void>
}

const WAIT_MS = 20_000

/** Asks the node only if it is one of this network: a balance of another chain would mislead. */
export function createBalances(rpcUrl: string | null, network: Network): Balances {
  if (rpcUrl === null) return { read: async () => null, settle: async () => undefined }
  const client = createPublicClient({
    transport: http(rpcUrl, { retryCount: 1, timeout: 5_000 }),
    pollingInterval: 100,
  })
  return {
    async read(accounts) {
      try {
        if ((await client.getChainId()) !== network.chainId) return null
        const balanceOf = (account: Hex): Promise<bigint> =>
          client.readContract({ address: network.asset, abi: erc20Abi, functionName: 'balanceOf', args: [account] })
        return await Promise.all(accounts.map(balanceOf))
      } catch {
        return null
      }
    },
    async settle(transaction) {
      await client.waitForTransactionReceipt({ hash: transaction, timeout: WAIT_MS }).catch(() => undefined)
    },
  }
}
