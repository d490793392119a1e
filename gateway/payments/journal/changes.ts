/**
 * The states a payment moves through, and how a change is put to the database. A change travels as one JSON object per
 * row; the database compares state and attempt in the statement that writes, so the answer is its own.
 */
import type { PaymentState, Reservation, StoredAnswer } from './journal.ts'
import type { Intent, RefusedOutcome } from '../../methods/payment-method.ts'
import type { Command } from './groups.ts'

/** From which states a payment may move to each state. Nothing else is ever written. */
export const MOVES = {
  answered: ['reserved'],
  submitted: ['answered'],
  settled: ['submitted'],
  released: ['reserved', 'answered'],
  refused: ['answered', 'submitted'],
  late: ['released'],
  owed: ['submitted', 'settled'],
} as const satisfies Record<string, readonly PaymentState[]>

export type Move = keyof typeof MOVES

const LEADS_TO: Readonly<Record<Move, PaymentState>> = {
  answered: 'answered',
  submitted: 'submitted',
  settled: 'settled',
  released: 'released',
  refused: 'released',
  late: 'settled',
  owed: 'owed',
}

/** What every change says of itself. */
export interface Stamp {
  readonly at: number
  readonly owner: string
}

/** One row to write: `fields` are columns, as JSON; the body of an answer goes beside them, as bytes. */
export interface Change extends Command {
  readonly kind: 'reserve' | 'move' | 'deliver'
  readonly fields: Readonly<Record<string, string | number>>
  readonly body: Buffer
}

const NO_BODY = Buffer.alloc(0)

/** A group as the two values its statement takes: the fields, and all bodies in one piece with places into it. */
export function encode(group: readonly Change[]): { readonly fields: string; readonly bodies: Buffer } {
  let start = 1
  const rows = group.map(({ fields, body }) => {
    const row = { ...fields, body_start: start, body_length: body.length }
    start += body.length
    return row
  })
  return { fields: JSON.stringify(rows), bodies: Buffer.concat(group.map(({ body }) => body)) }
}

export function reserve(reservation: Reservation, { at, owner }: Stamp): Change {
  const { key, callId } = reservation
  const fields = {
    key,
    fingerprint: reservation.fingerprint,
    operation: reservation.operation,
    route: reservation.route,
    network: reservation.network,
    asset: reservation.asset,
    payer: reservation.payer,
    pay_to: reservation.payTo,
    amount: String(reservation.amount),
    nonce: reservation.nonce,
    valid_after: String(reservation.validAfter),
    valid_before: String(reservation.validBefore),
    signature: reservation.signature,
    version: reservation.version,
    price_version: reservation.priceVersion,
    call_id: callId,
    ...(reservation.identifier === null ? {} : { identifier: reservation.identifier }),
    ...(reservation.place === null ? {} : { place: reservation.place }),
    at,
    owner,
    detail: words(callId),
  }
  return { kind: 'reserve', key, size: 1_000, fields, body: NO_BODY }
}

export function answered(answer: StoredAnswer): MoveFields {
  return {
    detail: `${answer.status}, ${answer.body.length} bytes`,
    answer_status: answer.status,
    answer_headers: JSON.stringify(answer.headers),
  }
}

export function submitted(intent: Intent): MoveFields {
  const chain = intent.kind === 'chain' ? { transaction_hash: intent.transaction } : {}
  return {
    detail: words(intent.kind === 'chain' ? intent.transaction : intent.url),
    intent: JSON.stringify(intent),
    ...chain,
  }
}

/** @param owner who may say that it was never sent */
export function refused({ reason, message, transaction, unsent }: RefusedOutcome, owner: string): MoveFields {
  const reverted = transaction === undefined ? {} : { transaction_hash: transaction }
  const owned = unsent ? { owned: owner } : {}
  return { reason: words(reason), detail: words(`${reason}: ${message}`), ...reverted, ...owned }
}

export function because(reason: string): MoveFields {
  return { reason: words(reason), detail: words(reason) }
}

export type MoveFields = Readonly<Record<string, string | number>>

export function move(
  key: string,
  attempt: number,
  step: Move,
  words: MoveFields,
  { at, owner }: Stamp,
  body: Buffer = NO_BODY,
): Change {
  const state = LEADS_TO[step]
  const fields = { key, attempt, state, allowed: MOVES[step].join(' '), at, owner, ...words }
  return { kind: 'move', key, size: 1_000 + body.length, fields, body }
}

/** The answer has left in full. */
export function deliver(key: string, { at }: Pick<Stamp, 'at'>): Change {
  return { kind: 'deliver', key, size: 100, fields: { key, at }, body: NO_BODY }
}

/** Words from outside, fit for every database: not endless, no NUL, no broken surrogates. */
export function words(text: string): string {
  return Buffer.from(text.slice(0, 500).replaceAll('\0', '')).toString()
}
