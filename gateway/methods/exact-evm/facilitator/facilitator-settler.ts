/**
 * Settles payments through x402 facilitators, in order of preference. A facilitator is asked to settle, and the chain
 * then shows whether it did: what the facilitator reports is not trusted, neither a success nor a failure.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { ServiceError } from '../../../errors.ts'
import type { Logger } from '../../../plugin/plugin.ts'
import type { DecodedPayment, Outcome, Settler, Wait, NodeState } from '../../payment-method.ts'
import type { PaymentRequirements } from '../../../x402/payment-requirements.ts'
import type { Hex, Network } from '../../../config/networks.ts'
import { createCheck, createSimulate } from '../onchain-check.ts'
import { createSettlerHealth, orUnavailable, type SettlerHealthCheck } from '../settler-health.ts'
import {
  createOutcomeReader,
  type ReadOutcome,
  secondsToDepth,
  type SentAuthorization,
  type TransactionReceipt,
} from '../authorization-outcome.ts'
import { createNodes, type Nodes, UNREACHABLE } from '../nodes/nodes.ts'
import { createFacilitatorClient, type FacilitatorClient, type SettleAnswer } from './facilitator-client.ts'
import { createContractWallets } from '../contract-wallets.ts'
import { transferOf } from '../eip3009.ts'
import { type FacilitatorIntent, intentOf } from '../settlement-intent.ts'

export interface FacilitatorSettlerOptions {
  /** Base addresses in order of preference. */
  readonly urls: readonly string[]
  /** The node that shows what really happened; several are separated by commas. */
  readonly rpcUrl: string
  readonly network: Network
  /** Public address of the gateway. */
  readonly baseUrl: string
  readonly log: Logger
  /** How long a facilitator may take to settle. */
  readonly timeoutSeconds?: number
  /** How long the chain may take to show a settlement that a facilitator reports. */
  readonly confirmSeconds?: number
  /** How many blocks deep a payment is final; 1: in the newest block. */
  readonly confirmBlocks?: number
  /** Factories whose wallets may pay before they are deployed (ERC-6492), if the facilitator deploys them. */
  readonly factories?: readonly Hex[]
}

const HEALTH_SECONDS = 60
const POLL_MS = 500
/**
 * Failure reasons that a facilitator gives before it broadcasts. Others may hide a transaction that is still pending.
 */
const BEFORE_BROADCAST = /^(insufficient_funds|invalid_|unsupported_|asset_not_|eip6492_)(?!.*transaction)/

/** What the functions of this file share. */
interface Context {
  readonly rpc: Nodes
  readonly network: Network
  readonly log: Logger
  readonly clients: readonly FacilitatorClient[]
  readonly health: SettlerHealthCheck
  readonly readOutcome: ReadOutcome
  /** How long to wait for the chain to show a reported settlement at the required depth. */
  readonly confirmMs: number
}

/** Creates the settler of one network. It is not ready before its first health check has ended. */
export function createFacilitatorSettler(options: FacilitatorSettlerOptions): Settler {
  const { urls, rpcUrl, network, baseUrl, log, timeoutSeconds = 30, confirmSeconds = 10 } = options
  const { confirmBlocks = 1, factories = [] } = options
  const rpc = createNodes({ addresses: rpcUrl, network, log })
  const wallets = createContractWallets(rpc, network.asset, factories)
  const check = createCheck({ rpc, network, wallets, simulate: createSimulate(rpc, wallets) })
  const readOutcome = createOutcomeReader(rpc, network, confirmBlocks)
  const clients = urls.map((url) => createFacilitatorClient({ url, network, baseUrl, timeoutSeconds, log }))
  const inspect = (): Promise<string | null> => inspectFacilitators(clients, rpc, network)
  const health = createSettlerHealth({ inspect, everySeconds: HEALTH_SECONDS, unreachable: UNREACHABLE, log })
  const confirmMs = secondsToDepth(confirmSeconds, confirmBlocks) * 1000
  const context: Context = { rpc, network, log, clients, health, readOutcome, confirmMs }
  void health.refresh()

  return {
    kind: 'facilitator',

    check: (payment, _requirements, checkOptions) =>
      orUnavailable(health, isOutage, () => check(transferOf(payment), checkOptions)),

    async settle(payment, requirements, { record, wait }) {
      const [first] = usable(clients)
      if (!first) throw new ServiceError('settler_unavailable')
      const fromBlock = Number(await orUnavailable(health, isOutage, () => rpc.call<Hex>('eth_blockNumber')))
      const intent: FacilitatorIntent = { kind: 'facilitator', url: first.url, fromBlock }
      if (!(await record(intent))) return { state: 'pending', transaction: null }
      const answer = await askToSettle(context, payment, requirements)
      return outcomeOfAnswer(context, answer, { ...transferOf(payment), fromBlock }, wait)
    },

    async status(payment) {
      const intent = intentOf(payment)
      if (!intent) return { state: 'pending', transaction: null }
      const outcome = await readOrPending(context, { ...transferOf(payment), fromBlock: intent.fromBlock })
      if (outcome.state !== 'pending') return outcome
      return { state: 'pending', transaction: intent.kind === 'chain' ? intent.transaction : null }
    },

    health() {
      const nodes = [...clients.map(stateOf), ...rpc.states()]
      return { ...health.current(), ...(nodes.length > 2 ? { nodes } : {}) }
    },
    close: async () => health.close(),
  }
}

