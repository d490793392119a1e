/**
 * Counts of calls in a minute, an hour or a day, for all processes that share a database. A call is counted before it is
 * admitted, in one statement, so there are never more than the limit, whichever processes they come to. The database
 * counts rather than Redis because these numbers are promises: they must survive a restart and never be counted twice.
 */
import type { Knex } from 'knex'
import type { CallLimit } from '../plugin/catalog.ts'
import { createReady, type Step } from './migrations.ts'
import { sharedName } from './shared-limit.ts'

/** What became of a call that was to be counted. */
export interface CallCount {
  /** False if the limit was reached: the call was not counted. */
  readonly isWithin: boolean
  /** How many calls are left until `renewsAt`. */
  readonly left: number
  readonly renewsAt: Date
  readonly renewsInSeconds: number
  /** Takes the call back. Does nothing the second time. */
  giveBack(): Promise<void>
}

export interface CallCounts {
  /** Counts a call of a caller under a name, unless the limit is reached. Rejects if the database cannot be written. */
  count(name: string, caller: string, limit: CallLimit): Promise<CallCount>
}

const TABLE = 'call_counts'
const PERIOD_MS: Readonly<Record<CallLimit['per'], number>> = { minute: 60_000, hour: 3_600_000, day: 86_400_000 }
/** How often what has ended is deleted. */
const CLEAN_MS = 60_000

interface CountRow {
  readonly name: string
  /** Milliseconds since the epoch. */
  readonly ends_at: number
  readonly calls: number
}

const STEPS: readonly Step[] = [
  (db) =>
    db.schema.createTable(TABLE, (table) => {
      table.text('name').notNullable()
      table.bigInteger('ends_at').notNullable().index()
      table.integer('calls').notNullable()
      table.primary(['name', 'ends_at'])
    }),
]

/** When the present period ends. A day ends at midnight UTC. */
export function endOf(per: CallLimit['per'], now: Date): Date {
  const ms = PERIOD_MS[per]
  return new Date((Math.floor(now.getTime() / ms) + 1) * ms)
}

/** Creates the counts; their table is created on first use. */
export function createCallCounts(db: Knex, now: () => Date): CallCounts {
  const ready = createReady(db, 'call-counts', STEPS)
  let cleanedAt = Number.NEGATIVE_INFINITY

  async function clean(at: number): Promise<void> {
    if (at - cleanedAt < CLEAN_MS) return
    cleanedAt = at
    // Clocks of processes differ: another one may still count in a period that has ended here.
    await db<CountRow>(TABLE)
      .where('ends_at', '<=', at - CLEAN_MS)
      .delete()
  }

  return {
    async count(name, caller, { calls: most, per }) {
      await ready()
      const at = now()
      const renewsAt = endOf(per, at)
      const renewsInSeconds = (renewsAt.getTime() - at.getTime()) / 1000
      await clean(at.getTime())
      const key = { name: sharedName(name, caller), ends_at: renewsAt.getTime() }
      const [counted] = await db<CountRow>(TABLE)
        .insert({ ...key, calls: 1 })
        .onConflict(['name', 'ends_at'])
        .merge({ calls: db.raw('?? + 1', [`${TABLE}.calls`]) as unknown as number })
        .where(`${TABLE}.calls`, '<', most)
        .returning('calls')
      if (!counted) return { isWithin: false, left: 0, renewsAt, renewsInSeconds, giveBack: async () => {} }
      let isCounted = true
      return {
        isWithin: true,
        left: most - counted.calls,
        renewsAt,
        renewsInSeconds,
        async giveBack() {
          if (!isCounted) return
          isCounted = false
          await db<CountRow>(TABLE).where(key).where('calls', '>', 0).decrement('calls', 1)
        },
      }
    },
  }
}
