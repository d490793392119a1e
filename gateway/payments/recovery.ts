/**
 * Finishes the payments that a crash or a timeout left open. It never guesses: the settler's `status` decides what
 * became of a payment that may have been sent, and a payment that was never sent is released.
 */
import type { Logger } from 'pino'
import type { OnSettled } from './payments.ts'
import type { Journal, OpenPayment } from './journal/journal.ts'
import type { PaymentKey, Settler } from '../methods/payment-method.ts'
import { BLOCK_TIME_LAG_SECONDS } from './payments-in-progress.ts'
import { causeToBeOwed, oweForeignSettlement } from './debts.ts'
import { recordSettlement } from './purchase.ts'

interface RecoveryParts {
  readonly journal: Journal
  readonly settler: Settler
  readonly now: () => Date
  readonly log: Logger
  /** Longer than any call may take. An older reservation is released once its payment can no longer settle. */
  readonly staleSeconds: number
  /** How long a stored answer is kept after its settlement. */
  readonly answerRetentionSeconds: number
  /** Is told of each payment as it is settled. */
  readonly onSettled?: OnSettled
  /** Whether a call of this process is working on a payment, or watches it: then recovery leaves the payment to it. */
  readonly isWorking?: (key: PaymentKey) => boolean
}

/** The results of one run, in payments. */
interface RecoveryCounts {
  readonly settled: number
  readonly released: number
  readonly owed: number
  /** Still open: in progress, waiting for the buyer's retry, or not yet decided on the chain. */
  readonly waiting: number
  /** Ended in an error; the next run tries again. */
  readonly failed: number
  /** Stored answers deleted at the end of their retention. */
  readonly forgotten: number
}

export interface Recovery {
  /**
   * Processes every open payment once. A call during a run returns that run's counts.
   * @param atStart logs the counts even if no payment changed
   */
  run(atStart?: boolean): Promise<RecoveryCounts>
  start(everySeconds: number): void
  /** Stops the timer and waits for the current run. */
  stop(): Promise<void>
}

/** How long a submitted payment is left to the live process that sent it. */
const SENDER_SECONDS = 15
/** Each asks the chain. After a crash under load there are hundreds. */
const CONCURRENCY = 16

/** The result for one payment. */
type Recovered = Exclude<keyof RecoveryCounts, 'failed' | 'forgotten'>

/** Creates the recovery of one journal. Nothing runs before `run` or `start`. */
export function createRecovery(parts: RecoveryParts): Recovery {
  let current: Promise<RecoveryCounts> | null = null
  let timer: NodeJS.Timeout | null = null
  const run = (atStart = false): Promise<RecoveryCounts> =>
    (current ??= recoverAll(parts, atStart).finally(() => {
      current = null
    }))

  return {
    run,
    start(everySeconds) {
      timer ??= setInterval(() => {
        run().catch((error: unknown) => parts.log.error({ err: error }, 'the recovery of open payments failed'))
      }, everySeconds * 1000).unref()
    },
    async stop() {
      if (timer) clearInterval(timer)
      timer = null
      await current?.catch(() => {})
    },
  }
}

/** Processes every open payment of the journal once, a few at a time, and deletes answers past their retention. */
async function recoverAll(parts: RecoveryParts, atStart: boolean): Promise<RecoveryCounts> {
  const { journal, now, log, answerRetentionSeconds } = parts
  // The order matters: a process that reserved one of these payments was alive when the payments were read.
  const payments = await journal.openPayments()
  const liveOwners = await journal.liveOwners()
  const counts = { settled: 0, released: 0, owed: 0, waiting: 0, failed: 0, forgotten: 0 }
  const queue = payments.values()
  const work = async (): Promise<void> => {
    for (const payment of queue) {
      try {
        counts[await recover(parts, payment, liveOwners)] += 1
      } catch (error) {
        counts.failed += 1
        log.error({ err: error, payment: payment.key, state: payment.state }, 'a payment could not be recovered')
      }
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, work))
  counts.forgotten = await journal.forgetAnswers(now().getTime() - answerRetentionSeconds * 1000)
  if (atStart || counts.settled + counts.released + counts.owed > 0) log.info(counts, 'open payments recovered')
  return counts
}

async function recover(
  parts: RecoveryParts,
  payment: OpenPayment,
  liveOwners: ReadonlySet<string>,
): Promise<Recovered> {
  const { journal, now, staleSeconds, isWorking } = parts
  const { key, attempt, state } = payment
  const isOrphan = !liveOwners.has(payment.owner)
  const idleSeconds = (now().getTime() - payment.updatedAt) / 1000
  const expiredSeconds = now().getTime() / 1000 - Number(payment.expiresAt)
  switch (state) {
    case 'reserved': {
      const isStale = idleSeconds > staleSeconds && expiredSeconds > BLOCK_TIME_LAG_SECONDS
      // Its call has ended, and could not release it because the journal could not be written.
      const isLeft = !isOrphan && payment.owner === journal.owner && isWorking?.(key) === false
      if (!isOrphan && !isStale && !isLeft) return 'waiting'
      const reason = isLeft
        ? 'its call ended without an answer; nothing was sent'
        : 'the gateway stopped before the answer existed; nothing was sent'
      return (await journal.released(key, attempt, reason)) ? 'released' : 'waiting'
    }
    case 'answered': {
      if (expiredSeconds <= BLOCK_TIME_LAG_SECONDS) return 'waiting'
      const reason = 'the buyer did not come back in time; nothing was sent'
      return (await journal.released(key, attempt, reason)) ? 'released' : 'waiting'
    }
    case 'submitted':
      return isOrphan || payment.owner === journal.owner || idleSeconds > SENDER_SECONDS
        ? finishSubmitted(parts, payment)
        : 'waiting'
    default:
      return recordDebt(parts, payment)
  }
}

/**
 * Finds out what became of a submitted payment and records it. The journal's claim comes first: after it, the process
 * that sent the payment can no longer release it as unsent.
 */
async function finishSubmitted(parts: RecoveryParts, payment: OpenPayment): Promise<Recovered> {
  const { journal, settler, isWorking = () => false } = parts
  const { key, attempt } = payment
  if (isWorking(key) || !(await journal.claim(key, attempt))) return 'waiting'
  const outcome = await settler.status(payment)
  if (outcome.state === 'pending' || (outcome.state === 'settled' && outcome.provisional)) return 'waiting'
  if (outcome.state === 'refused') return (await journal.refused(key, attempt, outcome)) ? 'released' : 'waiting'
  const { transaction, foreignSender, isOwed } = outcome
  if (isOwed) return (await oweForeignSettlement(journal, payment, transaction, foreignSender)) ? 'owed' : 'waiting'
  if (!(await recordSettlement(parts, payment, outcome))) return 'waiting'
  return payment.answer === null ? recordDebt(parts, payment) : 'settled'
}

/**
 * Records a settled payment without an answer as a debt to the buyer. That is expected for one that others settled, in
 * strict mode or after its release, if the process stopped before it recorded the debt. Any other payment has its
 * answer stored before it is submitted, so somebody must have changed the journal by hand.
 */
async function recordDebt({ journal, log }: RecoveryParts, payment: OpenPayment): Promise<Recovered> {
  const { key, attempt, reason } = payment
  const cause = causeToBeOwed(payment)
  if (cause === null)
    log.error({ payment: key }, 'a payment was settled and has no stored answer: it is now a debt to the buyer')
  const unexpected = 'settled without a stored answer'
  return (await journal.owed(key, attempt, (cause && reason) ?? unexpected, cause)) ? 'owed' : 'waiting'
}
