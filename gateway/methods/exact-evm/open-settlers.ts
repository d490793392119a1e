/** Opens the settlers that the configuration asks for: one per network, by our own key or through facilitators. */
import { readFacilitatorAuth } from '../../config/facilitator-auth.ts'
import { type Config, ConfigError } from '../../config/config.ts'
import { type Hex, type Network, readNetworks } from '../../config/networks.ts'
import type { Recipient, Recipients } from '../../config/pay-to.ts'
import { HELD_BY_SIGNER, type NetworkConfig } from '../../config/settlement.ts'
import type { Logger } from '../../plugin/plugin.ts'
import type { SignerClient } from '../../stores/signer-client.ts'
import type { SettlementCost, Settler } from '../payment-method.ts'
import { createSettlerByNetwork, type NetworkSettler } from '../multi-network-settler.ts'
import { secondsToDepth } from './authorization-outcome.ts'
import { type ChainSettlerOptions, createChainSettler } from './chain/chain-settler.ts'
import { createFeeReader } from './chain/gas-fees.ts'
import { createRemoteSigner } from './chain/remote-signer.ts'
import { readSettlementCost } from './chain/settlement-cost.ts'
import type { Signer } from './chain/transaction-signer.ts'
import { createNodes } from './nodes/nodes.ts'
import { createFacilitatorSettler } from './facilitator/facilitator-settler.ts'

/** How long a payment waits for its first block. */
const CONFIRM_SECONDS = 30

/** The networks that payments are taken on, and the settler that serves all of them. */
export interface OpenedSettlers extends Recipients {
  readonly settler: Settler
}

/**
 * Opens one settler per configured network. Throws if a node reports another chain id than the configured network's; the
 * settlers opened before are closed again.
 *
 * @param signer holds the keys that the configuration does not
 */
export async function openSettlers(
  config: Config,
  log: Logger,
  signer: SignerClient | null = null,
): Promise<OpenedSettlers> {
  const known = readNetworks(config.catalogDir)
  const opened: NetworkSettler[] = []
  const recipients: Recipient[] = []
  try {
    for (const settings of config.networks) {
      const network = known.find(({ name }) => name === settings.network) as Network
      opened.push({ network, settler: await openSettler(config, settings, network, log, signer) })
      recipients.push({ network, payTo: settings.payTo as Hex })
    }
  } catch (error) {
    await Promise.all(opened.map(({ settler }) => settler.close()))
    throw error
  }
  const [leading, ...others] = recipients as [Recipient, ...Recipient[]]
  const [first, ...rest] = opened as [NetworkSettler, ...NetworkSettler[]]
  return {
    ...leading,
    others,
    settler: rest.length === 0 ? first.settler : createSettlerByNetwork([first, ...rest]),
  }
}

/** The cost of settling on a network now, or why it is not known. */
export interface ReadCost {
  readonly network: Network
  readonly cost: SettlementCost | Error
}

/** Reads what settling costs on each network where an account of ours pays the gas. It opens no settler and uses no key. */
export async function readSettlementCosts(config: Config, log: Logger): Promise<readonly ReadCost[]> {
  const known = readNetworks(config.catalogDir)
  const read = config.networks.map(async ({ network: name, settleRpcUrl, settleKey, rpcUrl }): Promise<ReadCost[]> => {
    const network = known.find((each) => each.name === name)
    if (!network || settleRpcUrl === null || settleKey === null) return []
    const rpc = createNodes({ addresses: [settleRpcUrl, rpcUrl].join(','), network, log })
    try {
      const { price } = await createFeeReader({ rpc, maxGasPrice: null })()
      return [{ network, cost: await readSettlementCost(rpc, network, price) }]
    } catch (error) {
      return [{ network, cost: error as Error }]
    }
  })
  return (await Promise.all(read)).flat()
}

/** The options of a chain settler that come from the configuration, whichever chain it settles on. */
export function chainSettlerOptions(
  {
    settleBatch: batch,
    walletFactories: factories,
    twoNodesFrom,
    isStrict,
  }: Pick<Config, 'settleBatch' | 'walletFactories' | 'twoNodesFrom' | 'isStrict'>,
  { confirmBlocks, maxGasPrice }: NetworkConfig,
): Pick<
  ChainSettlerOptions,
  'batch' | 'factories' | 'confirmBlocks' | 'maxGasPrice' | 'confirmSeconds' | 'twoNodesFrom' | 'isStrict'
> {
  const confirmSeconds = secondsToDepth(CONFIRM_SECONDS, confirmBlocks)
  return { batch, factories, confirmBlocks, maxGasPrice, confirmSeconds, twoNodesFrom, isStrict }
}

async function openSettler(
  config: Config,
  settings: NetworkConfig,
  network: Network,
  log: Logger,
  signer: SignerClient | null,
): Promise<Settler> {
  const { settleRpcUrl, rpcUrl, settleKey, facilitatorUrls: urls, facilitatorAuth } = settings
  if (settleRpcUrl !== null && settleKey !== null) {
    const key = settleKey === HELD_BY_SIGNER ? remoteSigner(signer, settings) : settleKey
    const nodes = [settleRpcUrl, rpcUrl].join(',')
    return createChainSettler({ rpcUrl: nodes, key, network, log, ...chainSettlerOptions(config, settings) })
  }
  const { baseUrl, walletFactories: factories, twoNodesFrom } = config
  const { confirmBlocks } = settings
  const own = { factories, confirmBlocks, twoNodesFrom, authorize: facilitatorAuth.map(readFacilitatorAuth) }
  return createFacilitatorSettler({ urls, rpcUrl: rpcUrl as string, network, baseUrl, log, ...own })
}

/** Throws ConfigError if there is no signer, or if it does not have the key. */
function remoteSigner(signer: SignerClient | null, { network, nth }: NetworkConfig): Signer {
  if (signer === null)
    throw new ConfigError(['SETTLE_KEY is signer, so SIGNER_SOCKET must name the socket of the signer.'])
  return createRemoteSigner(signer, network, nth)
}
