import { EventEmitter, once } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import { expect } from 'chai'
import { pino } from 'pino'
import type { Journal } from '../../../gateway/payments/journal/journal.ts'
import type { Outcome, Settler, SubmittedPayment } from '../../../gateway/methods/payment-method.ts'
import { createRecovery } from '../../../gateway/payments/recovery.ts'
import type { TestJournal } from '../../contracts/journals.ts'
import { JOURNALS } from '../../contracts/journals.ts'
import { holdTimers } from '../../support/held-timers.ts'
import { INTENT, paymentIn, REFUSED, reservationOf, STEPS, TRANSACTION } from '../../contracts/journal-payments.ts'

const SETTLED: Outcome = { state: 'settled', transaction: TRANSACTION }
const PENDING: Outcome = { state: 'pending', transaction: TRANSACTION }
const MINUTE = 60_000
const NOTHING = { settled: 0, released: 0, owed: 0, waiting: 0, failed: 0, forgotten: 0 }

const unused = (): never => {
  throw new Error('recovery neither checks nor settles')
}

/** A settler that reports this status of each payment. */
const settlerWith = (status: (record: SubmittedPayment) => Outcome | Promise<Outcome>): Settler => ({
  kind: 'scripted',
  check: unused,
  settle: unused,
  status: async (record) => status(record),
  health: unused,
  close: unused,
})

