/**
 * Payments on their way to the chain, alone or several in one transaction: signed, recorded, sent. Nothing is sent for
 * a payment that is not recorded.
 */
import type { ChainIntent } from '../intent.ts'
import type { Hex } from '../../../config/networks.ts'
import { createBatches, type Launch } from './batches.ts'
import type { Sending } from './pending-transaction.ts'
import { aggregateData, MULTICALL3 } from '../multicall.ts'
import { RpcError } from '../nodes/rpc.ts'
import type { Sender } from './sender.ts'
import { KEY_GAS, type Settlement } from '../wallets.ts'

/** A payment that wants to be sent, and how that is recorded. */
export interface Parcel {
  readonly settlement: Settlement
  readonly record: (intent: ChainIntent) => Promise<boolean>
}

/** Null: the record was refused, nothing was sent for it. */
export type Dispatched =
  | { readonly sending: Sending; readonly accepted: boolean; readonly isShared: boolean }
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
export function createDispatch({ sender, address, size }: DispatchOptions): (parcel: Parcel) => Promise<Dispatched> {
  async function launch(parcels: readonly Parcel[]): Promise<Launch<Dispatched>> {
    const { to, data, gas } = bundled(parcels)
    const sending = await sender.prepare(to, data, gas)
    const isShared = parcels.length > 1
    const { hash: transaction, nonce: senderNonce, fromBlock } = sending
    // A batch is never sent again as it was: each of its payments can go alone, whatever became of the others.
    const [raw, batch] = isShared ? (['0x', { batch: parcels.length }] as const) : [sending.raw, {}]
    const intent: ChainIntent = { kind: 'chain', transaction, raw, sender: address, senderNonce, fromBlock, ...batch }
    const recorded = await Promise.allSettled(parcels.map(({ record }) => record(intent)))
    const going = parcels.filter((_, at) => isTrue(recorded[at]))
    const sent = going.length === 0 ? null : await leave(sending, going, parcels)
    if (sent === null) sender.abandon(sending)
    const results = recorded.map((one): PromiseSettledResult<Dispatched> => {
      if (one.status === 'rejected') return one
      return { status: 'fulfilled', value: one.value ? sent : null }
    })
    const isUnderWay = sent !== null && 'sending' in sent
    return { results, over: isUnderWay ? sent.sending.mined : Promise.resolve() }
  }

  async function leave(sending: Sending, going: readonly Parcel[], parcels: readonly Parcel[]): Promise<Dispatched> {
    if (going.length < parcels.length) {
      const { to, data, gas } = bundled(going)
      sender.amend(sending, to, data, gas)
    }
    try {
      return { sending, accepted: await sender.send(sending), isShared: going.length > 1 }
    } catch (error) {
      if (error instanceof RpcError) return { unsent: error }
      throw error
    }
  }

  const together = createBatches(size, launch)
  const alone = createBatches(1, launch)
  return (parcel) => (parcel.settlement.gas === KEY_GAS ? together : alone)(parcel)
}

/** One call for all. A key's transfer may fail in a batch without the others; nothing else is ever put into one. */
function bundled(parcels: readonly Parcel[]): Pick<Settlement, 'to' | 'data' | 'gas'> {
  const [first, ...others] = parcels.map(({ settlement }) => settlement) as [Settlement, ...Settlement[]]
  if (others.length === 0) return first
  const parts = [first, ...others].map(({ to, data }) => ({ target: to, allowFailure: true, callData: data }))
  return { to: MULTICALL3, data: aggregateData(parts), gas: batchGas(parts.length) }
}

function isTrue(result: PromiseSettledResult<boolean> | undefined): boolean {
  return result?.status === 'fulfilled' && result.value
}