/**
 * Why payments cannot be settled, or null: no facilitator answers, none supports this network, or no node is usable.
 */
async function inspectFacilitators(
  clients: readonly FacilitatorClient[],
  rpc: Nodes,
  network: Network,
): Promise<string | null> {
  const results = await Promise.allSettled(clients.map((client) => client.refresh()))
  if (results.every(({ status }) => status === 'rejected')) return 'no facilitator can be reached'
  if (!clients.some((client) => client.isSupported())) return `no facilitator settles "exact" on ${network.name}`
  return rpc.refresh()
}

/** Any error while the chain is asked counts: without the chain, nobody can tell what a facilitator did. */
const isOutage = (): boolean => true

/** The outcome according to the chain; pending if the chain cannot be read. */
async function readOrPending({ readOutcome, log }: Context, sent: SentAuthorization): Promise<Outcome> {
  try {
    return await readOutcome(sent)
  } catch (error) {
    log.warn({ err: error }, 'the outcome of a settlement could not be read from the chain')
    return { state: 'pending', transaction: null }
  }
}

/** Asks one facilitator after the other, until one may have broadcast the payment. */
async function askToSettle(
  { clients, health, log }: Context,
  payment: DecodedPayment,
  requirements: PaymentRequirements,
): Promise<SettleAnswer> {
  for (const client of usable(clients)) {
    const answer = await client.settle(payment, requirements)
    if (!isNotTaken(answer)) return answer
    log.warn({ facilitator: client.url }, 'the facilitator did not take a settlement; trying the next one')
  }
  void health.refresh()
  return { kind: 'unsent' }
}

/** Waits for the chain to show what a facilitator did. Only a failure that proves nothing was broadcast refuses. */
async function outcomeOfAnswer(
  context: Context,
  answer: SettleAnswer,
  sent: SentAuthorization,
  wait: Wait,
): Promise<Outcome> {
  if (answer.kind === 'unsent')
    return { state: 'refused', reason: 'unexpected_settle_error', message: 'No facilitator took the payment.' }
  const isTooShallow = (outcome: Outcome): boolean =>
    outcome.state === 'settled' && outcome.provisional === true && wait === 'confirmed'
  const transaction = 'transaction' in answer ? answer.transaction : null
  const deadline = performance.now() + context.confirmMs
  for (;;) {
    const outcome = await readOrPending(context, sent)
    if (outcome.state !== 'pending' && !isTooShallow(outcome)) return outcome
    const isInBlock = outcome.state === 'settled'
    if ((answer.kind !== 'success' && !isInBlock) || performance.now() > deadline) {
      if (isInBlock) return { state: 'pending', transaction: outcome.transaction }
      break
    }
    await delay(POLL_MS)
  }
  if (answer.kind !== 'failure') return { state: 'pending', transaction }
  const { reason } = answer
  const hasFailed = transaction === null ? BEFORE_BROADCAST.test(reason) : await isReverted(context, transaction)
  if (!hasFailed) return { state: 'pending', transaction }
  const message = `The facilitator refused the payment: ${reason}.`
  return { state: 'refused', reason, message, ...(transaction ? { transaction } : {}) }
}

/** Whether a transaction is in a block and reverted. */
async function isReverted({ rpc }: Context, transaction: Hex): Promise<boolean> {
  const receipt = await rpc.call<TransactionReceipt | null>('eth_getTransactionReceipt', transaction).catch(() => null)
  return receipt !== null && BigInt(receipt.status) === 0n
}

/** Failure reasons of a facilitator that does not serve this network. Another one may take the payment. */
const NOT_SUPPORTED = /^(unsupported_(scheme|network|kind)|invalid_network|invalid_scheme|invalid_x402_version)$/

/** Whether a facilitator certainly broadcast nothing, for a reason that is not about the payment. */
function isNotTaken(answer: SettleAnswer): boolean {
  if (answer.kind === 'unsent') return true
  return answer.kind === 'failure' && answer.transaction === null && NOT_SUPPORTED.test(answer.reason)
}

function stateOf(client: FacilitatorClient): NodeState {
  const node = new URL(client.url).host
  const isSupported = client.isSupported()
  if (isSupported) return { node, ready: true }
  const reason = isSupported === null ? 'the facilitator cannot be reached' : 'it does not settle here'
  return { node, ready: false, reason }
}

/** Facilitators that support this network, then those that have not answered. Never one that does not support it. */
function usable(clients: readonly FacilitatorClient[]): readonly FacilitatorClient[] {
  const supported = clients.filter((client) => client.isSupported() === true)
  return [...supported, ...clients.filter((client) => client.isSupported() === null)]
}
