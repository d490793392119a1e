/**
 * Tells an address of the operator of each payment that was settled, owed, repaid or reversed, at least once. What to tell
 * is read from the ledger of the journal and kept in a table until it is accepted, so no payment waits for it, and no stop
 * or crash loses any of it. Of several processes, the one that holds the lease sends.
 */
import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import type { EntryKind, Journal, LedgerEntry } from '../payments/journal/journal.ts'
import type { Logger } from '../plugin/plugin.ts'
import { keepLease, type Lease } from '../stores/lease.ts'
import { migrate, type Step } from '../stores/migrations.ts'
import { entryToJson } from './ledger-export.ts'
import { type Deliver, type Delivery, retryAfter } from './webhook.ts'

interface PaymentWebhookParts {
  readonly db: Knex
  readonly journal: Pick<Journal, 'ledgerEntries'>
  readonly lease: Pick<Lease, 'hold'>
  readonly deliver: Deliver
  /** The public address of this service, named in each message. */
  readonly service: string
  /** The operator's own wallets, in lower case. */
  readonly own: readonly string[]
  readonly log: Logger
  readonly now: () => Date
}

export interface PaymentWebhook {
  /** Collects what is new, and sends what is due, once. A call during a run waits for that run. */
  run(): Promise<void>
  start(everySeconds: number): void
  stop(): Promise<void>
}

interface MessageRow {
  readonly id: string
  /** When the ledger's entry was made, and when the message is tried next, in milliseconds since the epoch. */
  readonly at: number
  readonly next_at: number
  readonly tries: number
  readonly body: string
  /** When it was accepted. */
  readonly sent_at: number | null
}

/** Where reading has come to, in milliseconds since the epoch. */
interface CursorRow {
  readonly name: string
  /** When the webhook was first opened. */
  readonly since: number
  /** The newest entry that was collected. */
  readonly at: number
}

const MESSAGES = 'webhook_messages'
const CURSORS = 'webhook_cursors'
const STEPS: readonly Step[] = [
  async (db) => {
    await db.schema.createTable(MESSAGES, (table) => {
      table.text('id').primary()
      table.bigInteger('at').notNullable()
      table.bigInteger('next_at').notNullable()
      table.integer('tries').notNullable()
      table.text('body').notNullable()
      table.bigInteger('sent_at')
      table.index(['sent_at', 'next_at'], 'webhook_messages_due')
    })
    await db.schema.createTable(CURSORS, (table) => {
      table.text('name').primary()
      table.bigInteger('since').notNullable()
      table.bigInteger('at').notNullable()
    })
  },
]

const LEASE = 'gateway/webhook'
const CURSOR = { name: 'payments' }
/**
 * An entry of the ledger may be seen after later ones: clocks of machines differ, and transactions commit in any order. So
 * the last ten minutes are read again from time to time.
 */
const OVERLAP_MS = 600_000
const REREAD_MS = 60_000
const KEPT_MS = 86_400_000
const PAGE_SIZE = 200
const SENT_AT_ONCE = 8

const TYPES: Readonly<Record<EntryKind, string>> = {
  sale: 'payment.settled',
  debt: 'payment.owed',
  repayment: 'payment.repaid',
  reversal: 'payment.reversed',
}

/** Opens the webhook of a database. What was recorded before it was first opened is not told. */
export async function openPaymentWebhook(parts: PaymentWebhookParts): Promise<PaymentWebhook> {
  const { db, lease, now, log } = parts
  await migrate(db, 'webhooks', STEPS)
  const at = now().getTime()
  await db<CursorRow>(CURSORS)
    .insert({ ...CURSOR, since: at, at })
    .onConflict('name')
    .ignore()
  const kept = keepLease(lease, LEASE, (error) =>
    log.warn({ err: error }, 'the lease of the payment webhook was not renewed'),
  )
  const collect = createCollector(parts)
  const stopping = new AbortController()
  const send = createSender(parts, stopping.signal)
  let current: Promise<void> | null = null
  let timer: NodeJS.Timeout | undefined
  async function work(): Promise<void> {
    if (stopping.signal.aborted || !(await kept.hold())) return
    await collect()
    while (!stopping.signal.aborted && (await send()));
  }
  const run = (): Promise<void> =>
    (current ??= work().finally(() => {
      current = null
    }))
  return {
    run,
    start(everySeconds) {
      const tick = (): void =>
        void run().catch((error: unknown) => log.error({ err: error }, 'the payment webhook could not be served'))
      timer = setInterval(tick, everySeconds * 1000).unref()
    },
    async stop() {
      stopping.abort()
      clearInterval(timer)
      await current?.catch(() => {})
      await kept.stop()
    },
  }
}

