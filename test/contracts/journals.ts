/** An empty journal in each database, with a clock that only the test moves. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openJournal } from '../../gateway/payments/journal/open-journal.ts'
import { connect } from '../../gateway/payments/journal/sqlite-connection.ts'
import type { Journal } from '../../gateway/payments/journal/journal.ts'
import { openSchema } from './postgres.ts'

export interface TestJournal {
  /** The clock in ms, which the test sets. */
  now: number
  /** Opens it once more, as another process would; null in memory. */
  readonly open: (() => Promise<Journal>) | null
  /** Runs an SQL statement, as an operator could, and returns its rows; null in memory. */
  readonly sql: ((text: string) => Promise<readonly object[]>) | null
  readonly journal: Journal
  drop(): Promise<void>
}

export const JOURNALS: Readonly<Record<string, () => Promise<TestJournal | null>>> = {
  memory: () => journalAt({ file: ':memory:' }, null, async () => {}),

  'a SQLite file': () => {
    const folder = mkdtempSync(join(tmpdir(), 'journal-'))
    const file = join(folder, 'journal.sqlite')
    const sql = async (text: string): Promise<readonly object[]> => {
      const connection = await connect(file, 'write')
      try {
        return await connection.run(text)
      } finally {
        await connection.close()
      }
    }
    return journalAt({ file }, sql, async () => rmSync(folder, { recursive: true }))
  },

  PostgreSQL: async () => {
    const schema = await openSchema()
    return schema && journalAt({ url: schema.url }, schema.sql, schema.drop)
  },
}

async function journalAt(
  address: { readonly file: string } | { readonly url: string },
  sql: TestJournal['sql'],
  remove: () => Promise<void>,
): Promise<TestJournal> {
  const opened: Journal[] = []
  const clock = { now: 1_770_000_000_000 }
  const open = async (): Promise<Journal> => {
    const journal = await openJournal({ ...address, now: () => new Date(clock.now) })
    opened.push(journal)
    return journal
  }
  return Object.assign(clock, {
    sql,
    journal: await open(),
    open: sql && open,
    async drop() {
      for (const journal of opened) await journal.close()
      await remove()
    },
  })
}
