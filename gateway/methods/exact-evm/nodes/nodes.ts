/**
 * Several nodes of one chain as one: what the first cannot answer the next is asked. A signed transaction is the same
 * bytes everywhere, so sending it to one node more is safe; what may have arrived at any of them counts as maybe sent.
 */
import type { Logger } from '../../../plugin/plugin.ts'
import type { Hex, Network } from '../../../config/networks.ts'
import type { NodeState } from '../../payment-method.ts'
import { createRpc, type Rpc, RpcError } from './rpc.ts'

export interface Nodes extends Rpc {
  /**
   * Sends to every node of ours, so that one that swallows transactions holds none up. Throws where none took it:
   * the words of one that has it already, where there is one.
   */
  broadcast(raw: Hex): Promise<void>
  /** In the order given. */
  states(): readonly NodeState[]
  /** Asks every node which chain it is of; returns why none can be used, or null. */
  look(): Promise<string | null>
  /** Names the nodes that were found to be of another chain; null where none was. */
  foreign(): string | null
}

export interface NodesOptions {
  /** Addresses, first choice first, separated by commas or spaces. */
  readonly addresses: string
  readonly network: Pick<Network, 'name' | 'chainId'>
  readonly log: Logger
}

export const UNREACHABLE = 'the node cannot be reached'
const TIMEOUT_SECONDS = 10
/** Where there is another to ask, nobody waits that long for one that hangs. */
const IMPATIENT_SECONDS = 4
/** A refusal that speaks of the node and not of what was asked of it. */
const NODE_TROUBLE =
  /rate limit|too many|limit exceeded|quota|capacity|unauthori[sz]ed|forbidden|api key|timed? ?out|temporarily|unavailable|not (supported|available|found)|unknown block|missing trie|syncing|internal (server )?error|txpool is full/i
/** The answer of a node that has the transaction already. */
export const KNOWN = /already (known|imported)|known transaction/i

interface Node {
  readonly name: string
  readonly rpc: Rpc
  /** Why it is asked last, or null. */
  trouble: string | null
  isForeign: boolean
  /** Its chain has been looked at since it last failed. */
  checked: boolean
}

/** Addresses in a list, each once. */
export function addressesOf(list: string): readonly string[] {
  return [...new Set(list.split(/[\s,]+/).filter(Boolean))]
}

/** @example nameOf('https://user:pass@node.example/v2/key') → "node.example" */
function nameOf(address: string): string {
  return new URL(address).host
}

/** Whoever asks gets the answer of the first node that can give one. Calls throw RpcError where none can. */
export function createNodes({ addresses, network, log }: NodesOptions): Nodes {
  const urls = addressesOf(addresses)
  const seconds = urls.length > 1 ? IMPATIENT_SECONDS : TIMEOUT_SECONDS
  const nodes = urls.map((url): Node => {
    return { name: nameOf(url), rpc: createRpc(url, seconds), trouble: null, isForeign: false, checked: false }
  })
  const wrongChain = `the node is not of ${network.name}, chain ${network.chainId}`

  function stumbled(node: Node, reason: string, error?: unknown): void {
    node.checked = false
    if (node.trouble === reason) return
    node.trouble = reason
    const words = node.isForeign ? 'a node of another chain is not used' : 'a node does not answer; others are asked'
    log[node.isForeign ? 'error' : 'warn']({ node: node.name, reason, err: error }, words)
  }

  /** Makes sure that a node is of our chain. A throw means that nothing was asked of it. */
  async function assure(node: Node): Promise<void> {
    if (node.checked) return
    let chainId: number
    try {
      chainId = Number(await node.rpc.call<Hex>('eth_chainId'))
    } catch (error) {
      node.isForeign = false
      stumbled(node, UNREACHABLE, error)
      throw new RpcError('unsent', 'The node cannot be reached.', { cause: error })
    }
    node.isForeign = chainId !== network.chainId
    if (node.isForeign) {
      stumbled(node, wrongChain)
      throw new RpcError('unsent', `The node ${node.name} is of chain ${chainId}, not ${network.chainId}.`)
    }
    if (node.trouble !== null) log.info({ node: node.name }, 'a node answers again')
    node.trouble = null
    node.checked = true
  }

  async function ask<Result>(work: (rpc: Rpc) => Promise<Result>): Promise<Result> {
    let maybe: RpcError | null = null
    let last: unknown = new RpcError('unsent', 'There is no node to ask.')
    for (const node of [...nodes].sort((one, other) => Number(one.trouble !== null) - Number(other.trouble !== null)))
      try {
        await assure(node)
        return await work(node.rpc)
      } catch (error) {
        if (!(error instanceof RpcError)) throw error
        last = error
        if (error.fault === 'refused' && !NODE_TROUBLE.test(error.message)) {
          if (maybe && !KNOWN.test(error.message)) throw maybe
          throw error
        }
        if (error.fault === 'unknown') maybe = error
        if (!node.isForeign)
          stumbled(node, error.fault === 'refused' ? 'the node refuses to answer' : UNREACHABLE, error)
      }
    throw maybe ?? last
  }

  return {
    call: <Result>(method: string, ...params: readonly unknown[]) => ask((rpc) => rpc.call<Result>(method, ...params)),
    batch: (calls) => ask((rpc) => rpc.batch(calls)),
    async broadcast(raw) {
      const sent = await Promise.allSettled(
        nodes.map(async (node) => {
          await assure(node)
          await node.rpc.call('eth_sendRawTransaction', raw)
        }),
      )
      const errors = sent.flatMap((one) => (one.status === 'rejected' ? [one.reason as Error] : []))
      if (errors.length < nodes.length) return
      const known = errors.find((error) => KNOWN.test(error.message))
      throw known ?? errors.find((error) => error instanceof RpcError && error.fault === 'unknown') ?? errors[0]
    },
    states: () =>
      nodes.map(({ name: node, trouble }) =>
        trouble === null ? { node, ready: true } : { node, ready: false, reason: trouble },
      ),
    foreign() {
      const names = nodes.filter(({ isForeign }) => isForeign).map(({ name }) => name)
      return names.length === 0 ? null : `${wrongChain} (${names.join(', ')})`
    },
    async look() {
      for (const node of nodes) node.checked = false
      await Promise.all(nodes.map((node) => assure(node).catch(() => {})))
      if (nodes.some(({ trouble }) => trouble === null)) return null
      return nodes.some(({ isForeign }) => isForeign) ? wrongChain : UNREACHABLE
    },
  }
}
