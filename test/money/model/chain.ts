/**
 * A minimal chain with a token. Transactions wait in a pool, a block takes some of them, the last block can be undone, and
 * an authorization moves money once. The chain outlives every process.
 */
import type { PaymentKey } from '../../../gateway/methods/payment-method.ts'
import type { Hex } from '../../../gateway/config/networks.ts'

/** A transaction of the token. */
export interface Tx {
  readonly hash: Hex
  readonly key: PaymentKey
  readonly payer: Hex
  readonly amount: bigint
  /** Seconds. */
  readonly validBefore: number
  readonly cancels?: true
}

export interface Chain {
  readonly height: () => number
  readonly balances: Map<Hex, bigint>
  readonly pool: Map<Hex, Tx>
  /** All authorizations ever broadcast. Anyone who saw one can send it while it is valid. */
  readonly seen: Map<PaymentKey, Tx>
  /** Payments whose block was undone. */
  readonly undone: Set<PaymentKey>
  /** Transactions that fail in their block in any case, for example with too little gas. */
  readonly failing: Set<Hex>
  broadcast(tx: Tx): void
  /** Mines a block with the transactions of the pool that `takes` selects, in their order. */
  mine(takes: (tx: Tx) => boolean): void
  /** Undoes the last block, never an earlier one. Its transactions return to the pool, unless `lost`. */
  reorganise(lost: boolean): void
  /** Returns the outcome of an authorization in blocks at least `depth` deep. `tx` is the transaction we sent for it. */
  judge(tx: Tx, depth: number): { readonly state: 'settled' | 'refused' | 'pending'; readonly transaction?: Hex }
  /** Returns the transfers in blocks at least this deep. */
  deep(depth: number): ReadonlyMap<PaymentKey, Tx>
  /** Returns the transfer of an authorization in any block, or null. */
  transferOf(key: PaymentKey): { readonly transaction: Hex; readonly amount: bigint } | null
  transfers(): ReadonlyMap<PaymentKey, bigint>
}

interface Done {
  readonly tx: Tx
  readonly ok: boolean
}

interface Block {
  readonly time: number
  readonly done: readonly Done[]
}

/** An authorization counts as expired only once the block time is this much later. */
const REORGANISATION_SECONDS = 10

/** @param clock time of the chain in seconds; it never goes back */
export function createChain(clock: () => number): Chain {
  const balances = new Map<Hex, bigint>()
  const pool = new Map<Hex, Tx>()
  const failing = new Set<Hex>()
  const undone = new Set<PaymentKey>()
  const seen = new Map<PaymentKey, Tx>()
  const blocks: Block[] = []
  let peak = 0

  const uses = (depth: number): Map<PaymentKey, Tx> => {
    const used = new Map<PaymentKey, Tx>()
    for (const { done } of blocks.slice(0, blocks.length - depth + 1))
      for (const { tx, ok } of done) if (ok) used.set(tx.key, tx)
    return used
  }
  const hold = (payer: Hex): bigint => balances.get(payer) ?? 0n

  function execute(tx: Tx, time: number, used: ReadonlyMap<PaymentKey, Tx>): boolean {
    if (failing.has(tx.hash) || used.has(tx.key) || time >= tx.validBefore) return false
    if (tx.cancels) return true
    if (hold(tx.payer) < tx.amount) return false
    balances.set(tx.payer, hold(tx.payer) - tx.amount)
    return true
  }

  return {
    height: () => blocks.length,
    balances,
    pool,
    seen,
    failing,
    undone,
    broadcast: (tx) => {
      if (!tx.cancels) seen.set(tx.key, tx)
      const isMined = blocks.some(({ done }) => done.some((one) => one.tx.hash === tx.hash))
      if (!isMined) pool.set(tx.hash, tx)
    },
    mine(takes) {
      const time = clock()
      const used = uses(1)
      const done = [...pool.values()].filter(takes).map((tx) => {
        pool.delete(tx.hash)
        const ok = execute(tx, time, used)
        if (ok) used.set(tx.key, tx)
        return { tx, ok }
      })
      blocks.push({ time, done })
      peak = Math.max(peak, blocks.length)
    },
    reorganise(lost) {
      if (blocks.length < peak) return
      for (const { tx, ok } of blocks.pop()?.done ?? []) {
        if (ok && !tx.cancels) {
          balances.set(tx.payer, hold(tx.payer) + tx.amount)
          undone.add(tx.key)
        }
        if (!lost) pool.set(tx.hash, tx)
      }
    },
    judge(tx, depth) {
      const deep = uses(depth).get(tx.key)
      if (deep) return deep.cancels ? { state: 'refused' } : { state: 'settled', transaction: deep.hash }
      if (uses(1).has(tx.key)) return { state: 'pending' }
      const failed = blocks
        .slice(0, blocks.length - depth + 1)
        .some(({ done }) => done.some((one) => one.tx.hash === tx.hash && !one.ok))
      const isOver = (blocks.at(-1)?.time ?? 0) >= tx.validBefore + REORGANISATION_SECONDS
      return { state: failed || isOver ? 'refused' : 'pending' }
    },
    deep: (depth) => new Map([...uses(depth)].filter(([, tx]) => !tx.cancels)),
    transferOf(key) {
      const tx = uses(1).get(key)
      return tx && !tx.cancels ? { transaction: tx.hash, amount: tx.amount } : null
    },
    transfers: () => new Map([...uses(1)].flatMap(([key, tx]) => (tx.cancels ? [] : [[key, tx.amount] as const]))),
  }
}
