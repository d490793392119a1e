/**
 * Settles payments through x402 facilitators, in order of preference. A facilitator is asked to settle, and the chain
 * then shows whether it did: what the facilitator reports is not trusted, neither a success nor a failure. One that
 * gives no clear answer is asked again, and then the next one. The token accepts an authorization once, so however many
 * facilitators send it, the buyer pays once.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { RateLimited, ServiceError } from '../../../errors.ts'
import type { HeadersFor } from '../../../config/facilitator-auth.ts'
import type { Logger } from '../../../plugin/plugin.ts'
import type {
  DecodedPayment,
  Listing,
  NodeState,
  Outcome,
  Settler,
  SubmittedPayment,
  Wait,
} from '../../payment-method.ts'
import type { PaymentRequirements } from '../../../x402/payment-requirements.ts'
import type { Hex, Network } from '../../../config/networks.ts'
import { createCheck, createSimulate } from '../onchain-check.ts'
import { createSettlerHealth, orUnavailable, type SettlerHealthCheck } from '../settler-health.ts'
import {
  createOutcomeReader,
  type ReadOutcome,
  readReceipt,
  secondsToDepth,
  type SentAuthorization,
} from '../authorization-outcome.ts'
import { type Agreement, createCanAgree } from '../nodes/agreement.ts'
import { createPayerCheck } from '../payer-check.ts'
import { createNodes, type Nodes, UNREACHABLE } from '../nodes/nodes.ts'
import { createFacilitatorClient, type FacilitatorClient, type SettleAnswer } from './facilitator-client.ts'
import { createRepeatSchedule, type RepeatSchedule } from './repeat-schedule.ts'
import { createFinalityReader } from '../finality.ts'
import { createContractWallets } from '../contract-wallets.ts'
import { transferOf } from '../eip3009.ts'
import { type FacilitatorIntent, intentOf } from '../settlement-intent.ts'

export interface FacilitatorSettlerOptions {
  /** Base addresses in order of preference. */
  readonly urls: readonly string[]
  /** What each of them wants to be shown, in their order. Default: nothing. */
  readonly authorize?: readonly HeadersFor[]
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
  /** From this amount on, in atomic units, two nodes must say the same, where there are two. Null, the default: never. */
  readonly twoNodesFrom?: bigint | null
  /** Factories whose wallets may pay before they are deployed (ERC-6492), if the facilitator deploys them. */
  readonly factories?: readonly Hex[]
}

const HEALTH_SECONDS = 60
const POLL_MS = 500
const TIMEOUT_SECONDS = 15
/** How often one facilitator is asked within a call, and the time before the second request; it doubles each time. */
const REQUESTS_PER_FACILITATOR = 2
const BACKOFF_MS = 500
/** Within a call, no further request begins after this long. Later ones are left to the buyer's repeat and recovery. */
const ASK_WITHIN_MS = 20_000
/** How long a look at a payment waits for a facilitator that it asks again. The request itself may take longer. */
const REPEAT_WAIT_MS = 3_000
/**
 * Failure reasons that a facilitator gives before it broadcasts. Others may hide a transaction that is still pending.
 */
const BEFORE_BROADCAST = /^(insufficient_funds|invalid_|unsupported_|asset_not_|eip6492_)(?!.*transaction)/
/**
 * Failure reasons of an authorization that is used already. Its transfer may be in a block that our node has not seen, so
 * the payment is refused only once the chain shows that something else used it, or once it has expired.
 */
const IS_USED = /(nonce|authorization)_(already_)?(re)?used/

/** Shared by the functions of this file. */
interface Context {
  readonly rpc: Nodes
  readonly network: Network
  readonly agreement: Agreement
  readonly log: Logger
  readonly clients: readonly FacilitatorClient[]
  readonly health: SettlerHealthCheck
  readonly readOutcome: ReadOutcome
  /** How long to wait for the chain to show a reported settlement at the required depth. */
  readonly confirmMs: number
  readonly repeats: RepeatSchedule
}

