/** The invariants of the simulation. Pure functions that take facts and return a sentence for each broken invariant. */
import type { JournalEvent, PaymentRecord } from '../../../gateway/payments/journal/journal.ts'
import type { Bought, Purchase } from './buyers.ts'

export interface Facts {
  readonly purchases: readonly Purchase[]
  /** Row and events of every payment in the journal. */
  readonly rows: ReadonlyMap<string, { readonly record: PaymentRecord; readonly events: readonly JournalEvent[] }>
  /** Amounts that the chain has moved, by payment. */
  readonly transfers: ReadonlyMap<string, bigint>
  /** Payments among `transfers` that a stranger sent after seeing the authorization. */
  readonly strangers: ReadonlySet<string>
  /** Payments whose block was undone after they had been settled. */
  readonly undone: ReadonlySet<string>
}

/**
 * The states of one attempt: released before anything was sent, or sent and settled or released. A transfer that arrives
 * after the release is owed.
 */
const ATTEMPT =
  /^reserved( answered)?( released| submitted( released| settled| owed| settled owed)?)?((?<=released) settled( owed)?)?$/

/** Checks the invariants that hold at every moment. */
export function checkAlways({ purchases, rows, transfers, strangers, undone }: Facts): string[] {
  const broken: string[] = []
  for (const purchase of purchases) {
    // A stranger may send a payment after its buyer was told that nothing was charged. In the end it must then be owed.
    const charged = purchase.payments.filter(({ payment: { key } }) => transfers.has(key) && !strangers.has(key))
    if (charged.length > 1) broken.push(`${purchase.word} was charged ${charged.length} times`)
    for (const { abandoned, payment } of charged)
      if (abandoned) broken.push(`${payment.key} was charged after its buyer was told that it was not`)
    for (const { payment, body, last, answers } of purchase.payments) {
      // After a reorganisation, the payment of a route that does not wait for finality is released and may buy once more.
      const attempts = purchase.fast && undone.has(payment.key) ? (rows.get(payment.key)?.record.attempt ?? 1) : 1
      if (answers.size > attempts)
        broken.push(`${payment.key} got ${answers.size} different answers for ${[...answers.values()].join()}`)
      if (last === 'refused' && body === null)
        broken.push(`${payment.key} was refused to a buyer who never got its answer`)
      // Only a route that does not wait for finality may deliver without payment, and only after a reorganisation.
      if (body !== null && !transfers.has(payment.key) && !(purchase.fast && undone.has(payment.key)))
        broken.push(`${payment.key} was delivered unpaid`)
    }
  }
  for (const [key, { record, events }] of rows) {
    const attempts = grouped(events)
    for (const [attempt, steps] of attempts) {
      const path = steps.map(({ state }) => state).join(' ')
      if (!ATTEMPT.test(path)) broken.push(`${key} took the path "${path}"`)
      if (attempt < record.attempt && !path.endsWith('released'))
        broken.push(`${key} was reserved again after "${path}"`)
    }
    const last = events.at(-1)
    if (last?.state !== record.state || last.attempt !== record.attempt)
      broken.push(`${key} is not in the state of its last event`)
  }
  return broken
}

/** Checks the invariants that hold once nothing is in progress and every buyer has come back. */
export function checkAtEnd({ purchases, rows, transfers, strangers }: Facts): string[] {
  const broken: string[] = []
  const isOwed = (key: string): boolean => rows.get(key)?.record.state === 'owed'
  for (const { word, payments } of purchases) {
    const charged = payments.filter(({ payment: { key } }) => transfers.has(key) && !isOwed(key))
    if (charged.length > 1) broken.push(`${word} was charged ${charged.length} times and nothing is owed for it`)
    for (const { abandoned, payment } of charged)
      if (abandoned) broken.push(`${payment.key} was charged after its buyer was told that it was not, and is not owed`)
  }
  const settled = [...rows.values()].filter(({ record }) => record.state === 'settled' || record.state === 'owed')
  const [inJournal, onChain] = [
    settled.reduce((sum, { record }) => sum + record.amount, 0n),
    [...transfers.values()].reduce((sum, amount) => sum + amount, 0n),
  ]
  if (inJournal !== onChain) broken.push(`the journal has ${inJournal} settled and the chain moved ${onChain}`)
  for (const [key, { record }] of rows) {
    if (!['settled', 'released', 'owed'].includes(record.state)) broken.push(`${key} is left ${record.state}`)
    if (record.state === 'settled' && record.answer === null) broken.push(`${key} has no answer and is not owed`)
    if (record.state === 'owed' && !strangers.has(key)) broken.push(`${key} is owed for what we sent ourselves`)
    if ((record.state === 'settled' || record.state === 'owed') !== transfers.has(key))
      broken.push(`${key} is ${record.state} and the chain says otherwise`)
  }
  const boughtByKey = new Map(
    purchases.flatMap(({ payments }) => payments.map((bought): [string, Bought] => [bought.payment.key, bought])),
  )
  for (const key of transfers.keys())
    if (boughtByKey.get(key)?.body === null && rows.get(key)?.record.state !== 'owed')
      broken.push(`${key} was paid, and neither delivered nor owed`)
  return broken
}

/** Returns true if events were only added and none was changed. */
export function appended(before: readonly JournalEvent[], after: readonly JournalEvent[]): boolean {
  return before.every((event, at) => JSON.stringify(event) === JSON.stringify(after[at]))
}

function grouped(events: readonly JournalEvent[]): Map<number, JournalEvent[]> {
  const attempts = new Map<number, JournalEvent[]>()
  for (const event of events) attempts.set(event.attempt, [...(attempts.get(event.attempt) ?? []), event])
  return attempts
}
