/** Leases: of several processes that share a database, only the holder of a lease does its work. */
import type { Knex } from 'knex'
import { identify, isGone, retire } from './process-identity.ts'
import { createReady, type Step } from './migrations.ts'

export interface Lease {
  /**
   * Takes or renews the lease `name` for the next `seconds`. Returns true if this process holds it now: it was free, had
   * expired, its holder is dead, or it was ours already.
   */
  hold(name: string, seconds: number): Promise<boolean>
  /** Releases all leases of this process, so that others need not wait until they expire. */
  end(): Promise<void>
}

/**
 * How long a lease is taken for, and how often its holder renews it and others try to take it. After its holder has died
 * on another machine a lease moves within 25 seconds, and on the same machine within 5.
 */
export const LEASE_SECONDS = 20
export const RENEW_SECONDS = 5

/** A lease that is renewed for as long as its work goes on. */
export interface KeptLease {
  /**
   * Returns true if this process holds the lease now. From the first call on it is renewed, or tried for. False once it was
   * stopped, also for a call under way.
   */
  hold(): Promise<boolean>
  /** Resolves when nothing uses the database any more. */
  stop(): Promise<void>
}

/**
 * Keeps the lease `name`. `onError` gets the errors of renewals; each is followed by another try. `onLost` is called when
 * another process has taken the lease: this one was suspended, or could not renew it in time.
 */
export function keepLease(
  lease: Pick<Lease, 'hold'>,
  name: string,
  onError: (error: unknown) => void,
  onLost: () => void = () => {},
): KeptLease {
  const underWay = new Set<Promise<boolean>>()
  let isOurs = false
  let isStopped = false
  let timer: NodeJS.Timeout | undefined
  async function hold(): Promise<boolean> {
    if (isStopped) return false
    const held = lease.hold(name, LEASE_SECONDS)
    underWay.add(held)
    try {
      const wasOurs = isOurs
      isOurs = await held
      if (wasOurs && !isOurs) onLost()
      return isOurs && !isStopped
    } finally {
      underWay.delete(held)
    }
  }
  return {
    hold() {
      timer ??= setInterval(() => void hold().catch(onError), RENEW_SECONDS * 1000).unref()
      return hold()
    },
    async stop() {
      isStopped = true
      clearInterval(timer)
      await Promise.allSettled(underWay)
    },
  }
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

/** `instance` names this opening of the database; it must differ after a restart. */
export function createLease(db: Knex, instance: string, now: () => Date): Lease {
  const holder = identify(instance)
  const ready = createReady(db, 'leases', STEPS)

  /** Takes the lease if it is free, ours, or `deadHolder`'s. It is one statement, so only one process succeeds. */
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
