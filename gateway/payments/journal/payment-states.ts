/**
 * The state machine of a payment: every state and every move. The journal writes nothing else, and the database checks
 * state and attempt in the statement that writes, so two processes never both make a move.
 *
 * ```
 *             ┌─────────────── reserve again, as the next attempt ───────────────┐
 *             v                                                                  │
 * reserve → reserved ────── submittedWithAnswer ──────→ submitted ─ settled → settled ─ owed → owed
 *             │    └ answered → answered ─ submitted ────^ │  │ settledByOthers  ^ │ ^            │
 *             │ released,         │ released, refused      │  └─ owed → owed     │ │ │  settledAgain, settledByOthers
 *             v refused           v                        v refused             │ │ └──────────┐ │
 *             └─────────────────── released ───────── settledLate ───────────────┘ └ reversed → reversed
 * ```
 */

/**
 * - `reserved`: a call works on it; nothing is stored or sent.
 * - `answered`: the product's answer is stored and nothing is sent, because the buyer left before.
 * - `submitted`: the answer is stored, and the settlement is about to be sent or was sent; its outcome is not known.
 * - `settled`: the money has arrived.
 * - `released`: nothing was charged; the same payment may be used again.
 * - `reversed`: it was settled, and a reorganisation of the chain has taken the money back: the buyer owes it to us.
 * - `owed`: the money has arrived and the buyer has no answer: a debt. Stays `owed` after it was repaid.
 */
export type PaymentState = 'reserved' | 'answered' | 'submitted' | 'settled' | 'released' | 'owed' | 'reversed'

/** Each move: the states it may start from and the state it leads to. */
export const MOVES = {
  /** The product's answer is stored. */
  answered: { from: ['reserved'], to: 'answered' },
  /** The settlement of a stored answer is about to be sent. */
  submitted: { from: ['answered'], to: 'submitted' },
  /** The product's answer is stored, and its settlement is about to be sent. */
  submittedWithAnswer: { from: ['reserved'], to: 'submitted' },
  /** The chain confirmed the settlement. */
  settled: { from: ['submitted'], to: 'settled' },
  /** The call failed or ended before anything was sent. */
  released: { from: ['reserved', 'answered'], to: 'released' },
  /** The settler proved that nothing was transferred and nothing can be. */
  refused: { from: ['reserved', 'answered', 'submitted'], to: 'released' },
  /** A released payment was transferred after all, by somebody who had seen its authorization. */
  settledLate: { from: ['released'], to: 'settled' },
  /** The money is here and the answer cannot be delivered. */
  owed: { from: ['submitted', 'settled'], to: 'owed' },
  /** A reorganisation has removed the transfer, and it is not mined again. */
  reversed: { from: ['settled', 'owed'], to: 'reversed' },
  /** A transaction of others moved the money, and buys nothing here: settled without its answer, and owed next. */
  settledByOthers: { from: ['submitted', 'reversed'], to: 'settled' },
  /** A reversed payment was mined again after all. */
  settledAgain: { from: ['reversed'], to: 'settled' },
} as const satisfies Record<string, { readonly from: readonly PaymentState[]; readonly to: PaymentState }>

export type Move = keyof typeof MOVES
