/**
 * The sandbox, the default network: a local chain that acts as Base Sepolia, with test USDC and Multicall3 at their real
 * addresses, gas for settlements, a payee and a funded buyer. It never uses chain id 8453, so that a signature made here
 * is worthless on Base.
 */
import { createHash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import secp256k1 from 'secp256k1'
import { getAddress } from 'viem/utils'
import { NETWORKS, type Hex, type Network } from '../config/networks.ts'
import { quantity, type Rpc } from '../methods/exact-evm/nodes/rpc.ts'
import type { Logger } from '../plugin/plugin.ts'
import { openChainFolder } from './chain-folder.ts'
import { keepChain } from './chain-keeper.ts'
import { addressOf } from '../methods/exact-evm/chain/transaction-signer.ts'
import { balanceData } from '../methods/exact-evm/eip3009.ts'
import { MULTICALL3 } from '../methods/exact-evm/multicall.ts'
import { mintData, runtimeOf } from './contracts.ts'
import { readJson, writeAtomically } from './shared-files.ts'

export interface Sandbox {
  readonly rpcUrl: string
  /** Process id of the chain. */
  readonly pid: number
  readonly network: Network
  readonly settleKey: Hex
  readonly payTo: Hex
  readonly buyer: { readonly address: Hex; readonly privateKey: Hex }
  /** Opens the operator console if OPERATOR_TOKEN is not set. */
  readonly operatorToken: string
  /** Writes sandbox.json (mode 0600) with everything a buyer needs, including the buyer's private key. */
  describe(baseUrl: string): Promise<void>
  /** Saves and stops the chain, unless another gateway still uses it. */
  close(): Promise<void>
}

/** The sandbox as one process opens it for several. */
export interface OpenSandbox extends Sandbox {
  /** How worker `nth`, from 0, joins. Each pays gas with a key of its own, the same one after a restart. */
  share(nth: number): Promise<SharedSandbox>
}

/** How a process joins a sandbox that another process keeps open. Survives JSON. */
export type SharedSandbox = Pick<Sandbox, 'rpcUrl' | 'pid' | 'settleKey' | 'payTo' | 'buyer' | 'operatorToken'>

export interface SandboxOptions {
  /** Holds sandbox.json and the folder chain/. */
  readonly dataDir: string
  /** Seconds between blocks; 0 mines every transaction at once. */
  readonly blockSeconds: number
  readonly log: Logger
  /** Is paid instead of the sandbox's own payee. */
  readonly payTo?: Hex | null
}

const network: Network = NETWORKS['base-sepolia']
const USDC = 1_000_000n
const BUYER_BALANCE = 10_000n * USDC
const LOW_BALANCE = 1_000n * USDC
/** 1,000 ETH: the balance of each account that sends transactions. */
const GAS = quantity(1_000n * 10n ** 18n)
/** The account that sends mint transactions. It has no key: the sandbox chain impersonates it. */
const FAUCET: Hex = '0x00000000000000000000000000000000000fa0ce'
/** Longer in all than a block of the sandbox takes. */
const FUNDING_ATTEMPTS = 50
const FUNDING_PAUSE_MS = 100

/**
 * Opens the sandbox in `dataDir` with the keys, chain and balances of the last run. A buyer with less than 1,000 test
 * USDC is topped up to 10,000; other balances stay. Throws with instructions if no chain can be started.
 */
export async function openSandbox({ dataDir, blockSeconds, log, payTo }: SandboxOptions): Promise<OpenSandbox> {
  const folder = join(dataDir, 'chain')
  const chains = await openChainFolder({ folder, chainId: network.chainId, log })
  const keys = await readKeys(join(folder, 'keys.json'))
  const buyer = { address: addressOf(keys.buyer), privateKey: keys.buyer }
  /** The keys of workers. A chain that is restarted from an old state may lack their gas. */
  const sharedKeys = new Set<Hex>()

  const attach = async () => {
    const chain = await chains.attach()
    // Two gateways on one chain must not use the nonces of the same key.
    const settleKey = chain.shared ? newKey() : keys.settle
    await prepare(chain.rpc, { settleKeys: [settleKey, ...sharedKeys], buyer: buyer.address, blockSeconds, log })
    return { ...chain, settleKey }
  }

  const chain = await attach()
  const payee = payTo ? getAddress(payTo) : addressOf(keys.payee)
  const keeper = keepChain({ chain, chains, attach, heartbeat: blockSeconds === 0, log })
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
    operatorToken: keys.operator,
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
      await writeAtomically(join(dataDir, 'sandbox.json'), `${JSON.stringify(description, null, 2)}\n`)
    },
    async share(nth) {
      const settleKey = nth === 0 ? chain.settleKey : derivedKey(chain.settleKey, nth)
      sharedKeys.add(settleKey)
      await chain.rpc.call('anvil_setBalance', addressOf(settleKey), GAS)
      const { operator: operatorToken } = keys
      return { rpcUrl: chain.rpcUrl, pid: keeper.chain.pid, settleKey, payTo: payee, buyer, operatorToken }
    },
    close() {
      closing ??= keeper.stop().then(() => chains.detach(keeper.chain))
      return closing
    },
  }
}

