/**
 * The SQL that SQLite and PostgreSQL share, and rows as records. A group of changes is the table `change` in the
 * statements that write.
 */
import type { Hex } from '../../config/networks.ts'
import type { Intent } from '../../methods/payment-method.ts'
import type { HeldAmount, OpenPayment } from './journal.ts'
import { AnswerBody } from '../../plugin/answer-body.ts'
import { unpackAnswer } from './packed-answers.ts'
import { RESERVED_COLUMNS } from './columns.ts'
import type { Cause, Ending, PaymentState } from './payment-states.ts'

/**
 * The columns of `payments` that make a record. Four are named after the first payment method and hold the same parts of
 * every other: `nonce` the identity, `valid_after` and `valid_before` the seconds between which the payment settles, and
 * `signature` the proof. Payments of earlier releases have their delivery in their own row. The answer's body comes last,
 * so that a row without it is cheap to read.
 *
 * @param body SQL of the answer's body
 */
export const columns = (
  body: string,
): string => `${inPayments(`key state attempt fingerprint operation route network asset payer
  pay_to amount nonce valid_after valid_before signature version price_version call_id identifier place owner intent
  transaction_hash reason cause ending payer_code reverted_at created_at updated_at settled_at repaid_at answer_status
  answer_headers`)},
  coalesce(payments.delivered_at, (SELECT d.at FROM payment_deliveries d
    WHERE d.payment = payments.id AND d.attempt = payments.attempt)) AS delivered_at,
  ${body} AS answer_body`

/**
 * The answer's body, except of an answered payment. Nothing but its buyer's return needs that one, and up to 256 MB of
 * them may be kept, which every recovery would read.
 */
export const bodyIfSent = (body: string): string => `CASE WHEN payments.state <> 'answered' THEN ${body} END`

/** Names of columns, each with its table, because some statements join tables with columns of the same name. */
const inPayments = (names: string): string =>
  names
    .split(/\s+/)
    .map((name) => `payments.${name}`)
    .join(', ')

/** A row as the drivers return it: SQLite integers are numbers, PostgreSQL bigints and numerics are decimal strings. */
export type Row = Readonly<Record<string, string | number | Buffer | null>>

/**
 * Reads a row of `payments` with the columns of `columns`. Those that the row lacks are taken from `given`, or are empty.
 * Throws TypeError if a text is missing.
 */
export function toRecord(row: Row, given: Row = {}): OpenPayment {
  const at = (column: string): Row[string] => row[column] ?? given[column] ?? null
  const textAt = (column: string): string => textOf(at(column), column)
  const numberAt = (column: string): number | null => {
    const value = at(column)
    return value === null ? null : Number(value)
  }
  const [status, body, intent] = [at('answer_status'), at('answer_body'), at('intent')]
  const hasAnswer = typeof status === 'number' && Buffer.isBuffer(body)
  return {
    key: textAt('key'),
    state: textAt('state') as PaymentState,
    attempt: Number(at('attempt')),
    fingerprint: textAt('fingerprint'),
    operation: textAt('operation'),
    route: textAt('route'),
    network: textAt('network'),
    asset: textAt('asset') as Hex,
    payer: textAt('payer') as Hex,
    payTo: textAt('pay_to') as Hex,
    amount: BigInt(textAt('amount')),
    identity: textAt('nonce'),
    startsAt: BigInt(textAt('valid_after')),
    expiresAt: BigInt(textAt('valid_before')),
    proof: textAt('signature'),
    version: Number(at('version')) as 1 | 2,
    priceVersion: textAt('price_version'),
    callId: textAt('call_id'),
    identifier: at('identifier') as string | null,
    place: at('place') as string | null,
    owner: textAt('owner'),
    answer: hasAnswer
      ? {
          status,
          headers: JSON.parse(textAt('answer_headers')),
          body: AnswerBody.of(unpackAnswer({ body, length: numberAt('answer_length') })),
        }
      : null,
    intent: intent === null ? null : (JSON.parse(textOf(intent, 'intent')) as Intent),
    transaction: at('transaction_hash') as Hex | null,
    reason: at('reason') as string | null,
    cause: at('cause') as Cause | null,
    ending: at('ending') as Ending | null,
    payerCode: at('payer_code') as Hex | null,
    revertedAt: numberAt('reverted_at'),
    createdAt: Number(at('created_at')),
    updatedAt: Number(at('updated_at')),
    settledAt: numberAt('settled_at'),
    repaidAt: numberAt('repaid_at'),
    deliveredAt: numberAt('delivered_at'),
  }
}

