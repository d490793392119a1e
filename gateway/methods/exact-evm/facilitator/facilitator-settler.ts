/**
 * Settles through x402 facilitators, in the order given. A facilitator is asked to settle, and the chain is asked
 * whether it did: neither its success nor its failure is taken at its word.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { ServiceError } from '../../../errors.ts'
import type { Logger } from '../../../plugin/plugin.ts'
import type { DecodedPayment, Outcome, Settler, Wait, NodeState } from '../../payment-method.ts'
import type { PaymentRequirements } from '../../../x402/payment-requirements.ts'
import type { Hex, Network } from '../../../config/networks.ts'
import { createCheck, createSimulate } from '../check.ts'
import { createHealth } from '../health.ts'
import { createJudge, type Question, type TransactionReceipt } from '../judge.ts'
import { createNodes, UNREACHABLE } from '../nodes/nodes.ts'
import { createRemote, type Remote, type SettleAnswer } from './facilitator-client.ts'
import { createWallets } from '../wallets.ts'
import { transferOf } from '../eip3009.ts'
import { type FacilitatorIntent, intentOf } from '../intent.ts'

export interface FacilitatorSettlerOptions {
  /** Base addresses, first choice first. */
  readonly urls: readonly string[]
  /** The node that is asked what really happened, or several in a list. */
  readonly rpcUrl: string
  readonly network: Network
  /** Public address of the gateway. */
  readonly baseUrl: string
  readonly log: Logger
  /** How long a facilitator may take to settle. */
  readonly timeoutSeconds?: number
  /** How long the chain may take to show what a facilitator says it did. */
  readonly confirmSeconds?: number
  /** How many blocks deep a payment is certain; 1: in the newest. */
  readonly confirmBlocks?: number
  /** Factories whose wallets may pay before they exist (ERC-6492), as far as the facilitator makes them. */
  readonly factories?: readonly Hex[]
}

const LOOK_SECONDS = 60
const POLL_MS = 500
/** What one more block of depth may take. */
const BLOCK_SECONDS = 3
/** Reasons given before anything is broadcast. The others may hide a transaction whose end was not waited for. */
const BEFORE_BROADCAST = /^(insufficient_funds|invalid_|unsupported_|asset_not_|eip6492_)(?!.*transaction)/

