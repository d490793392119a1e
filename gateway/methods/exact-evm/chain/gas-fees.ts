/** What a transaction should offer for gas, looked up at most every few seconds. */
import type { Hex } from '../../../config/networks.ts'
import type { Rpc } from '../nodes/rpc.ts'
import type { Fees } from './transaction-signer.ts'

export interface Quotation extends Fees {
  /** The first block that what is sent now can be in. */
  readonly block: number
  /** What a unit of gas costs in the next block, in wei. */
  readonly price: bigint
}

export interface FeesOptions {
  readonly rpc: Rpc
  /** The most a unit of gas may cost, in wei; null: whatever it costs. */
  readonly most: bigint | null
}

/** Gas costs more than the operator pays: nothing new is sent. */
export class TooDear extends Error {
  constructor({ price }: Pick<Quotation, 'price'>, most: bigint) {
    super(`gas costs ${gwei(price)} gwei, above SETTLE_MAX_GWEI (${gwei(most)})`)
    this.name = 'TooDear'
  }
}

const FRESH_MS = 3_000
/** 0.001 gwei: what Base asks at least. */
const LEAST_TIP = 1_000_000n
/** A block raises the base fee by an eighth at most: four times lasts eleven full blocks. */
const HEADROOM = 4n

/**
 * Returns a reader of fees; concurrent callers share one look. `fresh: true` looks again. No more than `most` is ever
 * offered, also where a block asks more. Throws RpcError.
 */
export function createFees({ rpc, most }: FeesOptions): (options?: { readonly fresh: boolean }) => Promise<Quotation> {
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
    const capped = (fee: bigint): bigint => (most !== null && fee > most ? most : fee)
    return {
      maxFeePerGas: capped(HEADROOM * base + tip),
      maxPriorityFeePerGas: capped(tip),
      price: base + tip,
      block: Number(history.oldestBlock) + history.baseFeePerGas.length - 1,
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

/**
 * Fees a node takes for a replacement (a tenth more of both), or null where what was offered still does, unless more is
 * to be offered `anyway`, or where more may not be offered.
 */
export function raised(fresh: Fees, offered: Fees, limit: bigint | null = null, anyway = false): Fees | null {
  const { maxFeePerGas: most, maxPriorityFeePerGas: tip } = offered
  if (!anyway && fresh.maxFeePerGas <= most && fresh.maxPriorityFeePerGas <= tip) return null
  const wanted = {
    maxFeePerGas: larger(fresh.maxFeePerGas, quarterMore(most)),
    maxPriorityFeePerGas: larger(fresh.maxPriorityFeePerGas, quarterMore(tip)),
  }
  if (limit === null || wanted.maxFeePerGas <= limit) return wanted
  const least = tenthMore(tip)
  if (limit < tenthMore(most) || limit < least) return null
  return { maxFeePerGas: limit, maxPriorityFeePerGas: smaller(limit, wanted.maxPriorityFeePerGas) }
}

const quarterMore = (fee: bigint): bigint => (fee * 5n) / 4n
const tenthMore = (fee: bigint): bigint => (fee * 11n + 9n) / 10n

function larger(one: bigint, other: bigint): bigint {
  return one > other ? one : other
}

function smaller(one: bigint, other: bigint): bigint {
  return one < other ? one : other
}

/** @example gwei(1_500_000n) → "0.0015" */
function gwei(wei: bigint): string {
  return String(Number(wei) / 1e9)
}
