import { EventEmitter, once } from 'node:events'
import { expect } from 'chai'
import { pino } from 'pino'
import type { Journal } from '../../../gateway/payments/journal/journal.ts'
import type { Outcome, Settler, SubmittedPayment } from '../../../gateway/methods/payment-method.ts'
import { createRecovery } from '../../../gateway/payments/recovery.ts'
import type { TestJournal } from '../../contracts/journals.ts'
import { JOURNALS } from '../../contracts/journals.ts'
import { INTENT, paymentIn, REFUSED, reservationOf, STEPS, TRANSACTION } from '../../contracts/journal-payments.ts'

const SETTLED: Outcome = { state: 'settled', transaction: TRANSACTION }
const PENDING: Outcome = { state: 'pending', transaction: TRANSACTION }
const MINUTE = 60_000
const NOTHING = { settled: 0, released: 0, owed: 0, waiting: 0, failed: 0, forgotten: 0 }

const unused = (): never => {
  throw new Error('reconciling neither checks nor settles')
}

/** A chain that says of each payment what `status` says. */
const chainOf = (status: (record: SubmittedPayment) => Outcome | Promise<Outcome>): Settler => ({
  kind: 'scripted',
  check: unused,
  settle: unused,
  status: async (record) => status(record),
  health: unused,
  close: unused,
})