/** Joins a sandbox that another process keeps open. Closing it leaves the chain to that process. */
export function joinSandbox(shared: SharedSandbox): Sandbox {
  return { ...shared, network, describe: async () => {}, close: async () => {} }
}

interface PrepareParts {
  readonly settleKeys: readonly Hex[]
  readonly buyer: Hex
  readonly blockSeconds: number
  readonly log: Logger
}

/** Makes a chain act as the network: contracts, gas for settlements, a funded buyer, and blocks at the interval. */
async function prepare(rpc: Rpc, { settleKeys, buyer, blockSeconds, log }: PrepareParts): Promise<void> {
  await rpc.call('anvil_setCode', network.asset, runtimeOf('usdc'))
  await rpc.call('anvil_setCode', MULTICALL3, runtimeOf('multicall3'))
  for (const key of settleKeys) await rpc.call('anvil_setBalance', addressOf(key), GAS)
  await fund(rpc, network, buyer, log)
  // A restarted chain still has the time of its last block; a new block sets it to the present.
  await rpc.call('evm_mine')
  if (blockSeconds > 0) await rpc.call('evm_setIntervalMining', blockSeconds)
  else await rpc.call('evm_setAutomine', true)
}

/**
 * Tops up a buyer who holds little. Gateways that open one chain at once send from the same account, and the chain takes one of
 * their transactions. The others look again until the buyer has it.
 */
export async function fund(rpc: Rpc, { asset }: Network, buyer: Hex, log: Logger): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const balance = BigInt(await rpc.call<Hex>('eth_call', { to: asset, data: balanceData(buyer) }, 'latest'))
    if (balance >= LOW_BALANCE) return
    try {
      await rpc.call('anvil_setBalance', FAUCET, GAS)
      await rpc.call('anvil_impersonateAccount', FAUCET)
      const data = mintData(buyer, BUYER_BALANCE - balance)
      await rpc.call('eth_sendTransaction', { from: FAUCET, to: asset, data, gas: '0x30d40' })
      await rpc.call('anvil_stopImpersonatingAccount', FAUCET)
      log.info({ buyer, had: String(balance / USDC) }, 'sandbox: topped the buyer up to 10,000 test USDC')
      return
    } catch (error) {
      if (attempt === FUNDING_ATTEMPTS) throw error
      await sleep(FUNDING_PAUSE_MS)
    }
  }
}

/** The private keys of the sandbox and its operator token, created once and worthless on any real network. */
interface Keys {
  /** Pays the gas of settlements. */
  readonly settle: Hex
  readonly payee: Hex
  readonly buyer: Hex
  readonly operator: string
}

/** Reads the keys, or creates the file (mode 0600). */
async function readKeys(file: string): Promise<Keys> {
  const stored = await readJson<Partial<Keys>>(file)
  const keys = {
    settle: stored?.settle ?? newKey(),
    payee: stored?.payee ?? newKey(),
    buyer: stored?.buyer ?? newKey(),
    operator: stored?.operator ?? randomBytes(18).toString('base64url'),
  }
  if (!stored?.settle || !stored.payee || !stored.buyer || !stored.operator)
    await writeAtomically(file, `${JSON.stringify(keys, null, 2)}\n`)
  return keys
}

function newKey(): Hex {
  for (;;) {
    const key = randomBytes(32)
    if (secp256k1.privateKeyVerify(key)) return `0x${key.toString('hex')}`
  }
}

/** The same key for the same `nth`, so that a worker finds its transactions again after a restart. */
function derivedKey(key: Hex, nth: number): Hex {
  for (let seed = `${key}/${nth}`; ; seed += '/') {
    const derived = createHash('sha256').update(seed).digest()
    if (secp256k1.privateKeyVerify(derived)) return `0x${derived.toString('hex')}`
  }
}
