/**
 * The SQL that reads, once, what earlier releases wrote as words: why a payment is settled or owed, and how a debt ended.
 *
 * The note of an operator was stored as the gateway's own words were. So the one text with which the gateway recorded that a
 * reorganisation took a payment back may be an operator's, who says that the money was sent back. What rests on it is
 * `unknown`.
 */
import type { Cause, Ending } from './payment-states.ts'

const begins = (column: string, words: string): string => `substr(${column}, 1, ${words.length}) = '${words}'`
const is = (word: Cause | Ending): string => `'${word}'`

const FOREIGN = 'settled by a transaction that this gateway did not send'
const LATE = 'owed: settled after it was released'
const TAKEN_BACK = "'repaid: a reorganisation took the payment back'"

/** How the debt of a reversed payment had ended. The gateway said that nothing was owed when it had read `TAKEN_BACK`. */
const endingOfReversed = (column: string): string =>
  `CASE WHEN ${begins(column, 'nothing is owed: ')} THEN ${is('unknown')}
    WHEN ${begins(column, 'the debt was repaid: ')} THEN ${is('repaid')} END`

/** Fills the columns `cause` and `ending`. The words stay where they are, in `reason` and `note`. */
export const READ_OLD_WORDS = `
UPDATE payments SET cause = CASE
  WHEN ${begins('reason', LATE)} THEN ${is('late')}
  WHEN ${begins('reason', `owed: ${FOREIGN}`)} THEN ${is('foreign_owed')}
  WHEN ${begins('reason', FOREIGN)} AND state = 'settled' THEN ${is('foreign')} END
WHERE state IN ('settled', 'owed') AND reason IS NOT NULL;
UPDATE payments SET ending = (
  SELECT ${endingOfReversed('e.note')} FROM payment_events e
  WHERE e.payment = payments.id AND e.state = 'reversed' ORDER BY e.id DESC LIMIT 1)
WHERE state IN ('settled', 'owed', 'reversed') AND id IN (SELECT payment FROM payment_events WHERE state = 'reversed');
UPDATE payments SET ending = CASE WHEN note = ${TAKEN_BACK} THEN ${is('unknown')} ELSE ${is('repaid')} END
WHERE state = 'owed' AND repaid_at IS NOT NULL;
UPDATE payment_events SET cause = CASE
  WHEN state = 'reversed' THEN ${endingOfReversed('note')}
  WHEN note = ${TAKEN_BACK} THEN ${is('unknown')}
  WHEN ${begins('note', 'repaid: ')} THEN ${is('repaid')}
  WHEN ${begins('note', LATE)} THEN ${is('late')}
  WHEN ${begins('note', `owed: ${FOREIGN}`)} THEN ${is('foreign_owed')} END
WHERE state IN ('owed', 'reversed');`
