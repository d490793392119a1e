/** What a transaction should offer for gas, looked up at most every few seconds. */
import type { Hex } from '../payment.ts'
import type { Rpc } from './rpc.ts'
import type { Fees } from './signer.ts'

export interface Quotation extends Fees {
  /** The newest block when this was looked up. */
  readonly block: number
}

const FRESH_MS = 3_000
/** 0.001 gwei: what Base asks at least. */
const LEAST_TIP = 1_000_000n
/** A block raises the base fee by an eighth at most: four times lasts eleven full blocks. */
const HEADROOM = 4n

/** Returns a reader of fees; concurrent callers share one look. `fresh: true` looks again. Throws RpcError. */
export function createFees(rpc: Rpc): (options?: { readonly fresh: boolean }) => Promise<Quotation> {
  let lookedAt = Number.NEGATIVE_INFINITY
  let latest: Promise<Quotation> | null = null

  async function look(): Promise<Quotation> {
    const history = await rpc.call<{ oldestBlock: Hex; baseFeePerGas: Hex[]; reward?: Hex[][] }>(
      'eth_feeHistory',
      '0x5',
      'latest',
      [50],
    )
    const base = BigInt(history.baseFeePerGas.at(-1) ?? 0)
    const tips = (history.reward ?? []).map(([median]) => BigInt(median ?? 0))
    const tip = tips.reduce(larger, LEAST_TIP)
    return {
      maxFeePerGas: HEADROOM * base + tip,
      maxPriorityFeePerGas: tip,
      block: Number(history.oldestBlock) + history.baseFeePerGas.length - 2,
    }
  }

  return ({ fresh } = { fresh: false }) => {
    const now = performance.now()
    if (latest && !fresh && now - lookedAt < FRESH_MS) return latest
    lookedAt = now
    const looking = look()
    looking.catch(() => {
      if (latest === looking) latest = null
    })
    latest = looking
    return looking
  }
}

/** Fees a node takes for a replacement (a tenth more of both), or null where what was offered still does. */
export function raised(fresh: Fees, offered: Fees): Fees | null {
  const { maxFeePerGas: most, maxPriorityFeePerGas: tip } = offered
  if (fresh.maxFeePerGas <= most && fresh.maxPriorityFeePerGas <= tip) return null
  return {
    maxFeePerGas: larger(fresh.maxFeePerGas, (most * 5n) / 4n),
    maxPriorityFeePerGas: larger(fresh.maxPriorityFeePerGas, (tip * 5n) / 4n),
  }
}

function larger(one: bigint, other: bigint): bigint {
  return one > other ? one : other
}
