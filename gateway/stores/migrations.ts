/** Migrations: each step runs once and in order, even if two processes start at the same time. */
import type { Knex } from 'knex'
import type { OpenDatabase } from './database.ts'

export type Step = (db: OpenDatabase) => Promise<void>

/**
 * Runs the steps of `name` that have not run yet, each in one transaction with its record in the table `migrations`.
 * Only append to a list of steps: a step is identified by its position. Recorded steps beyond the list are ignored, so
 * that an earlier release still starts. Throws what a step throws; that step and the later ones have no effect.
 */
export async function migrate(db: Knex, name: string, steps: readonly Step[]): Promise<void> {
  if (steps.length === 0) return
  await createTable(db)
  const done = await db('migrations').where({ name }).max<{ step: number | null }[]>({ step: 'step' })
  for (const [at, step] of steps.entries()) {
    const number = at + 1
    if (number <= (done[0]?.step ?? 0)) continue
    await db.transaction(async (transaction) => {
      // Row 0 is a lock, held until the end of the transaction by the process that comes first.
      await transaction('migrations').insert({ name, step: 0, at: Date.now() }).onConflict(['name', 'step']).merge()
      if (await transaction('migrations').where({ name, step: number }).first('step')) return
      await step(transaction as unknown as OpenDatabase)
      await transaction('migrations').insert({ name, step: number, at: Date.now() })
    })
  }
}

/** Returns a function to await before each use of the tables: it runs the steps once, and retries after a failure. */
export function createReady(db: Knex, name: string, steps: readonly Step[]): () => Promise<void> {
  let ready: Promise<void> | null = null
  return async () => {
    ready ??= migrate(db, name, steps)
    await ready.catch((error: unknown) => {
      ready = null
      throw error
    })
  }
}

async function createTable(db: Knex): Promise<void> {
  try {
    await db.raw(
      'create table if not exists migrations (name text not null, step integer not null, at bigint not null, primary key (name, step))',
    )
  } catch (error) {
    // In PostgreSQL, if two processes create the table at the same moment, one of them fails.
    if (!(await db.schema.hasTable('migrations'))) throw error
  }
}
