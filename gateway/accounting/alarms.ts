/**
 * Alarms for problems that must not wait for the next reconciliation: failing settlements, payments that stay pending, a
 * settler that cannot settle, debts, payments that a reorganisation reversed or that others sent, and products that do not
 * answer. An alarm sends an alert when it is raised and when something new joins it, and stays raised until its cause is
 * gone.
 */
import { ONE_JOURNAL } from '../config/pay-to.ts'
import type { Journal } from '../payments/journal/journal.ts'
import type { Logger } from '../plugin/plugin.ts'
import { keepLease, type Lease } from '../stores/lease.ts'
import type { SendAlert } from './alert-webhook.ts'
import type { Row } from './reconciliation/findings.ts'

const ALARMS = [
  'settling.failing',
  'settling.impossible',
  'payments.stale',
  'payments.reversed',
  'payments.foreign',
  'ledger.owed',
  'products.down',
] as const

export type AlarmName = (typeof ALARMS)[number]

export interface Alarm {
  readonly name: AlarmName
  /** One sentence for people. */
  readonly message: string
  /** The affected payments or products, or the part of the service that is affected. */
  readonly about: readonly string[]
  readonly since: Date
}

export interface Alarms {
  /** Records how a settlement ended: "settled", "refused", "pending" or "threw". */
  observe(outcome: string): void
  /** Checks every condition once and returns the raised alarms. */
  run(): Promise<readonly Alarm[]>
  raised(): readonly Alarm[]
  start(everySeconds: number): void
  stop(): Promise<void>
}

export interface AlarmParts {
  readonly journal: Pick<Journal, 'openPayments' | 'debts' | 'reversals'>
  readonly settlerHealth: () => { readonly ready: boolean; readonly reason?: string }
  /** Payments to us that others sent, found since this moment (ms), at most `limit`. Absent: nobody looks for them. */
  readonly foreignPayments?: (since: number, limit: number) => Promise<readonly ForeignPayment[]>
  readonly products: () => readonly { readonly product: string; readonly status: string }[]
  /** Of several processes that share a journal, only the one that holds the lease checks it. */
  readonly lease: Pick<Lease, 'hold'>
  readonly alert: SendAlert
  /** Called after each check with the state of every alarm. */
  readonly onChecked: (raised: Readonly<Record<AlarmName, boolean>>) => void
  readonly log: Logger
  readonly now: () => Date
}

/** A payment that another gateway or a stranger sent to the chain. */
export type ForeignPayment = Pick<Row, 'sender' | 'transaction'>

/** The last settlements that the failure rate is computed from. */
const WINDOW_MS = 600_000
const STRETCH_MS = 10_000
/** With fewer settlements than this the failure rate means nothing. */
const MIN_SETTLEMENTS = 5
const FAILING_SHARE = 0.5
const STALE_MS = 600_000
const LEASE = 'gateway/alarms'
const MAX_LISTED = 100
/** How long a reversed payment keeps its alarm raised. It ends earlier if the payment is mined again. */
const REVERSED_MS = 7 * 86_400_000
/** How long payments that others sent keep their alarm raised. */
const FOREIGN_MS = 86_400_000

/** What a check found: the alarm to raise, or null. */
type Finding = Pick<Alarm, 'message' | 'about'> | null

/** How settlements ended within one stretch of time. Each outcome by itself would take megabytes under load. */
interface Outcomes {
  /** Milliseconds since the epoch. */
  readonly from: number
  settled: number
  failed: number
}

