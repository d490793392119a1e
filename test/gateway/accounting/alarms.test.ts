import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Hex } from '../../../gateway/config/networks.ts'
import { createLog } from '../../../gateway/observe/log.ts'
import { openJournal } from '../../../gateway/payments/journal/open-journal.ts'
import type { Journal } from '../../../gateway/payments/journal/journal.ts'
import { connect } from '../../../gateway/payments/journal/sqlite-connection.ts'
import { createAlarms } from '../../../gateway/accounting/alarms.ts'
import type { Alert } from '../../../gateway/accounting/alert-webhook.ts'
import { openGasSpending } from '../../../gateway/accounting/gas-spent.ts'
import type { BelowCost } from '../../../gateway/accounting/settlement-against-prices.ts'
import { NETWORKS } from '../../../gateway/config/networks.ts'
import type { GasAccount } from '../../../gateway/methods/payment-method.ts'
import { type OpenDatabase, openDatabase } from '../../../gateway/stores/database.ts'
import { paymentIn, TRANSACTION } from '../../contracts/journal-payments.ts'

const stateOf = (operation: string, isStale: boolean) =>
  isStale
    ? ({ operation, status: 'stale', reason: 'There are no data yet.' } as const)
    : ({ operation, status: 'fresh', reason: null } as const)

