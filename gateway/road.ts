/** The road to the chain that the configuration asks for: which network, who is paid, and who settles. */
import type { Config } from './config.ts'
import { NETWORKS } from './payments/networks.ts'
import type { Hex, Network, Settler } from './payments/payment.ts'
import { createChainSettler } from './payments/settlers/chain.ts'
import { createFacilitatorSettler } from './payments/settlers/facilitator.ts'
import type { Logger } from './plugin.ts'
import { openSandbox, type Sandbox } from './sandbox/sandbox.ts'

export interface Road {
  readonly network: Network
  readonly payTo: Hex
  readonly settler: Settler
  /** The local chain and its buyer; null in production. */
  readonly sandbox: Sandbox | null
  close(): Promise<void>
}

const CONFIRM_SECONDS = 30

/** Opens the sandbox, or the settler of production. Throws where the chain is not the one that was configured. */
export async function openRoad(config: Config, log: Logger): Promise<Road> {
  if (config.network !== 'sandbox') {
    const network = NETWORKS[config.network]
    const settler = await productionSettler(config, network, log)
    return { network, payTo: config.payTo as Hex, settler, sandbox: null, close: () => settler.close() }
  }
  const sandbox = await openSandbox({
    dataDir: config.dataDir,
    blockSeconds: config.sandboxBlockSeconds,
    log,
    payTo: config.payTo,
  })
  const { network, rpcUrl, settleKey: key } = sandbox
  const settler = await createChainSettler({ rpcUrl, key, network, log, confirmSeconds: CONFIRM_SECONDS })
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

async function productionSettler(config: Config, network: Network, log: Logger): Promise<Settler> {
  const { settleRpcUrl: rpcUrl, settleKey: key, facilitatorUrls: urls } = config
  if (rpcUrl !== null && key !== null)
    return createChainSettler({ rpcUrl, key, network, log, confirmSeconds: CONFIRM_SECONDS })
  return createFacilitatorSettler({ urls, rpcUrl: config.rpcUrl as string, network, baseUrl: config.baseUrl, log })
}
