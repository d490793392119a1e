/**
 * What must not stay unseen between two reconciliations: settlements that fail, payments that stay pending, a settler
 * that cannot settle, debts, and products that do not answer. Each alarm is told when it begins and when it grows, and
 * stays raised until its cause is gone.
 */
import type { Journal } from '../payments/journal/journal.ts'
import type { Logger } from '../plugin/plugin.ts'
import type { Lease } from '../stores/lease.ts'
import type { Tell } from './alerts.ts'

export const ALARMS = [
  'settling.failing',
  'settling.impossible',
  'payments.stale',
  'ledger.owed',
  'products.down',
] as const

export type AlarmName = (typeof ALARMS)[number]

export interface Alarm {
  readonly name: AlarmName
  /** A sentence for people. */
  readonly message: string
  /** What it is about: payments, products, or one word. */
  readonly about: readonly string[]
  readonly since: Date
}

export interface Alarms {
  /** How a settlement ended: "settled", "refused", "pending" or "threw". */
  observe(outcome: string): void
  /** Looks at everything once. */
  run(): Promise<readonly Alarm[]>
  raised(): readonly Alarm[]
  start(everySeconds: number): void
  stop(): Promise<void>
}

export interface AlarmParts {
  readonly journal: Pick<Journal, 'openPayments' | 'debts'>
  readonly settlerHealth: () => { readonly ready: boolean; readonly reason?: string }
  readonly products: () => readonly { readonly product: string; readonly status: string }[]
  /** Of several processes on one ledger only the one with the lease looks at it. */
  readonly lease: Pick<Lease, 'hold'>
  readonly tell: Tell
  /** After each look, with every alarm's name. */
  readonly onLook: (raised: Readonly<Record<AlarmName, boolean>>) => void
  readonly log: Logger
  readonly now: () => Date
}

const WINDOW_MS = 600_000
/** Fewer settlements than this say nothing about a rate. */
const LEAST = 5
const FAILING_SHARE = 0.5
const STALE_MS = 600_000
const LEASE = 'gateway/alarms'
const LEASE_EXTRA_SECONDS = 60
const MOST = 100

const payments = (count: number): string => (count === 1 ? '1 payment is' : `${count} payments are`)

type Found = Pick<Alarm, 'message' | 'about'> | null

export function createAlarms(parts: AlarmParts): Alarms {
  const { journal, settlerHealth, products, lease, tell, onLook, log, now } = parts
  const outcomes: { readonly at: number; readonly failed: boolean }[] = []
  const raised = new Map<AlarmName, Alarm>()
  /** What was told of each raised alarm. */
  const told = new Map<AlarmName, Set<string>>()
  let underWay: Promise<readonly Alarm[]> | null = null
  let timer: NodeJS.Timeout | undefined

  function failing(): Found {
    while (outcomes[0] && outcomes[0].at < now().getTime() - WINDOW_MS) outcomes.shift()
    const failed = outcomes.filter((outcome) => outcome.failed).length
    if (outcomes.length < LEAST || failed / outcomes.length < FAILING_SHARE) return null
    return { message: `${failed} of the last ${outcomes.length} settlements failed`, about: ['settling'] }
  }

  function impossible(): Found {
    const { ready, reason = 'no reason known' } = settlerHealth()
    return ready ? null : { message: `payments cannot be settled: ${reason}`, about: ['settler'] }
  }

  async function stale(): Promise<Found> {
    const late = (await journal.openPayments()).filter(
      ({ state, createdAt }) => state === 'submitted' && createdAt < now().getTime() - STALE_MS,
    )
    const message = `${payments(late.length)} pending for more than ${STALE_MS / 60_000} minutes`
    return late.length === 0 ? null : { message, about: late.map(({ key }) => key) }
  }

  async function owed(): Promise<Found> {
    const debts = await journal.debts()
    const message = `${payments(debts.length)} settled and cannot be delivered`
    return debts.length === 0 ? null : { message, about: debts.map(({ key }) => key) }
  }

  function down(): Found {
    const names = products().flatMap(({ product, status }) => (status === 'ok' ? [] : [product]))
    return names.length === 0 ? null : { message: `products do not answer: ${names.join(', ')}`, about: names }
  }

  async function judge(name: AlarmName, found: Found): Promise<void> {
    if (!found) {
      if (raised.delete(name)) log.info({ event: name }, 'an alarm is over')
      told.delete(name)
      return
    }
    const { message, about } = found
    raised.set(name, { name, message, about: about.slice(0, MOST), since: raised.get(name)?.since ?? now() })
    const known = told.get(name) ?? new Set<string>()
    if (about.every((word) => known.has(word))) return
    const news = about.filter((word) => !known.has(word)).slice(0, MOST)
    if (await tell({ event: name, message, details: { about: news } })) told.set(name, new Set(about))
  }

  async function look(isOurs: boolean): Promise<readonly Alarm[]> {
    await judge('settling.failing', failing())
    await judge('settling.impossible', impossible())
    await judge('products.down', down())
    await judge('payments.stale', isOurs ? await stale() : null)
    await judge('ledger.owed', isOurs ? await owed() : null)
    onLook(Object.fromEntries(ALARMS.map((name) => [name, raised.has(name)])) as Record<AlarmName, boolean>)
    return [...raised.values()]
  }

  const once = (isOurs: boolean): Promise<readonly Alarm[]> =>
    (underWay ??= look(isOurs).finally(() => {
      underWay = null
    }))

  async function tick(everySeconds: number): Promise<void> {
    await once(await lease.hold(LEASE, everySeconds + LEASE_EXTRA_SECONDS))
  }

  return {
    observe(outcome) {
      if (outcome !== 'pending') outcomes.push({ at: now().getTime(), failed: outcome !== 'settled' })
    },
    run: () => once(true),
    raised: () => [...raised.values()],
    start(everySeconds) {
      const again = (): void =>
        void tick(everySeconds).catch((error: unknown) => log.error({ err: error }, 'the alarms could not look'))
      timer = setInterval(again, everySeconds * 1000).unref()
      again()
    },
    async stop() {
      clearInterval(timer)
      await underWay?.catch(() => {})
    },
  }
}
