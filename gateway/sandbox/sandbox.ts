/**
 * The embedded default: a local chain as Base Sepolia, with test USDC and Multicall3 at their real addresses, gas for
 * settlements, somebody to be paid, and a funded buyer. Never chain id 8453: what is signed here must be worthless on
 * the real network.
 */
import { join } from 'node:path'
import { getAddress } from 'viem/utils'
import { NETWORKS, type Hex, type Network } from '../config/networks.ts'
import type { Rpc } from '../methods/exact-evm/nodes/rpc.ts'
import type { Logger } from '../plugin/plugin.ts'
import { openChainFolder } from './chain.ts'
import { balanceData, mintData, MULTICALL3, runtimeOf } from './contracts.ts'
import { writeWhole } from './files.ts'
import { addressOf, newKey, readKeys } from './keys.ts'
import { keepSafe } from './keep.ts'

export interface Sandbox {
  readonly rpcUrl: string
  /** Process id of the chain. */
  readonly pid: number
  readonly network: Network
  readonly settleKey: Hex
  readonly payTo: Hex
  readonly buyer: { readonly address: Hex; readonly privateKey: Hex }
  /** Writes sandbox.json (mode 0600): all that a buyer must know, key included. */
  describe(baseUrl: string): Promise<void>
  /** Saves the chain and stops it, unless another gateway still uses it. */
  close(): Promise<void>
}

export interface SandboxOptions {
  /** The sandbox keeps sandbox.json and the folder chain/ here. */
  readonly dataDir: string
  /** 0: every transaction is mined at once. */
  readonly blockSeconds: number
  readonly log: Logger
  /** Who is paid instead of the sandbox's own payee. */
  readonly payTo?: Hex | null
}

const USDC = 1_000_000n
const FULL = 10_000n * USDC
const LOW = 1_000n * USDC
const GAS: Hex = `0x${(1_000n * 10n ** 18n).toString(16)}`
/** Mints by request of the sandbox; nobody has its key, the chain lets it send all the same. */
const FAUCET: Hex = '0x00000000000000000000000000000000000fa0ce'

/**
 * Opens the sandbox in `dataDir`: the same keys, chain and balances as the last time. A buyer with less than 1,000 test
 * USDC is filled up to 10,000; other balances stay. Throws where no chain can be started, saying what to do.
 */
export async function openSandbox({ dataDir, blockSeconds, log, payTo }: SandboxOptions): Promise<Sandbox> {
  const network: Network = NETWORKS['base-sepolia']
  const folder = join(dataDir, 'chain')
  const chains = await openChainFolder({ folder, chainId: network.chainId, log })
  const keys = await readKeys(join(folder, 'keys.json'))
  const buyer = { address: addressOf(keys.buyer), privateKey: keys.buyer }

  const attach = async () => {
    const chain = await chains.attach()
    // Two gateways on one chain must not count the nonces of one key.
    const settleKey = chain.shared ? newKey() : keys.settle
    await prepare(chain.rpc, settleKey)
    return { ...chain, settleKey }
  }

  async function prepare(rpc: Rpc, settleKey: Hex): Promise<void> {
    await rpc.call('anvil_setCode', network.asset, runtimeOf('usdc'))
    await rpc.call('anvil_setCode', MULTICALL3, runtimeOf('multicall3'))
    await rpc.call('anvil_setBalance', addressOf(settleKey), GAS)
    await fund(rpc)
    // A chain that has slept shows its last block's time; a new block brings it to the clock.
    await rpc.call('evm_mine')
    if (blockSeconds > 0) await rpc.call('evm_setIntervalMining', blockSeconds)
    else await rpc.call('evm_setAutomine', true)
  }

  async function fund(rpc: Rpc): Promise<void> {
    const call = { to: network.asset, data: balanceData(buyer.address) }
    const balance = BigInt(await rpc.call<Hex>('eth_call', call, 'latest'))
    if (balance >= LOW) return
    await rpc.call('anvil_setBalance', FAUCET, GAS)
    await rpc.call('anvil_impersonateAccount', FAUCET)
    const data = mintData(buyer.address, FULL - balance)
    await rpc.call('eth_sendTransaction', { from: FAUCET, to: network.asset, data, gas: '0x30d40' })
    await rpc.call('anvil_stopImpersonatingAccount', FAUCET)
    log.info({ buyer: buyer.address, had: String(balance / USDC) }, 'sandbox: the buyer has 10,000 test USDC')
  }

  const chain = await attach()
  const payee = payTo ? getAddress(payTo) : addressOf(keys.payee)
  const keeper = keepSafe({ chain, chains, attach, heartbeat: blockSeconds === 0, log })
  let closing: Promise<void> | null = null
  return {
    rpcUrl: chain.rpcUrl,
    get pid() {
      return keeper.chain.pid
    },
    network,
    settleKey: chain.settleKey,
    payTo: payee,
    buyer,
    async describe(baseUrl) {
      const description = {
        base_url: baseUrl,
        rpc_url: chain.rpcUrl,
        chain_id: network.chainId,
        network: network.name,
        asset: network.asset,
        pay_to: payee,
        buyer: { address: buyer.address, private_key: buyer.privateKey },
        caip2: network.caip2,
        asset_domain: network.domain,
      }
      await writeWhole(join(dataDir, 'sandbox.json'), `${JSON.stringify(description, null, 2)}\n`)
    },
    close() {
      closing ??= keeper.stop().then(() => chains.detach(keeper.chain))
      return closing
    },
  }
}