/** Creates the alarms. None is raised before the first check. */
export function createAlarms(parts: AlarmParts): Alarms {
  const { journal, settlerHealth, foreignPayments, products, lease, alert, onChecked, log, now } = parts
  let outcomes: Outcomes[] = []
  const raised = new Map<AlarmName, Alarm>()
  /** What each raised alarm has sent alerts about. */
  const alerted = new Map<AlarmName, Set<string>>()
  const kept = keepLease(lease, LEASE, (error) =>
    log.warn({ err: error }, 'the lease of the alarms could not be renewed'),
  )
  let underWay: Promise<readonly Alarm[]> | null = null
  let timer: NodeJS.Timeout | undefined

  async function update(name: AlarmName, finding: Finding): Promise<void> {
    if (!finding) {
      if (raised.delete(name)) log.info({ event: name }, 'alarm cleared')
      alerted.delete(name)
      return
    }
    const { message, about } = finding
    raised.set(name, { name, message, about: about.slice(0, MAX_LISTED), since: raised.get(name)?.since ?? now() })
    const known = alerted.get(name) ?? new Set<string>()
    const added = about.filter((item) => !known.has(item)).slice(0, MAX_LISTED)
    if (added.length === 0) return
    if (await alert({ event: name, message, details: { about: added } })) alerted.set(name, new Set(about))
  }

  function recentOutcomes(): readonly Outcomes[] {
    outcomes = outcomes.filter(({ from }) => from >= now().getTime() - WINDOW_MS)
    return outcomes
  }

  async function check(holdsLease: boolean): Promise<readonly Alarm[]> {
    await update('settling.failing', failingSettlements(recentOutcomes()))
    await update('settling.impossible', impossibleSettlement(settlerHealth()))
    await update('products.down', downProducts(products()))
    await update('payments.stale', holdsLease ? await stalePayments(journal, now()) : null)
    await update('payments.reversed', holdsLease ? await reversedPayments(journal, now()) : null)
    await update('payments.foreign', holdsLease ? await paymentsOfOthers(foreignPayments, now()) : null)
    await update('ledger.owed', holdsLease ? await owedPayments(journal) : null)
    onChecked(Object.fromEntries(ALARMS.map((name) => [name, raised.has(name)])) as Record<AlarmName, boolean>)
    return [...raised.values()]
  }

  const checkNow = (holdsLease: boolean): Promise<readonly Alarm[]> =>
    (underWay ??= check(holdsLease).finally(() => {
      underWay = null
    }))

  return {
    observe(outcome) {
      if (outcome === 'pending') return
      const from = Math.floor(now().getTime() / STRETCH_MS) * STRETCH_MS
      let latest = outcomes.at(-1)
      if (latest?.from !== from) outcomes = [...recentOutcomes(), (latest = { from, settled: 0, failed: 0 })]
      latest[outcome === 'settled' ? 'settled' : 'failed'] += 1
    },
    run: () => checkNow(true),
    raised: () => [...raised.values()],
    start(everySeconds) {
      const tick = (): void =>
        void kept
          .hold()
          .then(checkNow)
          .catch((error: unknown) => log.error({ err: error }, 'the alarms could not be checked'))
      timer = setInterval(tick, everySeconds * 1000).unref()
      tick()
    },
    async stop() {
      clearInterval(timer)
      kept.stop()
      await underWay?.catch(() => {})
    },
  }
}

function failingSettlements(outcomes: readonly Outcomes[]): Finding {
  const failed = outcomes.reduce((sum, each) => sum + each.failed, 0)
  const all = outcomes.reduce((sum, each) => sum + each.settled, failed)
  if (all < MIN_SETTLEMENTS || failed / all < FAILING_SHARE) return null
  return { message: `${failed} of the last ${all} settlements failed`, about: ['settling'] }
}

function impossibleSettlement({ ready, reason = 'unknown reason' }: ReturnType<AlarmParts['settlerHealth']>): Finding {
  return ready ? null : { message: `payments cannot be settled: ${reason}`, about: ['settler'] }
}

function downProducts(products: ReturnType<AlarmParts['products']>): Finding {
  const names = products.flatMap(({ product, status }) => (status === 'ok' ? [] : [product]))
  return names.length === 0 ? null : { message: `products do not answer: ${names.join(', ')}`, about: names }
}

async function stalePayments(journal: Pick<Journal, 'openPayments'>, now: Date): Promise<Finding> {
  const stale = (await journal.openPayments()).filter(
    ({ state, createdAt }) => state === 'submitted' && createdAt < now.getTime() - STALE_MS,
  )
  const message = `${paymentsAre(stale.length)} pending for more than ${STALE_MS / 60_000} minutes`
  return stale.length === 0 ? null : { message, about: stale.map(({ key }) => key) }
}

async function owedPayments(journal: Pick<Journal, 'debts'>): Promise<Finding> {
  const debts = await journal.debts()
  const message = `${paymentsAre(debts.length)} settled and cannot be delivered`
  return debts.length === 0 ? null : { message, about: debts.map(({ key }) => key) }
}

async function reversedPayments(journal: Pick<Journal, 'reversals'>, now: Date): Promise<Finding> {
  const reversed = await journal.reversals(now.getTime() - REVERSED_MS, MAX_LISTED)
  const message = `${paymentsAre(reversed.length)} owed to us: a reorganisation of the chain took them back after delivery`
  return reversed.length === 0 ? null : { message, about: reversed.map(({ key }) => key) }
}

async function paymentsOfOthers(find: AlarmParts['foreignPayments'], now: Date): Promise<Finding> {
  const found = (await find?.(now.getTime() - FOREIGN_MS, MAX_LISTED)) ?? []
  const senders = [...new Set(found.map(({ sender }) => sender ?? 'an unknown account'))]
  const message =
    `${paymentsAre(found.length, MAX_LISTED)} settled within a day by transactions that this gateway did not send, but ` +
    `${senders.join(', ')}: another gateway with a journal of its own, or a stranger. ${ONE_JOURNAL}`
  return found.length === 0 ? null : { message, about: senders }
}

/** @param most the count is at least this many if it reaches it */
function paymentsAre(count: number, most = Number.POSITIVE_INFINITY): string {
  if (count >= most) return `${count} payments or more are`
  return count === 1 ? '1 payment is' : `${count} payments are`
}