/** Returns the function that turns new entries of the ledger into messages. */
function createCollector({ db, journal, service, own, now }: PaymentWebhookParts): () => Promise<void> {
  let after: Pick<LedgerEntry, 'at' | 'id'> = { at: 0, id: -1 }
  let rereadAt = -Infinity
  /** Ids of messages that are in the table. */
  let collected = new Set<string>()

  return async () => {
    const at = now().getTime()
    // Also after another process has held the lease for a while.
    if (at >= rereadAt + REREAD_MS) {
      const cursor = await db<CursorRow>(CURSORS).where(CURSOR).first()
      const { since = at, at: newest = at } = cursor ?? {}
      after = { at: Math.max(since, newest - OVERLAP_MS), id: -1 }
      rereadAt = at
      collected = new Set()
      await db<MessageRow>(MESSAGES)
        .where('sent_at', '<', at - KEPT_MS)
        // What is read again must be known.
        .where('at', '<', after.at)
        .delete()
    }
    for (;;) {
      const window = { from: after.at, before: at + OVERLAP_MS, after, limit: PAGE_SIZE }
      const page = await journal.ledgerEntries(window)
      const messages = page.map((entry) => messageOf(entry, service, own)).filter(({ id }) => !collected.has(id))
      if (messages.length > 0) await db<MessageRow>(MESSAGES).insert(messages).onConflict('id').ignore()
      for (const { id } of messages) collected.add(id)
      const last = page.at(-1)
      if (!last) return
      after = { at: last.at, id: last.id }
      await db<CursorRow>(CURSORS).where(CURSOR).where('at', '<', last.at).update({ at: last.at })
      if (page.length < PAGE_SIZE) return
    }
  }
}

/** The message about an entry, the same whoever makes it and whenever. */
function messageOf(entry: LedgerEntry, service: string, own: readonly string[]): MessageRow {
  const { id, at, kind, payment } = entry
  const isOwn = own.includes(payment.payer.toLowerCase())
  const timestamp = new Date(at).toISOString()
  const body = JSON.stringify({ type: TYPES[kind], timestamp, data: { service, ...entryToJson({ ...entry, isOwn }) } })
  const digest = createHash('sha256').update(`${payment.key} ${id}`).digest('base64url').slice(0, 27)
  return { id: `msg_${digest}`, at, next_at: at, tries: 0, body, sent_at: null }
}

/** Returns the function that sends what is due. It resolves to true if there may be more. */
function createSender({ db, deliver, log, now }: PaymentWebhookParts, stopping: AbortSignal): () => Promise<boolean> {
  let isGone = false

  async function sendOne(row: MessageRow): Promise<Delivery> {
    const delivery = await deliver(row, stopping)
    const own = db<MessageRow>(MESSAGES).where({ id: row.id })
    if (delivery === 'accepted') await own.update({ sent_at: now().getTime() })
    else if (delivery !== 'gone' && !stopping.aborted) {
      const tries = row.tries + 1
      await own.update({ tries, next_at: now().getTime() + retryAfter(tries) })
      const reason = delivery.refused instanceof Error ? { err: delivery.refused } : { status: delivery.refused }
      log.error({ id: row.id, tries, ...reason }, 'the payment webhook did not accept a message; it is sent again')
    }
    return delivery
  }

  return async () => {
    if (isGone) return false
    const due = await db<MessageRow>(MESSAGES)
      .whereNull('sent_at')
      .where('next_at', '<=', now().getTime())
      .orderBy(['next_at', 'id'])
      .limit(SENT_AT_ONCE)
    const deliveries = await Promise.all(due.map(sendOne))
    isGone = deliveries.includes('gone')
    if (isGone) log.error('the payment webhook answered 410: it gets no more messages until the gateway starts again')
    return due.length === SENT_AT_ONCE && deliveries.every((delivery) => delivery === 'accepted')
  }
}
