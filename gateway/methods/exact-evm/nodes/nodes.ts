/**
 * Several nodes of one chain, used as one with failover: a request goes to the first node, and to the next one if that
 * fails. Sending a signed transaction to several nodes is safe, because every copy is the same transaction. If any node
 * may have received it, the transaction counts as possibly sent.
 */
import type { Logger } from '../../../plugin/plugin.ts'
import type { Hex, Network } from '../../../config/networks.ts'
import type { NodeState } from '../../payment-method.ts'
import { createRpc, type Rpc, RpcError } from './rpc.ts'

export interface Nodes extends Rpc {
  /**
   * Sends a signed transaction to every node of the right chain, so that a node that drops transactions delays none.
   * Throws if no node accepted it. If a node already has the transaction, that node's error is thrown.
   */
  broadcast(raw: Hex): Promise<void>
  /** The number of nodes. */
  readonly count: number
  /** Asks every node of the right chain, and returns the answers of those that gave one. */
  askEach<Answer>(question: (rpc: Rpc) => Promise<Answer>): Promise<readonly NodeAnswer<Answer>[]>
  /** In the order of the addresses. */
  states(): readonly NodeState[]
  /** Asks every node for its chain id. Returns why no node can be used, or null. */
  refresh(): Promise<string | null>
  /** Names the nodes that were found to be of another chain; null if there are none. */
  wrongChain(): string | null
}

/** The answer of one node. */
export interface NodeAnswer<Answer> {
  readonly node: string
  readonly answer: Answer
}

export interface NodesOptions {
  /** Addresses in order of preference, separated by commas or spaces. */
  readonly addresses: string
  readonly network: Pick<Network, 'name' | 'chainId'>
  readonly log: Logger
}

/** The reason of a node that gives no answer. */
export const UNREACHABLE = 'the node cannot be reached'
const REFUSES = 'the node refuses to answer'
const TIMEOUT_SECONDS = 10
/** With another node to ask, a node that hangs is abandoned sooner. */
const FAILOVER_TIMEOUT_SECONDS = 4
/** Errors that are about the node and not about the request. */
const NODE_TROUBLE =
  /rate limit|too many|limit exceeded|quota|capacity|unauthori[sz]ed|forbidden|api key|timed? ?out|temporarily|unavailable|not (supported|available|found)|unknown block|missing trie|syncing|internal (server )?error|txpool is full/i
/** The error of a node that already has the transaction. */
export const ALREADY_KNOWN = /already (known|imported)|known transaction/i

interface Node {
  readonly name: string
  readonly rpc: Rpc
  /** Why it is asked last, or null. */
  trouble: string | null
  isWrongChain: boolean
  /** Its chain id has been checked since it last failed. */
  checked: boolean
}

/** Shared by the functions of this file. */
interface Context {
  readonly nodes: readonly Node[]
  readonly network: NodesOptions['network']
  readonly log: Logger
}

/** Splits a list of addresses and removes duplicates. */
function addressesOf(list: string): readonly string[] {
  return [...new Set(list.split(/[\s,]+/).filter(Boolean))]
}

/** @example nameOf('https://user:pass@node.example/v2/key') → "node.example" */
function nameOf(address: string): string {
  return new URL(address).host
}

/** Creates the client of these nodes. Calls throw the RpcError of a node if no node can answer. */
export function createNodes({ addresses, network, log }: NodesOptions): Nodes {
  const urls = addressesOf(addresses)
  const seconds = urls.length > 1 ? FAILOVER_TIMEOUT_SECONDS : TIMEOUT_SECONDS
  const nodes = urls.map((url): Node => {
    return { name: nameOf(url), rpc: createRpc(url, seconds), trouble: null, isWrongChain: false, checked: false }
  })
  const context: Context = { nodes, network, log }

  return {
    call: <Result>(method: string, ...params: readonly unknown[]) =>
      firstAnswer(context, (rpc) => rpc.call<Result>(method, ...params)),
    batch: (calls) => firstAnswer(context, (rpc) => rpc.batch(calls)),
    broadcast: (raw) => broadcast(context, raw),
    count: nodes.length,
    askEach: (question) => askEach(context, question),
    states: () =>
      nodes.map(({ name: node, trouble }) =>
        trouble === null ? { node, ready: true } : { node, ready: false, reason: trouble },
      ),
    wrongChain() {
      const names = nodes.filter(({ isWrongChain }) => isWrongChain).map(({ name }) => name)
      return names.length === 0 ? null : `${wrongChainReason(network)} (${names.join(', ')})`
    },
    async refresh() {
      for (const node of nodes) node.checked = false
      await Promise.all(nodes.map((node) => checkChain(context, node).catch(() => {})))
      if (nodes.some(({ trouble }) => trouble === null)) return null
      return nodes.some(({ isWrongChain }) => isWrongChain) ? wrongChainReason(network) : UNREACHABLE
    },
  }
}

