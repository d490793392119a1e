/**
 * The use that settling makes of a chain: gas, blocks and the nonces of the wallets that send. Payments by EIP-3009 are moved
 * one by one, so the gas of the blocks is a hard limit, however many wallets, gateways or facilitators send them.
 */
import { type Clock, Line } from './queues.ts'

type Step = () => void

/** A chain as its operator documents it. */
export interface ChainLimits {
  readonly blockSeconds: number
  /** The most gas in a block. */
  readonly blockGas: number
  /** The gas per block at which the fee stays as it is: `blockGas` divided by this (EIP-1559). */
  readonly elasticity: number
  /** The fee changes by at most (elasticity - 1) / feeDenominator per block. */
  readonly feeDenominator: number
  /** The lowest gas price, in wei. */
  readonly minFee: number
  /** A transaction gets into a block if it is there this long before its end. */
  readonly leadSeconds: number
  /** Transactions of one account that a node keeps until they are mined. */
  readonly pendingPerWallet: number
}

/**
 * Base in June 2026: docs.base.org/base-chain/network-information/throughput-and-limits. Its lead is one Flashblock. How
 * many transactions of one account its sequencer keeps is not documented. Reth keeps 16 of those that come from other
 * nodes; geth guarantees 16 and keeps more while there is room.
 */
export const BASE: ChainLimits = {
  blockSeconds: 2,
  blockGas: 400_000_000,
  elasticity: 6,
  feeDenominator: 125,
  minFee: 5_000_000,
  leadSeconds: 0.2,
  pendingPerWallet: 16,
}

/** Gas of a USDC transfer by EIP-3009, alone and in a Multicall3 batch, measured with the code of USDC on Base. */
const GAS_ALONE = 85_740
const GAS_OF_BATCH = 42_300
const GAS_IN_BATCH = 49_770

/**
 * The gas of one transaction that settles this many payments, each from its own payer. The line through the figures
 * measured for 10 and for 50 payments; it meets the one for 5 within 0.2 %.
 * @example gasOf(1) → 85,740; gasOf(50) → 2,530,800
 */
export function gasOf(payments: number): number {
  return payments === 1 ? GAS_ALONE : GAS_OF_BATCH + GAS_IN_BATCH * payments
}

/** The most gas per second at which the chain's fee does not rise, if nobody else uses the chain. */
export function steadyGas({ blockGas, elasticity, blockSeconds }: ChainLimits): number {
  return blockGas / elasticity / blockSeconds
}

/**
 * How much the base fee rises per block at this use of the target (EIP-1559): (use - 1) / feeDenominator.
 * @example feeGrowth(BASE, 1.5) → 0.004, so it doubles every 174 blocks
 */
export function feeGrowth({ elasticity, feeDenominator }: ChainLimits, use: number): number {
  return (Math.min(use, elasticity) - 1) / feeDenominator
}

interface Transaction {
  readonly gas: number
  readonly mined: Step
}

/** The blocks of one chain. Each takes what came in time, in order, up to our part of its gas. */
export class Blocks {
  gas = 0
  transactions = 0
  readonly #clock: Clock
  readonly #limits: ChainLimits
  readonly #gasPerBlock: number
  readonly #pollSeconds: () => number
  readonly #waiting = new Line<Transaction & { readonly at: number }>()
  readonly #listeners: Step[] = []

