/**
 * Watches settled payments until no reorganisation of the chain can remove their transfer any more. One whose transfer
 * has gone is sent again; if it can never be mined again, or is not for two minutes, it is recorded as reversed: the
 * buyer owes the money to us. A reversed payment is watched on, because it may be mined after all. A payment that is owed
 * to its buyer is watched as well, but never sent: without its transfer, nothing is owed.
 *
 * Each run reads a bounded number of payments from an index that holds only those which are not final. Another one follows
 * at once while more are due.
 */
import type { Hex } from '../config/networks.ts'
import type { Outcome, PaymentKey, SettledPayment, Settler } from '../methods/payment-method.ts'
import type { Logger } from '../plugin/plugin.ts'
import { keepLease, type Lease } from '../stores/lease.ts'
import { oweForeignSettlement, oweReplacedSettlement } from './debts.ts'
import type { Journal, Look, PaymentRecord } from './journal/journal.ts'
import type { Ending } from './journal/payment-states.ts'

interface FinalityWatchParts {
  readonly journal: Pick<
    Journal,
    'dueForLook' | 'lookAgain' | 'reversed' | 'settledAgain' | 'settledByOthers' | 'owed' | 'repaid' | 'find'
  >
  readonly settler: Pick<Settler, 'finality' | 'status'>
  /** The lease of the watch: only the process that holds it watches a journal that several share. */
  readonly lease: Pick<Lease, 'hold'>
  /** Takes back what a reversed payment bought. Called again with every look at it, so it must be idempotent. */
  readonly onReversed: (payment: PaymentRecord) => Promise<void>
  /** Gives back what a payment bought, because it is mined again. */
  readonly onRestored: (payment: PaymentRecord) => Promise<void>
  readonly now: () => Date
  readonly log: Logger
}

/** The results of one run, in payments. */
interface WatchCounts {
  readonly final: number
  readonly reversed: number
  readonly restored: number
  /** Looked at, and to be looked at again. */
  readonly waiting: number
}

export interface FinalityWatch {
  /** Looks at the payments that are due, once. A call during a run returns that run's counts. */
  run(): Promise<WatchCounts>
  start(everySeconds: number): void
  stop(): Promise<void>
}

const LEASE = 'gateway/finality'
/** The most payments per run. */
export const LOOKS_PER_RUN = 500
/** The most runs that follow each other at once. With one, more than 50 sales a second would never all be looked at. */
const RUNS_AT_ONCE = 20
const CONCURRENCY = 4
/** A payment is looked at again after as long as it has been settled, within these limits. */
const SHORTEST_MS = 1_000
const LONGEST_MS = 240_000
/** A payment that was sent again and is in no block for this long is reversed. It may still come back. */
export const MISSING_MS = 120_000
/** A reversed payment is watched until this long after its authorization has expired. */
const RESTORABLE_MS = 3_600_000

/** The parts, and the memory of the watch. */
interface Context extends FinalityWatchParts {
  /** Since when payments are in no block, in milliseconds since the epoch. */
  readonly missingSince: Map<PaymentKey, number>
}

/** The result of a look at one payment, and when to look again. */
interface Looked extends Look {
  readonly result: keyof WatchCounts
}

/** Creates the watch of one journal. Nothing runs before `run` or `start`. */
export function createFinalityWatch(parts: FinalityWatchParts): FinalityWatch {
  const { lease, log } = parts
  const context: Context = { ...parts, missingSince: new Map() }
  const kept = keepLease(lease, LEASE, (error) =>
    log.warn({ err: error }, 'the lease of the watch of settled payments was not renewed'),
  )
  let current: Promise<WatchCounts> | null = null
  let timer: NodeJS.Timeout | undefined
  const run = (): Promise<WatchCounts> =>
    (current ??= lookAtDue(context).finally(() => {
      current = null
    }))

  async function runIfLeased(): Promise<void> {
    if (!(await kept.hold())) return
    for (let runs = 0; runs < RUNS_AT_ONCE; runs++) if (totalOf(await run()) < LOOKS_PER_RUN) return
  }

  return {
    run,
    start(everySeconds) {
      const tick = (): void =>
        void runIfLeased().catch((error: unknown) => log.error({ err: error }, 'settled payments could not be watched'))
      timer = setInterval(tick, everySeconds * 1000).unref()
    },
    async stop() {
      clearInterval(timer)
      await kept.stop()
      await current?.catch(() => {})
    },
  }
}

function totalOf({ final, reversed, restored, waiting }: WatchCounts): number {
  return final + reversed + restored + waiting
}

