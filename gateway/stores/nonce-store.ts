/** Nonces that may be used once, across all processes that share a database. */
import type { Knex } from 'knex'
import { createReady, type Step } from './migrations.ts'

export interface NonceStore {
  /**
   * Returns true the first time a nonce is seen and false afterwards, whichever process saw it first. The nonce is
   * forgotten at `expires`.
   */
  use(nonce: string, expires: Date): Promise<boolean>
}

interface NonceRow {
  readonly word: string
  /** Milliseconds since the epoch. */
  readonly ends_at: number
}

const TABLE = 'used_words'

const STEPS: readonly Step[] = [
  (db) =>
    db.schema.createTable(TABLE, (table) => {
      table.text('word').primary()
      table.bigInteger('ends_at').notNullable().index()
    }),
]

/** Creates the store; its table is created on first use. */
export function createNonceStore(db: Knex, now: () => Date): NonceStore {
  const ready = createReady(db, 'once', STEPS)

  return {
    async use(nonce, expires) {
      await ready()
      await db<NonceRow>(TABLE).where('ends_at', '<=', now().getTime()).delete()
      const row = { word: nonce, ends_at: expires.getTime() }
      const written = await db<NonceRow>(TABLE).insert(row).onConflict('word').ignore().returning('word')
      return written.length === 1
    },
  }
}
