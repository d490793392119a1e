/** What the chain and the ledger say of the purchases. Neither is asked through the gateway. */
import type { Journal } from '../../gateway/payments/journal/journal.ts'
import type { Hex, Network } from '../../gateway/config/networks.ts'
import type { Rpc } from '../../gateway/methods/exact-evm/nodes/rpc.ts'
import { TOPICS, word } from '../../gateway/methods/exact-evm/eip3009.ts'
import type { Purchase } from './buyers.ts'

export interface Verdict {
  readonly transfers: number
  readonly delivered: number
  readonly refused: number
  /** Owed by the ledger and not delivered: a debt is no loss. */
  readonly owed: number
  /** One purchase with two transfers, or one that was said to take nothing and did. */
  readonly doubleCharges: number
  /** Paid, and neither delivered nor owed. */
  readonly lost: number
  /** Delivered, and not paid. */
  readonly unpaid: number
  /** Second deliveries with other bytes. */
  readonly changed: number
  /** Payments whose row in the ledger does not say what the chain says. */
  readonly ledgerDiffers: number
  /** Atomic units that reached the payee, less those of the transfers found. */
  readonly unexplained: bigint
}

interface Log {
  readonly topics: readonly Hex[]
  readonly data: Hex
  readonly transactionHash: Hex
  readonly logIndex: Hex
}

/** "payer/nonce" of every authorization used, with the times it moved money to the payee, and the sum. */
export async function readTransfers(rpc: Rpc, network: Network, payTo: Hex, fromBlock: number) {
  const find = (...topics: (string | null)[]): Promise<Log[]> =>
    rpc.call<Log[]>('eth_getLogs', { address: network.asset, topics, fromBlock: `0x${fromBlock.toString(16)}` })
  const places = (logs: readonly Log[]) =>
    new Map(logs.map((log) => [`${log.transactionHash}/${Number(log.logIndex)}`, log]))
  const [used, moved] = [await find(TOPICS.used), await find(TOPICS.transfer, null, `0x${word(payTo)}`)]
  const transfers = places(moved)
  const counts = new Map<string, number>()
  for (const { topics, transactionHash, logIndex } of used) {
    // The token logs the transfer right behind the authorization that allowed it.
    if (!transfers.has(`${transactionHash}/${Number(logIndex) + 1}`)) continue
    const key = `0x${topics[1]?.slice(26)}/${topics[2]}`
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return { counts, sum: moved.reduce((sum, { data }) => sum + BigInt(data), 0n) }
}

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

/** What must be nothing. */
export function faultsOf(verdict: Verdict): readonly string[] {
  const { doubleCharges, lost, unpaid, changed, ledgerDiffers, unexplained } = verdict
  return Object.entries({ doubleCharges, lost, unpaid, changed, ledgerDiffers, unexplained })
    .filter(([, count]) => BigInt(count) !== 0n)
    .map(([name, count]) => `${name}: ${count}`)
}
