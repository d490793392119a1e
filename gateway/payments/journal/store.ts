/**
 * The port of the journal to its database. SQLite and PostgreSQL each implement `Store`, and one test suite covers both.
 * A change travels to the database as one JSON object per row; the statement that writes it also checks state and
 * attempt, so its result is authoritative.
 */
import { AnswerBody } from '../../plugin/answer-body.ts'
import type { HeldAmount, Journal, OpenPayment, PayerLimit } from './journal.ts'
import type { Ending, PaymentState } from './payment-states.ts'
import type { Command } from './group-commit.ts'
import { LIMITED_COLUMNS, payerLimitOf } from './payer-limits.ts'
import { type Row, toAhead, toRecord } from './shared-sql.ts'

/** One row to write. `fields` are columns, as JSON; the body of an answer travels beside them as bytes. */
export interface Change extends Command {
  readonly kind: 'reserve' | 'move' | 'deliver'
  readonly fields: Readonly<Record<string, string | number>>
  readonly body: AnswerBody
}

/** Whether the row allowed the change. For a reservation also the row as it is now: ours, or the one in the way. */
export interface Written {
  readonly done: boolean
  readonly record: OpenPayment | null
  /** The unsettled payments of the same payer that a reservation comes after. */
  readonly ahead: readonly HeldAmount[]
  /** Why its payer may not make a reservation that no row is in the way of. */
  readonly limit?: PayerLimit | null
}

/** The methods of the journal that are one query each. */
export type JournalQueries = Pick<
  Journal,
  | 'ofCalls'
  | 'openPayments'
  | 'list'
  | 'settlements'
  | 'debts'
  | 'dailySums'
  | 'topBuyers'
  | 'events'
  | 'ledgerEntries'
  | 'ledgerTotals'
  | 'dueForLook'
  | 'lookAgain'
  | 'reversals'
  | 'unclear'
  | 'keptAnswers'
  | 'refetched'
>

/** The statements behind the other methods. */
export interface StoreStatements {
  /** The payments with these keys, each at the place of its key; null where there is none. */
  find(keys: readonly string[]): Promise<readonly (OpenPayment | null)[]>
  /** The same for the unreleased payments with these payers and identifiers. */
  findByIdentifier(
    purchases: readonly (readonly [payer: string, identifier: string])[],
  ): Promise<readonly (OpenPayment | null)[]>
  counts(): Promise<readonly { readonly state: PaymentState; readonly count: number }[]>
  /** Makes `owner` the owner of a submitted row. */
  claim(key: string, attempt: number, owner: string, at: number): Promise<boolean>
  repaid(key: string, ending: Ending, note: string, at: number): Promise<boolean>
  decided(key: string, ending: Ending, at: number): Promise<boolean>
  /** Drops the answers of at most `limit` rows settled before this moment (ms) and returns their number. */
  forget(settledBefore: number, limit: number): Promise<number>
  /** Records that this owner is running, and deletes owners not seen since `forgetBefore` (ms). */
  touch(owner: string, at: number, forgetBefore: number): Promise<void>
  leave(owner: string): Promise<void>
  /** Owners seen at or after this moment (ms). */
  seenSince(at: number): Promise<readonly string[]>
}

export interface Store extends StoreStatements {
  readonly queries: JournalQueries
  /** Writes one group, durably and all or nothing. All its changes are of one kind, and no key appears twice. */
  write(group: readonly Change[]): Promise<readonly Written[]>
  /** True if the failed write certainly changed nothing. */
  wroteNothing(error: unknown): boolean
  /** The fault of the database, if that is why a statement failed. Null: the statement failed for itself. */
  failureOf(error: unknown): StorageFailure | null
  close(): Promise<void>
}

/** Why a database cannot be written. */
export interface StorageFailure {
  /** For people. */
  readonly reason: string
  /** The file is damaged, and will not heal by itself. */
  readonly isDamaged?: true
}

/** A group as the two values its statement takes: the fields, and all bodies in one buffer with offsets into it. */
export function encode(group: readonly Pick<Change, 'fields' | 'body'>[]): {
  readonly fields: string
  readonly bodies: Buffer
} {
  let start = 1
  const rows = group.map(({ fields, body }) => {
    const row = { ...fields, body_start: start, body_length: body.length }
    start += body.length
    return row
  })
  return { fields: JSON.stringify(rows), bodies: new AnswerBody(group.flatMap(({ body }) => body.pieces)).bytes }
}

/** Results of moves. `rows` holds the keys of those that the statement moved. */
export function movedResults(group: readonly Change[], rows: readonly Row[]): readonly Written[] {
  const keys = new Set(rows.map((row) => row['key']))
  return group.map(({ key }) => ({ done: keys.has(key), record: null, ahead: [] }))
}

/** Results of deliveries: nobody asks whether one was the first. */
export function deliveredResults(group: readonly Change[]): readonly Written[] {
  return group.map(() => ({ done: true, record: null, ahead: [] }))
}

/**
 * Results of reservations. `rows` are those that the statement reserved. `readBlocking` finds the rows in the way of the
 * others: it takes their key, payer and identifier as JSON and returns each row with the key that `wanted` it. It runs
 * before the next group is written, so it sees the row that really was in the way. `readLimits` takes what the limits of a
 * payer depend on, for those that no row is in the way of, and returns `refusal` for each key.
 */
export async function reservedResults(
  group: readonly Change[],
  rows: readonly Row[],
  readBlocking: (wanted: string) => Promise<readonly Row[]>,
  readLimits: (wanted: string) => Promise<readonly Row[]>,
): Promise<readonly Written[]> {
  const byKey = new Map(rows.map((row) => [row['key'], row]))
  const reserved = new Map(
    group.flatMap(({ key, fields }) => {
      const row = byKey.get(key)
      return row ? [[key, { record: toRecord(row, fields), ahead: toAhead(row) }]] : []
    }),
  )
  const blocked = group
    .filter(({ key }) => !reserved.has(key))
    .map(({ fields: { key, payer, identifier } }) => ({
      key,
      payer,
      ...(identifier === undefined ? {} : { identifier }),
    }))
  // The reservations stand even if this read fails: the other callers try again.
  const found = blocked.length > 0 ? await readBlocking(JSON.stringify(blocked)).catch(() => []) : []
  // A released row blocks nobody: if another payment has the identifier, that one does. Later rows win in the map.
  const ordered = found.toSorted((one, other) => Number(isReleased(other)) - Number(isReleased(one)))
  const blocking = new Map(ordered.map((row) => [row['wanted'], toRecord(row)]))
  const free = group.filter(
    ({ key, fields }) =>
      fields['pays_gas'] === 1 && !reserved.has(key) && (blocking.get(key)?.state ?? 'released') === 'released',
  )
  const limited =
    free.length > 0
      ? await readLimits(JSON.stringify(free.map(({ fields }) => limitedFields(fields)))).catch(() => [])
      : []
  const limits = new Map(limited.map((row) => [row['key'], payerLimitOf(row['refusal'])]))
  return group.map(({ key }) => {
    const own = reserved.get(key)
    if (own) return { done: true, ...own }
    return { done: false, record: blocking.get(key) ?? null, ahead: [], limit: limits.get(key) ?? null }
  })
}

function limitedFields(fields: Change['fields']): Readonly<Record<string, string | number | null>> {
  return Object.fromEntries(LIMITED_COLUMNS.map((column) => [column, fields[column] ?? null]))
}

function isReleased(row: Row): boolean {
  return row['state'] === 'released'
}