describe('the recovery of open payments', () => {
  let database: TestJournal
  let journal: Journal

  beforeEach(async () => {
    database = (await JOURNALS['a SQLite file']?.()) as TestJournal
    journal = database.journal
  })
  afterEach(() => database.drop())

  const recoveryWith = (
    status: Parameters<typeof settlerWith>[0] = () => PENDING,
    isWorking = (_key: string): boolean => false,
  ) =>
    createRecovery({
      isWorking,
      journal,
      settler: settlerWith(status),
      now: () => new Date(database.now),
      log: pino({ level: 'silent' }),
      staleSeconds: 600,
      answerRetentionSeconds: 86_400,
    })
  const openInAnotherProcess = async (): Promise<Journal> => (await database.open?.()) as Journal
  /** A process that leaves payments open and ends. */
  const deadProcess = async (work: (journal: Journal) => Promise<string>): Promise<string> => {
    const process = await openInAnotherProcess()
    const key = await work(process)
    await process.close()
    return key
  }
  const validFor = (seconds: number) => ({ expiresAt: BigInt(Math.floor(database.now / 1000) + seconds) })
  const stateOf = async (key: string): Promise<string | undefined> => (await journal.find(key))?.state

  it('releases the reservations of a process that ended, at the start and on the timer', async () => {
    for (const atStart of [true, false]) {
      const key = await deadProcess((process) => paymentIn(process, 'reserved'))
      expect(await recoveryWith().run(atStart)).to.deep.equal({ ...NOTHING, released: 1 })
      expect((await journal.events(key)).at(-1)).to.include({
        state: 'released',
        note: 'the gateway stopped before the answer existed; nothing was sent',
      })
    }
  })

  it('releases a reservation of this process that no call works on: it could not be released while the disk was full', async () => {
    const left = await paymentIn(journal, 'reserved', validFor(3600))
    const other = await paymentIn(await openInAnotherProcess(), 'reserved', validFor(3600))
    expect(await recoveryWith().run()).to.deep.equal({ ...NOTHING, released: 1, waiting: 1 })
    expect([await stateOf(left), await stateOf(other)]).to.deep.equal(['released', 'reserved'])
  })

  it('leaves payments to the live processes that are working on them, however long that takes', async () => {
    const own = await paymentIn(journal, 'reserved', validFor(3600))
    const other = await openInAnotherProcess()
    const otherPayment = await paymentIn(other, 'reserved', validFor(3600))
    database.now += 20_000
    const isWorking = (key: string): boolean => key === own
    expect(await recoveryWith(undefined, isWorking).run()).to.deep.equal({ ...NOTHING, waiting: 2 })
    expect([await stateOf(own), await stateOf(otherPayment)]).to.deep.equal(['reserved', 'reserved'])
    database.now += 30 * MINUTE
    await recoveryWith(undefined, isWorking).run()
    expect(await stateOf(own)).to.equal('reserved')
  })

  it('releases a reservation that a call works on only once it is stale and the payment has expired', async () => {
    const short = await paymentIn(journal, 'reserved', validFor(60))
    const recovery = recoveryWith(undefined, () => true)
    database.now += 5 * MINUTE
    expect(await recovery.run()).to.include({ waiting: 1 })
    database.now += 6 * MINUTE
    expect(await recovery.run()).to.include({ released: 1 })
    expect(await stateOf(short)).to.equal('released')
  })

  it('keeps a stored answer for the buyer until the payment has certainly expired', async () => {
    const key = await deadProcess((process) => paymentIn(process, 'answered', validFor(120)))
    database.now += 3 * MINUTE
    expect(await recoveryWith().run(true)).to.include({ waiting: 1 })
    expect((await journal.find(key))?.answer).not.to.equal(null)
    database.now += 1000
    expect(await recoveryWith().run()).to.include({ released: 1 })
    expect(await journal.find(key)).to.include({ state: 'released', answer: null })
  })

  it('records what the chain shows about the payments that a process submitted before it ended', async () => {
    const outcomes = new Map<string, Outcome>()
    for (const outcome of [SETTLED, REFUSED, PENDING])
      outcomes.set(await deadProcess((process) => paymentIn(process, 'submitted')), outcome)
    const queried: SubmittedPayment[] = []
    const recovery = recoveryWith((record) => {
      queried.push(record)
      return outcomes.get(record.key) as Outcome
    })
    expect(await recovery.run(true)).to.deep.equal({ ...NOTHING, settled: 1, released: 1, waiting: 1 })
    const states = await Promise.all([...outcomes.keys()].map(stateOf))
    expect(states).to.deep.equal(['settled', 'released', 'submitted'])
    expect(await recovery.run()).to.deep.equal({ ...NOTHING, waiting: 1 })
    expect(queried).to.have.length(4)
    for (const record of queried) expect(record.intent).to.deep.equal(INTENT)
    const [settled = '', refused = ''] = outcomes.keys()
    expect(await journal.find(settled)).to.include({ transaction: TRANSACTION })
    expect(await journal.find(refused)).to.include({ reason: 'insufficient_funds', answer: null })
    expect((await journal.find(settled))?.answer?.body.toString()).to.equal('{"ok":true}')
  })

  it('leaves a new submission to the process that sends it, and takes it over later', async () => {
    const other = await openInAnotherProcess()
    const key = await paymentIn(other, 'submitted')
    const recovery = recoveryWith(() => SETTLED)
    expect(await recovery.run(true)).to.deep.equal({ ...NOTHING, waiting: 1 })
    database.now += 20_000
    expect(await recovery.run()).to.deep.equal({ ...NOTHING, settled: 1 })
    expect(await stateOf(key)).to.equal('settled')
  })

  it('leaves a payment to the call of its own process that is working on it, however long that takes', async () => {
    const key = await paymentIn(journal, 'submitted')
    database.now += 10 * MINUTE
    let working = true
    const recovery = recoveryWith(
      () => SETTLED,
      (payment) => working && payment === key,
    )
    expect(await recovery.run()).to.deep.equal({ ...NOTHING, waiting: 1 })
    working = false
    expect(await recovery.run()).to.deep.equal({ ...NOTHING, settled: 1 })
  })

  it('claims a payment before it reads the chain, so that the sender cannot release it as unsent', async () => {
    const sender = await openInAnotherProcess()
    const key = await paymentIn(sender, 'submitted')
    database.now += 20_000
    expect(await recoveryWith(() => PENDING).run()).to.include({ waiting: 1 })
    const unsent = { state: 'refused', reason: 'unexpected_settle_error', message: 'Not sent.', unsent: true } as const
    expect(await sender.refused(key, 1, unsent)).to.equal(false)
    expect(await journal.refused(key, 1, unsent)).to.equal(true)
    expect(await recoveryWith(() => SETTLED).run()).to.deep.equal(NOTHING)
  })

  it('changes nothing if the call recorded its own outcome first', async () => {
    const key = await paymentIn(journal, 'submitted')
    database.now += MINUTE
    const recovery = recoveryWith(async () => {
      await STEPS.settled(journal, key, 1)
      return REFUSED
    })
    expect(await recovery.run()).to.deep.equal({ ...NOTHING, waiting: 1 })
    expect(await stateOf(key)).to.equal('settled')
  })

  it('records a settlement without a stored answer as a debt', async () => {
    const submitted = await paymentIn(journal, 'submitted')
    const settled = await paymentIn(journal, 'settled')
    await database.sql?.('UPDATE payments SET answer_status = NULL, answer_headers = NULL, answer_body = NULL')
    database.now += MINUTE
    expect(await recoveryWith(() => SETTLED).run()).to.deep.equal({ ...NOTHING, owed: 2 })
    expect((await journal.debts()).map(({ key }) => key)).to.have.members([submitted, settled])
    expect(await recoveryWith(() => SETTLED).run()).to.deep.equal(NOTHING)
  })

  it('continues after an error with the other payments, and tries the failed one again in the next run', async () => {
    for (let count = 0; count < 3; count++) await paymentIn(journal, 'submitted')
    database.now += MINUTE
    let calls = 0
    const recovery = recoveryWith(() => {
      calls += 1
      if (calls === 2) throw new Error('the node does not answer')
      return SETTLED
    })
    expect(await recovery.run()).to.deep.equal({ ...NOTHING, settled: 2, failed: 1 })
    expect(await recovery.run()).to.deep.equal({ ...NOTHING, settled: 1 })
  })

  it('reads the status of sixteen payments at a time, and shares a run in progress', async () => {
    await Promise.all(Array.from({ length: 20 }, () => paymentIn(journal, 'submitted')))
    database.now += MINUTE
    let [running, mostRunning, total] = [0, 0, 0]
    const begun = new EventEmitter()
    const sixteen = once(begun, 'sixteen')
    const recovery = recoveryWith(async () => {
      total += 1
      running += 1
      mostRunning = Math.max(mostRunning, running)
      if (running === 16) begun.emit('sixteen')
      await sixteen
      running -= 1
      return PENDING
    })
    const [first, second] = await Promise.all([recovery.run(), recovery.run()])
    expect(first).to.deep.equal({ ...NOTHING, waiting: 20 })
    expect(second).to.equal(first)
    expect(total).to.equal(20)
    expect(mostRunning).to.equal(16)
  })

  it('deletes answers at the end of their retention, and keeps the settlements', async () => {
    const key = await paymentIn(journal, 'settled')
    database.now += 86_400_000
    expect(await recoveryWith().run()).to.deep.equal(NOTHING)
    database.now += 1
    expect(await recoveryWith().run()).to.deep.equal({ ...NOTHING, forgotten: 1 })
    expect(await journal.find(key)).to.include({ state: 'settled', answer: null, transaction: TRANSACTION })
  })

  it('runs on a timer until it is stopped, also after a failed run', async () => {
    await paymentIn(journal, 'submitted')
    database.now += MINUTE
    let runs = 0
    const recovery = recoveryWith(() => {
      runs += 1
      throw new Error('the node does not answer')
    })
    const timers = holdTimers()
    try {
      recovery.start(60)
      while (runs < 3) {
        timers.fire()
        await setImmediate()
      }
      await recovery.stop()
      timers.fire()
      await recovery.stop()
      expect(runs).to.equal(3)
    } finally {
      timers.release()
    }
  })

  it('changes no finished payment', async () => {
    const keys = await Promise.all((['settled', 'released', 'owed'] as const).map((state) => paymentIn(journal, state)))
    const before = await Promise.all(keys.map((key) => journal.find(key)))
    await journal.reserve(reservationOf())
    database.now += MINUTE
    await recoveryWith(() => REFUSED).run(true)
    expect(await Promise.all(keys.map((key) => journal.find(key)))).to.deep.equal(before)
  })
})
