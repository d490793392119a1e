/**
 * Closes what a crash or a timeout left open. Nothing is guessed: what was sent is judged by the chain (the settler's
 * `status`), what was not sent is given back.
 */
import type { Logger } from 'pino'
import type { Journal, OpenPayment } from './journal/journal.ts'
import type { PaymentKey, Settler } from '../methods/payment-method.ts'
import { BLOCK_TIME_LAG_SECONDS } from './in-flight.ts'
import { recordSettlement } from './purchase.ts'

export interface ReconcilerParts {
  readonly journal: Journal
  readonly settler: Settler
  readonly now: () => Date
  readonly log: Logger
  /** Longer than any call may take: a reservation older than this that can no longer be settled is given back. */
  readonly staleSeconds: number
  /** How long a stored answer is kept after its settlement. */
  readonly answerRetentionSeconds: number
  /** Whether a call of this process is at work on a payment: its own outcome comes first. */
  readonly isWorking?: (key: PaymentKey) => boolean
}

/** What one run did, in rows. */
export interface Reconciled {
  readonly settled: number
  readonly released: number
  readonly owed: number
  /** Open still: in progress, waiting for the buyer's retry, or not yet known to the chain. */
  readonly waiting: number
  /** Could not be looked at; tried again by the next run. */
  readonly failed: number
  /** Stored answers dropped at the end of their retention. */
  readonly forgotten: number
}

export interface Reconciler {
  /**
   * Looks at every open payment once. A call while a run is under way gets that run's counts. At the start the counts
   * are logged even where nothing was left open.
   */
  run(atStart?: boolean): Promise<Reconciled>
  start(everySeconds: number): void
  /** Ends the timer and waits for the run under way. */
  stop(): Promise<void>
}

/** A submitted payment is left to another living process that sent it for this long. */
const SENDER_SECONDS = 15
const AT_ONCE = 4

type Verdict = Exclude<keyof Reconciled, 'failed' | 'forgotten'>

export function createReconciler(parts: ReconcilerParts): Reconciler {
  const { journal, settler, now, log, staleSeconds, answerRetentionSeconds, isWorking = () => false } = parts
  let underWay: Promise<Reconciled> | null = null
  let timer: NodeJS.Timeout | null = null

  async function look(atStart: boolean): Promise<Reconciled> {
    // In this order: whoever reserved one of these rows was alive by then.
    const rows = await journal.openPayments()
    const living = await journal.liveOwners()
    const counts = { settled: 0, released: 0, owed: 0, waiting: 0, failed: 0, forgotten: 0 }
    const queue = rows.values()
    const work = async (): Promise<void> => {
      for (const row of queue) {
        try {
          counts[await close(row, living)] += 1
        } catch (error) {
          counts.failed += 1
          log.error({ err: error, payment: row.key, state: row.state }, 'a payment could not be reconciled')
        }
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
    counts.forgotten = await journal.forgetAnswers(now().getTime() - answerRetentionSeconds * 1000)
    if (atStart || counts.settled + counts.released + counts.owed > 0) log.info(counts, 'payments reconciled')
    return counts
  }

  async function close(row: OpenPayment, living: ReadonlySet<string>): Promise<Verdict> {
    const { key, attempt, state } = row
    const isOrphan = !living.has(row.owner)
    const idleSeconds = (now().getTime() - row.updatedAt) / 1000
    const expiredSeconds = now().getTime() / 1000 - Number(row.expiresAt)
    switch (state) {
      case 'reserved': {
        const isStale = idleSeconds > staleSeconds && expiredSeconds > BLOCK_TIME_LAG_SECONDS
        if (!isOrphan && !isStale) return 'waiting'
        const moved = await journal.released(
          key,
          attempt,
          'the gateway stopped before the answer existed; nothing was sent',
        )
        return moved ? 'released' : 'waiting'
      }
      case 'answered': {
        if (expiredSeconds <= BLOCK_TIME_LAG_SECONDS) return 'waiting'
        const moved = await journal.released(key, attempt, 'the buyer did not come back in time; nothing was sent')
        return moved ? 'released' : 'waiting'
      }
      case 'submitted':
        return isOrphan || row.owner === journal.owner || idleSeconds > SENDER_SECONDS ? judge(row) : 'waiting'
      default:
        return oweAnswer(row)
    }
  }

  async function judge(row: OpenPayment): Promise<Verdict> {
    const { key, attempt } = row
    if (isWorking(key) || !(await journal.claim(key, attempt))) return 'waiting'
    const outcome = await settler.status(row)
    if (outcome.state === 'pending' || (outcome.state === 'settled' && outcome.provisional)) return 'waiting'
    if (outcome.state === 'refused') return (await journal.refused(key, attempt, outcome)) ? 'released' : 'waiting'
    if (!(await recordSettlement(journal, log, row, outcome.transaction))) return 'waiting'
    return row.answer === null ? oweAnswer(row) : 'settled'
  }

  /** Nothing is submitted without an answer, so this means a ledger changed by hand. The buyer's money counts. */
  async function oweAnswer({ key, attempt }: OpenPayment): Promise<Verdict> {
    log.error({ payment: key }, 'a payment was settled and its answer does not exist: it is a debt now')
    return (await journal.owed(key, attempt, 'settled without a stored answer')) ? 'owed' : 'waiting'
  }

  const run = (atStart = false): Promise<Reconciled> =>
    (underWay ??= look(atStart).finally(() => {
      underWay = null
    }))

  return {
    run,
    start(everySeconds) {
      timer ??= setInterval(() => {
        run().catch((error: unknown) => log.error({ err: error }, 'the ledger could not be reconciled'))
      }, everySeconds * 1000).unref()
    },
    async stop() {
      if (timer) clearInterval(timer)
      timer = null
      await underWay?.catch(() => {})
    },
  }
}
