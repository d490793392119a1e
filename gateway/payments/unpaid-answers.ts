/**
 * Answers of callers who left before their payment was sent. Until the payment expires, a repeat of it gets the stored
 * answer without new work. Nobody has paid for these answers, so their number and size are limited for each payer and
 * for all together. Beyond that the payment is released, and a repeat produces the answer anew.
 */
import type { Journal, KeptAnswers, PaymentRecord, StoredAnswer } from './journal/journal.ts'

/** The most that is kept for one payer, and for all together. */
export const MAX_KEPT = {
  ofPayer: { answers: 20, bytes: 16_000_000 },
  all: { answers: 2_000, bytes: 256_000_000 },
} as const

/** Callers who leave at the same time are counted one after the other. Otherwise all of them would find room. */
const turns = new WeakMap<object, Promise<unknown>>()

/**
 * Stores the answer of a reserved payment, or releases the payment if too many are stored. Returns false if another
 * process has taken the payment over.
 */
export function keepAnswer(
  journal: Pick<Journal, 'keptAnswers' | 'answered' | 'released'>,
  { key, attempt, payer }: Pick<PaymentRecord, 'key' | 'attempt' | 'payer'>,
  answer: StoredAnswer,
): Promise<boolean> {
  const keep = async (): Promise<boolean> => {
    const { ofPayer, all } = await journal.keptAnswers(payer)
    const fits = hasRoom(ofPayer, answer, MAX_KEPT.ofPayer) && hasRoom(all, answer, MAX_KEPT.all)
    return fits ? journal.answered(key, attempt, answer) : journal.released(key, attempt, 'too many answers are kept')
  }
  const turn = (turns.get(journal) ?? Promise.resolve()).then(keep, keep)
  turns.set(journal, turn)
  return turn
}

function hasRoom(kept: KeptAnswers, { body }: StoredAnswer, most: KeptAnswers): boolean {
  return kept.answers < most.answers && kept.bytes + body.length <= most.bytes
}
