import { createHmac, randomBytes } from 'node:crypto'
import type { Database, Migration } from 'tollgate/plugin'

export const migrations: readonly Migration[] = [
  async (db) => {
    await db.schema.createTable('audit_reports', (table) => {
      table.text('rid').primary()
      table.bigInteger('created').notNullable()
      table.text('report').notNullable()
    })
    await db.schema.createTable('audit_key', (table) => {
      table.integer('id').primary()
      table.text('secret').notNullable()
    })
  },
]

export interface ReportStore {
  /** The id for the report of a call: 144 bits that nobody can guess. The same call and file always get the same id. */
  idFor(callId: string, sha256: string): Promise<string>
  /** Stores a report. A report that is already stored under this id stays as it is. */
  save(rid: string, created: Date, report: object): Promise<void>
  /** The report as JSON, or null if it does not exist. */
  find(rid: string): Promise<string | null>
  /** Deletes a report. Ignores an unknown id. */
  remove(rid: string): Promise<void>
}

const RID_BYTES = 18

/** Opens the stored reports and the secret from which their ids are made. */
export function openReportStore(db: Database): ReportStore {
  let secret: Promise<string> | null = null

  async function readSecret(): Promise<string> {
    await db('audit_key')
      .insert({ id: 1, secret: randomBytes(32).toString('hex') })
      .onConflict('id')
      .ignore()
    const row: { secret: string } | undefined = await db<{ secret: string }>('audit_key')
      .where({ id: 1 })
      .first('secret')
    if (!row) throw new Error('the secret for report ids is missing from the database')
    return row.secret
  }

  return {
    async idFor(callId, sha256) {
      const key = await (secret ??= readSecret())
      const digest = createHmac('sha256', Buffer.from(key, 'hex')).update(`${callId}/${sha256}`).digest()
      return digest.subarray(0, RID_BYTES).toString('base64url')
    },
    async save(rid, created, report) {
      const row = { rid, created: created.getTime(), report: JSON.stringify(report) }
      await db('audit_reports').insert(row).onConflict('rid').ignore()
    },
    async find(rid) {
      const row: { report: string } | undefined = await db<{ report: string }>('audit_reports')
        .where({ rid })
        .first('report')
      return row?.report ?? null
    },
    async remove(rid) {
      await db('audit_reports').where({ rid }).delete()
    },
  }
}
