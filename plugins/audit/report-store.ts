import { createHmac, randomBytes } from 'node:crypto'
import type { Database, Migration, PluginContext } from 'tollgate/plugin'

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
  async (db) => {
    await db.schema.alterTable('audit_reports', (table) => {
      // Who made it. Null if an earlier release stored it.
      table.text('client').nullable()
      table.index(['client', 'expires'])
    })
  },
  async (db) => {
    await db.schema.alterTable('audit_reports', (table) => {
      // The call that is to pay for it. Null once it was charged, and for every report that no payment of its own buys.
      table.text('call_id').nullable()
      table.index(['call_id'])
    })
  },
]

/**
 * What a report is kept for: a client (`Call.client`) if it was free, the wallet of a plan, or the call that pays for it, by
 * `Call.id`.
 */
export type Holder = { readonly client: string } | { readonly wallet: string } | { readonly callId: string }

export interface ReportStore {
  /** The id for the report of a call: 144 bits that nobody can guess. The same call and file always get the same id. */
  idFor(callId: string, sha256: string): Promise<string>
  /**
   * Stores a report. A report that is already stored under this id stays as it is. A free one is kept for 30 days, while it
   * is one of the newest of its client. One of a plan is kept until it is deleted, while it is one of the newest of its
   * wallet: such calls are charged nothing each. One that a call pays for is kept until `settle` knows more.
   */
  save(rid: string, created: Date, report: object, holder: Holder): Promise<void>
  /**
   * Returns null if a free report of this client can be stored: in place of its oldest if its share is used up, otherwise in
   * a place of all. If there is none, returns when the next one becomes free.
   */
  fullUntil(client: string, now: Date): Promise<Date | null>
  /** The report as JSON, or null if it does not exist, or no longer at `now`. */
  find(rid: string, now: Date): Promise<string | null>
  /** Deletes the free reports that are too old. */
  expire(now: Date): Promise<void>
  /**
   * Keeps the reports whose calls were charged until they are deleted, and deletes those whose calls never will be. They are
   * stored before their payments settle, and payments that never do must not fill the disk.
   */
  settle(charged: PluginContext['charged']): Promise<void>
  /** Deletes a report. Ignores an unknown id. */
  remove(rid: string): Promise<void>
}

const RID_BYTES = 18
const FREE_DAYS = 30
const DAY_MS = 86_400_000

/** How many reports are kept. */
interface Places {
  /** The newest free ones of each client. */
  readonly perClient: number
  /** Free ones of all clients together. */
  readonly total: number
  /** The newest ones that plans have paid for, of each wallet. */
  readonly perWallet: number
}

/** How many calls are asked about at once. */
const CALLS_AT_ONCE = 500

/** A report takes up to 300 kB, so free ones take 3 GB at most. It takes a thousand addresses to fill all places. */
const PLACES: Places = { perClient: 10, total: 10_000, perWallet: 200 }

/** PostgreSQL returns bigint as text. */
interface Row {
  readonly report: string
  readonly expires: number | string | null
}

interface Taken {
  readonly places: number | string
  readonly next: number | string | null
}

/** Opens the stored reports and the secret from which their ids are made. */
export function openReportStore(db: Database, places: Partial<Places> = {}): ReportStore {
  const { perClient, total, perWallet } = { ...PLACES, ...places }
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

  /** Deletes what a client or wallet holds beyond its share, never the report that it has just stored. */
  async function dropOldest(client: string, stored: string, most: number): Promise<void> {
    const held = await db<{ rid: string }>('audit_reports').where({ client }).orderBy('created', 'desc').select('rid')
    const others = held.map(({ rid }) => rid).filter((rid) => rid !== stored)
    const dropped = others.slice(most - 1)
    if (dropped.length > 0) await db('audit_reports').whereIn('rid', dropped).delete()
  }

  /** The places that free reports take, and when the next of them becomes free. */
  const takenAt = (now: Date) =>
    db<Taken>('audit_reports').where('expires', '>', now.getTime()).count({ places: '*' }).min({ next: 'expires' })

  return {
    async idFor(callId, sha256) {
      const key = await secretOnce()
      const digest = createHmac('sha256', Buffer.from(key, 'hex')).update(`${callId}/${sha256}`).digest()
      return digest.subarray(0, RID_BYTES).toString('base64url')
    },
    async save(rid, created, report, holder) {
      const row = { rid, created: created.getTime(), report: JSON.stringify(report) }
      const insert = (more: object) =>
        db('audit_reports')
          .insert({ ...row, ...more })
          .onConflict('rid')
          .ignore()
      if ('callId' in holder) {
        await insert({ call_id: holder.callId })
        return
      }
      const isFree = 'client' in holder
      const client = isFree ? holder.client : `wallet ${holder.wallet.toLowerCase()}`
      await insert({ client, expires: isFree ? created.getTime() + FREE_DAYS * DAY_MS : null })
      await dropOldest(client, rid, isFree ? perClient : perWallet)
    },
    async fullUntil(client, now) {
      const held = await takenAt(now).where({ client }).first()
      if (Number(held?.places) >= perClient) return null
      const taken = await takenAt(now).first()
      return Number(taken?.places) < total ? null : new Date(Number(taken?.next))
    },
    async find(rid, now) {
      const row = await db<Row>('audit_reports').where({ rid }).first('report', 'expires')
      const isGone = row === undefined || (row.expires !== null && Number(row.expires) <= now.getTime())
      return isGone ? null : row.report
    },
    async expire(now) {
      await db('audit_reports').where('expires', '<=', now.getTime()).delete()
    },
    async settle(charged) {
      for (let last = ''; ;) {
        const page = await db<{ call_id: string }>('audit_reports')
          .where('call_id', '>', last)
          .orderBy('call_id')
          .limit(CALLS_AT_ONCE)
          .select('call_id')
        const calls = page.map(({ call_id }) => call_id)
        const outcomes = await charged(calls)
        const ofOutcome = (outcome: boolean) =>
          db('audit_reports').whereIn(
            'call_id',
            calls.filter((call) => outcomes.get(call) === outcome),
          )
        await ofOutcome(false).delete()
        await ofOutcome(true).update({ call_id: null })
        if (page.length < CALLS_AT_ONCE) return
        last = calls.at(-1) ?? ''
      }
    },
    async remove(rid) {
      await db('audit_reports').where({ rid }).delete()
    },
  }
}