async function lookAtDue(context: Context): Promise<WatchCounts> {
  const { journal, settler, now } = context
  const counts = { final: 0, reversed: 0, restored: 0, waiting: 0 }
  const due = await journal.dueForLook(now().getTime(), LOOKS_PER_RUN)
  if (due.length === 0) return counts
  const settled = due.filter(isSettled)
  // A settler that knows no reorganisations settles for good.
  const read = (await settler.finality?.(settled)) ?? settled.map(() => 'final' as const)
  const finality = new Map(settled.map(({ key }, at) => [key, read[at]]))
  const looks: Looked[] = []
  const queue = due.values()
  const work = async (): Promise<void> => {
    for (const payment of queue) {
      const found = finality.get(payment.key) ?? 'final'
      looks.push(await lookAt(context, payment, found))
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, work))
  await journal.lookAgain(looks)
  for (const { result } of looks) counts[result] += 1
  return counts
}

function isSettled(payment: PaymentRecord): payment is PaymentRecord & SettledPayment {
  return (payment.state === 'settled' || payment.state === 'owed') && payment.transaction !== null
}

async function lookAt(
  context: Context,
  payment: PaymentRecord,
  finality: 'final' | 'shallow' | 'missing',
): Promise<Looked> {
  const { missingSince, log } = context
  const { key } = payment
  try {
    if (payment.state === 'reversed') return await lookAtReversed(context, payment)
    if (payment.state === 'owed') {
      const begun = await finishBegun(context, payment)
      if (begun) return begun
    }
    if (finality === 'missing') return await lookAtMissing(context, payment)
    missingSince.delete(key)
    return finality === 'final' ? { key, at: null, result: 'final' } : later(context, payment)
  } catch (error) {
    log.warn({ err: error, payment: key }, 'a settled payment could not be looked at')
    return later(context, payment)
  }
}

/** A payment whose transaction is in no block. `status` sends it again, or finds it in another transaction. */
async function lookAtMissing(context: Context, payment: PaymentRecord): Promise<Looked> {
  const { settler, missingSince, now, log } = context
  const { key, transaction } = payment
  const since = missingSince.get(key) ?? now().getTime()
  const outcome = await settler.status(payment, { maySend: payment.state === 'settled' })
  if (outcome.state === 'settled') {
    missingSince.delete(key)
    // The transaction that settled the payment is ours, also if its intent does not name it.
    const isReplaced = outcome.isOwed === true && outcome.transaction !== transaction
    if (payment.state === 'settled' && isReplaced)
      return outcome.provisional ? later(context, payment) : oweReplaced(context, payment, outcome)
    log.warn({ payment: key, transaction: outcome.transaction }, 'a payment is in another block after a reorganisation')
    return later(context, payment, outcome.transaction)
  }
  missingSince.set(key, since)
  if (outcome.state === 'refused') return reverse(context, payment, `${outcome.reason}: ${outcome.message}`)
  if (now().getTime() - since >= MISSING_MS)
    return reverse(context, payment, `${transaction} was not mined again for ${MISSING_MS / 60_000} minutes`)
  log.warn({ payment: key, transaction }, 'a reorganisation removed a settled payment; it waits to be mined again')
  return later(context, payment)
}

/**
 * A settled payment that a transaction of others makes now, in strict mode: that transaction may have bought the same
 * elsewhere, so what the payment bought here is taken back, and its amount is owed.
 */
async function oweReplaced(
  context: Context,
  payment: PaymentRecord,
  { transaction, foreignSender }: Extract<Outcome, { state: 'settled' }>,
): Promise<Looked> {
  const { journal, onReversed, log } = context
  // First, so that a crash in between leaves a payment that is looked at again.
  await onReversed(payment)
  await oweReplacedSettlement(journal, payment, foreignSender)
  log.error(
    { payment: payment.key, transaction, sender: foreignSender },
    'a reorganisation replaced our transaction by one of others: the payment is owed to its buyer',
  )
  return later(context, payment, transaction)
}

/**
 * Completes a debt record that a crashed process left half written: of a payment that was taken back, whether or not it is
 * mined again by now, or of a repayment before a reorganisation. Returns null if the payment is still to be looked at.
 */
async function finishBegun(context: Context, payment: PaymentRecord): Promise<Looked | null> {
  const { key, ending, repaidAt } = payment
  // If it is mined again, the next look owes it again.
  if (ending === 'withdrawn' && repaidAt !== null)
    return reverseDebt(context, payment, 'the process that recorded it stopped')
  if (ending === 'repaid' && repaidAt === null) await context.journal.repaid(key, REPAID_ONCE)
  return null
}

