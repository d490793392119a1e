/** What a database does for the journal. SQLite and PostgreSQL each have one, and one suite proves both. */
import type { JournalEvent, OpenPayment, PaymentFilter, PaymentRecord, PaymentState } from '../payment.ts'
import type { Change } from './changes.ts'

export interface Store {
  /**
   * Writes one group, all of one kind and no key twice, durably and all or nothing. Per change: the record as it is
   * now (reserve), true (move), or null where the row did not allow it.
   */
  write(group: readonly Change[]): Promise<readonly (OpenPayment | true | null)[]>
  /** True where the failed write certainly left no trace. */
  wroteNothing(error: unknown): boolean
  repaid(key: string, note: string, at: number): Promise<boolean>
  /** Drops the answers of at most `limit` rows settled before; returns how many. */
  forget(settledBefore: number, limit: number): Promise<number>
  find(key: string): Promise<PaymentRecord | null>
  open(): Promise<readonly OpenPayment[]>
  list(filter: PaymentFilter): Promise<readonly PaymentRecord[]>
  debts(): Promise<readonly PaymentRecord[]>
  counts(): Promise<readonly { readonly state: PaymentState; readonly count: number }[]>
  events(key: string): Promise<readonly JournalEvent[]>
  /** This process is alive; those not heard of since `forgetBefore` are struck off. */
  touch(instance: string, at: number, forgetBefore: number): Promise<void>
  leave(instance: string): Promise<void>
  seenSince(at: number): Promise<readonly string[]>
  close(): Promise<void>
}
