/**
 * How priced calls ended, by UTC day. Counts are collected in memory and added to the database every few seconds. An offer or
 * a call by token counts for the day on which it is collected, at most five seconds later.
 */
import type { Knex } from 'knex'
import type { CallOutcome, Metrics } from './metrics.ts'
import { dayOf } from './revenue.ts'
import type { Logger } from '../plugin/plugin.ts'
import { migrate, type Step } from '../stores/migrations.ts'

export interface FunnelRow {
  /** Days since the epoch, UTC. */
  readonly day: number
  readonly kind: CallOutcome['kind']
  readonly operation: string
  /** An error code or x402 reason, or "". */
  readonly reason: string
  readonly count: number
}

/** A row in memory. */
type Counted = Omit<FunnelRow, 'count'> & { count: number }

export interface Funnel {
  /** Returns the counts since a day, including those still in memory. */
  read(sinceDay: number): Promise<readonly FunnelRow[]>
  start(): void
  /** Writes the counts still in memory. */
  stop(): Promise<void>
}

const TABLE = 'funnel_counts'
const WRITE_MS = 5_000
/** With a thousand products on sale, a statement for each row would take longer than the calls that it counts. */
const ROWS_PER_STATEMENT = 100

const STEPS: readonly Step[] = [
  (db) =>
    db.schema.createTable(TABLE, (table) => {
      table.integer('day').notNullable()
      table.text('kind').notNullable()
      table.text('operation').notNullable()
      table.text('reason').notNullable()
      table.bigInteger('count').notNullable()
      table.primary(['day', 'kind', 'operation', 'reason'])
    }),
]

/**
 * A call with a token causes no write of its own. Its count is written with the next call of another kind, with the next
 * read, or at the end.
 */
const causesWrite = ({ kind }: FunnelRow): boolean => kind !== 'by_token'

/** Opens the table of counts and migrates it. From then on all calls are counted. */
export async function openFunnel(
  db: Knex,
  log: Logger,
  now: () => Date,
  calls: Pick<Metrics, 'onCallsEnded' | 'flush'>,
): Promise<Funnel> {
  await migrate(db, 'funnel', STEPS)
  let buffered = new Map<string, Counted>()
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> = Promise.resolve()

  /** One write at a time, so that the last one ends last. */
  function write(): Promise<void> {
    calls.flush()
    writing = writing.then(writeBuffered)
    return writing
  }

  async function writeBuffered(): Promise<void> {
    const rows = [...buffered.values()]
    if (rows.length === 0) return
    buffered = new Map()
    try {
      await db.transaction(async (transaction) => {
        for (let at = 0; at < rows.length; at += ROWS_PER_STATEMENT)
          await transaction<FunnelRow>(TABLE)
            .insert(rows.slice(at, at + ROWS_PER_STATEMENT))
            .onConflict(['day', 'kind', 'operation', 'reason'])
            .merge({ count: transaction.raw(`${TABLE}.count + excluded.count`) as unknown as number })
      })
    } catch (error) {
      log.warn({ err: error }, 'the counts of the funnel could not be written; they will be written later')
      for (const row of rows) add(row, row.day, row.count)
    }
  }

  function add({ kind, operation, reason }: Omit<CallOutcome, 'product'>, day: number, count: number): void {
    const key = `${day} ${kind} ${operation} ${reason}`
    const known = buffered.get(key)
    if (known) known.count += count
    else buffered.set(key, { day, kind, operation, reason, count })
  }

  calls.onCallsEnded((outcome, count) => add(outcome, dayOf(now()), count))

  return {
    async read(sinceDay) {
      await write()
      return db<FunnelRow>(TABLE).where('day', '>=', sinceDay).orderBy(['day', 'kind', 'operation', 'reason'])
    },
    start() {
      timer = setInterval(() => {
        calls.flush()
        if ([...buffered.values()].some(causesWrite)) void write()
      }, WRITE_MS).unref()
    },
    async stop() {
      clearInterval(timer)
      await write()
    },
  }
}
