/**
 * The state machine of a payment: every state, cause and move. The journal writes nothing else, and the database checks
 * state and attempt in the statement that writes, so two processes never both make a move. All decisions about a payment
 * are made by these words: its reason and its notes are for people.
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

/**
 * Why a payment is settled or owed, if that is unusual.
 * - `foreign`: a transaction of others settled it, and it bought its answer all the same.
 * - `foreign_owed`: a transaction of others settled it, and it buys nothing here (strict mode).
 * - `late`: it settled after it was released, so it bought nothing.
 */
export type Cause = 'foreign' | 'foreign_owed' | 'late'

/**
 * How a debt ended, for as long as the payment exists.
 * - `repaid`: the operator sent the money back. If the chain takes the payment back after that, the buyer owes it to us; if
 *   the payment is mined again, the debt stays repaid.
 * - `withdrawn`: a reorganisation took the payment back, so nothing is owed; if it is mined again, it is a debt again.
 * - `unknown`: an earlier release recorded one of the two in words that do not tell which. The operator decides.
 */
export const ENDINGS = ['repaid', 'withdrawn', 'unknown'] as const
export type Ending = (typeof ENDINGS)[number]

/** Each move: the states it may start from, the state it leads to, and the causes it may have beside none. */
export const MOVES = {
  /** The product's answer is stored. */
  answered: { from: ['reserved'], to: 'answered' },
  /** The settlement of a stored answer is about to be sent. */
  submitted: { from: ['answered'], to: 'submitted' },
  /** The product's answer is stored, and its settlement is about to be sent. */
  submittedWithAnswer: { from: ['reserved'], to: 'submitted' },
  /** The chain confirmed the settlement. */
  settled: { from: ['submitted'], to: 'settled', causes: ['foreign'] },
  /** The call failed or ended before anything was sent. */
  released: { from: ['reserved', 'answered'], to: 'released' },
  /** The settler proved that nothing was transferred and nothing can be. */
  refused: { from: ['reserved', 'answered', 'submitted'], to: 'released' },
  /** A released payment was transferred after all, by somebody who had seen its authorization. It is owed next. */
  settledLate: { from: ['released'], to: 'settled', causes: ['late'] },
  /** The money is here and the answer cannot be delivered. */
  owed: { from: ['submitted', 'settled'], to: 'owed', causes: ['foreign_owed', 'late'] },
  /** A reorganisation has removed the transfer, and it is not mined again. */
  reversed: { from: ['settled', 'owed'], to: 'reversed' },
  /** A transaction of others moved the money, and buys nothing here: settled without its answer, and owed next. */
  settledByOthers: { from: ['submitted', 'reversed'], to: 'settled', causes: ['foreign_owed'] },
  /** A reversed payment was mined again after all. */
  settledAgain: { from: ['reversed'], to: 'settled' },
} as const satisfies Record<
  string,
  { readonly from: readonly PaymentState[]; readonly to: PaymentState; readonly causes?: readonly Cause[] }
>

export type Move = keyof typeof MOVES

/** The causes that a move may have. */
export type CauseOf<Name extends Move> = (typeof MOVES)[Name] extends { readonly causes: readonly (infer Given)[] }
  ? Given
  : never
