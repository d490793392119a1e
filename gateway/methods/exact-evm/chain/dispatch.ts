/**
 * Sends payments to the chain, each alone or several in one transaction: signed, recorded, sent. No payment is sent
 * before its intent is recorded.
 */
import type { ChainIntent } from '../intent.ts'
import type { Hex } from '../../../config/networks.ts'
import { createBatches, type SentBatch } from './batches.ts'
import type { PendingTransaction } from './pending-transaction.ts'
import { aggregateData, MULTICALL3 } from '../multicall.ts'
import { RpcError } from '../nodes/rpc.ts'
import type { Sender } from './sender.ts'
import { KEY_GAS, type Settlement } from '../wallets.ts'

/** A payment to be sent, and how its intent is recorded. */
export interface OutgoingPayment {
  readonly settlement: Settlement
  readonly record: (intent: ChainIntent) => Promise<boolean>
}

/** Null: the record was refused, nothing was sent for it. */
export type Dispatched =
  | { readonly tx: PendingTransaction; readonly accepted: boolean; readonly isShared: boolean }
  /** Recorded, and could not be sent. */
  | { readonly unsent: RpcError }
  | null

export interface DispatchOptions {
  readonly sender: Sender
  /** The account that sends. */
  readonly address: Hex
  /** The most payments of one transaction; 1: each goes alone. */
  readonly size: number
}

/** What a transfer may take inside a batch: USDC takes about 50,000, and unused gas is not paid. */
const PART_GAS = 120_000n
const BATCH_GAS = 60_000n

/** The most gas a batch of so many payments may take. */
export function batchGas(payments: number): bigint {
  return BATCH_GAS + PART_GAS * BigInt(payments)
}

/** Throws RpcError and TooDear before anything is recorded, and what `record` throws. */
export function createDispatch({
  sender,
  address,
  size,
}: DispatchOptions): (payment: OutgoingPayment) => Promise<Dispatched> {
  async function sendTogether(payments: readonly OutgoingPayment[]): Promise<SentBatch<Dispatched>> {
    const { to, data, gas } = bundled(payments)
    const tx = await sender.prepare(to, data, gas)
    const isShared = payments.length > 1
    const { hash: transaction, nonce: senderNonce, fromBlock } = tx
    // A batch is never sent again as it was: each of its payments can go alone, whatever became of the others.
    const [raw, batch] = isShared ? (['0x', { batch: payments.length }] as const) : [tx.raw, {}]
    const intent: ChainIntent = { kind: 'chain', transaction, raw, sender: address, senderNonce, fromBlock, ...batch }
    const recorded = await Promise.allSettled(payments.map(({ record }) => record(intent)))
    const going = payments.filter((_, at) => isTrue(recorded[at]))
    const sent = going.length === 0 ? null : await sendRecorded(tx, going, payments)
    if (sent === null) sender.abandon(tx)
    const results = recorded.map((one): PromiseSettledResult<Dispatched> => {
      if (one.status === 'rejected') return one
      return { status: 'fulfilled', value: one.value ? sent : null }
    })
    const isUnderWay = sent !== null && 'tx' in sent
    return { results, over: isUnderWay ? sent.tx.mined : Promise.resolve() }
  }

  async function sendRecorded(
    tx: PendingTransaction,
    going: readonly OutgoingPayment[],
    payments: readonly OutgoingPayment[],
  ): Promise<Dispatched> {
    if (going.length < payments.length) {
      const { to, data, gas } = bundled(going)
      sender.amend(tx, to, data, gas)
    }
    try {
      return { tx, accepted: await sender.send(tx), isShared: going.length > 1 }
    } catch (error) {
      if (error instanceof RpcError) return { unsent: error }
      throw error
    }
  }

  const together = createBatches(size, sendTogether)
  const alone = createBatches(1, sendTogether)
  return (payment) => (payment.settlement.gas === KEY_GAS ? together : alone)(payment)
}

/** One call for all. A key's transfer may fail in a batch without the others; nothing else is ever put into one. */
function bundled(payments: readonly OutgoingPayment[]): Pick<Settlement, 'to' | 'data' | 'gas'> {
  const [first, ...others] = payments.map(({ settlement }) => settlement) as [Settlement, ...Settlement[]]
  if (others.length === 0) return first
  const parts = [first, ...others].map(({ to, data }) => ({ target: to, allowFailure: true, callData: data }))
  return { to: MULTICALL3, data: aggregateData(parts), gas: batchGas(parts.length) }
}

function isTrue(result: PromiseSettledResult<boolean> | undefined): boolean {
  return result?.status === 'fulfilled' && result.value
}