/** The answer of the first node that can give one; nodes in trouble are asked last. */
async function firstAnswer<Result>(context: Context, request: (rpc: Rpc) => Promise<Result>): Promise<Result> {
  let possiblySent: RpcError | null = null
  let last: unknown = null
  const ordered = [...context.nodes].sort((one, other) => Number(one.trouble !== null) - Number(other.trouble !== null))
  for (const node of ordered)
    try {
      await checkChain(context, node)
      return await request(node.rpc)
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
      last = error
      if (error.fault === 'refused' && !NODE_TROUBLE.test(error.message)) {
        if (possiblySent && !ALREADY_KNOWN.test(error.message)) throw possiblySent
        throw error
      }
      if (error.fault === 'unknown') possiblySent = error
      if (!node.isWrongChain) {
        const reason = error.fault === 'refused' ? REFUSES : UNREACHABLE
        recordTrouble(context, node, reason, error)
      }
    }
  throw possiblySent ?? last ?? new RpcError('unsent', 'There is no node to ask.')
}

async function askEach<Answer>(
  context: Context,
  question: (rpc: Rpc) => Promise<Answer>,
): Promise<readonly NodeAnswer<Answer>[]> {
  const asked = context.nodes.map(async (node) => {
    await checkChain(context, node)
    try {
      return { node: node.name, answer: await question(node.rpc) }
    } catch (error) {
      const isAnswer = error instanceof RpcError && error.fault === 'refused'
      recordTrouble(context, node, isAnswer ? REFUSES : UNREACHABLE, error)
      throw error
    }
  })
  const answers = await Promise.allSettled(asked)
  return answers.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
}

async function broadcast(context: Context, raw: Hex): Promise<void> {
  const sent = await Promise.allSettled(
    context.nodes.map(async (node) => {
      await checkChain(context, node)
      await node.rpc.call('eth_sendRawTransaction', raw)
    }),
  )
  const errors = sent.flatMap((one) => (one.status === 'rejected' ? [one.reason as Error] : []))
  if (errors.length < context.nodes.length) return
  const known = errors.find((error) => ALREADY_KNOWN.test(error.message))
  throw known ?? errors.find((error) => error instanceof RpcError && error.fault === 'unknown') ?? errors[0]
}

/** Makes sure that a node is of our chain. If this throws, the node has not been asked anything else. */
async function checkChain(context: Context, node: Node): Promise<void> {
  const { network, log } = context
  if (node.checked) return
  let chainId: number
  try {
    chainId = Number(await node.rpc.call<Hex>('eth_chainId'))
  } catch (error) {
    node.isWrongChain = false
    recordTrouble(context, node, UNREACHABLE, error)
    throw new RpcError('unsent', 'The node cannot be reached.', { cause: error })
  }
  node.isWrongChain = chainId !== network.chainId
  if (node.isWrongChain) {
    recordTrouble(context, node, wrongChainReason(network))
    throw new RpcError('unsent', `The node ${node.name} is of chain ${chainId}, not ${network.chainId}.`)
  }
  if (node.trouble !== null) log.info({ node: node.name }, 'a node answers again')
  node.trouble = null
  node.checked = true
}

function recordTrouble({ log }: Context, node: Node, reason: string, error?: unknown): void {
  node.checked = false
  if (node.trouble === reason) return
  node.trouble = reason
  const details = { node: node.name, reason, err: error }
  if (node.isWrongChain) log.error(details, 'a node is of another chain; it is not used')
  else log.warn(details, 'a node does not answer; requests go to the other nodes')
}

function wrongChainReason({ name, chainId }: Context['network']): string {
  return `the node is not of ${name}, chain ${chainId}`
}