export function createFacilitatorSettler(options: FacilitatorSettlerOptions): Settler {
  const { urls, rpcUrl, network, baseUrl, log, timeoutSeconds = 30, confirmSeconds = 10 } = options
  const { confirmBlocks = 1, factories = [] } = options
  const rpc = createNodes({ addresses: rpcUrl, network, log })
  const wallets = createWallets(rpc, network.asset, factories)
  const check = createCheck({ rpc, network, wallets, simulate: createSimulate(rpc, wallets) })
  const judge = createJudge(rpc, network, confirmBlocks)
  const remotes = urls.map((url) => createRemote({ url, network, baseUrl, timeoutSeconds, log }))
  const health = createHealth({ inspect, everySeconds: LOOK_SECONDS, unreachable: UNREACHABLE, log })
  void health.look()

  async function inspect(): Promise<string | null> {
    const looks = await Promise.allSettled(remotes.map((remote) => remote.look()))
    if (looks.every(({ status }) => status === 'rejected')) return 'no facilitator can be reached'
    if (!remotes.some((remote) => remote.able())) return `no facilitator settles "exact" on ${network.name}`
    return rpc.look()
  }

  async function reading<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      void health.look()
      throw new ServiceError('settler_unavailable', undefined, { cause: error })
    }
  }

  /** What the chain says; pending where it cannot be asked. */
  async function verdictOf(question: Question): Promise<Outcome> {
    try {
      return await judge(question)
    } catch (error) {
      log.warn({ err: error }, 'the chain could not be asked about a settlement')
      return { state: 'pending', transaction: null }
    }
  }

  /** Asks one after the other, and goes on only where the last one certainly broadcast nothing. */
  async function ask(payment: DecodedPayment, requirements: PaymentRequirements): Promise<SettleAnswer> {
    for (const remote of willing(remotes)) {
      const answer = await remote.settle(payment, requirements)
      if (!isUntaken(answer)) return answer
      log.warn({ facilitator: remote.url }, 'the facilitator did not take a settlement; the next one is asked')
    }
    void health.look()
    return { kind: 'unsent' }
  }

  async function concluded(answer: SettleAnswer, question: Question, wait: Wait): Promise<Outcome> {
    if (answer.kind === 'unsent')
      return { state: 'refused', reason: 'unexpected_settle_error', message: 'No facilitator took the payment.' }
    const isShort = (outcome: Outcome): boolean =>
      outcome.state === 'settled' && outcome.provisional === true && wait === 'confirmed'
    const transaction = 'transaction' in answer ? answer.transaction : null
    const giveUp = performance.now() + (confirmSeconds + BLOCK_SECONDS * (confirmBlocks - 1)) * 1000
    for (;;) {
      const verdict = await verdictOf(question)
      if (verdict.state !== 'pending' && !isShort(verdict)) return verdict
      const isSeen = verdict.state === 'settled'
      if ((answer.kind !== 'success' && !isSeen) || performance.now() > giveUp) {
        if (isSeen) return { state: 'pending', transaction: verdict.transaction }
        break
      }
      await delay(POLL_MS)
    }
    if (answer.kind !== 'failure') return { state: 'pending', transaction }
    const { reason } = answer
    const isOver = transaction === null ? BEFORE_BROADCAST.test(reason) : await failed(transaction)
    if (!isOver) return { state: 'pending', transaction }
    const message = `The facilitator refused the payment: ${reason}.`
    return { state: 'refused', reason, message, ...(transaction ? { transaction } : {}) }
  }

  /** Whether a transaction is in a block and did nothing. */
  async function failed(transaction: Hex): Promise<boolean> {
    const receipt = await rpc
      .call<TransactionReceipt | null>('eth_getTransactionReceipt', transaction)
      .catch(() => null)
    return receipt !== null && BigInt(receipt.status) === 0n
  }

  return {
    kind: 'facilitator',

    check: (payment, _requirements, options) => reading(() => check(transferOf(payment), options)),

    async settle(payment, requirements, { record, wait }) {
      const [first] = willing(remotes)
      if (!first) throw new ServiceError('settler_unavailable')
      const fromBlock = Number(await reading(() => rpc.call<Hex>('eth_blockNumber')))
      const intent: FacilitatorIntent = { kind: 'facilitator', url: first.url, fromBlock }
      if (!(await record(intent))) return { state: 'pending', transaction: null }
      return concluded(await ask(payment, requirements), { ...transferOf(payment), fromBlock }, wait)
    },

    async status(payment) {
      const intent = intentOf(payment)
      if (!intent) return { state: 'pending', transaction: null }
      const verdict = await verdictOf({ ...transferOf(payment), fromBlock: intent.fromBlock })
      if (verdict.state !== 'pending') return verdict
      return { state: 'pending', transaction: intent.kind === 'chain' ? intent.transaction : null }
    },

    health() {
      const nodes = [...remotes.map(stateOf), ...rpc.states()]
      return { ...health.current(), ...(nodes.length > 2 ? { nodes } : {}) }
    },
    close: async () => health.close(),
  }
}

/** Reasons of a facilitator that has no business with this network, so that another may well take the payment. */
const NOT_HERE = /^(unsupported_(scheme|network|kind)|invalid_network|invalid_scheme|invalid_x402_version)$/

/** Whether it certainly broadcast nothing for a reason of its own. */
function isUntaken(answer: SettleAnswer): boolean {
  if (answer.kind === 'unsent') return true
  return answer.kind === 'failure' && answer.transaction === null && NOT_HERE.test(answer.reason)
}

function stateOf(remote: Remote): NodeState {
  const node = new URL(remote.url).host
  const isAble = remote.able()
  if (isAble) return { node, ready: true }
  return {
    node,
    ready: false,
    reason: isAble === null ? 'the facilitator cannot be reached' : 'it does not settle here',
  }
}

/** Those that settle this network, then those not heard from; never one that said it does not. */
function willing(remotes: readonly Remote[]): readonly Remote[] {
  const heard = remotes.filter((remote) => remote.able() === true)
  return [...heard, ...remotes.filter((remote) => remote.able() === null)]
}
