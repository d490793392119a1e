/** Compares the purchases with the chain and with the journal, both read without the gateway. */
import type { Journal } from '../../../gateway/payments/journal/journal.ts'
import type { Hex, Network } from '../../../gateway/config/networks.ts'
import type { Rpc } from '../../../gateway/methods/exact-evm/nodes/rpc.ts'
import { TOPICS, word } from '../../../gateway/methods/exact-evm/eip3009.ts'
import type { Purchase } from './buyers.ts'

export interface Verdict {
  readonly transfers: number
  readonly delivered: number
  readonly refused: number
  /** Recorded as a debt and not delivered: a debt is not a loss. */
  readonly owed: number
  /** Purchases with two transfers, or with one although the buyer was told that nothing was charged. */
  readonly doubleCharges: number
  /** Paid, but neither delivered nor owed. */
  readonly lost: number
  /** Delivered, but not paid. */
  readonly unpaid: number
  /** Later deliveries with other bytes. */
  readonly changed: number
  /** Payments for which the journal and the chain disagree. */
  readonly ledgerDiffers: number
  /** Payments that the journal records as settled or owed, and that no buyer has sent. */
  readonly unknown: number
  /** Atomic units that reached the payee beyond the transfers of the purchases. */
  readonly unexplained: bigint
}

interface Log {
  readonly topics: readonly Hex[]
  readonly data: Hex
  readonly transactionHash: Hex
  readonly logIndex: Hex
}

/** Transfers that reached the payee. */
export interface Transfers {
  /** The number of transfers by "payer/nonce" of the authorization. */
  readonly counts: ReadonlyMap<string, number>
  /** Atomic units of all of them, and of any other. */
  readonly sum: bigint
}

/** Blocks that are read at once. */
const BLOCKS = 200

/** Reads the transfers to the payee from a block on. */
export async function readTransfers(rpc: Rpc, network: Network, payTo: Hex, fromBlock: number): Promise<Transfers> {
  const lastBlock = Number(await rpc.call<Hex>('eth_blockNumber'))
  const counts = new Map<string, number>()
  let sum = 0n
  for (let block = fromBlock; block <= lastBlock; block += BLOCKS) {
    const range = { address: network.asset, fromBlock: hex(block), toBlock: hex(block + BLOCKS - 1) }
    const find = (...topics: (string | null)[]): Promise<Log[]> => rpc.call<Log[]>('eth_getLogs', { ...range, topics })
    const [used, moved] = [await find(TOPICS.used), await find(TOPICS.transfer, null, `0x${word(payTo)}`)]
    const transfers = new Set(moved.map(({ transactionHash, logIndex }) => `${transactionHash}/${Number(logIndex)}`))
    for (const { topics, transactionHash, logIndex } of used) {
      // USDC logs the transfer right after the authorization that allowed it.
      if (!transfers.has(`${transactionHash}/${Number(logIndex) + 1}`)) continue
      const key = `0x${topics[1]?.slice(26)}/${topics[2]}`
      counts.set(key, (counts.get(key) ?? 0) + 1)
    }
    sum = moved.reduce((total, { data }) => total + BigInt(data), sum)
  }
  return { counts, sum }
}

function hex(block: number): Hex {
  return `0x${block.toString(16)}`
}

/** A purchase as its buyer knows it. */
export type Outcome = Pick<Purchase, 'payment' | 'body' | 'refused' | 'changed'>

/** Payments that are looked up at once. */
const LOOK_UPS = 500

/** Judges every purchase. The journal may have no other ones. */
export async function judge(
  purchases: readonly Outcome[],
  { counts, sum }: Transfers,
  journal: Journal,
  network: Network,
): Promise<Verdict> {
  const tally = { transfers: 0, delivered: 0, refused: 0, owed: 0, doubleCharges: 0, lost: 0, unpaid: 0, changed: 0 }
  let [ledgerDiffers, known, unexplained] = [0, 0, sum]
  for (let from = 0; from < purchases.length; from += LOOK_UPS) {
    const some = purchases.slice(from, from + LOOK_UPS)
    const keys = some.map(({ payment: { payer, nonce } }) => `${network.caip2}/${network.asset}/${payer}/${nonce}`)
    const rows = await Promise.all(keys.map((key) => journal.find(key.toLowerCase())))
    for (const [at, { payment, body, refused, changed }] of some.entries()) {
      const paid = counts.get(`${payment.payer.toLowerCase()}/${payment.nonce}`) ?? 0
      const state = rows[at]?.state
      const isOwed = state === 'owed'
      tally.transfers += paid
      tally.changed += changed
      if (body !== null) tally.delivered += 1
      if (refused && body === null) tally.refused += 1
      if (isOwed) tally.owed += 1
      if (paid > 1 || (paid > 0 && refused && body === null)) tally.doubleCharges += 1
      if (paid > 0 && body === null && !isOwed) tally.lost += 1
      if (paid === 0 && body !== null) tally.unpaid += 1
      if ((state === 'settled' || isOwed) !== paid > 0) ledgerDiffers += 1
      if (state === 'settled' || isOwed) known += 1
      unexplained -= payment.amount * BigInt(paid)
    }
  }
  const { settled, owed } = await journal.counts()
  return { ...tally, ledgerDiffers, unknown: settled + owed - known, unexplained }
}

/** Returns the counts that must be zero and are not. */
export function faultsOf(verdict: Verdict): readonly string[] {
  const { doubleCharges, lost, unpaid, changed, ledgerDiffers, unknown, unexplained } = verdict
  return Object.entries({ doubleCharges, lost, unpaid, changed, ledgerDiffers, unknown, unexplained })
    .filter(([, count]) => BigInt(count) !== 0n)
    .map(([name, count]) => `${name}: ${count}`)
}
