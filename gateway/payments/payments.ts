/**
 * The parts that take payments. The functions of this folder share them: no buyer is charged before the answer is stored,
 * no part of a paid answer leaves before the settlement, and an unknown outcome is never reported as a failure.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Hex } from '../config/networks.ts'
import type { Recipient } from '../config/pay-to.ts'
import type { PaymentMethod, Settler } from '../methods/payment-method.ts'
import type { Operation } from '../plugin/catalog.ts'
import type { Logger } from '../plugin/plugin.ts'
import type { Peers } from '../stores/peers.ts'
import { createSharedLimit, type SharedLimit, type SharedLimitOptions } from '../stores/shared-limit.ts'
import type { Journal, PaymentRecord } from './journal/journal.ts'
import { NodeCallBudget } from './node-call-budget.ts'
import type { PaidAnswer } from './payment.ts'
import { createPaymentsInProgress, type PaymentsInProgress } from './payments-in-progress.ts'
import type { FormerPrices } from './price-history.ts'
import { UnpaidCalls } from './unpaid-calls.ts'
import type { WalletSignIn } from './wallet-sign-in.ts'

/** Is told of a payment that was settled. */
export type OnSettled = (record: PaymentRecord, transaction: Hex) => void

interface GivenParts {
  readonly baseUrl: string
  readonly recipients: readonly [Recipient, ...Recipient[]]
  readonly journal: Journal
  readonly log: Logger
  /** One per network. */
  readonly methods: readonly PaymentMethod[]
  readonly settler: Settler
  readonly now: () => Date
  /** Amounts accepted besides the current price: former prices in their grace period. */
  readonly formerPrices?: (operation: Operation) => FormerPrices
  /** Is told of each payment as it is settled. */
  readonly onSettled?: OnSettled
  /** Lets a wallet prove that a purchase is its own. If absent, only the identifier of the purchase proves it. */
  readonly signIn?: WalletSignIn
}

export interface Payments extends GivenParts {
  /** Waits this many milliseconds. */
  readonly pause: (ms: number) => Promise<unknown>
  /** The `minBlocks` of payments of plans for real money. With 1 they are final like all others. */
  readonly planBlocks: number
  /** Counts the calls of nodes that payments cause. */
  readonly nodeCalls: NodeCallBudget
  readonly unpaidCalls: UnpaidCalls
  /** Limits the large bodies of each payer that were read and did not lead to a sale. */
  readonly largeBodies: SharedLimit
  readonly inProgress: PaymentsInProgress<PaidAnswer>
}

interface PaymentsOptions extends GivenParts, Partial<Pick<Payments, 'pause' | 'planBlocks' | 'nodeCalls'>> {
  /** The other processes, which count large bodies and unpaid calls together with this one. */
  readonly peers?: Pick<Peers, 'addCalls'> | null
}

/** Creates the payments of one gateway. By default plans wait for no more blocks, and node calls have their own budget. */
export function createPayments({ peers = null, ...parts }: PaymentsOptions): Payments {
  const { journal, now } = parts
  return {
    pause: delay,
    planBlocks: 1,
    nodeCalls: new NodeCallBudget({ journal, peers }),
    ...parts,
    unpaidCalls: new UnpaidCalls({ now, peers }),
    largeBodies: createLargeBodyLimit(peers),
    inProgress: createPaymentsInProgress<PaidAnswer>(now),
  }
}

const UNPAID_BODIES = 20

/** Creates the limit of large bodies of one process; with `peers`, of all processes together. */
export function createLargeBodyLimit(peers: SharedLimitOptions['peers'] = null): SharedLimit {
  const message = `More than ${UNPAID_BODIES} large requests of this payer were not paid.`
  return createSharedLimit({ name: 'large', points: UNPAID_BODIES, seconds: 60, message, peers })
}
