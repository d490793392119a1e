/** A job runs in one process at a time: whoever holds its lease. */
import type { Knex } from 'knex'
import { identify, isGone, retire } from './instance.ts'
import { createReady, type Step } from './migrations.ts'

export interface Lease {
  /**
   * True where this process holds the lease `name` for the next `seconds`: it was free, its time had run out, its
   * holder is dead, or it was ours already and is now prolonged.
   */
  hold(name: string, seconds: number): Promise<boolean>
  /** Gives up all leases of this process, so that another need not wait for their end. */
  end(): Promise<void>
}

interface LeaseRow {
  readonly name: string
  readonly holder: string
  /** Milliseconds since the epoch. */
  readonly ends_at: number
}

const STEPS: readonly Step[] = [
  (db) =>
    db.schema.createTable('leases', (table) => {
      table.text('name').primary()
      table.text('holder').notNullable()
      table.bigInteger('ends_at').notNullable()
    }),
]

/** `instance` is a word for this opening of the database, never used again after a restart. */
export function createLease(db: Knex, instance: string, now: () => Date): Lease {
  const holder = identify(instance)
  const ready = createReady(db, 'leases', STEPS)

  /** Writes our name where the lease is free, ours, or `deadHolder`'s. One statement: only one process succeeds. */
  async function take(name: string, seconds: number, deadHolder: string): Promise<boolean> {
    const at = now().getTime()
    const taken = await db<LeaseRow>('leases')
      .insert({ name, holder, ends_at: at + seconds * 1000 })
      .onConflict('name')
      .merge()
      .where((free) => void free.whereIn('leases.holder', [holder, deadHolder]).orWhere('leases.ends_at', '<=', at))
      .returning('name')
    return taken.length === 1
  }

  return {
    async hold(name, seconds) {
      await ready()
      if (await take(name, seconds, holder)) return true
      const row = await db<LeaseRow>('leases').where({ name }).first()
      return row !== undefined && isGone(row.holder) && take(name, seconds, row.holder)
    },
    async end() {
      await ready()
      await db<LeaseRow>('leases').where({ holder }).delete()
      retire(holder)
    },
  }
}
