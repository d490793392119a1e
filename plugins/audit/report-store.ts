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
  async (db) => {
    await db.schema.alterTable('audit_reports', (table) => {
      table.bigInteger('expires').nullable()
      table.index(['expires'])
    })
  },
]

export interface ReportStore {
  /** The id for the report of a call: 144 bits that nobody can guess. The same call and file always get the same id. */
  idFor(callId: string, sha256: string): Promise<string>
  /**
   * Stores a report. A report that is already stored under this id stays as it is. A free one is kept for 30 days, a paid one
   * until it is deleted.
   */
  save(rid: string, created: Date, report: object, isFree: boolean): Promise<void>
  /** The report as JSON, or null if it does not exist, or no longer at `now`. */
  find(rid: string, now: Date): Promise<string | null>
  /** Deletes the free reports that are too old, and the oldest of those beyond `maxFree`. */
  expire(now: Date, maxFree?: number): Promise<void>
  /** Deletes a report. Ignores an unknown id. */
  remove(rid: string): Promise<void>
}

const RID_BYTES = 18
const FREE_DAYS = 30
const DAY_MS = 86_400_000
/** A report takes up to 300 kB, so free ones take 600 MB at most. */
const MAX_FREE = 2_000

/** PostgreSQL returns bigint as text. */
interface Row {
  readonly report: string
  readonly expires: number | string | null
}

/** Opens the stored reports and the secret from which their ids are made. */
export function openReportStore(db: Database): ReportStore {
  let secret: Promise<string> | null = null

  /** Reads the secret once. A failure is not remembered. */
  async function secretOnce(): Promise<string> {
    secret ??= readSecret().catch((error: unknown) => {
      secret = null
      throw error
    })
    return secret
  }

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
      const key = await secretOnce()
      const digest = createHmac('sha256', Buffer.from(key, 'hex')).update(`${callId}/${sha256}`).digest()
      return digest.subarray(0, RID_BYTES).toString('base64url')
    },
    async save(rid, created, report, isFree) {
      const expires = isFree ? created.getTime() + FREE_DAYS * DAY_MS : null
      const row = { rid, created: created.getTime(), report: JSON.stringify(report), expires }
      await db('audit_reports').insert(row).onConflict('rid').ignore()
    },
    async find(rid, now) {
      const row = await db<Row>('audit_reports').where({ rid }).first('report', 'expires')
      const isGone = row === undefined || (row.expires !== null && Number(row.expires) <= now.getTime())
      return isGone ? null : row.report
    },
    async expire(now, maxFree = MAX_FREE) {
      await db('audit_reports').where('expires', '<=', now.getTime()).delete()
      const newest = await db<Row>('audit_reports')
        .select('expires')
        .whereNotNull('expires')
        .orderBy('expires', 'desc')
        .limit(maxFree + 1)
      const oldest = newest[maxFree]
      if (oldest) await db('audit_reports').where('expires', '<=', oldest.expires).delete()
    },
    async remove(rid) {
      await db('audit_reports').where({ rid }).delete()
    },
  }
}