describe('reconciling', () => {
  let ledger: TestJournal
  let journal: Journal

  beforeEach(async () => {
    ledger = (await JOURNALS['a SQLite file']?.()) as TestJournal
    journal = ledger.journal
  })
  afterEach(() => ledger.drop())

  const reconcilerWith = (
    status: Parameters<typeof chainOf>[0] = () => PENDING,
    isWorking = (_key: string): boolean => false,
  ) =>
    createRecovery({
      isWorking,
      journal,
      settler: chainOf(status),
      now: () => new Date(ledger.now),
      log: pino({ level: 'silent' }),
      staleSeconds: 600,
      answerRetentionSeconds: 86_400,
    })
  const another = async (): Promise<Journal> => (await ledger.open?.()) as Journal
  /** A process that leaves payments behind and is no more. */
  const deadProcess = async (work: (journal: Journal) => Promise<string>): Promise<string> => {
    const process = await another()
    const key = await work(process)
    await process.close()
    return key
  }
  const validFor = (seconds: number) => ({ expiresAt: BigInt(Math.floor(ledger.now / 1000) + seconds) })
  const stateOf = async (key: string): Promise<string | undefined> => (await journal.find(key))?.state

  it('gives back what a dead process had reserved, at the start and on the timer', async () => {
    for (const atStart of [true, false]) {
      const key = await deadProcess((process) => paymentIn(process, 'reserved'))
      expect(await reconcilerWith().run(atStart)).to.deep.equal({ ...NOTHING, released: 1 })
      expect((await journal.events(key)).at(-1)).to.include({
        state: 'released',
        detail: 'the gateway stopped before the answer existed; nothing was sent',
      })
    }
  })

  it('leaves alone what living processes are working on, however long it takes', async () => {
    const own = await paymentIn(journal, 'reserved', validFor(3600))
    const other = await another()
    const theirs = await paymentIn(other, 'reserved', validFor(3600))
    ledger.now += 20_000
    expect(await reconcilerWith().run()).to.deep.equal({ ...NOTHING, waiting: 2 })
    expect([await stateOf(own), await stateOf(theirs)]).to.deep.equal(['reserved', 'reserved'])
    ledger.now += 30 * MINUTE
    await reconcilerWith().run()
    expect(await stateOf(own)).to.equal('reserved')
  })

  it('gives back a reservation of its own process only when it is stale and can be settled no more', async () => {
    const short = await paymentIn(journal, 'reserved', validFor(60))
    ledger.now += 5 * MINUTE
    expect(await reconcilerWith().run()).to.include({ waiting: 1 })
    ledger.now += 6 * MINUTE
    expect(await reconcilerWith().run()).to.include({ released: 1 })
    expect(await stateOf(short)).to.equal('released')
  })

  it('keeps a stored answer for the buyer until the payment has expired on any clock', async () => {
    const key = await deadProcess((process) => paymentIn(process, 'answered', validFor(120)))
    ledger.now += 3 * MINUTE
    expect(await reconcilerWith().run(true)).to.include({ waiting: 1 })
    expect((await journal.find(key))?.answer).not.to.equal(null)
    ledger.now += 1000
    expect(await reconcilerWith().run()).to.include({ released: 1 })
    expect(await journal.find(key)).to.include({ state: 'released', answer: null })
  })

  it('lets the chain judge what a dead process had submitted, at once and until it knows', async () => {
    const outcomes = new Map<string, Outcome>()
    for (const outcome of [SETTLED, REFUSED, PENDING])
      outcomes.set(await deadProcess((process) => paymentIn(process, 'submitted')), outcome)
    const asked: SubmittedPayment[] = []
    const reconciler = reconcilerWith((record) => {
      asked.push(record)
      return outcomes.get(record.key) as Outcome
    })
    expect(await reconciler.run(true)).to.deep.equal({ ...NOTHING, settled: 1, released: 1, waiting: 1 })
    const states = await Promise.all([...outcomes.keys()].map(stateOf))
    expect(states).to.deep.equal(['settled', 'released', 'submitted'])
    expect(await reconciler.run()).to.deep.equal({ ...NOTHING, waiting: 1 })
    expect(asked).to.have.length(4)
    for (const record of asked) expect(record.intent).to.deep.equal(INTENT)
    const [settled = '', refused = ''] = outcomes.keys()
    expect(await journal.find(settled)).to.include({ transaction: TRANSACTION })
    expect(await journal.find(refused)).to.include({ reason: 'insufficient_funds', answer: null })
    expect((await journal.find(settled))?.answer?.body.toString()).to.equal('{"ok":true}')
  })

  it('leaves a payment just submitted to the call that sends it, and takes it over later', async () => {
    const other = await another()
    const key = await paymentIn(other, 'submitted')
    const reconciler = reconcilerWith(() => SETTLED)
    expect(await reconciler.run(true)).to.deep.equal({ ...NOTHING, waiting: 1 })
    ledger.now += 20_000
    expect(await reconciler.run()).to.deep.equal({ ...NOTHING, settled: 1 })
    expect(await stateOf(key)).to.equal('settled')
  })

  it('leaves a payment to the call of this process that works on it, however long that takes', async () => {
    const key = await paymentIn(journal, 'submitted')
    ledger.now += 10 * MINUTE
    let working = true
    const reconciler = reconcilerWith(
      () => SETTLED,
      (one) => working && one === key,
    )
    expect(await reconciler.run()).to.deep.equal({ ...NOTHING, waiting: 1 })
    working = false
    expect(await reconciler.run()).to.deep.equal({ ...NOTHING, settled: 1 })
  })

  it('takes a payment over before it asks, so that its sender cannot give it back as never sent', async () => {
    const sender = await another()
    const key = await paymentIn(sender, 'submitted')
    ledger.now += 20_000
    expect(await reconcilerWith(() => PENDING).run()).to.include({ waiting: 1 })
    const unsent = { state: 'refused', reason: 'unexpected_settle_error', message: 'Not sent.', unsent: true } as const
    expect(await sender.refused(key, 1, unsent)).to.equal(false)
    expect(await journal.refused(key, 1, unsent)).to.equal(true)
    expect(await reconcilerWith(() => SETTLED).run()).to.deep.equal(NOTHING)
  })

  it("yields where the call itself was quicker than the chain's word", async () => {
    const key = await paymentIn(journal, 'submitted')
    ledger.now += MINUTE
    const reconciler = reconcilerWith(async () => {
      await STEPS.settled(journal, key, 1)
      return REFUSED
    })
    expect(await reconciler.run()).to.deep.equal({ ...NOTHING, waiting: 1 })
    expect(await stateOf(key)).to.equal('settled')
  })

  it('turns a settlement without an answer into a debt', async () => {
    const submitted = await paymentIn(journal, 'submitted')
    const settled = await paymentIn(journal, 'settled')
    await ledger.sql?.('UPDATE payments SET answer_status = NULL, answer_headers = NULL, answer_body = NULL')
    ledger.now += MINUTE
    expect(await reconcilerWith(() => SETTLED).run()).to.deep.equal({ ...NOTHING, owed: 2 })
    expect((await journal.debts()).map(({ key }) => key)).to.have.members([submitted, settled])
    expect(await reconcilerWith(() => SETTLED).run()).to.deep.equal(NOTHING)
  })

  it('goes on after an error, and tries that payment again next time', async () => {
    for (let count = 0; count < 3; count++) await paymentIn(journal, 'submitted')
    ledger.now += MINUTE
    let calls = 0
    const reconciler = reconcilerWith(() => {
      calls += 1
      if (calls === 2) throw new Error('the node does not answer')
      return SETTLED
    })
    expect(await reconciler.run()).to.deep.equal({ ...NOTHING, settled: 2, failed: 1 })
    expect(await reconciler.run()).to.deep.equal({ ...NOTHING, settled: 1 })
  })

  it('asks about a few payments at a time, and shares a run that is under way', async () => {
    await Promise.all(Array.from({ length: 20 }, () => paymentIn(journal, 'submitted')))
    ledger.now += MINUTE
    let [asking, most, asked] = [0, 0, 0]
    const reconciler = reconcilerWith(async () => {
      asked += 1
      asking += 1
      most = Math.max(most, asking)
      await new Promise((wake) => setTimeout(wake, 2))
      asking -= 1
      return PENDING
    })
    const [first, second] = await Promise.all([reconciler.run(), reconciler.run()])
    expect(first).to.deep.equal({ ...NOTHING, waiting: 20 })
    expect(second).to.equal(first)
    expect(asked).to.equal(20)
    expect(most).to.equal(4)
  })

  it('forgets answers at the end of their retention, and keeps the settlement', async () => {
    const key = await paymentIn(journal, 'settled')
    ledger.now += 86_400_000
    expect(await reconcilerWith().run()).to.deep.equal(NOTHING)
    ledger.now += 1
    expect(await reconcilerWith().run()).to.deep.equal({ ...NOTHING, forgotten: 1 })
    expect(await journal.find(key)).to.include({ state: 'settled', answer: null, transaction: TRANSACTION })
  })

  it('runs on a timer until it is stopped, also after a run that failed', async () => {
    await paymentIn(journal, 'submitted')
    ledger.now += MINUTE
    let runs = 0
    const reached = new EventEmitter()
    const reconciler = reconcilerWith(() => {
      runs += 1
      reached.emit(`run ${runs}`)
      throw new Error('the node does not answer')
    })
    const third = once(reached, 'run 3')
    reconciler.start(0.001)
    await third
    await reconciler.stop()
    const stopped = runs
    await new Promise((wake) => setTimeout(wake, 20))
    expect(runs).to.equal(stopped)
  })

  it('moves nothing that is finished', async () => {
    const keys = await Promise.all((['settled', 'released', 'owed'] as const).map((state) => paymentIn(journal, state)))
    const before = await Promise.all(keys.map((key) => journal.find(key)))
    await journal.reserve(reservationOf())
    ledger.now += MINUTE
    await reconcilerWith(() => REFUSED).run(true)
    expect(await Promise.all(keys.map((key) => journal.find(key)))).to.deep.equal(before)
  })
})