describe('the alarms', () => {
  let folder: string
  let journal: Journal
  let at: number
  let alerts: Alert[]
  let accepted: boolean
  let ready: boolean
  let down: string[]
  let stale: string[]
  let foreign: { readonly sender: Hex; readonly transaction: Hex; readonly at: number }[]
  let accounts: GasAccount[]
  let belowCost: BelowCost | null
  let db: OpenDatabase
  let checks: Readonly<Record<string, boolean>>[]
  /** Bytes on the disk, and whether the journal can be written. */
  let free: number
  let writable: boolean
  let diskFault: Error | null
  let alarms: ReturnType<typeof createAlarms>

  beforeEach(async () => {
    at = 1_790_000_000_000
    ;[alerts, checks, down, foreign, accounts] = [[], [], [], [], []]
    belowCost = null
    stale = []
    db = openDatabase({ file: ':memory:' })
    ;[accepted, ready] = [true, true]
    folder = mkdtempSync(join(tmpdir(), 'tollgate-alarms-'))
    journal = await openJournal({ file: join(folder, 'journal.sqlite'), now: () => new Date(at) })
    ;[free, writable, diskFault] = [10_000_000_000, true, null]
    alarms = createAlarms({
      journal: {
        ...journal,
        health: () => (writable ? { ready: true } : { ready: false, reason: 'the disk is full' }),
      },
      disk: { free: async () => (diskFault ? Promise.reject(diskFault) : free), low: 500_000_000, folder: '/srv/data' },
      gas: {
        accounts: () => accounts,
        spending: await openGasSpending(db, () => new Date(at)),
        lowSettlements: 1_000,
        perHour: 10n ** 16n,
        belowCost: () => belowCost,
      },
      settlerHealth: () => (ready ? { ready } : { ready, reason: 'the gas key is empty' }),
      products: () =>
        ['echo', 'late'].map((product) => ({ product, status: down.includes(product) ? 'suspended' : 'ok' })),
      freshness: () => [
        ...['sellGold', 'sellTin'].map((operation) => stateOf(operation, stale.includes(operation))),
        ...['GET /gold?day=1', 'GET /gold?day=2'].map((request) => ({
          ...stateOf('sellGold', stale.includes(request)),
          request,
        })),
      ],
      foreignPayments: async (since, limit) => foreign.filter((each) => each.at >= since).slice(0, limit),
      lease: { hold: async () => true },
      alert: async (alert) => {
        alerts.push(alert)
        return accepted
      },
      onChecked: (raised) => void checks.push(raised),
      log: createLog('silent'),
      now: () => new Date(at),
    })
  })
  afterEach(async () => {
    await journal.close()
    await db.destroy()
    rmSync(folder, { recursive: true })
  })

  const events = (): string[] => alerts.map(({ event }) => event)
  const about = (): unknown => alerts.at(-1)?.details['about']

  it('raise nothing while the service is healthy, and report every alarm to the metrics as clear', async () => {
    expect(await alarms.run()).to.deep.equal([])
    expect(alerts).to.deep.equal([])
    expect(Object.values(checks[0] ?? {})).to.deep.equal(Array(14).fill(false))
  })

  it('report a disk that fills up, and a journal that cannot be written, until there is room again', async () => {
    free = 499_999_999
    expect((await alarms.run()).map(({ message }) => message)).to.deep.equal([
      '499 MB are free for /srv/data. Below a few, no payment is taken. Free some space.',
    ])
    ;[free, writable] = [0, false]
    expect((await alarms.run()).map(({ name }) => name)).to.have.members(['disk.low', 'journal.unwritable'])
    expect(alerts.at(-1)?.message).to.equal('no payment is taken: the journal cannot be written: the disk is full')
    expect(checks.at(-1)).to.include({ 'disk.low': true, 'journal.unwritable': true })
    ;[free, writable] = [500_000_000, true]
    expect(await alarms.run()).to.deep.equal([])
  })

  it('report failing settlements if at least half of the last five or more failed', async () => {
    for (const outcome of ['refused', 'threw', 'refused', 'refused']) alarms.observe(outcome)
    expect(await alarms.run()).to.deep.equal([])
    alarms.observe('settled')
    for (let times = 0; times < 20; times++) alarms.observe('pending')
    const [raised] = await alarms.run()
    expect(raised).to.include({ name: 'settling.failing', message: '4 of the last 5 settlements failed' })
    expect(checks.at(-1)).to.include({ 'settling.failing': true, 'ledger.owed': false })
    await alarms.run()
    expect(events(), 'alerted once').to.deep.equal(['settling.failing'])
    at += 600_001
    expect(await alarms.run()).to.deep.equal([])
    expect(checks.at(-1)).to.include({ 'settling.failing': false })
  })

  const account = (change: Partial<GasAccount>): GasAccount => ({
    network: NETWORKS.base,
    address: `0x${'1a'.repeat(20)}`,
    balance: 10n ** 18n,
    settlementCost: { gas: 86_000n, gasPrice: 10_000_000n, l1Fee: 140_000_000_000n, wei: 10n ** 12n },
    spent: 0n,
    spentOnFailures: 0n,
    ...change,
  })

  it('name a gas account that can pay for fewer settlements than the limit, at what one costs now', async () => {
    accounts = [account({ balance: 10n ** 15n })]
    expect(await alarms.run()).to.deep.equal([])
    accounts = [account({ balance: 10n ** 15n - 1n })]
    const [raised] = await alarms.run()
    expect(raised).to.include({ name: 'gas.low' })
    expect(raised?.message).to.match(/^0x1a.* has gas for 999 more settlements on base, at what one costs now/)
    expect(about()).to.deep.equal([`base/0x${'1a'.repeat(20)}`])
    accounts = [account({})]
    expect(await alarms.run()).to.deep.equal([])
  })

  it('need no gas on a chain without fees', async () => {
    const free = { gas: 86_000n, gasPrice: 0n, l1Fee: 0n, wei: 0n }
    accounts = [account({ balance: 0n, settlementCost: free })]
    down = ['late']
    expect((await alarms.run()).map(({ name }) => name)).to.deep.equal(['products.down'])
  })

  it('report what the gas of an hour cost, for all processes and after a restart, until it is less than the limit', async () => {
    const spend = (spent: bigint, spentOnFailures: bigint): void => {
      accounts = [account({ spent, spentOnFailures })]
    }
    spend(10n ** 16n, 0n)
    expect(await alarms.run(), 'as much as the limit').to.deep.equal([])
    at += 600_000
    // Another process, or this one after a restart: it counts from 0.
    await (await openGasSpending(db, () => new Date(at))).record([account({ spent: 10n ** 15n })])
    spend(10n ** 16n + 10n ** 15n, 10n ** 15n)
    const [raised] = await alarms.run()
    expect(raised).to.include({
      name: 'gas.burnt',
      message:
        'the gas of the last hour cost 0.012 on base, 0.001 of it for transactions that failed: more than the 0.01 of GAS_ALARM_PER_HOUR',
    })
    expect(about()).to.deep.equal(['base'])
    at += 3_000_001
    expect(await alarms.run(), 'an hour after the first').to.deep.equal([])
  })

  it('name what sells for less than its settlement costs', async () => {
    belowCost = { message: 'too cheap', about: ['base/getCheap'] }
    expect(await alarms.run()).to.have.length(1)
    expect(alerts.at(-1)).to.deep.include({ event: 'gas.above_price', message: 'too cheap' })
    belowCost = { message: 'too cheap', about: ['base/getCheap', 'base/getOther'] }
    await alarms.run()
    expect(about()).to.deep.equal(['base/getOther'])
    belowCost = null
    expect(await alarms.run()).to.deep.equal([])
  })

  it('name a payment that the chain took back, for a week or until it is mined again', async () => {
    const first = await paymentIn(journal, 'reversed')
    const [raised] = await alarms.run()
    expect(raised).to.include({ name: 'payments.reversed' })
    expect(raised?.message).to.match(/^1 payment is owed to us/)
    expect(about()).to.deep.equal([first])
    expect(await journal.settledAgain(first, 1, TRANSACTION)).to.equal(true)
    expect(await alarms.run()).to.deep.equal([])
    await paymentIn(journal, 'reversed')
    expect(await alarms.run()).to.have.length(1)
    at += 7 * 86_400_000 + 1
    expect(await alarms.run()).to.deep.equal([])
  })

  it('name everybody who sent payments to us within a day, once each', async () => {
    const [one, other] = [`0x${'1a'.repeat(20)}`, `0x${'2b'.repeat(20)}`] as const
    const sentBy = (sender: Hex) => foreign.push({ sender, transaction: `0x${'ab'.repeat(32)}`, at })
    sentBy(one)
    const [raised] = await alarms.run()
    expect(raised).to.include({ name: 'payments.foreign' })
    expect(raised?.message).to.match(/^1 payment is settled .* but 0x1a.*One PAY_TO needs one journal/)
    expect(about()).to.deep.equal([one])
    sentBy(one)
    await alarms.run()
    expect(alerts).to.have.length(1)
    sentBy(other)
    await alarms.run()
    expect(about()).to.deep.equal([other])
    at += 86_400_001
    expect(await alarms.run()).to.deep.equal([])
  })

  it('name payments pending for too long, and alert again when another one joins', async () => {
    const first = await paymentIn(journal, 'submitted')
    at += 600_000
    expect(await alarms.run()).to.deep.equal([])
    at += 1
    expect(await alarms.run()).to.have.length(1)
    expect(about()).to.deep.equal([first])
    const second = await paymentIn(journal, 'submitted')
    await alarms.run()
    expect(alerts).to.have.length(1)
    at += 600_001
    await alarms.run()
    expect(about()).to.deep.equal([second])
    expect(events()).to.deep.equal(['payments.stale', 'payments.stale'])
  })

  it('name each debt once, and clear when it is repaid', async () => {
    const key = await paymentIn(journal, 'owed')
    await alarms.run()
    await alarms.run()
    expect(events()).to.deep.equal(['ledger.owed'])
    expect(about()).to.deep.equal([key])
    await journal.repaid(key, 'sent')
    expect(await alarms.run()).to.deep.equal([])
  })

  it('name the debts of which an earlier release did not say how they ended, until the operator does', async () => {
    const key = await paymentIn(journal, 'owed')
    await journal.repaid(key, 'a reorganisation took the payment back')
    const connection = await connect(join(folder, 'journal.sqlite'), 'write')
    await connection.exec("UPDATE payments SET ending = 'unknown'")
    await connection.close()
    const [alarm] = await alarms.run()
    expect(alarm?.message).to.contain('how 1 debt ended').and.to.contain('npm run ledger -- owed')
    expect(events()).to.deep.equal(['ledger.unclear'])
    expect(about()).to.deep.equal([key])
    await journal.decided(key, 'repaid')
    expect(await alarms.run()).to.deep.equal([])
  })

  it('report a settler that cannot settle, and products that do not answer', async () => {
    ready = false
    down = ['late']
    expect((await alarms.run()).map(({ message }) => message)).to.deep.equal([
      'payments cannot be settled: the gas key is empty',
      'products do not answer: late',
    ])
    down = ['late', 'echo']
    await alarms.run()
    expect(about()).to.deep.equal(['echo'])
    ;[ready, down] = [true, []]
    expect(await alarms.run()).to.deep.equal([])
    ready = false
    await alarms.run()
    expect(
      events().filter((event) => event === 'settling.impossible'),
      'alerted again',
    ).to.have.length(2)
  })

  it('are raised though the cause of another one cannot be looked for, which leaves that one as it is', async () => {
    down = ['late']
    free = 0
    await alarms.run()
    ;[ready, down] = [false, []]
    diskFault = new Error('the disk is gone')
    await db.destroy()
    accounts = [account({ spent: 1n })]
    expect(await alarms.run().catch((error: unknown) => String(error))).to.match(/closed/)
    expect(alarms.raised().map(({ name }) => name)).to.have.members(['disk.low', 'settling.impossible'])
  })

  it('send the alert again if the webhook did not accept it', async () => {
    accepted = false
    ready = false
    await alarms.run()
    accepted = true
    await alarms.run()
    await alarms.run()
    expect(alerts).to.have.length(2)
  })

  it('name the operations that are not sold for want of fresh data, until they are sold again', async () => {
    stale = ['sellTin']
    const [raised] = await alarms.run()
    expect(raised).to.include({ name: 'data.stale' })
    expect(raised?.message).to.contain('sellTin: There are no data yet.')
    expect(about()).to.deep.equal(['sellTin'])
    stale = ['sellTin', 'sellGold']
    await alarms.run()
    expect(about()).to.deep.equal(['sellGold'])
    expect(events()).to.deep.equal(['data.stale', 'data.stale'])
    stale = []
    expect(await alarms.run()).to.deep.equal([])
    expect(checks.at(-1)).to.include({ 'data.stale': false })
  })

  it('name each input whose own data are not fresh', async () => {
    stale = ['GET /gold?day=1']
    const [raised] = await alarms.run()
    expect(raised?.message).to.match(/fresh enough: GET \/gold\?day=1: There are no data yet\.$/)
    stale = ['GET /gold?day=1', 'GET /gold?day=2']
    await alarms.run()
    expect(about()).to.deep.equal(['GET /gold?day=2'])
    expect(events()).to.deep.equal(['data.stale', 'data.stale'])
  })
})
