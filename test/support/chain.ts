/** A local chain for tests: anvil, with the sandbox's USDC at the address of USDC. */
import { type ChildProcess, spawn } from 'node:child_process'
import type { Context } from 'mocha'
import { anvilBinary, freePort } from '../../gateway/sandbox/anvil.ts'
import { mintData, runtimeOf } from '../../gateway/sandbox/contracts.ts'
import { balanceData } from '../../gateway/methods/exact-evm/eip3009.ts'
import { MULTICALL3 } from '../../gateway/methods/exact-evm/multicall.ts'
import { NETWORKS, type Hex, type Network } from '../../gateway/config/networks.ts'
import { createRpc, type Rpc } from '../../gateway/methods/exact-evm/nodes/rpc.ts'

const FAUCET: Hex = '0x00000000000000000000000000000000000Fa0ce'

export interface TestChain {
  readonly rpcUrl: string
  readonly network: Network
  readonly rpc: Rpc
  /** Gives an account USDC, in atomic units. */
  mint(to: Hex, value: bigint): Promise<void>
  /** Gives an account ETH, in wei. */
  fund(account: Hex, wei?: bigint): Promise<void>
  balanceOf(account: Hex): Promise<bigint>
  /** The time of the newest block. */
  time(): Promise<number>
  /** Mines a block whose time is this much later. */
  advance(seconds: number): Promise<void>
  stop(): Promise<void>
}

export interface ChainOptions {
  /** Seconds between blocks; one block per transaction if absent. */
  readonly blockSeconds?: number
  readonly port?: number
  /** Base Sepolia if absent. */
  readonly network?: Network
  /** How many states of the past are kept, for a chain that runs for long; blocks, receipts and logs always are. */
  readonly states?: number
}

/** Starts a chain. Skips the suite with a message if the anvil binary is not installed. */
export async function startChain(context: Context, options: ChainOptions = {}): Promise<TestChain> {
  try {
    anvilBinary()
  } catch {
    process.stdout.write('    (skipped: the anvil binary is not installed)\n')
    context.skip()
  }
  return openChain(options)
}

/** Starts a chain. Throws if the anvil binary is not installed. */
export async function openChain(options: ChainOptions = {}): Promise<TestChain> {
  const network = options.network ?? NETWORKS['base-sepolia']
  const port = options.port ?? (await freePort())
  const rpcUrl = `http://127.0.0.1:${port}`
  const blocks = options.blockSeconds === undefined ? [] : ['--block-time', String(options.blockSeconds)]
  const states = options.states === undefined ? [] : ['--prune-history', String(options.states)]
  const place = ['--host', '127.0.0.1', '--port', String(port), '--chain-id', String(network.chainId)]
  const child = spawn(anvilBinary(), [...place, '--quiet', ...blocks, ...states], { stdio: 'ignore' })
  const kill = (): boolean => child.kill('SIGKILL')
  process.once('exit', kill)
  const rpc = createRpc(rpcUrl)
  for (let tries = 0; tries < 400; tries++) {
    const up = await rpc.call('eth_chainId').catch(() => null)
    if (up !== null) break
    await new Promise((wake) => setTimeout(wake, 25))
  }
  await rpc.call('anvil_setCode', network.asset, runtimeOf('usdc'))
  await rpc.call('anvil_setCode', MULTICALL3, runtimeOf('multicall3'))
  await rpc.call('anvil_setBalance', FAUCET, hex(10n ** 20n))
  await rpc.call('anvil_impersonateAccount', FAUCET)

  return {
    rpcUrl,
    network,
    rpc,
    async mint(to, value) {
      const data = mintData(to, value)
      const hash = await rpc.call<Hex>('eth_sendTransaction', { from: FAUCET, to: network.asset, data })
      await mined(rpc, hash)
    },
    async fund(account, wei = 10n ** 20n) {
      await rpc.call('anvil_setBalance', account, hex(wei))
    },
    balanceOf: (account) => balanceOf(rpcUrl, account, network),
    async time() {
      const { timestamp } = await rpc.call<{ timestamp: Hex }>('eth_getBlockByNumber', 'latest', false)
      return Number(timestamp)
    },
    async advance(seconds) {
      await rpc.call('evm_increaseTime', seconds)
      await rpc.call('evm_mine')
    },
    async stop() {
      process.off('exit', kill)
      await ended(child, kill)
    },
  }
}

/** The USDC balance of an account on a local chain, in atomic units. */
export async function balanceOf(
  rpcUrl: string,
  account: Hex,
  network: Network = NETWORKS['base-sepolia'],
): Promise<bigint> {
  const call = { to: network.asset, data: balanceData(account) }
  return BigInt(await createRpc(rpcUrl).call<Hex>('eth_call', call, 'latest'))
}

async function mined(rpc: Rpc, hash: Hex): Promise<void> {
  while ((await rpc.call('eth_getTransactionReceipt', hash).catch(() => null)) === null)
    await new Promise((wake) => setTimeout(wake, 20))
}

async function ended(child: ChildProcess, kill: () => void): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = new Promise((resolve) => child.once('exit', resolve))
  kill()
  await exited
}

function hex(value: bigint): Hex {
  return `0x${value.toString(16)}`
}
