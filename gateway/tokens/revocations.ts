/**
 * Revoked access tokens: a small table whose new rows every process reads four times a second. Verifying a token touches
 * no store, and a revocation takes effect everywhere within a second.
 */
import type { Logger } from 'pino'
import type { Knex } from 'knex'
import { createReady, type Step } from '../stores/migrations.ts'

export interface Revocations {
  /** Ids of the revoked tokens, as last read. */
  readonly ids: ReadonlySet<string>
  /**
   * Revokes a token: here at once, in other processes when they next read the table. Idempotent.
   * @param options.mayEnd `restore` may take the revocation back, unless the token is also revoked for good
   */
  revoke(id: string, reason: string, options?: { readonly mayEnd: boolean }): Promise<void>
  /** Takes a revocation for this reason back: here at once, in other processes within a minute. Idempotent. */
  restore(id: string, reason: string): Promise<void>
  /** Reads what was added to the table, now. */
  read(): Promise<void>
  /** Reads the table now and then regularly. Rejects if the first read fails. */
  start(): Promise<void>
  /** Resolves when nothing is being read any more. */
  stop(): Promise<void>
}

const READ_MS = 250
/** Rows that are this much older than the newest one are read again, because the clocks of machines differ. */
const OVERLAP_MS = 60_000
/** How often all rows are read, for a process whose clock is further behind. */
const READ_ALL_MS = 60_000

const STEPS: readonly Step[] = [
  (db) =>
    db.schema.createTable('revoked_tokens', (table) => {
      table.text('id').primary()
      table.bigInteger('at').notNullable()
      table.text('reason').notNullable()
    }),
  (db) => db.schema.alterTable('revoked_tokens', (table) => table.index('at')),
]

/** Creates the list of revoked tokens, empty until the first read. */
export function createRevocations(db: Knex, log: Pick<Logger, 'warn'>, everyMs = READ_MS): Revocations {
  const ids = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  const ready = createReady(db, 'tokens', STEPS)
  let isStopped = false
  let reading: Promise<void> = Promise.resolve()

  /** When the newest row was written, and when all rows were read. */
  let newest = 0
  let readAllAt = Number.NEGATIVE_INFINITY

  async function read(): Promise<void> {
    await ready()
    const now = performance.now()
    const isAll = now - readAllAt >= READ_ALL_MS
    const since = isAll ? 0 : newest - OVERLAP_MS
    const known = isAll ? [...ids] : []
    const rows = await db<{ id: string; at: number | string }>('revoked_tokens')
      .where('at', '>=', since)
      .select('id', 'at')
    for (const { id, at } of rows) {
      ids.add(id)
      newest = Math.max(newest, Number(at))
    }
    if (!isAll) return
    readAllAt = now
    const revoked = new Set(rows.map(({ id }) => id))
    for (const id of known) if (!revoked.has(id)) ids.delete(id)
  }

  /** While the table cannot be read, the tokens known to be revoked stay refused. */
  function scheduleRead(): void {
    if (isStopped) return
    timer = setTimeout(() => {
      reading = read().catch((error: unknown) => log.warn({ err: error }, 'revoked tokens could not be read'))
      void reading.finally(scheduleRead)
    }, everyMs).unref()
  }

  return {
    ids,
    async revoke(id, reason, { mayEnd } = { mayEnd: false }) {
      await ready()
      const row = db('revoked_tokens').insert({ id, at: Date.now(), reason }).onConflict('id')
      await (mayEnd ? row.ignore() : row.merge(['reason']))
      ids.add(id)
    },
    async restore(id, reason) {
      await ready()
      const restored = await db('revoked_tokens').where({ id, reason }).delete()
      if (restored > 0) ids.delete(id)
    },
    read,
    async start() {
      await read()
      scheduleRead()
    },
    async stop() {
      isStopped = true
      clearTimeout(timer)
      await reading
    },
  }
}
