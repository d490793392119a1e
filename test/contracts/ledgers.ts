/** The forms of the ledger, each empty and with a clock that stands. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openJournal } from '../../gateway/payments/journal/open-journal.ts'
import { connect } from '../../gateway/payments/journal/sqlite.ts'
import type { Journal } from '../../gateway/payments/journal/journal.ts'
import type { Ledger } from './journal.ts'
import { openSchema } from './postgres.ts'

export const LEDGERS: Readonly<Record<string, () => Promise<Ledger | null>>> = {
  memory: () => ledgerOf({ file: ':memory:' }, null, async () => {}),

  'a SQLite file': () => {
    const folder = mkdtempSync(join(tmpdir(), 'ledger-'))
    const file = join(folder, 'journal.sqlite')
    const sql = async (text: string): Promise<void> => {
      const connection = await connect(file, 'write')
      try {
        await connection.run(text)
      } finally {
        await connection.close()
      }
    }
    return ledgerOf({ file }, sql, async () => rmSync(folder, { recursive: true }))
  },

  PostgreSQL: async () => {
    const schema = await openSchema()
    return schema && ledgerOf({ url: schema.url }, schema.sql, schema.drop)
  },
}

async function ledgerOf(
  address: { readonly file: string } | { readonly url: string },
  sql: Ledger['sql'],
  remove: () => Promise<void>,
): Promise<Ledger> {
  const opened: Journal[] = []
  const clock = { now: 1_770_000_000_000 }
  const open = async (): Promise<Journal> => {
    const journal = await openJournal({ ...address, now: () => clock.now })
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
