/** Compares the purchases with the chain and with the journal, both read without the gateway. */
import type { Journal } from '../../gateway/payments/journal/journal.ts'
import type { Hex, Network } from '../../gateway/config/networks.ts'
import type { Rpc } from '../../gateway/methods/exact-evm/nodes/rpc.ts'
import { TOPICS, word } from '../../gateway/methods/exact-evm/eip3009.ts'
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
  /** Atomic units that reached the payee beyond the transfers of the purchases. */
  readonly unexplained: bigint
}

interface Log {
  readonly topics: readonly Hex[]
  readonly data: Hex
  readonly transactionHash: Hex
  readonly logIndex: Hex
}

/** Counts the transfers to the payee by "payer/nonce" of the authorization, and sums them up. */
export async function readTransfers(rpc: Rpc, network: Network, payTo: Hex, fromBlock: number) {
  const find = (...topics: (string | null)[]): Promise<Log[]> =>
    rpc.call<Log[]>('eth_getLogs', { address: network.asset, topics, fromBlock: `0x${fromBlock.toString(16)}` })
  const places = (logs: readonly Log[]) =>
    new Map(logs.map((log) => [`${log.transactionHash}/${Number(log.logIndex)}`, log]))
  const [used, moved] = [await find(TOPICS.used), await find(TOPICS.transfer, null, `0x${word(payTo)}`)]
  const transfers = places(moved)
  const counts = new Map<string, number>()
  for (const { topics, transactionHash, logIndex } of used) {
    // USDC logs the transfer right after the authorization that allowed it.
    if (!transfers.has(`${transactionHash}/${Number(logIndex) + 1}`)) continue
    const key = `0x${topics[1]?.slice(26)}/${topics[2]}`
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return { counts, sum: moved.reduce((sum, { data }) => sum + BigInt(data), 0n) }
}

/** Judges every purchase. */
export async function judge(
  purchases: readonly Purchase[],
  { counts, sum }: Awaited<ReturnType<typeof readTransfers>>,
  journal: Journal,
  { network, price }: { readonly network: Network; readonly price: bigint },
): Promise<Verdict> {
  const tally = { transfers: 0, delivered: 0, refused: 0, owed: 0, doubleCharges: 0, lost: 0, unpaid: 0, changed: 0 }
  let ledgerDiffers = 0
  for (const { payment, body, refused, changed } of purchases) {
    const { payer, nonce } = payment
    const paid = counts.get(`${payer.toLowerCase()}/${nonce}`) ?? 0
    const row = await journal.find(`${network.caip2}/${network.asset}/${payer}/${nonce}`.toLowerCase())
    const isOwed = row?.state === 'owed'
    tally.transfers += paid
    tally.changed += changed
    if (body !== null) tally.delivered += 1
    if (refused && body === null) tally.refused += 1
    if (isOwed) tally.owed += 1
    if (paid > 1 || (paid > 0 && refused && body === null)) tally.doubleCharges += 1
    if (paid > 0 && body === null && !isOwed) tally.lost += 1
    if (paid === 0 && body !== null) tally.unpaid += 1
    if ((row?.state === 'settled' || isOwed) !== paid > 0) ledgerDiffers += 1
  }
  return { ...tally, ledgerDiffers, unexplained: sum - price * BigInt(tally.transfers) }
}

/** Returns the counts that must be zero and are not. */
export function faultsOf(verdict: Verdict): readonly string[] {
  const { doubleCharges, lost, unpaid, changed, ledgerDiffers, unexplained } = verdict
  return Object.entries({ doubleCharges, lost, unpaid, changed, ledgerDiffers, unexplained })
    .filter(([, count]) => BigInt(count) !== 0n)
    .map(([name, count]) => `${name}: ${count}`)
}
