/** What the ledger's statements say in the same words in both databases. A group of changes is the table `change`. */
import { COLUMNS, RESERVED_COLUMNS } from './record.ts'

/** A payment that was given back is taken up again. The intent stays: others have seen what was sent, and it may come. */
export const TAKEOVER = `ON CONFLICT (key) DO UPDATE SET
  state = 'reserved', attempt = payments.attempt + 1, updated_at = excluded.updated_at,
  ${RESERVED_COLUMNS.map((column) => `${column} = excluded.${column}`).join(', ')},
  transaction_hash = NULL, reason = NULL, delivered_at = NULL
WHERE payments.state = 'released'
RETURNING ${COLUMNS}`

/** @param body the answer's bytes, cut out of all bodies of the group */
export const moving = (body: string): string => `UPDATE payments SET
  state = change.state, updated_at = change.at, owner = change.owner, detail = change.detail,
  intent = coalesce(change.intent, payments.intent),
  transaction_hash = coalesce(change.transaction_hash, payments.transaction_hash),
  reason = coalesce(change.reason, payments.reason),
  identifier = CASE payments.state WHEN 'released' THEN NULL ELSE payments.identifier END,
  settled_at = CASE change.state WHEN 'settled' THEN change.at ELSE settled_at END,
  answer_status = CASE change.state WHEN 'released' THEN NULL ELSE coalesce(change.answer_status, payments.answer_status) END,
  answer_headers = CASE change.state WHEN 'released' THEN NULL ELSE coalesce(change.answer_headers, payments.answer_headers) END,
  answer_body = CASE change.state WHEN 'released' THEN NULL WHEN 'answered' THEN ${body} ELSE payments.answer_body END`

export const MAY_MOVE = `payments.key = change.key AND payments.attempt = change.attempt
  AND change.allowed LIKE '%' || payments.state || '%' AND payments.owner = coalesce(change.owned, payments.owner)
RETURNING payments.key`

/** The first delivery counts, and only of what was paid. */
export const DELIVERING = `UPDATE payments SET delivered_at = change.at`
export const MAY_DELIVER = `payments.key = change.key AND payments.delivered_at IS NULL
  AND payments.state IN ('submitted', 'settled')
RETURNING payments.key`

/** What is forgotten with an answer at the end of its retention. */
export const FORGETTING = `UPDATE payments SET answer_headers = NULL, answer_body = NULL, identifier = NULL, place = NULL`
