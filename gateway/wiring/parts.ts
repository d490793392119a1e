/** The parts of a gateway that most others are made of. */
import type { Logger } from 'pino'
import type { Metrics } from '../accounting/metrics.ts'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/config.ts'
import type { Swap } from '../products/swap.ts'
import type { Peers } from '../stores/peers.ts'
import type { Tokens } from '../tokens/access-tokens.ts'
import type { Attestations } from '../tokens/attestation-keys.ts'
import type { StatementSigner } from '../tokens/statement-signer.ts'
import type { Settlement } from './settlement.ts'
import type { Stores } from './stores.ts'

export interface Parts {
  readonly config: Config
  readonly settlement: Settlement
  readonly stores: Stores
  /** The other processes of this gateway; null if it is the only one. */
  readonly peers: Peers | null
  readonly keys: StatementSigner & { readonly attestations: Attestations }
  readonly tokens: Tokens
  readonly editions: Swap
  readonly metrics: Metrics
  readonly clock: Clock
  readonly log: Logger
}
