/** The road to the chain that the configuration asks for: which network, who is paid, and who settles. */
import type { Config } from './config/config.ts'
import { type NetworkConfig, SANDBOX } from './config/settlement.ts'
import type { Hex, Network } from './config/networks.ts'
import { readNetworks } from './config/networks.ts'
import { type Recipients, type Recipient, recipientsOf } from './config/pay-to.ts'
import type { Settler } from './methods/payment-method.ts'
import type { Readable } from './methods/exact-evm/erc1271.ts'
import { createChainSettler } from './methods/exact-evm/chain/chain-settler.ts'
import { createFacilitatorSettler } from './methods/exact-evm/facilitator/facilitator-settler.ts'
import { createSettlerByNetwork, type NetworkSettler } from './methods/exact-evm/by-network.ts'
import type { Logger } from './plugin/plugin.ts'
import { openSandbox, type Sandbox } from './sandbox/sandbox.ts'

export interface Road extends Recipients {
  /** Settles on each of the networks. */
  readonly settler: Settler
  /** The local chain and its buyer; null in production. */
  readonly sandbox: Sandbox | null
  close(): Promise<void>
}

const CONFIRM_SECONDS = 30
/** What one more block of depth may take. */
const BLOCK_SECONDS = 3
/** How often our own chain is looked at, which costs nobody anything. */
const LOCAL_POLL_MS = 50

/** Opens the sandbox, or the settler of production. Throws where the chain is not the one that was configured. */
export async function openRoad(config: Config, log: Logger): Promise<Road> {
  if (config.network !== SANDBOX) return productionRoad(config, log)
  const sandbox = await openSandbox({
    dataDir: config.dataDir,
    blockSeconds: config.sandboxBlockSeconds,
    log,
    payTo: config.payTo,
  })
  const { network, rpcUrl, settleKey: key } = sandbox
  const local = { rpcUrl, key, network, log, pollMs: LOCAL_POLL_MS }
  const settler = await createChainSettler({ ...local, ...settling(config, config) })
  return {
    network,
    payTo: sandbox.payTo,
    settler,
    sandbox,
    async close() {
      await settler.close()
      await sandbox.close()
    },
  }
}

/** The nodes to read each network by, the leading one first. */
export function nodesOf(road: Road, { networks }: Pick<Config, 'networks'>): readonly Readable[] {
  const addresses = road.sandbox ? [road.sandbox.rpcUrl] : networks.map(({ rpcUrl }) => rpcUrl)
  return recipientsOf(road).map(({ network }, at) => ({ network, addresses: addresses[at] ?? null }))
}

/** One settler per network. Where one cannot be opened, none stays open. */
async function productionRoad(config: Config, log: Logger): Promise<Road> {
  const known = readNetworks(config.catalogDir)
  const opened: NetworkSettler[] = []
  const payees: Recipient[] = []
  try {
    for (const lane of config.networks) {
      const network = known.find(({ name }) => name === lane.network) as Network
      opened.push({ network, settler: await settlerOf(config, lane, network, log) })
      payees.push({ network, payTo: lane.payTo as Hex })
    }
  } catch (error) {
    await Promise.all(opened.map(({ settler }) => settler.close()))
    throw error
  }
  const [leading, ...further] = payees as [Recipient, ...Recipient[]]
  const [only, ...others] = opened as [NetworkSettler, ...NetworkSettler[]]
  const settler = others.length === 0 ? only.settler : createSettlerByNetwork([only, ...others])
  return { ...leading, others: further, settler, sandbox: null, close: () => settler.close() }
}

/** How payments are settled on a lane, whichever way they go. */
function settling(
  { settleBatch: batch, walletFactories: factories }: Config,
  { confirmBlocks, maxGasPrice: mostForGas }: NetworkConfig,
) {
  const confirmSeconds = CONFIRM_SECONDS + BLOCK_SECONDS * (confirmBlocks - 1)
  return { batch, factories, confirmBlocks, mostForGas, confirmSeconds }
}

async function settlerOf(config: Config, lane: NetworkConfig, network: Network, log: Logger): Promise<Settler> {
  const { settleRpcUrl, rpcUrl, settleKey: key, facilitatorUrls: urls } = lane
  if (settleRpcUrl !== null && key !== null) {
    const nodes = [settleRpcUrl, rpcUrl].join(',')
    return createChainSettler({ rpcUrl: nodes, key, network, log, ...settling(config, lane) })
  }
  const { baseUrl, walletFactories: factories } = config
  const { confirmBlocks } = lane
  return createFacilitatorSettler({ urls, rpcUrl: rpcUrl as string, network, baseUrl, log, factories, confirmBlocks })
}
