/** Made-up payments for tests of the journal. */
import { AnswerBody } from '../../gateway/plugin/answer-body.ts'
import { randomBytes } from 'node:crypto'
import type { Journal, Reservation, StoredAnswer } from '../../gateway/payments/journal/journal.ts'
import type { PaymentState } from '../../gateway/payments/journal/payment-states.ts'
import type { ChainIntent } from '../../gateway/methods/exact-evm/settlement-intent.ts'
import type { Hex } from '../../gateway/config/networks.ts'

const hex = (bytes: number): Hex => `0x${randomBytes(bytes).toString('hex')}`

export const TRANSACTION: Hex = `0x${'ab'.repeat(32)}`
export const REFUSED = { state: 'refused', reason: 'insufficient_funds', message: 'The payer has too little.' } as const

export const INTENT: ChainIntent = {
  kind: 'chain',
  transaction: TRANSACTION,
  raw: '0x02f8',
  sender: `0x${'5e'.repeat(20)}`,
  senderNonce: 7,
  fromBlock: 1234,
}

export function answerOf(text: string): StoredAnswer {
  return { status: 200, headers: { 'content-type': 'application/json' }, body: AnswerBody.of(text) }
}

/** A new payment of 5000 units. */
export function reservationOf(change: Partial<Reservation> = {}): Reservation {
  const identity = change.identity ?? hex(32)
  return {
    key: `eip155:84532/0x036c/0xbuyer/${identity}`,
    fingerprint: 'a'.repeat(64),
    operation: 'getEcho',
    route: 'GET /v1/echo',
    network: 'eip155:84532',
    asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    payer: '0x00000000000000000000000000000000000000B1',
    payTo: '0x00000000000000000000000000000000000000A1',
    amount: 5000n,
    identity,
    startsAt: 0n,
    expiresAt: 2_000_000_000n,
    proof: hex(65),
    version: 2,
    priceVersion: 'c0ffee',
    callId: 'call-1',
    identifier: null,
    place: null,
    ...change,
  }
}

export const SHORT_ANSWER = answerOf('{"ok":true}')

/** Every move of the state machine, by the name of its method. */
export const STEPS = {
  answered: (journal: Journal, key: string, attempt: number) => journal.answered(key, attempt, SHORT_ANSWER),
  submitted: (journal: Journal, key: string, attempt: number) => journal.submitted(key, attempt, INTENT),
  submittedWithAnswer: (journal: Journal, key: string, attempt: number) =>
    journal.submitted(key, attempt, INTENT, { answer: SHORT_ANSWER }),
  settled: (journal: Journal, key: string, attempt: number) => journal.settled(key, attempt, TRANSACTION),
  released: (journal: Journal, key: string, attempt: number) => journal.released(key, attempt, 'product_failed'),
  refused: (journal: Journal, key: string, attempt: number) => journal.refused(key, attempt, REFUSED),
  settledLate: (journal: Journal, key: string, attempt: number) =>
    journal.settledLate(key, attempt, TRANSACTION, 'late'),
  owed: (journal: Journal, key: string, attempt: number) => journal.owed(key, attempt, 'the answer is lost'),
  reversed: (journal: Journal, key: string, attempt: number) => journal.reversed(key, attempt, 'reorganised'),
  settledByOthers: (journal: Journal, key: string, attempt: number) =>
    journal.settledByOthers(key, attempt, TRANSACTION, 'owed: sent by others'),
  settledAgain: (journal: Journal, key: string, attempt: number) => journal.settledAgain(key, attempt, TRANSACTION),
} as const

export type Step = keyof typeof STEPS

/** The steps that bring a reserved payment to each state. */
export const PATHS: Readonly<Record<PaymentState, readonly Step[]>> = {
  reserved: [],
  answered: ['answered'],
  submitted: ['submittedWithAnswer'],
  settled: ['submittedWithAnswer', 'settled'],
  released: ['released'],
  owed: ['submittedWithAnswer', 'settled', 'owed'],
  reversed: ['submittedWithAnswer', 'settled', 'reversed'],
}

/** Long answers: one that all buy, and one for each payment. */
export const longAnswers = (key: string): readonly [StoredAnswer, StoredAnswer] => [
  answerOf('of all '.repeat(3_000)),
  answerOf(`of ${key} `.repeat(200)),
]

/** Reserves a new payment and settles it with a long answer, of all or its own. Returns its key. */
export async function paymentForLongAnswer(journal: Journal, which: 0 | 1): Promise<string> {
  const { key } = reservationOf()
  await journal.reserve(reservationOf({ key }))
  const answer = longAnswers(key)[which]
  if (!(await journal.submitted(key, 1, INTENT, { answer }))) throw new Error('submitted was refused')
  if (!(await journal.settled(key, 1, TRANSACTION))) throw new Error('settled was refused')
  return key
}

/** Reserves a new payment and takes it to `state`. Returns its key. */
export async function paymentIn(
  journal: Journal,
  state: PaymentState,
  change: Partial<Reservation> = {},
): Promise<string> {
  const reservation = reservationOf(change)
  const { reserved } = await journal.reserve(reservation)
  if (!reserved) throw new Error('the payment was there already')
  for (const step of PATHS[state])
    if (!(await STEPS[step](journal, reservation.key, 1))) throw new Error(`${step} was refused`)
  return reservation.key
}
