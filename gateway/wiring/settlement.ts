/** Who settles payments: the sandbox chain, or the settlers of production; and the keys that sign statements. */
import { runAll } from './open-and-close.ts'
import type { Awaitable } from '../awaitable.ts'
import type { Config } from '../config/config.ts'
import { type Recipients, recipientsOf } from '../config/pay-to.ts'
import { SANDBOX } from '../config/settlement.ts'
import { createChainSettler } from '../methods/exact-evm/chain/chain-settler.ts'
import type { NodesOfNetwork } from '../methods/exact-evm/erc1271.ts'
import { chainSettlerOptions, openSettlers } from '../methods/exact-evm/open-settlers.ts'
import type { PaymentMethod, Settler } from '../methods/payment-method.ts'
import type { Logger } from 'pino'
import { joinSandbox, openSandbox, type Sandbox, type SharedSandbox } from '../sandbox/sandbox.ts'
import type { SignerClient } from '../stores/signer-client.ts'
import type { Attestations } from '../tokens/attestation-keys.ts'
import type { StatementSigner } from '../tokens/statement-signer.ts'

/** The networks that payments are taken on, and who settles them. */
export interface Settlement extends Recipients {
  /** The payment method of each network; "exact" by EIP-3009 if absent. */
  readonly methods?: readonly PaymentMethod[]
  /** Settles on each of the networks. */
  readonly settler: Settler
  /** The local chain with its buyer; null in production. */
  readonly sandbox: Sandbox | null
  close(): Promise<void>
}

/** How often the sandbox chain is polled; a local chain costs nothing to read. */
const LOCAL_POLL_MS = 50
/**
 * Opens the sandbox chain, or joins the one that is `shared`, or opens the production settlers. Throws if a chain is not
 * the configured one.
 */
export async function openSettlement(
  config: Config,
  log: Logger,
  shared?: SharedSandbox,
  signer?: Awaitable<SignerClient> | null,
): Promise<Settlement> {
  if (config.network !== SANDBOX) {
    const settlers = await openSettlers(config, log, (await signer) ?? null)
    return { ...settlers, sandbox: null, close: () => settlers.settler.close() }
  }
  const { dataDir, sandboxBlockSeconds: blockSeconds } = config
  const sandbox = shared ? joinSandbox(shared) : await openSandbox({ dataDir, blockSeconds, log, payTo: config.payTo })
  const { network, payTo, rpcUrl, settleKey: key } = sandbox
  const local = { rpcUrl, key, network, log, pollMs: LOCAL_POLL_MS }
  const settler = await createChainSettler({ ...local, ...chainSettlerOptions(config, config) })
  return {
    network,
    payTo,
    settler,
    sandbox,
    close: () => runAll([() => settler.close(), () => sandbox.close()]),
  }
}

/** Keys that the signer process holds. */
export function remoteKeys(signer: SignerClient): StatementSigner & { readonly attestations: Attestations } {
  const { publicKeys, offerKeys } = signer.keys
  return {
    publicKeys,
    offerKeys,
    sign: (type, statement) => signer.signStatement(type, statement),
    attestations: {
      key: (product, serial) => signer.attestationKey(product, serial),
      sign: (product, serial, text) => signer.signAttestation(product, serial, text),
    },
  }
}

/** The nodes to read each network from, the leading network first. */
export function readableNetworks(
  settlement: Settlement,
  { networks }: Pick<Config, 'networks'>,
): readonly NodesOfNetwork[] {
  const addresses = settlement.sandbox ? [settlement.sandbox.rpcUrl] : networks.map(({ rpcUrl }) => rpcUrl)
  return recipientsOf(settlement).map(({ network }, at) => ({ network, addresses: addresses[at] ?? null }))
}
