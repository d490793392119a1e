/**
 * Alarms for problems that must not wait for the next reconciliation: a journal that cannot be written, a disk that
 * fills up, failing settlements, payments that stay pending, a settler that cannot settle, gas that runs out or costs
 * much, debts, payments that a reorganisation reversed or that others sent, products that do not answer, and data that
 * are not fresh enough to be sold. An alarm sends an alert when it is raised and when something joins it, and stays
 * raised until its cause is gone.
 */
import { formatEther } from 'viem/utils'
import { ONE_JOURNAL } from '../config/pay-to.ts'
import type { Awaitable } from '../awaitable.ts'
import type { FreshnessState } from '../products/freshness.ts'
import type { GasAccount } from '../methods/payment-method.ts'
import type { Journal, JournalHealth } from '../payments/journal/journal.ts'
import type { Logger } from '../plugin/plugin.ts'
import { keepLease, type Lease } from '../stores/lease.ts'
import type { SendAlert } from './alert-webhook.ts'
import type { GasSpending } from './gas-spent.ts'
import type { Row } from './reconciliation/findings.ts'
import type { BelowCost } from './settlement-against-prices.ts'
import { withCommands } from '../config/project-root.ts'

const ALARMS = [
  'journal.unwritable',
  'disk.low',
  'settling.failing',
  'settling.impossible',
  'gas.low',
  'gas.burnt',
  'gas.above_price',
  'payments.stale',
  'payments.reversed',
  'payments.foreign',
  'ledger.owed',
  'ledger.unclear',
  'products.down',
  'data.stale',
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
  readonly journal: Pick<Journal, 'openPayments' | 'debts' | 'unclear' | 'reversals' | 'health'>
  /** The space of the disk with the journal. Absent: it is on another machine. */
  readonly disk?: DiskParts
  readonly settlerHealth: () => { readonly ready: boolean; readonly reason?: string }
  /** The accounts that pay gas, and what is too little and too much. Absent: somebody else pays. */
  readonly gas?: GasParts
  /** Payments to us that others sent, found since this moment (ms), at most `limit`. Absent: they are not looked for. */
  readonly foreignPayments?: (since: number, limit: number) => Promise<readonly ForeignPayment[]>
  readonly products: () => readonly { readonly product: string; readonly status: string }[]
  /** How fresh the data of what is sold are. */
  readonly freshness: () => Awaitable<readonly Pick<FreshnessState, 'operation' | 'request' | 'status' | 'reason'>[]>
  /** If several processes share a journal, only the one that holds the lease checks this. */
  readonly lease: Pick<Lease, 'hold'>
  readonly alert: SendAlert
  /** Called after each check with the state of every alarm. */
  readonly onChecked: (raised: Readonly<Record<AlarmName, boolean>>) => void
  readonly log: Logger
  readonly now: () => Date
}

export interface DiskParts {
  /** Bytes that may still be written. */
  readonly free: () => Promise<number>
  /** With fewer bytes than this, the disk is low. */
  readonly low: number
  readonly folder: string
}

export interface GasParts {
  /** The accounts of this process, as they were last read. */
  readonly accounts: () => readonly GasAccount[]
  readonly spending: GasSpending
  /** An account that can pay for fewer settlements than this, at what they cost now, is low. */
  readonly lowSettlements: number
  /** The most wei that an hour may cost on one network. */
  readonly perHour: bigint
  /** Compares what a settlement costs with the prices of operations. */
  readonly belowCost: () => BelowCost | null
}

/** A payment that another gateway or a stranger sent to the chain. */
export type ForeignPayment = Pick<Row, 'sender' | 'transaction'>

/** The failure rate is that of the settlements within this time, counted in stretches of STRETCH_MS. */
const WINDOW_MS = 600_000
const STRETCH_MS = 10_000
/** With fewer settlements than this the failure rate means nothing. */
const MIN_SETTLEMENTS = 5
const FAILING_SHARE = 0.5
const STALE_MS = 600_000
const LEASE = 'gateway/alarms'
const MAX_LISTED = 100
const HOUR_MS = 3_600_000
/** How long a reversed payment keeps its alarm raised. It ends earlier if the payment is mined again. */
const REVERSED_MS = 7 * 86_400_000
/** How long payments that others sent keep their alarm raised. */
const FOREIGN_MS = 86_400_000