/** Creates the settler of one network. It is not ready before its first health check has ended. */
export function createFacilitatorSettler(options: FacilitatorSettlerOptions): Settler {
  const { urls, rpcUrl, network, baseUrl, log, timeoutSeconds = TIMEOUT_SECONDS, confirmSeconds = 10 } = options
  const { confirmBlocks = 1, twoNodesFrom = null, factories = [] } = options
  const rpc = createNodes({ addresses: rpcUrl, network, log })
  const wallets = createContractWallets(rpc, network, factories)
  const lookAtPayer = createPayerCheck(rpc, network.asset, wallets)
  const agreement = { from: twoNodesFrom, nodes: rpc, log }
  const assertReady = createCanAgree(agreement)
  const check = createCheck({ rpc, network, wallets, simulate: createSimulate(rpc, wallets), assertReady })
  const readOutcome = createOutcomeReader(rpc, network, { depth: confirmBlocks, agreement })
  const clients = urls.map((url, nth) => {
    const authorize = options.authorize?.[nth]
    return createFacilitatorClient({ url, network, baseUrl, timeoutSeconds, log, ...(authorize ? { authorize } : {}) })
  })
  const inspect = (): Promise<string | null> => inspectFacilitators(clients, rpc, network)
  const health = createSettlerHealth({ inspect, everySeconds: HEALTH_SECONDS, unreachable: UNREACHABLE, log })
  const confirmMs = secondsToDepth(confirmSeconds, confirmBlocks) * 1000
  const repeats = createRepeatSchedule()
  const context: Context = { rpc, network, agreement, log, clients, health, readOutcome, confirmMs, repeats }
  void health.refresh()

  return {
    kind: 'facilitator',

    check: (payment, _requirements, checkOptions) =>
      orUnavailable(health, isOutage, () => check(transferOf(payment), checkOptions)),

    mayPay: (payment, _requirements, { proven, nodeCalls }) =>
      orUnavailable(health, isOutage, () => lookAtPayer(transferOf(payment), proven, nodeCalls)),

    async settle(payment, requirements, { record, wait, minBlocks = 1, listing }) {
      const [first] = usable(clients)
      if (!first) throw new ServiceError('settler_unavailable')
      const fromBlock = Number(await orUnavailable(health, isOutage, () => rpc.call<Hex>('eth_blockNumber')))
      const settlement = { payment, requirements, listing: listing?.() }
      const { version } = payment.envelope
      const deep = minBlocks > 1 ? { minBlocks } : {}
      const intent: FacilitatorIntent = { kind: 'facilitator', url: first.url, fromBlock, version, ...deep }
      if (!(await record(intent))) return { state: 'pending', transaction: null }
      const sent = { ...transferOf(payment), fromBlock, minBlocks }
      const outcome = await askToSettle(context, settlement, sent, wait)
      if (outcome.state === 'pending') repeats.asked(payment.key, payment.expiresAt)
      return outcome
    },

    async status(payment, { maySend = true } = {}) {
      const intent = intentOf(payment)
      if (!intent) return { state: 'pending', transaction: null }
      const { fromBlock, minBlocks = 1 } = intent
      const sent = { ...transferOf(payment), fromBlock, minBlocks }
      let outcome = await readOrPending(context, sent)
      if (outcome.state === 'pending' && intent.kind === 'facilitator' && maySend)
        outcome = await askAgain(context, payment, intent, sent)
      if (outcome.state !== 'pending') {
        repeats.forget(payment.key)
        return outcome
      }
      return { state: 'pending', transaction: intent.kind === 'chain' ? intent.transaction : null }
    },

    finality: createFinalityReader(network, agreement),

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

/** Any error while the chain is asked counts: without the chain, it is unknown what a facilitator did. */
const isOutage = (error: unknown): boolean => !(error instanceof RateLimited)

/** The outcome according to the chain; pending if the chain cannot be read. */
async function readOrPending({ readOutcome, log }: Context, sent: SentAuthorization): Promise<Outcome> {
  try {
    return await readOutcome(sent)
  } catch (error) {
    log.warn({ err: error }, 'the outcome of a settlement could not be read from the chain')
    return { state: 'pending', transaction: null }
  }
}

/** The request to a facilitator to settle. */
interface Settlement {
  readonly payment: DecodedPayment
  readonly requirements: PaymentRequirements
  readonly listing: Listing | undefined
}

/**
 * Asks one facilitator after the other. One that gives no clear answer is asked twice, and the chain is read before each
 * further request. As soon as one of them may have sent the payment, no refusal by another proves anything.
 */
async function askToSettle(
  context: Context,
  { payment, requirements, listing }: Settlement,
  sent: SentAuthorization,
  wait: Wait,
): Promise<Outcome> {
  const { clients, health, log } = context
  const begun = performance.now()
  let unclear = 0
  for (const client of usable(clients))
    for (let requests = 1; requests <= REQUESTS_PER_FACILITATOR; requests++) {
      const answer = await client.settle(payment, requirements, listing)
      if (isNotTaken(answer)) {
        log.warn({ facilitator: client.url }, 'the facilitator did not take a settlement; trying the next one')
        break
      }
      if (answer.kind !== 'unknown') return outcomeOfAnswer(context, answer, sent, wait, unclear > 0)
      const outcome = await outcomeOfAnswer(context, answer, sent, wait)
      if (outcome.state !== 'pending' || outcome.transaction !== null) return outcome
      if (performance.now() - begun > ASK_WITHIN_MS) return outcome
      log.warn({ facilitator: client.url }, 'the facilitator gave no clear answer to a settlement; asking again')
      await delay(BACKOFF_MS * 2 ** unclear)
      unclear += 1
    }
  void health.refresh()
  return outcomeOfAnswer(context, { kind: unclear > 0 ? 'unknown' : 'unsent' }, sent, wait)
}

/**
 * Asks a facilitator again to settle a payment whose outcome is unknown, if that is due; each time another one. The
 * request goes on by itself, and the outcome is read from the chain for a few seconds.
 */
async function askAgain(
  context: Context,
  payment: SubmittedPayment,
  { version = 2 }: FacilitatorIntent,
  sent: SentAuthorization,
): Promise<Outcome> {
  const { clients, repeats, network, log } = context
  const able = usable(clients)
  const times = able.length === 0 ? null : repeats.take(payment.key, payment.expiresAt)
  const client = times === null ? undefined : able[times % able.length]
  if (!client) return { state: 'pending', transaction: null }
  const { amount, payTo, startsAt, expiresAt } = payment
  const requirements = { scheme: 'exact', network, amount, payTo, maxTimeoutSeconds: Number(expiresAt - startsAt) }
  const envelope = { version, scheme: 'exact', network: network.caip2, payload: {}, accepted: null, extensions: {} }
  let isAnswered = false
  log.info({ facilitator: client.url, payment: payment.key }, 'a facilitator is asked again to settle a payment')
  const asking = client.settle({ ...payment, envelope }, requirements).then(() => {
    isAnswered = true
  })
  const deadline = performance.now() + REPEAT_WAIT_MS
  for (;;) {
    await Promise.race([asking, delay(POLL_MS)])
    const outcome = await readOrPending(context, sent)
    if (outcome.state !== 'pending' || isAnswered || performance.now() > deadline) return outcome
  }
}

/**
 * Waits for the chain to show what a facilitator did. Only a failure that proves nothing was broadcast refuses.
 * @param isUnclear another request may have broadcast the payment: then a failure only says that nothing is left to do
 */
async function outcomeOfAnswer(
  context: Context,
  answer: SettleAnswer,
  sent: SentAuthorization,
  wait: Wait,
  isUnclear = false,
): Promise<Outcome> {
  if (answer.kind === 'unsent')
    return { state: 'refused', reason: 'unexpected_settle_error', message: NOT_TAKEN, unsent: true }
  const isTooShallow = (outcome: Outcome): boolean =>
    outcome.state === 'settled' && outcome.provisional === true && wait === 'confirmed'
  const transaction = 'transaction' in answer ? answer.transaction : null
  const mayBeSent = isUnclear || (answer.kind === 'failure' && IS_USED.test(answer.reason))
  const deadline = performance.now() + context.confirmMs + secondsToDepth(0, sent.minBlocks ?? 1) * 1000
  for (;;) {
    const outcome = await readOrPending(context, sent)
    if (outcome.state !== 'pending' && !isTooShallow(outcome)) return outcome
    const isInBlock = outcome.state === 'settled'
    const isExpected = answer.kind === 'success' || mayBeSent || isInBlock
    if (!isExpected || performance.now() > deadline) {
      if (isInBlock) return { state: 'pending', transaction: outcome.transaction }
      break
    }
    await delay(POLL_MS)
  }
  if (answer.kind !== 'failure' || mayBeSent) return { state: 'pending', transaction }
  const { reason } = answer
  const hasFailed = transaction === null ? BEFORE_BROADCAST.test(reason) : await isReverted(context, sent, transaction)
  if (!hasFailed) return { state: 'pending', transaction }
  const message = `The facilitator refused the payment: ${reason}.`
  // Without a transaction, the refusal speaks for this request alone: another process may have asked as well since.
  return { state: 'refused', reason, message, ...(transaction ? { transaction } : { unsent: true as const }) }
}

const NOT_TAKEN = 'No facilitator took the payment.'

/** Whether a transaction is in a block and reverted; of a large payment, whether two nodes say so. */
async function isReverted({ rpc, network, agreement }: Context, sent: SentAuthorization, hash: Hex): Promise<boolean> {
  const read = await readReceipt(rpc, network, hash, sent, agreement).catch(() => null)
  return read !== null && read.receipt !== null && BigInt(read.receipt.status) === 0n
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
