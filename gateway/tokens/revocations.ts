/**
 * Revoked access tokens: a small table that every process reads every two seconds. Verifying a token touches no store,
 * and a revocation takes effect everywhere within five seconds.
 */
import type { Logger } from 'pino'
import type { Knex } from 'knex'
import { createReady, type Step } from '../stores/migrations.ts'

export interface Revocations {
  /** Ids of the revoked tokens, as last read. */
  readonly ids: ReadonlySet<string>
  /** Revokes a token: here at once, in other processes when they next read the table. Idempotent. */
  revoke(id: string, reason: string): Promise<void>
  /** Reads the table now. */
  read(): Promise<void>
  /** Reads the table now and then regularly. Rejects if the first read fails. */
  start(): Promise<void>
  stop(): void
}

const READ_MS = 2_000

const STEPS: readonly Step[] = [
  (db) =>
    db.schema.createTable('revoked_tokens', (table) => {
      table.text('id').primary()
      table.bigInteger('at').notNullable()
      table.text('reason').notNullable()
    }),
]

/** Creates the list of revoked tokens, empty until the first read. */
export function createRevocations(db: Knex, log: Pick<Logger, 'warn'>, everyMs = READ_MS): Revocations {
  const ids = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  const ready = createReady(db, 'tokens', STEPS)
  let isStopped = false

  async function read(): Promise<void> {
    await ready()
    for (const { id } of await db<{ id: string }>('revoked_tokens').select('id')) ids.add(id)
  }

  /** While the table cannot be read, the tokens known to be revoked stay refused. */
  function scheduleRead(): void {
    if (isStopped) return
    timer = setTimeout(() => {
      read()
        .catch((error: unknown) => log.warn({ err: error }, 'revoked tokens could not be read'))
        .finally(scheduleRead)
    }, everyMs).unref()
  }

  return {
    ids,
    async revoke(id, reason) {
      await ready()
      await db('revoked_tokens').insert({ id, at: Date.now(), reason }).onConflict('id').ignore()
      ids.add(id)
    },
    read,
    async start() {
      await read()
      scheduleRead()
    },
    stop() {
      isStopped = true
      clearTimeout(timer)
    },
  }
}
