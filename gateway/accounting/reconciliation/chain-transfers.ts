/** Reads the token's transfers to `payTo` from the logs of the chain, each with the authorization it used. */
import type { Hex, Network } from '../../config/networks.ts'
import type { Log, TransactionReceipt } from '../../methods/exact-evm/authorization-outcome.ts'
import { type Agreement, AGREEING_NODES, askTwoNodes } from '../../methods/exact-evm/nodes/agreement.ts'
import { quantity, type Rpc, RpcError } from '../../methods/exact-evm/nodes/rpc.ts'
import { TOPICS, word } from '../../methods/exact-evm/eip3009.ts'
import type { Transfer } from './buckets.ts'

/** A log with its position on the chain. */
interface PlacedLog extends Log {
  readonly blockNumber: Hex
  readonly logIndex: Hex
}

/** Receipts per batch request. */
const RECEIPTS_PER_BATCH = 50

/**
 * Returns the transfers to `payTo` in a range of blocks, both ends included, in the order of the chain. Details that
 * cannot be read are null or undefined. Throws RpcError if the range itself cannot be read.
 */
export async function readTransfers(
  rpc: Rpc,
  { asset }: Network,
  payTo: Hex,
  range: { readonly from: number; readonly to: number },
): Promise<readonly Transfer[]> {
  const logs = await rpc.call<PlacedLog[]>('eth_getLogs', {
    address: asset,
    topics: [TOPICS.transfer, null, `0x${word(payTo)}`],
    fromBlock: quantity(range.from),
    toBlock: quantity(range.to),
  })
  const hashes = [...new Set(logs.map(({ transactionHash }) => transactionHash))]
  const receipts = new Map<Hex, TransactionReceipt | null>()
  for (let at = 0; at < hashes.length; at += RECEIPTS_PER_BATCH) {
    const some = hashes.slice(at, at + RECEIPTS_PER_BATCH)
    const answers = await rpc.batch(some.map((hash) => ['eth_getTransactionReceipt', hash] as const))
    for (const [index, hash] of some.entries()) {
      const answer = answers[index]
      receipts.set(hash, answer instanceof RpcError ? null : ((answer ?? null) as TransactionReceipt | null))
    }
  }
  return logs.map((log) => transferOf(log, receipts.get(log.transactionHash) ?? null))
}

/** Whether two nodes can be asked at all. */
const canAgree = ({ from, nodes }: Agreement): boolean => from !== null && nodes.count >= AGREEING_NODES

/**
 * Returns the transfers in a range of blocks as two nodes show them: no transfer of a large payment is missing in it or
 * invented. Of smaller ones, and where there is one node, the word of one node counts.
 * @throws Error if no two nodes show the same large payments, RpcError if the range cannot be read
 */
export async function readAgreedTransfers(
  agreement: Agreement,
  network: Network,
  payTo: Hex,
  range: { readonly from: number; readonly to: number },
): Promise<readonly Transfer[]> {
  const ask = (node: Rpc): Promise<readonly Transfer[]> => readTransfers(node, network, payTo, range)
  if (!canAgree(agreement)) return ask(agreement.nodes)
  const isLarge = ({ amount }: Transfer): boolean => amount === null || amount >= (agreement.from ?? 0n)
  const agreed = await askTwoNodes(
    agreement,
    ask,
    (transfers) => transfers.filter(isLarge).map(textOf).join(', '),
    range,
  )
  if (agreed === null) throw new Error(`no two nodes show the same payments in the blocks ${range.from} to ${range.to}`)
  return agreed[0]
}

function textOf({ transaction, logIndex, block, from, amount, nonce }: Transfer): string {
  return `${amount} from ${from} in ${transaction}/${logIndex}, block ${block}, nonce ${nonce ?? 'none'}`.toLowerCase()
}

/**
 * Returns the height that two nodes have reached; that of one node where there is one.
 * @throws Error if fewer than two of several nodes answer, RpcError if the only one does not
 */
export async function readAgreedHeight(agreement: Agreement): Promise<number> {
  const { nodes } = agreement
  if (!canAgree(agreement)) return Number(await nodes.call<Hex>('eth_blockNumber'))
  const answers = await nodes.askEach((node) => node.call<Hex>('eth_blockNumber'))
  const height = answers.map(({ answer }) => Number(answer)).toSorted((one, other) => other - one)[AGREEING_NODES - 1]
  if (height === undefined) throw new Error('fewer than two nodes answer')
  return height
}

function transferOf(log: PlacedLog, receipt: TransactionReceipt | null): Transfer {
  const { topics, data, transactionHash, logIndex, blockNumber } = log
  return {
    transaction: transactionHash,
    logIndex: Number(logIndex),
    block: Number(blockNumber),
    from: `0x${(topics[1] ?? '').slice(-40)}`,
    amount: /^0x[0-9a-f]{64}$/i.test(data) ? BigInt(data) : null,
    nonce: nonceOf(log, receipt),
    sender: receipt?.from ?? null,
  }
}

/** USDC logs AuthorizationUsed right before the Transfer that it authorizes (EIP-3009). */
function nonceOf(log: PlacedLog, receipt: TransactionReceipt | null): Hex | null | undefined {
  const logs = receipt?.logs as readonly PlacedLog[] | undefined
  if (!Array.isArray(logs)) return undefined
  const at = logs.findIndex(({ logIndex }) => Number(logIndex) === Number(log.logIndex))
  if (at < 0) return undefined
  const before = logs[at - 1]
  const isUse =
    before?.address.toLowerCase() === log.address.toLowerCase() &&
    before.topics[0] === TOPICS.used &&
    before.topics[1]?.toLowerCase() === log.topics[1]?.toLowerCase()
  return isUse ? ((before.topics[2] as Hex).toLowerCase() as Hex) : null
}