/** The text in a column. Throws TypeError if it holds none. */
export function text(row: Row, column: string): string {
  return textOf(row[column], column)
}

function textOf(value: Row[string] | undefined, column: string): string {
  if (typeof value !== 'string') throw new TypeError(`the journal has no text in the column ${column}`)
  return value
}

/** A payer has at most one unreleased payment under each identifier. */
export const IDENTIFIER_INDEX = `CREATE UNIQUE INDEX payments_identified ON payments (payer, identifier)
  WHERE identifier IS NOT NULL AND state <> 'released'`

/** Unfinished rows. The index that finds them has the same condition. */
export const OPEN = `(state IN ('reserved', 'answered', 'submitted') OR (state = 'settled' AND answer_status IS NULL))`

/** Payments whose amount may still leave the payer's balance. The index on those of a payer has the same condition. */
const UNSETTLED = `state IN ('reserved', 'answered', 'submitted')`

/** Finds the unsettled payments of one payer. */
export const UNSETTLED_INDEX = `CREATE INDEX IF NOT EXISTS payments_unsettled ON payments (payer, network) WHERE ${UNSETTLED}`

/** Finds the payment of a call. */
export const CALL_INDEX = 'CREATE INDEX IF NOT EXISTS payments_by_call ON payments (call_id);'

/** Which payments a reservation comes after: the unsettled ones of the same payer on the same network. */
export const comesAfter = (payer: string, network: string, key: string): string =>
  `other.payer = ${payer} AND other.network = ${network} AND other.key <> ${key} AND other.${UNSETTLED}`

/** Payments that were settled and whose answer is still stored. The index that finds them has the same condition. */
export const KEPT = `answer_headers IS NOT NULL AND state IN ('settled', 'owed', 'reversed')`

/** Replaces the index that looked at the answer's body, which is not always in the row. */
export const KEPT_INDEX = `DROP INDEX IF EXISTS payments_kept;
CREATE INDEX payments_kept ON payments (settled_at) WHERE ${KEPT};`

/** Payments that are to be looked at again. The index that finds them has the same condition. */
export const WATCHED = 'look_at IS NOT NULL'

/** Payments that a reorganisation has taken back. The index that finds them has the same condition. */
export const REVERSED = `state = 'reversed'`

/** Finds the payments whose transfer may still be removed or come back: few, whatever the number of payments. */
export const WATCHED_INDEXES = `CREATE INDEX IF NOT EXISTS payments_watched ON payments (look_at) WHERE ${WATCHED};
CREATE INDEX IF NOT EXISTS payments_reversed ON payments (updated_at) WHERE ${REVERSED};`

/** Debts that are not repaid. The index that finds them has the same condition. */
export const IN_DEBT = `state = 'owed' AND repaid_at IS NULL`

/**
 * Additions of later releases: an index for each way to look payments up, and the counts by state. The first release had an
 * index on the state alone. SQLite preferred it to the key, so that every delivery read all settled payments.
 */
export const LOOKUP_INDEXES = `DROP INDEX IF EXISTS payments_by_state;
CREATE INDEX payments_by_operation ON payments (operation, id);
CREATE INDEX payments_by_settlement ON payments (settled_at) WHERE settled_at IS NOT NULL;
CREATE INDEX payments_by_transaction ON payments (lower(transaction_hash)) WHERE lower(transaction_hash) IS NOT NULL;
CREATE INDEX payments_in_debt ON payments (updated_at, id) WHERE ${IN_DEBT};`

/** The cause of an event, in the trigger that writes it: how a debt has ended, or why the payment is in its state. */
export const EVENT_CAUSE = `CASE WHEN new.state = 'reversed' OR (new.state = 'owed' AND new.repaid_at IS NOT NULL)
    THEN new.ending ELSE new.cause END`

/** Payments that the operator has to decide on. The index that finds them has the same condition. */
export const UNCLEAR = `ending = 'unknown'`

/** Finds the payments that the operator has to decide on. */
export const UNCLEAR_INDEX = `CREATE INDEX payments_unclear ON payments (updated_at, id) WHERE ${UNCLEAR};`

