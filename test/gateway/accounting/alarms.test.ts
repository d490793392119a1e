import { expect } from 'chai'
import type { Hex } from '../../../gateway/config/networks.ts'
import { createLog } from '../../../gateway/observe/log.ts'
import { openJournal } from '../../../gateway/payments/journal/open-journal.ts'
import type { Journal } from '../../../gateway/payments/journal/journal.ts'
import { createAlarms } from '../../../gateway/accounting/alarms.ts'
import type { Alert } from '../../../gateway/accounting/alert-webhook.ts'
import { paymentIn, TRANSACTION } from '../../contracts/journal-payments.ts'

describe('the alarms', () => {
  let journal: Journal
  let at: number
  let alerts: Alert[]
  let accepted: boolean
  let ready: boolean
  let down: string[]
  let foreign: { readonly sender: Hex; readonly transaction: Hex; readonly at: number }[]
  let checks: Readonly<Record<string, boolean>>[]
  let alarms: ReturnType<typeof createAlarms>

  beforeEach(async () => {
    at = 1_790_000_000_000
    ;[alerts, checks, down, foreign] = [[], [], [], []]
    ;[accepted, ready] = [true, true]
    journal = await openJournal({ file: ':memory:', now: () => at })
    alarms = createAlarms({
      journal,
      settlerHealth: () => (ready ? { ready } : { ready, reason: 'the gas key is empty' }),
      products: () =>
        ['echo', 'late'].map((product) => ({ product, status: down.includes(product) ? 'suspended' : 'ok' })),
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
  afterEach(() => journal.close())

  const events = (): string[] => alerts.map(({ event }) => event)
  const about = (): unknown => alerts.at(-1)?.details['about']

  it('raise nothing while the service is healthy, and report every alarm to the metrics as clear', async () => {
    expect(await alarms.run()).to.deep.equal([])
    expect(alerts).to.deep.equal([])
    expect(Object.values(checks[0] ?? {})).to.deep.equal([false, false, false, false, false, false, false])
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

  it('send the alert again if the webhook did not accept it', async () => {
    accepted = false
    ready = false
    await alarms.run()
    accepted = true
    await alarms.run()
    await alarms.run()
    expect(alerts).to.have.length(2)
  })
})
