/** Words that count once, for all processes on one database. */
import type { Knex } from 'knex'
import { createReady, type Step } from './migrations.ts'

export interface Once {
  /** True for whoever says the word first; false for everybody else until `ends`, when it is forgotten. */
  first(word: string, ends: Date): Promise<boolean>
}

interface WordRow {
  readonly word: string
  /** Milliseconds since the epoch. */
  readonly ends_at: number
}

const STEPS: readonly Step[] = [
  (db) =>
    db.schema.createTable('used_words', (table) => {
      table.text('word').primary()
      table.bigInteger('ends_at').notNullable().index()
    }),
]

export function createOnce(db: Knex, now: () => Date): Once {
  const ready = createReady(db, 'once', STEPS)

  return {
    async first(word, ends) {
      await ready()
      await db<WordRow>('used_words').where('ends_at', '<=', now().getTime()).delete()
      const row = { word, ends_at: ends.getTime() }
      const written = await db<WordRow>('used_words').insert(row).onConflict('word').ignore().returning('word')
      return written.length === 1
    },
  }
}
