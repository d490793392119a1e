/** The fees that a transaction should offer for gas, read from the chain every few seconds at most. */
import type { Hex } from '../../../config/networks.ts'
import type { Rpc } from '../nodes/rpc.ts'
import type { Fees } from './transaction-signer.ts'

export interface FeeQuote extends Fees {
  /** The first block that can contain a transaction sent now. */
  readonly block: number
  /** The price of a unit of gas in the next block, in wei. */
  readonly price: bigint
}

export interface FeeReaderOptions {
  readonly rpc: Rpc
  /** The highest gas price to offer, in wei; null: no limit. */
  readonly maxGasPrice: bigint | null
}

/** Gas costs more than the operator's limit, so nothing new is sent. */
export class GasPriceTooHigh extends Error {
  constructor({ price }: Pick<FeeQuote, 'price'>, maxGasPrice: bigint) {
    super(`gas costs ${gwei(price)} gwei, above SETTLE_MAX_GWEI (${gwei(maxGasPrice)})`)
    this.name = 'GasPriceTooHigh'
  }
}

/** How long a reading is reused. */
const FRESH_MS = 3_000
/** 0.001 gwei, the minimum on Base. */
const MIN_TIP = 1_000_000n
/**
 * The base fee rises by at most an eighth per block (EIP-1559), so four times the base fee lasts for eleven full
 * blocks.
 */
const HEADROOM = 4n

/**
 * Returns a function that reads the current fees. Concurrent callers share one request, and `fresh: true` forces a new
 * one. It never offers more than `maxGasPrice`, even if a block costs more. Throws RpcError.
 */
export function createFeeReader({
  rpc,
  maxGasPrice,
}: FeeReaderOptions): (options?: { readonly fresh: boolean }) => Promise<FeeQuote> {
  let readAt = Number.NEGATIVE_INFINITY
  let latest: Promise<FeeQuote> | null = null

  async function read(): Promise<FeeQuote> {
    const history = await rpc.call<{ oldestBlock: Hex; baseFeePerGas: Hex[]; reward?: Hex[][] }>(
      'eth_feeHistory',
      '0x5',
      'latest',
      [50],
    )
    const base = BigInt(history.baseFeePerGas.at(-1) ?? 0)
    const tips = (history.reward ?? []).map(([median]) => BigInt(median ?? 0))
    const tip = larger(medianOf(tips), MIN_TIP)
    const capped = (fee: bigint): bigint => (maxGasPrice !== null && fee > maxGasPrice ? maxGasPrice : fee)
    return {
      maxFeePerGas: capped(HEADROOM * base + tip),
      maxPriorityFeePerGas: capped(tip),
      price: base + tip,
      block: Number(history.oldestBlock) + history.baseFeePerGas.length - 1,
    }
  }

  return ({ fresh } = { fresh: false }) => {
    const now = performance.now()
    if (latest && !fresh && now - readAt < FRESH_MS) return latest
    readAt = now
    const reading = read()
    reading.catch(() => {
      if (latest === reading) latest = null
    })
    latest = reading
    return reading
  }
}

/**
 * The fees with which a waiting transaction should be replaced, or null if it should not be. Nodes accept a replacement
 * only if both fees rise by at least a tenth.
 * @param current fees on the chain now
 * @param offered fees of the waiting transaction
 * @param limit in wei; null: no limit
 * @param always replaces even if the offered fees still suffice
 * @example replacementFees({ maxFeePerGas: 101n, maxPriorityFeePerGas: 8n }, { maxFeePerGas: 100n, maxPriorityFeePerGas: 8n })
 *   → { maxFeePerGas: 125n, maxPriorityFeePerGas: 10n }
 */
export function replacementFees(
  current: Fees,
  offered: Fees,
  limit: bigint | null = null,
  always = false,
): Fees | null {
  const { maxFeePerGas: fee, maxPriorityFeePerGas: tip } = offered
  if (!always && current.maxFeePerGas <= fee && current.maxPriorityFeePerGas <= tip) return null
  const wanted = {
    maxFeePerGas: larger(current.maxFeePerGas, quarterMore(fee)),
    maxPriorityFeePerGas: larger(current.maxPriorityFeePerGas, quarterMore(tip)),
  }
  if (limit === null || wanted.maxFeePerGas <= limit) return wanted
  if (limit < tenthMore(fee) || limit < tenthMore(tip)) return null
  return { maxFeePerGas: limit, maxPriorityFeePerGas: smaller(limit, wanted.maxPriorityFeePerGas) }
}

const quarterMore = (fee: bigint): bigint => (fee * 5n) / 4n
const tenthMore = (fee: bigint): bigint => (fee * 11n + 9n) / 10n

/** The upper median; 0 of none. One block, which a stranger may have to itself, does not decide what we pay. */
function medianOf(tips: readonly bigint[]): bigint {
  const sorted = tips.toSorted((one, other) => (one < other ? -1 : 1))
  return sorted[Math.floor(sorted.length / 2)] ?? 0n
}

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