async function reverse(context: Context, payment: PaymentRecord, reason: string): Promise<Looked> {
  const { journal, missingSince, onReversed, now, log } = context
  const { key, attempt, amount, payer, operation, transaction } = payment
  missingSince.delete(key)
  if (payment.state === 'owed') return reverseDebt(context, payment, reason)
  // A move sets the next look itself: at once.
  const result = { key, at: now().getTime() + SHORTEST_MS, result: 'reversed' } as const
  if (!(await journal.reversed(key, attempt, `a reorganisation removed it: ${reason}`))) return later(context, payment)
  const details = { payment: key, operation, amount: String(amount), payer, transaction, reason }
  log.error(details, 'a reorganisation reversed a settled payment: the buyer owes it to us')
  await onReversed(payment)
  return result
}

/**
 * A payment whose answer was never delivered, and whose money has gone: nothing is owed any more. If the debt was repaid
 * before, the buyer owes that to us.
 */
async function reverseDebt(context: Context, payment: PaymentRecord, reason: string): Promise<Looked> {
  const { journal, now, log } = context
  const { key, attempt, amount, payer, transaction } = payment
  // The debt may have ended before, or in another process just now. A process may stop after this step.
  await journal.repaid(key, 'a reorganisation took the payment back', 'withdrawn')
  const ending = (await journal.find(key))?.ending ?? 'unknown'
  const { before, now: owed } = REVERSED_DEBTS[ending]
  if (!(await journal.reversed(key, attempt, `${owed}: a reorganisation removed it: ${reason}`)))
    return later(context, payment)
  log.error(
    { payment: key, amount: String(amount), payer, transaction, reason },
    `a reorganisation reversed a payment that was ${before}: ${owed}`,
  )
  return { key, at: now().getTime() + SHORTEST_MS, result: 'reversed' }
}

/** The words for people about a debt whose payment a reorganisation took back, by how the debt ended. */
const REVERSED_DEBTS = {
  withdrawn: { before: 'owed to its buyer', now: 'nothing is owed' },
  repaid: { before: 'repaid to its buyer, who owes it to us', now: 'the debt was repaid' },
  unknown: { before: 'owed to its buyer and may have been repaid', now: 'it is not known whether the debt was repaid' },
} as const satisfies Record<Ending, object>

/** The note on a repayment that a reorganisation had made one too many. */
const REPAID_ONCE = 'before a reorganisation took the payment back for a time'

/** A reversed payment that is in a block again, and buys nothing: it is owed to its buyer, unless that was repaid before. */
async function oweAgain(context: Context, payment: PaymentRecord, transaction: Hex, sender?: Hex): Promise<Looked> {
  const { journal, now, log } = context
  const { key } = payment
  const wasRepaid = payment.ending === 'repaid'
  if ((await oweForeignSettlement(journal, payment, transaction, sender)) && wasRepaid)
    await journal.repaid(key, REPAID_ONCE)
  log.warn({ payment: key, transaction, wasRepaid }, 'a reversed payment that bought nothing was mined again')
  return { key, at: now().getTime() + SHORTEST_MS, result: 'restored' }
}

async function lookAtReversed(context: Context, payment: PaymentRecord): Promise<Looked> {
  const { journal, settler, onReversed, onRestored, now, log } = context
  const { key, attempt, expiresAt } = payment
  const outcome: Outcome = await settler.status(payment, { maySend: false })
  // A payment that was owed before has bought nothing.
  if (outcome.state === 'settled' && !outcome.provisional && (outcome.isOwed || payment.ending !== null))
    return oweAgain(context, payment, outcome.transaction, outcome.foreignSender)
  if (outcome.state === 'settled' && !outcome.provisional) {
    // First, so that a crash in between leaves a payment that is looked at again.
    await onRestored(payment)
    await journal.settledAgain(key, attempt, outcome.transaction)
    log.info({ payment: key, transaction: outcome.transaction }, 'a reversed payment was mined again')
    return { key, at: now().getTime() + SHORTEST_MS, result: 'restored' }
  }
  await onReversed(payment)
  const isOver = now().getTime() > Number(expiresAt) * 1000 + RESTORABLE_MS
  return isOver ? { key, at: null, result: 'final' } : later(context, payment)
}

/** The longer ago a payment was settled or reversed, the less likely is a change. */
function later({ now }: Context, { key, updatedAt }: PaymentRecord, transaction?: Hex): Looked {
  const at = now().getTime()
  const wait = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, at - updatedAt))
  return { key, at: at + wait, result: 'waiting', ...(transaction === undefined ? {} : { transaction }) }
}
