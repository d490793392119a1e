/**
 * Sends payments to the chain, alone while it is quiet and several in one transaction under load. Every payment is
 * signed, recorded and then sent: nothing is sent before its intent is recorded.
 */
import type { ChainIntent } from '../settlement-intent.ts'
import type { Hex } from '../../../config/networks.ts'
import type { PendingTransaction } from './pending-transaction.ts'
import { aggregateData, MULTICALL3 } from '../multicall.ts'
import { RpcError } from '../nodes/rpc.ts'
import type { Sender } from './sender.ts'
import type { SettlementCall } from '../contract-wallets.ts'

/** A payment to send. `record` stores its intent. */
export interface OutgoingPayment {
  readonly settlement: SettlementCall
  readonly record: (intent: ChainIntent) => Promise<boolean>
}

/** The outcome of an outgoing payment. Null: its intent was not recorded, so it was not sent. */
export type SentResult =
  | { readonly tx: PendingTransaction; readonly accepted: boolean; readonly payments: number }
  /** The payment was recorded and could not be sent. */
  | { readonly unsent: RpcError }
  | null

export interface PaymentSenderOptions {
  readonly sender: Sender
  /** The account that pays the gas. */
  readonly address: Hex
  /** The most payments that one transaction may settle now; 1: no batches. */
  readonly size: () => number
}

/** Gas limit of a transfer inside a batch. USDC uses about 50,000; unused gas is not charged. */
const PART_GAS = 120_000n
const BATCH_GAS = 60_000n

/**
 * How many payments a batch may have if its gas limit is at most `gas`. At least 1, which is no batch.
 * @example paymentsWithin(700_000n) → 5
 */
export function paymentsWithin(gas: bigint): number {
  return Math.max(1, Number((gas - BATCH_GAS) / PART_GAS))
}

/**
 * Returns a function that sends one payment. It throws what `record` throws, and RpcError or GasPriceTooHigh before
 * anything is recorded.
 */
export function createPaymentSender(options: PaymentSenderOptions): (payment: OutgoingPayment) => Promise<SentResult> {
  const sendBatch = (payments: readonly OutgoingPayment[]): Promise<SentBatch<SentResult>> =>
    sendTogether(options, payments)
  const inBatches = createBatches(options.size, sendBatch)
  const alone = createBatches(() => 1, sendBatch)
  return (payment) => (payment.settlement.mayShare ? inBatches : alone)(payment)
}

/** Prepares one transaction for these payments, records their intents, and sends those that were recorded. */
async function sendTogether(
  { sender, address }: PaymentSenderOptions,
  payments: readonly OutgoingPayment[],
): Promise<SentBatch<SentResult>> {
  const { to, data, gas } = combined(payments)
  const tx = await sender.prepare(to, data, gas)
  const { hash: transaction, nonce: senderNonce, fromBlock } = tx
  // A batch is never sent again as a whole: each of its payments can be sent alone, whatever became of the others.
  const [raw, batch] = payments.length > 1 ? (['0x', { batch: payments.length }] as const) : [tx.raw, {}]
  const intent: ChainIntent = { kind: 'chain', transaction, raw, sender: address, senderNonce, fromBlock, ...batch }
  const recorded = await Promise.allSettled(payments.map(({ record }) => record(intent)))
  const toSend = payments.filter((_, at) => isTrue(recorded[at]))
  const sent = toSend.length === 0 ? null : await sendRecorded(sender, tx, toSend, payments)
  if (sent === null) sender.abandon(tx)
  const results = recorded.map((one): PromiseSettledResult<SentResult> => {
    if (one.status === 'rejected') return one
    return { status: 'fulfilled', value: one.value ? sent : null }
  })
  const isPending = sent !== null && 'tx' in sent
  return { results, done: isPending ? sent.tx.mined : Promise.resolve() }
}

