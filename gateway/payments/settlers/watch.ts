/**
 * One watch over everything an account has in flight: a single look per interval, however many payments wait. The
 * account's transaction count says which transactions are in a block; only their receipts are fetched.
 */
import type { Hex } from '../payment.ts'
import type { TransactionReceipt } from './judge.ts'
import type { Rpc } from './rpc.ts'

export interface InFlight {
  readonly nonce: number
  /** Every transaction sent with this nonce; one of them at most is mined. */
  readonly hashes: readonly Hex[]
  /** Null: the nonce is spent and none of ours spent it, or nobody watches any more. */
  land(receipt: TransactionReceipt | null): void
}

export interface Watch<Flight extends InFlight> {
  add(flight: Flight): void
  has(nonce: number): boolean
  /** Watches it no more; it lands with null. */
  drop(flight: Flight): void
  /** Lowest nonce first. */
  all(): readonly Flight[]
  close(): void
}

export interface WatchOptions {
  readonly rpc: Rpc
  readonly address: Hex
  readonly pollMs: number
  /** Called after each look with the account's transaction count, to mend what stands still. */
  readonly mend: (count: number) => Promise<void>
  readonly onError: (error: unknown) => void
}

/** How long a receipt may be missing for a nonce that is spent: nodes behind one address differ by some seconds. */
const LOST_MS = 10_000
const BATCH = 100

export function createWatch<Flight extends InFlight>(options: WatchOptions): Watch<Flight> {
  const { rpc, address, pollMs, mend, onError } = options
  const flights = new Map<number, Flight>()
  const spentSince = new Map<number, number>()
  let timer: NodeJS.Timeout | null = null
  let closed = false

  function land(flight: Flight, receipt: TransactionReceipt | null): void {
    flights.delete(flight.nonce)
    spentSince.delete(flight.nonce)
    flight.land(receipt)
  }

  async function look(): Promise<void> {
    const count = Number(await rpc.call<Hex>('eth_getTransactionCount', address, 'latest'))
    const spent = [...flights.values()].filter(({ nonce }) => nonce < count)
    for (let from = 0; from < spent.length; from += BATCH) await collect(spent.slice(from, from + BATCH))
    await mend(count)
  }

  async function collect(spent: readonly Flight[]): Promise<void> {
    const hashes = spent.flatMap((flight) => flight.hashes)
    const receipts = await rpc.batch(hashes.map((hash) => ['eth_getTransactionReceipt', hash] as const))
    const found = new Map<string, TransactionReceipt>()
    for (const receipt of receipts)
      if (receipt && !(receipt instanceof Error)) {
        const mined = receipt as TransactionReceipt
        found.set(mined.transactionHash.toLowerCase(), mined)
      }
    const now = performance.now()
    for (const flight of spent) {
      const receipt = flight.hashes.map((hash) => found.get(hash)).find((each) => each !== undefined)
      const since = spentSince.get(flight.nonce) ?? now
      spentSince.set(flight.nonce, since)
      if (receipt) land(flight, receipt)
      else if (now - since > LOST_MS) land(flight, null)
    }
  }

  function schedule(): void {
    if (timer !== null || closed || flights.size === 0) return
    timer = setTimeout(() => {
      void look()
        .catch(onError)
        .finally(() => {
          timer = null
          schedule()
        })
    }, pollMs)
  }

  return {
    add(flight) {
      if (closed) return flight.land(null)
      flights.set(flight.nonce, flight)
      schedule()
    },
    has: (nonce) => flights.has(nonce),
    drop: (flight) => land(flight, null),
    all: () => [...flights.values()].sort((one, other) => one.nonce - other.nonce),
    close() {
      closed = true
      if (timer) clearTimeout(timer)
      for (const flight of flights.values()) land(flight, null)
    },
  }
}
