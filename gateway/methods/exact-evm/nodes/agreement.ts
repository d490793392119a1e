/**
 * Agreement of nodes. One node may lie, lag or be broken, so two nodes have to agree on the outcome of a large payment
 * (`TWO_NODES_FROM_USD`).
 */
import { LRUCache } from 'lru-cache'
import { ServiceError } from '../../../errors.ts'
import type { Hex } from '../../../config/networks.ts'
import type { Logger } from '../../../plugin/plugin.ts'
import type { Nodes } from './nodes.ts'
import type { Rpc } from './rpc.ts'

/** How many nodes must say the same about a large payment. */
export const AGREEING_NODES = 2

/** Decides which payments need two nodes. */
export interface Agreement {
  /** Payments of this amount, in atomic units, and larger ones need two nodes. Null: none does. */
  readonly from: bigint | null
  readonly nodes: Nodes
  readonly log: Logger
}

/** Whether two nodes must say the same about a payment of this amount. Never where there is one node only. */
export function needsAgreement({ from, nodes }: Agreement, amount: bigint): boolean {
  return from !== null && amount >= from && nodes.count >= AGREEING_NODES
}

/** A node that is further behind than this cannot agree in time. */
const MAX_LAG_BLOCKS = 20
/** For so long, payments share what the nodes say about their heights: each of many purchases would ask every node. */
const SHARED_MS = 250

/**
 * Returns a function that refuses a large payment while no two nodes could agree, because one is down or far behind: it
 * would be charged, and not delivered. It throws ServiceError `settler_unavailable`.
 */
export function createCanAgree(agreement: Agreement): (amount: bigint) => Promise<void> {
  const { nodes } = agreement
  let shared: { readonly couldAgree: Promise<boolean>; readonly until: number } | null = null

  async function couldAgree(): Promise<boolean> {
    const answers = await nodes.askEach((node) => node.call<Hex>('eth_blockNumber'))
    const heights = answers.map(({ answer }) => Number(answer))
    return heights.filter((height) => height >= Math.max(...heights) - MAX_LAG_BLOCKS).length >= AGREEING_NODES
  }

  return async (amount) => {
    if (!needsAgreement(agreement, amount)) return
    if (shared === null || performance.now() > shared.until)
      shared = { couldAgree: couldAgree(), until: performance.now() + SHARED_MS }
    const asked = shared
    if (await asked.couldAgree) return
    // So that payments are taken again as soon as two nodes are there.
    if (shared === asked) shared = null
    throw new ServiceError('settler_unavailable')
  }
}

/**
 * Recent log lines, per set of nodes. A payment that waits for two nodes is looked at at every block, and by the
 * thousand while one node is down: each is logged once a minute.
 */
const logged = new WeakMap<Nodes, LRUCache<string, true>>()
const LOGGED = { max: 10_000, ttl: 60_000 } as const

/**
 * Asks every node, and returns the answers of those that say the same: at least two. Null if no two do.
 *
 * @param question reads what it needs from one node; a node for which it throws gives no answer
 * @param meaningOf a text that is equal for answers that say the same
 * @param about what is asked: it names the question in the log, where each appears once a minute
 */
export async function askTwoNodes<Answer>(
  { nodes, log }: Agreement,
  question: (rpc: Rpc) => Promise<Answer>,
  meaningOf: (answer: Answer) => string,
  about: Readonly<Record<string, unknown>>,
): Promise<readonly [Answer, Answer, ...Answer[]] | null> {
  const answers = await nodes.askEach(question)
  const groups = new Map<string, Answer[]>()
  for (const { answer } of answers) {
    const meaning = meaningOf(answer)
    const group = groups.get(meaning)
    if (group) group.push(answer)
    else groups.set(meaning, [answer])
  }
  const agreeing = [...groups.values()].filter(({ length }) => length >= AGREEING_NODES)
  // Two and two that contradict each other prove nothing.
  if (agreeing.length === 1) return agreeing[0] as [Answer, Answer, ...Answer[]]
  if (!isDue(nodes, JSON.stringify(about))) return null
  const said = answers.map(({ node, answer }) => ({ node, says: meaningOf(answer) }))
  log.warn({ ...about, said }, 'no two nodes say the same about a large payment; it waits until two do')
  return null
}

/** Whether something was not logged within the last minute. From now on it was. */
function isDue(nodes: Nodes, subject: string): boolean {
  let subjects = logged.get(nodes)
  if (subjects === undefined) logged.set(nodes, (subjects = new LRUCache(LOGGED)))
  if (subjects.has(subject)) return false
  subjects.set(subject, true)
  return true
}