async function sendRecorded(
  sender: Sender,
  tx: PendingTransaction,
  toSend: readonly OutgoingPayment[],
  payments: readonly OutgoingPayment[],
): Promise<SentResult> {
  try {
    if (toSend.length < payments.length) {
      const { to, data, gas } = combined(toSend)
      await sender.amend(tx, to, data, gas)
    }
    return { tx, accepted: await sender.send(tx), payments: toSend.length }
  } catch (error) {
    if (error instanceof RpcError) return { unsent: error }
    throw error
  }
}

/** One call that settles all of them. In a batch, each transfer may fail without failing the others. */
function combined(payments: readonly OutgoingPayment[]): Pick<SettlementCall, 'to' | 'data' | 'gas'> {
  const [first, ...others] = payments.map(({ settlement }) => settlement) as [SettlementCall, ...SettlementCall[]]
  if (others.length === 0) return first
  const parts = [first, ...others].map(({ to, data }) => ({ target: to, allowFailure: true, callData: data }))
  return { to: MULTICALL3, data: aggregateData(parts), gas: BATCH_GAS + PART_GAS * BigInt(parts.length) }
}

function isTrue(result: PromiseSettledResult<boolean> | undefined): boolean {
  return result?.status === 'fulfilled' && result.value
}

/** A batch that was sent: the result of each item in order, and a promise that resolves when it is no longer load. */
export interface SentBatch<Result> {
  readonly results: readonly PromiseSettledResult<Result>[]
  readonly done: Promise<unknown>
}

interface WaitingItem<Item, Result> {
  readonly item: Item
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
}

/** Payments are sent alone while fewer than this are being sent or wait for their block. */
const QUIET_ITEMS = 8
/** How long an item waits for others. Short beside the time between two blocks, so that few items miss theirs. */
const MAX_WAIT_MS = 20

/**
 * Groups items into batches that grow with the load. While it is quiet, items are sent at once, together only with
 * those of the same tick. Under load, items that arrive while a batch is being sent share the next one, which starts
 * as soon as that batch is sent, when it is full, or after 20 ms. No batch waits for the block of another.
 * @param size the most items per batch at the moment
 * @param sendBatch gets 1 to `size()` items; if it throws, all of them fail
 * @returns a function that adds an item and resolves with its own result
 */
export function createBatches<Item, Result>(
  size: () => number,
  sendBatch: (items: readonly Item[]) => Promise<SentBatch<Result>>,
): (item: Item) => Promise<Result> {
  const waiting: WaitingItem<Item, Result>[] = []
  /** Batches that are being sent, and items that are being sent or wait for their block. */
  const load = { sending: 0, items: 0 }
  let timer: NodeJS.Timeout | undefined

  async function run(group: readonly WaitingItem<Item, Result>[]): Promise<void> {
    load.sending += 1
    load.items += group.length
    const { done } = await sendGroup(group, sendBatch)
    load.sending -= 1
    startBatches()
    await done
    load.items -= group.length
  }

  function startBatches(isTimeUp = false): void {
    const mayStart = (): boolean =>
      isTimeUp || load.sending === 0 || load.items < QUIET_ITEMS || waiting.length >= size()
    while (waiting.length > 0 && mayStart()) void run(waiting.splice(0, size()))
    if (waiting.length > 0) {
      timer ??= setTimeout(() => {
        timer = undefined
        startBatches(true)
      }, MAX_WAIT_MS)
      return
    }
    clearTimeout(timer)
    timer = undefined
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject })
      // Items that are added in the same tick share a batch.
      queueMicrotask(() => startBatches())
    })
}

/** Sends one batch and gives each item its result. Resolves, once it is sent, with its promise `done`. */
async function sendGroup<Item, Result>(
  group: readonly WaitingItem<Item, Result>[],
  sendBatch: (items: readonly Item[]) => Promise<SentBatch<Result>>,
): Promise<{ readonly done: Promise<unknown> }> {
  try {
    const { results, done } = await sendBatch(group.map(({ item }) => item))
    for (const [at, { resolve, reject }] of group.entries()) {
      const result = results[at]
      if (result?.status === 'fulfilled') resolve(result.value)
      else reject(result?.reason)
    }
    return { done }
  } catch (error) {
    for (const { reject } of group) reject(error)
    return { done: Promise.resolve() }
  }
}
