/** What a database does for the journal. SQLite and PostgreSQL each have one, and one suite proves both. */
import type {
  JournalEvent,
  OpenPayment,
  PaymentFilter,
  PaymentRecord,
  PaymentState,
  PaymentSum,
  EntryTotal,
  EntryWindow,
  LedgerEntry,
} from './journal.ts'
import type { Change } from './changes.ts'
import { type Row, toRecord } from './record.ts'

/** Whether the row allowed the change; for a reservation also the row as it is now, ours or the one in the way. */
export interface Written {
  readonly done: boolean
  readonly record: OpenPayment | null
}

export interface Store {
  /** Writes one group, all of one kind and no key twice, durably and all or nothing. */
  write(group: readonly Change[]): Promise<readonly Written[]>
  /** True where the failed write certainly left no trace. */
  wroteNothing(error: unknown): boolean
  /** Moves a submitted row to this owner. */
  claim(key: string, attempt: number, owner: string, at: number): Promise<boolean>
  repaid(key: string, note: string, at: number): Promise<boolean>
  /** Drops the answers of at most `limit` rows settled before; returns how many. */
  forget(settledBefore: number, limit: number): Promise<number>
  find(key: string): Promise<PaymentRecord | null>
  identified(payer: string, identifier: string): Promise<PaymentRecord | null>
  open(): Promise<readonly OpenPayment[]>
  list(filter: PaymentFilter): Promise<readonly PaymentRecord[]>
  debts(): Promise<readonly PaymentRecord[]>
  sums(settledSince: number, own: readonly string[]): Promise<readonly PaymentSum[]>
  counts(): Promise<readonly { readonly state: PaymentState; readonly count: number }[]>
  events(key: string): Promise<readonly JournalEvent[]>
  entries(window: EntryWindow): Promise<readonly LedgerEntry[]>
  totals(window: Pick<EntryWindow, 'from' | 'before'>, own: readonly string[]): Promise<readonly EntryTotal[]>
  /** This process is alive; those not heard of since `forgetBefore` are struck off. */
  touch(instance: string, at: number, forgetBefore: number): Promise<void>
  leave(instance: string): Promise<void>
  seenSince(at: number): Promise<readonly string[]>
  close(): Promise<void>
}

/** Results of moves: the statement returned the keys of those it moved. */
export function moved(group: readonly Change[], rows: readonly Row[]): readonly Written[] {
  const keys = new Set(rows.map((row) => row['key']))
  return group.map(({ key }) => ({ done: keys.has(key), record: null }))
}

/**
 * Results of reservations: the statement returned the rows it took, and `read` finds what is in the way of the others
 * (JSON: key, payer and identifier of each), each row with the key that `wanted` it. It reads before the next group is
 * written, so the row in the way is the one that was.
 */
export async function reserved(
  group: readonly Change[],
  rows: readonly Row[],
  read: (wanted: string) => Promise<readonly Row[]>,
): Promise<readonly Written[]> {
  const taken = new Map(rows.map((row) => [row['key'], toRecord(row)]))
  const left = group.filter(({ key }) => !taken.has(key)).map(({ fields }) => wanted(fields))
  // What was taken stands, even should this read fail: the others then simply ask again.
  const found = left.length > 0 ? await read(JSON.stringify(left)).catch(() => []) : []
  // A released row stands in nobody's way: where another payment has the identifier, that one does.
  const standing = found.toSorted((one, other) => Number(isReleased(other)) - Number(isReleased(one)))
  const inTheWay = new Map(standing.map((row) => [row['wanted'], toRecord(row)]))
  return group.map(({ key }) => ({ done: taken.has(key), record: taken.get(key) ?? inTheWay.get(key) ?? null }))
}

function wanted({ key, payer, identifier }: Change['fields']): Change['fields'] {
  return { key, payer, ...(identifier === undefined ? {} : { identifier }) } as Change['fields']
}

function isReleased(row: Row): boolean {
  return row['state'] === 'released'
}