/** The result of a check: the alarm to raise, or null. */
type Finding = Pick<Alarm, 'message' | 'about'> | null

/** An alarm, and what looks for its cause. */
type Condition = readonly [name: AlarmName, find: () => Awaitable<Finding>]

/** How settlements ended within one stretch of time. Keeping each outcome would take megabytes under load. */
interface Outcomes {
  /** Milliseconds since the epoch. */
  readonly from: number
  settled: number
  failed: number
}

/** Creates the alarms. None is raised before the first check. */
export function createAlarms(parts: AlarmParts): Alarms {
  const { journal, disk, settlerHealth, gas, foreignPayments, products, freshness, lease, log, now } = parts
  let outcomes: Outcomes[] = []
  const { raised, updateAll } = raiseAlarms(parts)
  const kept = keepLease(lease, LEASE, (error) =>
    log.warn({ err: error }, 'the lease of the alarms could not be renewed'),
  )
  let underWay: Promise<readonly Alarm[]> | null = null
  let timer: NodeJS.Timeout | undefined
  let isStopped = false

  function recentOutcomes(): readonly Outcomes[] {
    outcomes = outcomes.filter(({ from }) => from >= now().getTime() - WINDOW_MS)
    return outcomes
  }

  /** Checks what needs no database first: on a full disk, nothing else can be read or counted. */
  const checkStorage = (): Promise<void> =>
    updateAll([
      ['journal.unwritable', () => unwritableJournal(journal.health())],
      ['disk.low', () => (disk ? lowDisk(disk) : null)],
    ])

  /** @param holdsLease null if unknown: alarms that depend on it stay as they are */
  async function check(holdsLease: boolean | null): Promise<readonly Alarm[]> {
    const own: readonly Condition[] = [
      ['settling.failing', () => failingSettlements(recentOutcomes())],
      ['settling.impossible', () => impossibleSettlement(settlerHealth())],
      ['gas.low', () => (gas ? lowGas(gas) : null)],
      ['gas.above_price', () => gas?.belowCost() ?? null],
      ['products.down', () => downProducts(products())],
      ['data.stale', async () => staleData(await freshness())],
    ]
    const ofHolder = (find: () => Awaitable<Finding>) => () => (holdsLease ? find() : null)
    const shared: readonly Condition[] = [
      [
        'gas.burnt',
        async () => {
          await gas?.spending.record(gas.accounts())
          return gas && holdsLease ? burntGas(gas, now()) : null
        },
      ],
      ['payments.stale', ofHolder(() => stalePayments(journal, now()))],
      ['payments.reversed', ofHolder(() => reversedPayments(journal, now()))],
      ['payments.foreign', ofHolder(() => paymentsOfOthers(foreignPayments, now()))],
      ['ledger.owed', ofHolder(() => owedPayments(journal))],
      ['ledger.unclear', ofHolder(() => unclearDebts(journal))],
    ]
    await updateAll(holdsLease === null ? own : [...own, ...shared])
    return [...raised.values()]
  }

  const checkNow = (holdsLease: boolean | null): Promise<readonly Alarm[]> =>
    (underWay ??= check(holdsLease).finally(() => {
      underWay = null
    }))

  const logFailure = (error: unknown): void => log.error({ err: error }, 'the alarms could not be checked')

  async function tick(): Promise<void> {
    await checkStorage().catch(logFailure)
    const holdsLease = await kept.hold().catch((error: unknown) => {
      logFailure(error)
      return null
    })
    if (!isStopped) await checkNow(holdsLease)
  }

  return {
    observe(outcome) {
      if (outcome === 'pending') return
      const from = Math.floor(now().getTime() / STRETCH_MS) * STRETCH_MS
      let latest = outcomes.at(-1)
      if (latest?.from !== from) outcomes = [...recentOutcomes(), (latest = { from, settled: 0, failed: 0 })]
      latest[outcome === 'settled' ? 'settled' : 'failed'] += 1
    },
    async run() {
      await checkStorage().catch(logFailure)
      return checkNow(true)
    },
    raised: () => [...raised.values()],
    start(everySeconds) {
      const start = (): void => void tick().catch(logFailure)
      timer = setInterval(start, everySeconds * 1000).unref()
      start()
    },
    async stop() {
      clearInterval(timer)
      isStopped = true
      await kept.stop()
      await underWay?.catch(() => {})
    },
  }
}

