/**
 * Whether the transfers of settled payments are final. A chain names the last block that no reorganisation can remove
 * any more (the tag `finalized`); where a node does not know the tag, a depth stands in for it. All nodes are asked,
 * with one request per hundred payments each.
 */
import type { Hex, Network } from '../../config/networks.ts'
import type { Finality, SettledPayment } from '../payment-method.ts'
import { type Agreement, AGREEING_NODES, needsAgreement } from './nodes/agreement.ts'
import type { NodeAnswer } from './nodes/nodes.ts'
import type { Rpc } from './nodes/rpc.ts'
import { hasTransfer, type TransactionReceipt } from './authorization-outcome.ts'
import { transferOf } from './eip3009.ts'

/** Nodes limit the size of a request. */
const RECEIPTS_PER_REQUEST = 100
/** How deep a block is final where the chain does not say: two epochs of Ethereum. */
const FINAL_BLOCKS = 64

/** Reads how final settled payments are, in their order. */
export type ReadFinality = (payments: readonly SettledPayment[]) => Promise<readonly Finality[]>

/** Creates the reader of one network. */
export function createFinalityReader(network: Network, agreement: Agreement): ReadFinality {
  return async (payments) => {
    const found: Finality[] = []
    for (let from = 0; from < payments.length; from += RECEIPTS_PER_REQUEST) {
      const some = payments.slice(from, from + RECEIPTS_PER_REQUEST)
      const answers = await agreement.nodes.askEach((node) => sightingsOf(node, network, some))
      found.push(...some.map(({ amount }, at) => finalityOf(agreement, amount, answers, at)))
    }
    return found
  }
}

/** Where a node sees the transfer of one payment. Null: in no block. Undefined: it gave no answer. */
type Sighting = { readonly block: Hex; readonly isFinal: boolean } | null | undefined

/** Asks one node about these payments. Throws RpcError if it gives no answer. */
async function sightingsOf(
  node: Rpc,
  network: Network,
  payments: readonly SettledPayment[],
): Promise<readonly Sighting[]> {
  // Payments that were settled together have one receipt.
  const transactions = [...new Set(payments.map(({ transaction }) => transaction))]
  const [finalized, head, ...receipts] = await node.batch([
    ['eth_getBlockByNumber', 'finalized', false],
    ['eth_blockNumber'],
    ...transactions.map((transaction) => ['eth_getTransactionReceipt', transaction] as const),
  ])
  if (head instanceof Error) throw head
  const tagged = finalized instanceof Error || finalized === null ? null : (finalized as { readonly number: Hex })
  const lastFinal = tagged === null ? Number(head) - FINAL_BLOCKS : Number(tagged.number)
  const receiptOf = new Map(transactions.map((transaction, at) => [transaction, receipts[at]]))
  return payments.map((payment) => {
    const receipt = receiptOf.get(payment.transaction) as TransactionReceipt | null | undefined | Error
    if (receipt === undefined || receipt instanceof Error) return undefined
    if (receipt === null || !hasTransfer(receipt, network, transferOf(payment))) return null
    return { block: receipt.blockHash, isFinal: Number(receipt.blockNumber) <= lastFinal }
  })
}

/** For a large payment two nodes must agree. A small one is missing only if no node sees it. */
function finalityOf(
  agreement: Agreement,
  amount: bigint,
  answers: readonly NodeAnswer<readonly Sighting[]>[],
  at: number,
): Finality {
  const needed = needsAgreement(agreement, amount) ? AGREEING_NODES : 1
  const sightings = answers.map(({ answer }) => answer[at])
  const seen = sightings.filter((sighting) => sighting !== null && sighting !== undefined)
  const isFinal = seen.some(
    ({ block }) => seen.filter((other) => other.block === block && other.isFinal).length >= needed,
  )
  if (isFinal) return 'final'
  const missing = sightings.filter((sighting) => sighting === null).length
  return missing >= needed && seen.length < needed ? 'missing' : 'shallow'
}
