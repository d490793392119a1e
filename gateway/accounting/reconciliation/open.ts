/** The comparison of one payee on one network, with what suits a local chain and what suits a public one. */
import type { Journal } from '../../payments/journal/journal.ts'
import type { Hex, Network } from '../../config/networks.ts'
import { createNodes } from '../../methods/exact-evm/nodes/nodes.ts'
import type { Logger } from '../../plugin/plugin.ts'
import type { Tell } from '../alerts.ts'
import { type Comparison, createComparison } from './reconciliation.ts'
import type { Rows } from './rows.ts'

export interface PlaceParts {
  /** One node, or several in a list. */
  readonly rpcUrl: string
  /** A chain of our own: read from its first block, with no reorganisations to wait for. */
  readonly isLocal: boolean
  readonly network: Network
  readonly payTo: Hex
  /** Wallets whose payments are no revenue. */
  readonly own: readonly string[]
  readonly journal: Pick<Journal, 'find' | 'list' | 'openPayments' | 'settledLate' | 'owed'>
  readonly rows: Rows
  readonly tell: Tell
  readonly log: Logger
  readonly now: () => Date
}

/** Blocks of Base that are taken as settled once this deep. */
const DEPTH = 12
/** About a day of two-second blocks, read when there is no cursor yet. */
const LOOK_BACK = 43_200
const GRACE_SECONDS = 300

export function comparisonOf({ rpcUrl, isLocal, own, ...parts }: PlaceParts): () => Promise<Comparison> {
  return createComparison({
    ...parts,
    rpc: createNodes({ addresses: rpcUrl, network: parts.network, log: parts.log }),
    own: new Set(own.map((wallet) => wallet.toLowerCase())),
    depth: isLocal ? 0 : DEPTH,
    lookBack: isLocal ? null : LOOK_BACK,
    graceSeconds: GRACE_SECONDS,
  })
}
