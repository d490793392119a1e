import { expect } from 'chai'
import { pino } from 'pino'
import type { Finality, Outcome } from '../../../gateway/methods/payment-method.ts'
import type { Journal, PaymentRecord } from '../../../gateway/payments/journal/journal.ts'
import {
  createFinalityWatch,
  type FinalityWatch,
  LOOKS_PER_RUN,
  MISSING_MS,
} from '../../../gateway/payments/finality-watch.ts'
import { until } from '../../support/until.ts'
import { JOURNALS, type TestJournal } from '../../contracts/journals.ts'
import { paymentIn, REFUSED, reservationOf, TRANSACTION } from '../../contracts/journal-payments.ts'

const PENDING: Outcome = { state: 'pending', transaction: TRANSACTION }
const HOUR = 3_600_000

describe('the watch of settled payments', () => {
  let opened: TestJournal
  let watch: FinalityWatch
  let finality: Finality
  let status: Outcome
  let asked: number
  let sent: number
  /** How often the lease was asked for: once in each interval. */
  let held: number
  /** Whether the process stops before it records a reversal. */
  let isStopping = false
  /** Whether the process stops before it records that a debt was repaid. */
  let isStoppingAtRepaid = false
  /** Whether the process stops before it records a debt. */
  let isStoppingAtOwed = false
  const taken = new Set<string>()

  before(async () => {
    opened = (await JOURNALS['memory']?.()) as TestJournal
  })
  after(() => opened.drop())

  beforeEach(async () => {
    const { journal } = opened
    // What earlier tests left is final.
    const left = await journal.dueForLook(Number.MAX_SAFE_INTEGER, 10_000)
    await journal.lookAgain(left.map(({ key }) => ({ key, at: null })))
    finality = 'shallow'
    status = PENDING
    asked = 0
    sent = 0
    held = 0
    taken.clear()
    const reversed: Journal['reversed'] = (...move) =>
      isStopping ? Promise.reject(new Error('the process has stopped')) : journal.reversed(...move)
    const repaid: Journal['repaid'] = (...move) =>
      isStoppingAtRepaid ? Promise.reject(new Error('the process has stopped')) : journal.repaid(...move)
    const owed: Journal['owed'] = (...move) =>
      isStoppingAtOwed ? Promise.reject(new Error('the process has stopped')) : journal.owed(...move)
    watch = createFinalityWatch({
      journal: { ...journal, reversed, repaid, owed },
      settler: {
        async finality(payments) {
          asked += payments.length
          return payments.map(() => finality)
        },
        async status(_payment, { maySend = true } = {}) {
          if (maySend) sent += 1
          return status
        },
      },
      lease: {
        async hold() {
          held += 1
          return true
        },
      },
      onReversed: async ({ callId }) => void taken.add(callId),
      onRestored: async ({ callId }) => void taken.delete(callId),
      now: () => new Date(opened.now),
      log: pino({ level: 'silent' }),
    })
  })

  const settled = (): Promise<string> => paymentIn(opened.journal, 'settled', reservationOf({ expiresAt: expiry() }))
  const expiry = (): bigint => BigInt(Math.floor(opened.now / 1000) + 60)
  const recordOf = async (key: string): Promise<PaymentRecord> => (await opened.journal.find(key)) as PaymentRecord
  const later = (ms: number): Promise<unknown> => {
    opened.now += ms
    return watch.run()
  }

  it('looks at a payment less and less often, and never again once it is final', async () => {
    const key = await settled()
    for (let minute = 0; minute < 60; minute++) await later(60_000)
    expect(asked).to.be.within(10, 20)
    finality = 'final'
    await later(HOUR)
    const until = asked
    await later(24 * HOUR)
    expect(asked).to.equal(until)
    expect((await recordOf(key)).state).to.equal('settled')
  })

  it('looks at a bounded number of payments in one run, and at all of them in turn', async () => {
    const { journal } = opened
    finality = 'final'
    await Promise.all(Array.from({ length: LOOKS_PER_RUN + 20 }, settled))
    opened.now += 1
    expect((await watch.run()).final).to.equal(LOOKS_PER_RUN)
    expect((await watch.run()).final).to.equal(20)
    expect(await journal.dueForLook(Number.MAX_SAFE_INTEGER, 1)).to.deep.equal([])
  })

  it('looks at all that are due in one interval, so that it keeps up with many sales', async () => {
    const { journal } = opened
    finality = 'final'
    await Promise.all(Array.from({ length: LOOKS_PER_RUN + 20 }, settled))
    opened.now += 1
    watch.start(2)
    await until(async () => (await journal.dueForLook(Number.MAX_SAFE_INTEGER, 1)).length === 0)
    await watch.stop()
    expect(held).to.equal(1)
  })

  it('reverses a missing payment at once if the chain can never execute it again', async () => {
    const key = await settled()
    finality = 'missing'
    status = REFUSED
    expect(await later(1_000)).to.include({ reversed: 1 })
    expect(await recordOf(key)).to.include({ state: 'reversed' })
    expect([...taken]).to.deep.equal([(await recordOf(key)).callId])
  })

  it('sends a missing payment again, and reverses it only if it stays out of the chain for minutes', async () => {
    const key = await settled()
    finality = 'missing'
    await later(1_000)
    expect(sent).to.equal(1)
    await later(MISSING_MS / 2)
    expect((await recordOf(key)).state).to.equal('settled')
    await later(MISSING_MS)
    expect((await recordOf(key)).state).to.equal('reversed')
  })

  it('does not reverse a payment that is missing twice, and is in a block in between', async () => {
    const key = await settled()
    for (let time = 0; time < 4; time++) {
      finality = 'missing'
      await later(MISSING_MS * 4)
      finality = 'shallow'
      await later(MISSING_MS * 8)
    }
    expect((await recordOf(key)).state).to.equal('settled')
  })

  it('follows a payment into the transaction that executes it now', async () => {
    const key = await settled()
    const transaction = `0x${'77'.repeat(32)}` as const
    finality = 'missing'
    status = { state: 'settled', transaction, provisional: true }
    await later(1_000)
    expect(await recordOf(key)).to.include({ state: 'settled', transaction })
  })

  it('settles a reversed payment again once its transfer is final enough, and gives back what it bought', async () => {
    const key = await settled()
    finality = 'missing'
    status = REFUSED
    await later(1_000)
    status = { state: 'settled', transaction: TRANSACTION, provisional: true }
    await later(2_000)
    expect((await recordOf(key)).state).to.equal('reversed')
    sent = 0
    status = { state: 'settled', transaction: TRANSACTION }
    await later(10_000)
    expect((await recordOf(key)).state).to.equal('settled')
    expect(taken.size).to.equal(0)
    expect(sent, 'a reversed payment is not sent again').to.equal(0)
  })

  it('ends the watch of a reversed payment some time after its authorization has expired', async () => {
    await settled()
    finality = 'missing'
    status = REFUSED
    await later(1_000)
    await later(3 * HOUR)
    expect(await opened.journal.dueForLook(Number.MAX_SAFE_INTEGER, 10)).to.deep.equal([])
  })

  it('owes nothing for a payment that was owed and that the chain took back, and does not send it', async () => {
    const { journal } = opened
    const key = await paymentIn(journal, 'owed', reservationOf({ expiresAt: expiry() }))
    finality = 'missing'
    status = REFUSED
    await later(1_000)
    expect((await recordOf(key)).state).to.equal('reversed')
    expect((await recordOf(key)).reason).to.match(/^nothing is owed: a reorganisation removed it/)
    expect(sent, 'sent again').to.equal(0)
    expect((await journal.debts()).map((debt) => debt.key)).to.not.include(key)
    expect((await journal.reversals(0, 1_000)).map((one) => one.key)).to.not.include(key)
    status = { state: 'settled', transaction: TRANSACTION }
    await later(10_000)
    expect((await recordOf(key)).state, 'mined again').to.equal('owed')
    expect((await journal.debts()).map((debt) => debt.key)).to.include(key)
  })

  it('says that a payer owes us what was repaid, if the chain took the payment back after that', async () => {
    const { journal } = opened
    const key = await paymentIn(journal, 'owed', reservationOf({ expiresAt: expiry() }))
    await journal.repaid(key, 'sent back')
    finality = 'missing'
    status = REFUSED
    await later(1_000)
    expect((await journal.reversals(0, 1_000)).map((one) => one.key)).to.include(key)
    status = { state: 'settled', transaction: TRANSACTION }
    await later(10_000)
    expect((await recordOf(key)).state, 'mined again').to.equal('owed')
    expect(
      (await journal.debts()).map((debt) => debt.key),
      'it was repaid once',
    ).to.not.include(key)
  })

  it('owes a payment again that was mined again, also if a process stopped while it recorded that nothing was owed', async () => {
    const { journal } = opened
    const key = await paymentIn(journal, 'owed', reservationOf({ expiresAt: expiry() }))
    finality = 'missing'
    status = REFUSED
    isStopping = true
    await later(1_000)
    isStopping = false
    expect((await recordOf(key)).state, 'after the first of two writes').to.equal('owed')
    await later(10_000)
    expect((await recordOf(key)).reason).to.match(/^nothing is owed: /)
    expect((await journal.reversals(0, 1_000)).map((one) => one.key)).to.not.include(key)
    status = { state: 'settled', transaction: TRANSACTION }
    await later(10_000)
    expect((await journal.debts()).map((debt) => debt.key)).to.include(key)
  })

  it('owes a payment whose reversal was half recorded and that is mined again before the next look', async () => {
    const { journal } = opened
    for (const found of ['shallow', 'final'] as const) {
      const key = await paymentIn(journal, 'owed', reservationOf({ expiresAt: expiry() }))
      finality = 'missing'
      status = REFUSED
      isStopping = true
      await later(1_000)
      isStopping = false
      finality = found
      status = { state: 'settled', transaction: TRANSACTION }
      for (let looks = 0; looks < 3; looks++) await later(10_000)
      expect((await recordOf(key)).state, found).to.equal('owed')
      expect(
        (await journal.debts()).map((debt) => debt.key),
        found,
      ).to.include(key)
    }
  })

  it('owes nothing for a repaid payment that was mined again, also if a process stopped before it recorded that', async () => {
    const { journal } = opened
    for (const found of ['shallow', 'final'] as const) {
      const key = await paymentIn(journal, 'owed', reservationOf({ expiresAt: expiry() }))
      await journal.repaid(key, 'sent back')
      finality = 'missing'
      status = REFUSED
      await later(1_000)
      status = { state: 'settled', transaction: TRANSACTION }
      isStoppingAtRepaid = true
      await later(10_000)
      isStoppingAtRepaid = false
      expect((await recordOf(key)).state, 'after all writes but the last').to.equal('owed')
      finality = found
      await later(10_000)
      expect(
        (await journal.debts()).map((debt) => debt.key),
        found,
      ).to.not.include(key)
      const repayments = (await journal.events(key)).filter(
        ({ state, cause }) => state === 'owed' && cause === 'repaid',
      )
      await later(10_000)
      expect(repayments, found).to.have.length(2)
    }
  })

  it('owes nothing for it either if recovery recorded the debt in its place', async () => {
    const { journal } = opened
    const key = await paymentIn(journal, 'owed', reservationOf({ expiresAt: expiry() }))
    await journal.repaid(key, 'sent back')
    finality = 'missing'
    status = REFUSED
    await later(1_000)
    status = { state: 'settled', transaction: TRANSACTION }
    isStoppingAtOwed = true
    await later(10_000)
    isStoppingAtOwed = false
    const { state, reason, attempt } = await recordOf(key)
    expect(state, 'after the first of three writes').to.equal('settled')
    await journal.owed(key, attempt, reason as string)
    finality = 'final'
    await later(10_000)
    expect((await journal.debts()).map((debt) => debt.key)).to.not.include(key)
  })

  it('goes on watching a payment that is owed until it is final', async () => {
    await paymentIn(opened.journal, 'owed', reservationOf({ expiresAt: expiry() }))
    finality = 'final'
    expect(await later(1_000)).to.include({ final: 1 })
    expect(await opened.journal.dueForLook(Number.MAX_SAFE_INTEGER, 10)).to.deep.equal([])
  })

  it('owes a reversed payment in strict mode if others mined it again, and gives nothing back', async () => {
    const key = await settled()
    finality = 'missing'
    status = REFUSED
    await later(1_000)
    status = { state: 'settled', transaction: TRANSACTION, isOwed: true, foreignSender: `0x${'d4'.repeat(20)}` }
    await later(10_000)
    const record = await recordOf(key)
    expect(record).to.include({ state: 'owed', answer: null })
    expect(record.reason).to.match(/^owed: settled by a transaction that this gateway did not send, but 0xd4/)
    expect([...taken]).to.deep.equal([record.callId])
  })

  it('owes a settled payment in strict mode if a reorganisation let others mine it, and takes back what it bought', async () => {
    const key = await settled()
    finality = 'missing'
    const transaction = `0x${'78'.repeat(32)}` as const
    status = { state: 'settled', transaction, provisional: true, isOwed: true, foreignSender: `0x${'d4'.repeat(20)}` }
    await later(1_000)
    expect((await recordOf(key)).state, 'while its block is shallow').to.equal('settled')
    finality = 'missing'
    status = { state: 'settled', transaction, isOwed: true, foreignSender: `0x${'d4'.repeat(20)}` }
    await later(10_000)
    const record = await recordOf(key)
    expect(record).to.include({ state: 'owed', transaction })
    expect(record.reason).to.match(/^owed: settled by a transaction that this gateway did not send, but 0xd4/)
    expect([...taken]).to.deep.equal([record.callId])
    expect((await opened.journal.debts()).map((debt) => debt.key)).to.include(key)
  })

  it('changes nothing while the chain cannot be read', async () => {
    const key = await settled()
    const failing = createFinalityWatch({
      journal: opened.journal,
      settler: {
        finality: async () => {
          throw new Error('no node answers')
        },
        status: async () => REFUSED,
      },
      lease: { hold: async () => true },
      onReversed: async () => {},
      onRestored: async () => {},
      now: () => new Date(opened.now),
      log: pino({ level: 'silent' }),
    })
    opened.now += HOUR
    expect(await failing.run().catch((error: Error) => error.message)).to.equal('no node answers')
    expect((await recordOf(key)).state).to.equal('settled')
    expect(await opened.journal.dueForLook(opened.now, 10)).to.have.length(1)
  })
})