/** The alarms that are raised, and what raises, clears and reports them. */
function raiseAlarms({ alert, onChecked, log, now }: Pick<AlarmParts, 'alert' | 'onChecked' | 'log' | 'now'>): {
  readonly raised: ReadonlyMap<AlarmName, Alarm>
  readonly updateAll: (conditions: readonly Condition[]) => Promise<void>
} {
  const raised = new Map<AlarmName, Alarm>()
  /** The subjects about which each raised alarm has sent alerts. */
  const alerted = new Map<AlarmName, Set<string>>()

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

  /**
   * Updates alarms one after the other. A condition that cannot be checked leaves its alarm as it is, and keeps none of
   * the others from being checked. Throws the first error in the end.
   */
  async function updateAll(conditions: readonly Condition[]): Promise<void> {
    const errors: unknown[] = []
    for (const [name, find] of conditions)
      try {
        await update(name, await find())
      } catch (error) {
        errors.push(error)
      }
    report()
    if (errors.length > 0) throw errors[0]
  }

  function report(): void {
    onChecked(Object.fromEntries(ALARMS.map((name) => [name, raised.has(name)])) as Record<AlarmName, boolean>)
  }

  return { raised, updateAll }
}

function unwritableJournal({ ready, reason = 'unknown reason' }: JournalHealth): Finding {
  return ready ? null : { message: `no payment is taken: the journal cannot be written: ${reason}`, about: ['journal'] }
}

async function lowDisk({ free, low, folder }: DiskParts): Promise<Finding> {
  const bytes = await free()
  if (bytes >= low) return null
  const message = `${Math.floor(bytes / 1e6)} MB are free for ${folder}. Below a few, no payment is taken. Free some space.`
  return { message, about: ['disk'] }
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

function lowGas({ accounts, lowSettlements }: GasParts): Finding {
  const low = accounts().flatMap(({ network, address, balance, settlementCost }) => {
    // On a chain without fees, any balance pays for every settlement.
    if (settlementCost.wei === 0n) return []
    const left = balance / settlementCost.wei
    return left < BigInt(lowSettlements) ? [{ network: network.name, address, left }] : []
  })
  const each = low.map(({ network, address, left }) => `${address} has gas for ${left} more settlements on ${network}`)
  const message = `${each.join(', ')}, at what one costs now. Send it more of the coin that pays for gas`
  return low.length === 0 ? null : { message, about: low.map(({ network, address }) => `${network}/${address}`) }
}

async function burntGas({ spending, perHour }: GasParts, now: Date): Promise<Finding> {
  const burnt = (await spending.since(now.getTime() - HOUR_MS)).filter(({ spent }) => spent > perHour)
  const each = burnt.map(
    ({ network, spent, spentOnFailures }) =>
      `the gas of the last hour cost ${formatEther(spent)} on ${network}, ${formatEther(spentOnFailures)} of it for transactions that failed`,
  )
  const message = `${each.join(', ')}: more than the ${formatEther(perHour)} of GAS_ALARM_PER_HOUR`
  return burnt.length === 0 ? null : { message, about: burnt.map(({ network }) => network) }
}

function downProducts(products: ReturnType<AlarmParts['products']>): Finding {
  const names = products.flatMap(({ product, status }) => (['ok', 'paused'].includes(status) ? [] : [product]))
  return names.length === 0 ? null : { message: `products do not answer: ${names.join(', ')}`, about: names }
}

function staleData(states: Awaited<ReturnType<AlarmParts['freshness']>>): Finding {
  const stale = states.filter(({ status }) => status === 'stale')
  const nameOf = ({ operation, request }: (typeof stale)[number]): string => request ?? operation
  const reasons = stale.map((state) => `${nameOf(state)}: ${state.reason}`)
  const message = `not sold, because their data are not fresh enough: ${reasons.join(' ')}`
  return stale.length === 0 ? null : { message, about: stale.map(nameOf) }
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

async function unclearDebts(journal: Pick<Journal, 'unclear'>): Promise<Finding> {
  const unclear = await journal.unclear()
  const message = `An earlier release did not record how ${unclear.length === 1 ? '1 debt' : `${unclear.length} debts`} ended. Nothing is sent until you say how: ${withCommands('npm run ledger -- owed')}`
  return unclear.length === 0 ? null : { message, about: unclear.map(({ key }) => key) }
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
