/** A local chain with all that gateways in production need: settlers with gas, a payee, and buyers with money. */
import { setTimeout as delay } from 'node:timers/promises'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import type { Hex, Network } from '../../../gateway/config/networks.ts'
import { createRpc, quantity, type Rpc } from '../../../gateway/methods/exact-evm/nodes/rpc.ts'
import { mintData } from '../../../gateway/sandbox/contracts.ts'
import { openChain, type TestChain } from '../../support/chain.ts'

export interface LocalMarket {
  readonly chain: TestChain
  /** Waits up to a minute for an answer. */
  readonly rpc: Rpc
  readonly payTo: Hex
  /** Returns the configuration of a gateway that settles itself, and funds one key for each of its processes. */
  environment(options: GatewayPlace): Promise<Readonly<Record<string, string>>>
  /** Gives each account this much USDC, in atomic units. */
  fund(accounts: readonly Hex[], value: bigint): Promise<void>
  close(): Promise<void>
}

export interface GatewayPlace {
  readonly port: number
  readonly dataDir: string
  /** The nodes that it settles through. The chain itself if absent. */
  readonly nodes?: readonly string[]
  /** Its number of processes. */
  readonly processes?: number
}

const FAUCET: Hex = '0x00000000000000000000000000000000000fa0ce'
const GAS = 10n ** 21n
/** Long enough for a gateway to settle what it was told to settle, and no state of a long run is kept for longer. */
const STATES = 256

/** Starts a chain with blocks every so many seconds. */
export async function openLocalMarket(blockSeconds: number): Promise<LocalMarket> {
  const chain = await openChain({ blockSeconds, states: STATES })
  const rpc = createRpc(chain.rpcUrl, 60)
  const payTo = privateKeyToAddress(generatePrivateKey())
  return {
    chain,
    rpc,
    payTo,
    async environment({ port, dataDir, nodes = [chain.rpcUrl], processes = 1 }) {
      const keys = Array.from({ length: processes }, generatePrivateKey)
      for (const key of keys) await chain.fund(privateKeyToAddress(key), GAS)
      return {
        NODE_ENV: 'production',
        NETWORK: chain.network.name,
        PAY_TO: payTo,
        SETTLE_RPC_URL: nodes.join(','),
        SETTLE_KEY: keys.join(' '),
        PORT: String(port),
        DATA_DIR: dataDir,
      }
    },
    fund: (accounts, value) => fundBuyers(rpc, chain.network, accounts, value),
    close: () => chain.stop(),
  }
}

/** Transactions that are in no block by then were dropped. */
const DROPPED_MS = 5_000

/** Gives each account test USDC, in atomic units. Resolves once all of them have it. */
export async function fundBuyers(rpc: Rpc, network: Network, accounts: readonly Hex[], value: bigint): Promise<void> {
  await rpc.call('anvil_setBalance', FAUCET, '0x56bc75e2d63100000')
  await rpc.call('anvil_impersonateAccount', FAUCET)
  // With numbers of our own: while a block is mined, the chain may give one number to two transactions.
  const countMined = async (): Promise<number> =>
    Number(await rpc.call<Hex>('eth_getTransactionCount', FAUCET, 'latest')) - first
  const first = Number(await rpc.call<Hex>('eth_getTransactionCount', FAUCET, 'latest'))
  const sendFrom = async (start: number): Promise<void> => {
    for (const [nth, account] of [...accounts.entries()].slice(start)) {
      const call = { from: FAUCET, to: network.asset, data: mintData(account, value), gas: '0x30d40' }
      await rpc.call('eth_sendTransaction', { ...call, nonce: quantity(first + nth) })
    }
  }
  await sendFrom(0)
  let [mined, since] = [0, performance.now()]
  while (mined < accounts.length) {
    await delay(50)
    const count = await countMined()
    if (count > mined) [mined, since] = [count, performance.now()]
    else if (performance.now() - since > DROPPED_MS) {
      // The node drops some transactions that arrive while it mines a block.
      await sendFrom(mined)
      since = performance.now()
    }
  }
  await rpc.call('anvil_stopImpersonatingAccount', FAUCET)
}
