/** Finds payments by what a buyer who asks about one knows, and tells what became of each. */
import type { Journal, PaymentFilter, PaymentRecord } from '../payments/journal/journal.ts'
import { InvalidInput } from '../errors.ts'

type SearchedJournal = Pick<Journal, 'list' | 'events'>

/** Their answers are read too. */
const MAX_FOUND = 20

/** What a search text can be. */
const KINDS = [
  { kind: 'payer', pattern: /^0x[0-9a-f]{40}$/i, filter: (payer: string) => ({ payer }) },
  { kind: 'transaction', pattern: /^0x[0-9a-f]{64}$/i, filter: (transaction: string) => ({ transaction }) },
  {
    kind: 'call',
    pattern: /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
    filter: (call: string) => ({ call: call.toLowerCase() }),
  },
] as const

const UNREADABLE =
  'Is no wallet (0x and 40 digits), no transaction (0x and 64 digits) and no call id (x-call-id of an answer).'

/**
 * Finds payments, newest first, at most 20. An empty text finds none.
 * @throws InvalidInput for a text that is neither a wallet nor a transaction nor a call id
 */
export async function searchPayments(journal: SearchedJournal, text: string) {
  const query = text.trim()
  if (query === '') return { query, searched: null, payments: [], more: false }
  const kind = KINDS.find(({ pattern }) => pattern.test(query))
  if (!kind) throw new InvalidInput([{ loc: ['query', 'q'], msg: UNREADABLE, type: 'value_error' }])
  const filter: PaymentFilter = { ...kind.filter(query), limit: MAX_FOUND + 1 }
  const found = await journal.list(filter)
  const payments = await Promise.all(
    found.slice(0, MAX_FOUND).map(async (record) => ({
      ...stateOf(record),
      events: (await journal.events(record.key)).map(eventToJson),
    })),
  )
  return { query, searched: kind.kind, payments, more: found.length > MAX_FOUND }
}

const iso = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString())

function stateOf(record: PaymentRecord) {
  const { key, state, network, payer, amount, operation, route, callId, transaction, reason, answer } = record
  return {
    payment: key,
    state,
    meaning: meaningOf(record),
    network,
    payer,
    amount: String(amount),
    operation,
    route,
    call: callId,
    transaction,
    reason,
    answer_kept: answer !== null,
    created_at: iso(record.createdAt),
    settled_at: iso(record.settledAt),
    delivered_at: iso(record.deliveredAt),
    expires_at: iso(Number(record.expiresAt) * 1000),
  }
}

const AGAIN =
  'The same payment with the same request gets it again, with its Idempotency-Key or a sign-in of the wallet.'

/** What the buyer can be told. */
function meaningOf({ state, deliveredAt, answer }: PaymentRecord): string {
  switch (state) {
    case 'reserved':
      return 'The call is running. Nothing is charged yet.'
    case 'answered':
    case 'submitted':
      return 'The answer is made and its payment is being settled. The same request with the same payment waits for it.'
    case 'settled':
      if (deliveredAt !== null) return `Charged, and the whole answer was sent.${answer ? ` ${AGAIN}` : ''}`
      return answer
        ? `Charged, and the answer has not arrived. ${AGAIN}`
        : 'Charged, and the answer has not arrived and is kept no more.'
    case 'released':
      return 'Nothing was charged.'
    case 'owed':
      return 'Charged, and the answer is lost: send the money back, and record that in the ledger.'
    case 'reversed':
      return 'A reorganisation of the chain took the money back after the answer was sent.'
  }
}

function eventToJson({ at, attempt, state, cause, note }: Awaited<ReturnType<Journal['events']>>[number]) {
  return { at: new Date(at).toISOString(), attempt, state, cause: cause ?? null, note }
}
