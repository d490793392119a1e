/** The only road to the chain: an x402 facilitator over HTTP, or the chain itself. */
import type { Hex, Intent, PaymentPayload, PaymentRecord, PaymentRequirements, Refusal } from '../payment.ts'

/** What became of a settlement. `refused` proves that nothing was or can be transferred. */
export type Outcome =
  | { readonly state: 'settled'; readonly transaction: Hex }
  | {
      readonly state: 'refused'
      readonly reason: string
      readonly message: string
      readonly transaction?: Hex
      /** It was recorded and could not be sent: true only while nobody else has taken the payment over. */
      readonly unsent?: true
    }
  | { readonly state: 'pending'; readonly transaction: Hex | null }

export type RefusedOutcome = Extract<Outcome, { state: 'refused' }>

/** The only road to the chain. */
export interface Settler {
  readonly kind: 'chain' | 'facilitator' | 'scripted'
  /**
   * Asks the chain what an offline check cannot know (balance, used nonce, contract wallets). Null: go ahead. `proven`
   * false: the signature is no key's of the payer, so only a contract wallet could have signed.
   */
  check(
    payload: PaymentPayload,
    requirements: PaymentRequirements,
    options?: { readonly proven: boolean },
  ): Promise<Refusal | null>
  /**
   * Sends the payment. `record` is awaited before anything leaves; when it resolves to false nothing is sent and the
   * outcome is pending. `waitMs` bounds how long confirmation is waited for.
   */
  settle(
    payload: PaymentPayload,
    requirements: PaymentRequirements,
    options: { readonly record: (intent: Intent) => Promise<boolean>; readonly wait: 'submitted' | 'confirmed' },
  ): Promise<Outcome>
  /** What the chain says of a submitted payment; sends a chain intent again where it has vanished. Never guesses. */
  status(record: PaymentRecord): Promise<Outcome>
  /** False, with a reason, while payments cannot be settled. Cheap: answered from the last look. */
  health(): { readonly ready: boolean; readonly reason?: string }
  close(): Promise<void>
}
