/**
 * A settler for tests that follows a script. It verifies signatures for real. Its chain is a list of transfers in which
 * an authorization counts once, as in the token.
 */
import { createHash } from 'node:crypto'
import { createExactEvm } from '../../gateway/methods/exact-evm/exact-evm.ts'
import type { ChainIntent } from '../../gateway/methods/exact-evm/settlement-intent.ts'
import {
  type Outcome,
  type PaymentKey,
  type Settler,
  type PaymentMethod,
} from '../../gateway/methods/payment-method.ts'
import type { Refusal } from '../../gateway/x402/payment-requirements.ts'
import type { Hex, Network } from '../../gateway/config/networks.ts'

/**
 * What happens to the next payment.
 * - `ok`: settled. `refuse`: `check` refuses it. `revert`: sent, and failed in its block.
 * - `unsent`: recorded, then nothing could be sent. `timeout`: broadcast, no confirmation; settled when asked later.
 * - `lost`: recorded, outcome unknown, never broadcast: pending until `expire` is called.
 * - `crash`: throws between record and send. `late`: throws after the transfer happened.
 */
export type Behaviour = 'ok' | 'refuse' | 'revert' | 'unsent' | 'timeout' | 'lost' | 'crash' | 'late'

export interface ScriptedTransfer {
  readonly key: PaymentKey
  readonly from: Hex
  readonly to: Hex
  readonly amount: bigint
  readonly transaction: Hex
}

export interface ScriptedSettler extends Settler {
  readonly kind: 'scripted'
  /** The transfers that really happened, in order. */
  readonly transfers: readonly ScriptedTransfer[]
  /** Calls in order: "check", "settle", "status". */
  readonly calls: readonly string[]
  /** Sets the behaviour for each of the next payments; after them it is `ok` again. */
  next(...behaviours: Behaviour[]): void
  /** Delays every settlement until the returned function is called. */
  hold(): () => void
  /** From now on, this account is known to hold nothing. */
  impoverish(payer: Hex): void
  /** Makes the settler not ready for this reason; null makes it ready again. */
  down(reason: string | null): void
  /** From now on, payments that were never broadcast count as expired. */
  expire(): void
}

export function createScriptedSettler(options: {
  network: Network
  now?: () => Date
  /** The offline check of payments; that of "exact" on EVM if absent. */
  verify?: PaymentMethod['verify']
}): ScriptedSettler {
  const { network, now = () => new Date(), verify = createExactEvm(network).verify } = options
  const transfers: ScriptedTransfer[] = []
  const calls: string[] = []
  const script: Behaviour[] = []
  const reverted = new Set<PaymentKey>()
  const poor = new Set<string>()
  let gate: Promise<void> = Promise.resolve()
  let reason: string | null = null
  let expired = false

  const transferOf = (key: PaymentKey): ScriptedTransfer | undefined => transfers.find((each) => each.key === key)
  function move(transfer: ScriptedTransfer): Outcome {
    const earlier = transferOf(transfer.key)
    if (earlier) return settled(earlier)
    transfers.push(transfer)
    return settled(transfer)
  }

  return {
    kind: 'scripted',
    transfers,
    calls,
    next: (...behaviours) => void script.push(...behaviours),
    hold() {
      const { promise, resolve } = withResolvers()
      gate = promise
      return () => {
        gate = Promise.resolve()
        resolve()
      }
    },
    impoverish: (payer) => void poor.add(payer.toLowerCase()),
    down: (why) => {
      reason = why
    },
    expire: () => {
      expired = true
    },

    async check(payment, requirements) {
      calls.push('check')
      const refusal = verify(payment, requirements, Math.floor(now().getTime() / 1000))
      if (refusal) return refusal
      if (script[0] === 'refuse') {
        script.shift()
        return { reason: 'insufficient_funds', message: 'The payer holds less USDC than the payment moves.' }
      }
      return transferOf(payment.key)
        ? { reason: 'invalid_transaction_state', message: 'This authorization is used.' }
        : null
    },

    async mayPay(payment, requirements, { proven }) {
      calls.push('mayPay')
      if (poor.has(payment.payer)) return { reason: 'insufficient_funds', message: 'The payer holds nothing.' }
      return proven ? null : verify(payment, requirements, Math.floor(now().getTime() / 1000))
    },

    async settle({ key, payer }, { amount, payTo }, { record }) {
      calls.push('settle')
      const behaviour = script.shift() ?? 'ok'
      const transaction = hashOf(key, transfers.length)
      const raw = hashOf(transaction, 0)
      const intent: ChainIntent = { kind: 'chain', transaction, raw, sender: payTo, senderNonce: 0, fromBlock: 0 }
      if (!(await record(intent))) return { state: 'pending', transaction: null }
      await gate
      const transfer = { key, from: payer, to: payTo, amount, transaction }
      switch (behaviour) {
        case 'crash':
          throw new Error('The settler failed before it sent anything.')
        case 'late':
          move(transfer)
          throw new Error('The settler failed after the transfer.')
        case 'timeout':
          move(transfer)
          return { state: 'pending', transaction }
        case 'lost':
          return { state: 'pending', transaction }
        case 'unsent':
          return refused({ reason: 'unexpected_settle_error', message: 'The payment could not be sent.' })
        case 'revert':
          reverted.add(key)
          return refused({ reason: 'insufficient_funds', message: 'The payer holds too little USDC.' }, transaction)
        default:
          return move(transfer)
      }
    },

    async status(record) {
      calls.push('status')
      const transfer = transferOf(record.key)
      const transaction = record.intent?.transaction ?? null
      if (transfer) return settled(transfer)
      if (reverted.has(record.key))
        return refused({ reason: 'insufficient_funds', message: 'The transaction failed on the chain.' })
      if (expired)
        return refused({
          reason: 'invalid_exact_evm_payload_authorization_valid_before',
          message: 'The authorization expired before it was settled.',
        })
      return { state: 'pending', transaction }
    },

    health: () => (reason === null ? { ready: true } : { ready: false, reason }),
    close: async () => {},
  }
}

function settled({ transaction }: ScriptedTransfer): Outcome {
  return { state: 'settled', transaction }
}

function refused(refusal: Refusal, transaction?: Hex): Outcome {
  return { state: 'refused', ...refusal, ...(transaction ? { transaction } : {}) }
}

function hashOf(text: string, salt: number): Hex {
  return `0x${createHash('sha256').update(`${text} ${salt}`).digest('hex')}`
}

/** Promise.withResolvers, which Node 20 does not have. */
function withResolvers(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  const resolvers: { resolve?: () => void } = {}
  const promise = new Promise<void>((resolve) => {
    resolvers.resolve = resolve
  })
  return { promise, resolve: () => resolvers.resolve?.() }
}