/**
 * Takes over a released payment as a new attempt. The intent stays: what was sent may still be executed by others. Returns
 * what a reservation does not say itself.
 */
export const TAKEOVER = `ON CONFLICT (key) DO UPDATE SET
  state = 'reserved', attempt = payments.attempt + 1, updated_at = excluded.updated_at,
  ${RESERVED_COLUMNS.map((column) => `${column} = excluded.${column}`).join(', ')},
  transaction_hash = NULL, reason = NULL, cause = NULL, delivered_at = NULL
WHERE payments.state = 'released'
RETURNING key, state, attempt, intent, created_at, updated_at, settled_at`

/** Reads what a reservation returned beside its record: identity, amount and end of each payment it comes after. */
export function toAhead(row: Row): readonly HeldAmount[] {
  const payments = JSON.parse(text(row, 'ahead')) as readonly (readonly [string, string, string])[]
  return payments.map(([identity, amount, expiresAt]) => ({
    identity,
    amount: BigInt(amount),
    expiresAt: BigInt(expiresAt),
  }))
}

/** Whether a change leaves the payment without an answer. */
const DROPS_ANSWER = `(change.state = 'released' OR change.drops_answer = 1)`

/** @param body SQL that cuts this row's answer out of the bodies of the group */
export const moveStatement = (body: string): string => `UPDATE payments SET
  state = change.state, updated_at = change.at, owner = change.owner, note = change.note,
  cause = change.cause,
  intent = coalesce(change.intent, payments.intent),
  transaction_hash = coalesce(change.transaction_hash, payments.transaction_hash),
  reason = coalesce(change.reason, payments.reason),
  excess_gas = coalesce(change.excess_gas, payments.excess_gas),
  reverted_at = coalesce(change.reverted_at, payments.reverted_at), burnt = coalesce(change.burnt, payments.burnt),
  identifier = CASE payments.state WHEN 'released' THEN NULL ELSE payments.identifier END,
  settled_at = CASE change.state WHEN 'settled' THEN change.at ELSE settled_at END,
  repaid_at = CASE change.state WHEN 'owed' THEN NULL ELSE payments.repaid_at END,
  look_at = CASE WHEN change.state IN ('settled', 'owed', 'reversed') THEN change.at END,
  answer_status = CASE WHEN ${DROPS_ANSWER} THEN NULL ELSE coalesce(change.answer_status, payments.answer_status) END,
  answer_headers = CASE WHEN ${DROPS_ANSWER} THEN NULL ELSE coalesce(change.answer_headers, payments.answer_headers) END,
  answer_body = CASE WHEN ${DROPS_ANSWER} THEN NULL
    WHEN change.answer_status IS NOT NULL THEN ${body} ELSE payments.answer_body END`

/** `allowed` holds the states the move may start from; `owned` is set if only this owner may make it. */
export const MAY_MOVE = `payments.key = change.key AND payments.attempt = change.attempt
  AND change.allowed LIKE '%' || payments.state || '%' AND payments.owner = coalesce(change.owned, payments.owner)
RETURNING payments.key`

/**
 * A table of their own for deliveries: a row of it is small, and a change of `payments` writes the whole payment and its
 * indexes again. An attempt is delivered once.
 */
export const deliveriesTable = (integer: string): string => `CREATE TABLE payment_deliveries (
  payment ${integer} NOT NULL, attempt ${integer} NOT NULL, at ${integer} NOT NULL, PRIMARY KEY (payment, attempt)
)`

/**
 * Records deliveries. Only the first counts, and only of a payment that was sent.
 * @param change SQL of the table `change`
 */
export const deliverStatement = (change: string): string => `INSERT INTO payment_deliveries (payment, attempt, at)
SELECT payments.id, payments.attempt, change.at FROM ${change} CROSS JOIN payments
WHERE payments.key = change.key AND payments.delivered_at IS NULL AND payments.state IN ('submitted', 'settled')
ON CONFLICT DO NOTHING`

/** SQL of a placeholder, by its position from 1: `?1` in SQLite, `$1` in PostgreSQL. */
export type Placeholder = (nth: number) => string

export interface Query {
  readonly sql: string
  readonly values: readonly (string | number)[]
}

/** Runs one statement and returns its rows. */
export type Run = (sql: string, ...values: readonly (string | number)[]) => Promise<readonly Row[]>