  /**
   * @param share the part of each block that is left for us
   * @param phase when the first block ends, as a part of the time between two
   * @param pollSeconds how long after a block a gateway sees it
   */
  constructor(clock: Clock, limits: ChainLimits, share: number, phase: number, pollSeconds: () => number) {
    this.#clock = clock
    this.#limits = limits
    this.#gasPerBlock = limits.blockGas * share
    this.#pollSeconds = pollSeconds
    clock.after(limits.blockSeconds * phase, () => this.#close())
  }

  send(transaction: Transaction): void {
    this.#waiting.push({ ...transaction, at: this.#clock.now })
  }

  /** Calls back at the end of each block, before its transactions are mined. */
  beforeEach(listener: Step): void {
    this.#listeners.push(listener)
  }

  #close(): void {
    for (const listener of this.#listeners) listener()
    const { leadSeconds, blockSeconds } = this.#limits
    let used = 0
    for (let next = this.#waiting.first; next; next = this.#waiting.first) {
      if (next.at > this.#clock.now - leadSeconds || used + next.gas > this.#gasPerBlock) break
      this.#waiting.take()
      used += next.gas
      this.transactions += 1
      this.#clock.after(this.#pollSeconds(), next.mined)
    }
    this.gas += used
    this.#clock.after(blockSeconds, () => this.#close())
  }
}

/** How payments share transactions: `load` in gateway/methods/exact-evm/chain/batches.ts, or one batch per block. */
export interface Batching {
  /** The most payments per transaction. */
  readonly size: number
  /**
   * `load`: a payment goes at once while fewer than eight are on their way; otherwise with those that come while a batch is
   * being sent, but not later than `waitSeconds`. `block`: while a batch waits for its block, the next one collects.
   */
  readonly policy: 'load' | 'block'
  readonly waitSeconds: number
}

const QUIET_PAYMENTS = 8

interface Waiting {
  /** Records the payment's intent in the journal, and calls back when that is durable. */
  readonly record: (done: Step) => void
  readonly mined: Step
}

/** The account of one process that sends payments and pays the gas. */
export class Wallet {
  payments = 0
  batches = 0
  /** Gas of what was sent. */
  gas = 0
  /** The sum of the pending transactions at each block, and the number of blocks. */
  pendingAtBlocks = 0
  blocks = 0
  readonly #clock: Clock
  readonly #blocks: Blocks
  readonly #limit: number
  readonly #batching: Batching
  readonly #sendSeconds: number
  readonly #waiting = new Line<Waiting>()
  readonly #refused = new Line<Step>()
  /** Transactions that wait for their block, and those that the node does not take yet. */
  #pending = 0
  #sending = 0
  #onTheirWay = 0
  #inProgress = 0
  /** Identifies the timer of the payments that wait now; null if none runs. */
  #timer: object | null = null

  constructor(clock: Clock, blocks: Blocks, limits: ChainLimits, batching: Batching, sendSeconds: number) {
    this.#clock = clock
    this.#blocks = blocks
    this.#limit = limits.pendingPerWallet
    this.#batching = batching
    this.#sendSeconds = sendSeconds
    blocks.beforeEach(() => {
      this.pendingAtBlocks += this.#pending
      this.blocks += 1
    })
  }

  settle(payment: Waiting): void {
    this.#waiting.push(payment)
    // Payments of the same moment share a batch.
    this.#clock.after(0, () => this.#start(false))
  }

  #mayStart(isTimeUp: boolean): boolean {
    if (this.#waiting.length >= this.#batching.size) return true
    if (this.#batching.policy === 'block') return this.#inProgress === 0
    return isTimeUp || this.#sending === 0 || this.#onTheirWay < QUIET_PAYMENTS
  }

  #start(isTimeUp: boolean): void {
    while (this.#waiting.length > 0 && this.#mayStart(isTimeUp)) this.#send()
    if (this.#waiting.length === 0) this.#timer = null
    if (this.#waiting.length === 0 || this.#timer !== null || this.#batching.policy === 'block') return
    const timer = {}
    this.#timer = timer
    this.#clock.after(this.#batching.waitSeconds, () => {
      if (this.#timer !== timer) return
      this.#timer = null
      this.#start(true)
    })
  }

  #send(): void {
    const group = Array.from({ length: Math.min(this.#waiting.length, this.#batching.size) }, () =>
      this.#waiting.take(),
    )
    this.#sending += 1
    this.#inProgress += 1
    this.#onTheirWay += group.length
    this.payments += group.length
    this.batches += 1
    this.gas += gasOf(group.length)
    let unrecorded = group.length
    const recorded = (): void => {
      unrecorded -= 1
      if (unrecorded === 0) this.#clock.after(this.#sendSeconds, () => this.#sent(group))
    }
    for (const { record } of group) record(recorded)
  }

  #sent(group: readonly Waiting[]): void {
    this.#sending -= 1
    const send = (): void =>
      this.#blocks.send({
        gas: gasOf(group.length),
        mined: () => {
          this.#pending -= 1
          this.#inProgress -= 1
          this.#onTheirWay -= group.length
          if (this.#refused.length > 0) this.#refused.take()()
          for (const { mined } of group) mined()
          this.#start(false)
        },
      })
    this.#pending += 1
    if (this.#pending > this.#limit) this.#refused.push(send)
    else send()
    this.#start(false)
  }
}
