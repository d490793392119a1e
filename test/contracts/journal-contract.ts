/** What every journal promises. The suite runs on each database. */
import { expect } from 'chai'
import { AnswerBody } from '../../gateway/plugin/answer-body.ts'
import type { Journal, PaymentRecord } from '../../gateway/payments/journal/journal.ts'
import type { PaymentState } from '../../gateway/payments/journal/payment-states.ts'
import { answerOf, INTENT, PATHS, paymentIn, reservationOf, type Step, STEPS, TRANSACTION } from './journal-payments.ts'
import type { TestJournal } from './journals.ts'

/** @param create opens an empty journal; null if its server does not answer */
export function journalContract(name: string, create: () => Promise<TestJournal | null>): void {
  describe(`the journal in ${name}`, () => {
    let opened: TestJournal
    let journal: Journal

    before(async function () {
      const created = await create()
      if (!created) this.skip()
      opened = created
      journal = created.journal
    })
    after(async () => opened?.drop())

    it('stores every field of a reservation, and 256-bit amounts exactly', async () => {
      const reservation = reservationOf({ amount: 2n ** 256n - 1n, expiresAt: 2n ** 256n - 1n, startsAt: 0n })
      opened.now = 1_770_000_000_123
      const { reserved, record } = await journal.reserve(reservation)
      expect(reserved).to.equal(true)
      expect(record).to.include({ ...reservation, state: 'reserved', attempt: 1 })
      expect(record).to.include({ createdAt: opened.now, updatedAt: opened.now, settledAt: null, answer: null })
      expect(await journal.find(reservation.key)).to.deep.equal(record)
      expect(await journal.find('eip155:84532/none')).to.equal(null)
    })

    stateMachineTests(() => opened)
    watchTests(() => opened)

    it('lets a released payment be reserved again as a new attempt, even for another request', async () => {
      opened.now += 1
      const first = opened.now
      const reservation = reservationOf()
      await paymentIn(journal, 'submitted', reservation)
      await STEPS.refused(journal, reservation.key, 1)
      opened.now += 5_000
      const change = { fingerprint: 'b'.repeat(64), route: 'GET /v1/other', callId: 'call-2', amount: 7000n }
      const { reserved, record } = await journal.reserve({ ...reservation, ...change })
      expect(reserved).to.equal(true)
      expect(record).to.include({ ...change, state: 'reserved', attempt: 2, createdAt: first, updatedAt: opened.now })
      expect(record).to.include({ answer: null, transaction: null, reason: null, settledAt: null })
      expect(record.intent, 'what was sent may still be executed').to.deep.equal(INTENT)
      const events = await journal.events(reservation.key)
      expect(events.map(({ attempt, state }) => `${attempt} ${state}`)).to.deep.equal([
        '1 reserved',
        '1 submitted',
        '1 released',
        '2 reserved',
      ])
    })

    it('returns the existing row if the payment is already in use', async () => {
      const reservation = reservationOf()
      await paymentIn(journal, 'settled', reservation)
      const { reserved, record } = await journal.reserve({ ...reservation, fingerprint: 'c'.repeat(64) })
      expect(reserved).to.equal(false)
      expect(record).to.include({ state: 'settled', fingerprint: reservation.fingerprint, transaction: TRANSACTION })
      expect(record.answer?.body.toString()).to.equal('{"ok":true}')
    })

    it('reserves a payment once when 200 calls try at the same time', async () => {
      const reservation = reservationOf()
      const results = await Promise.all(
        Array.from({ length: 200 }, (_, at) => journal.reserve({ ...reservation, callId: `call-${at}` })),
      )
      expect(results.filter(({ reserved }) => reserved)).to.have.length(1)
      const [winner] = results.filter(({ reserved }) => reserved)
      for (const { record } of results) expect(record.callId).to.equal(winner?.record.callId)
      expect(await journal.events(reservation.key)).to.have.length(1)
    })

    it('gives every change its own result when many are written together', async () => {
      const keys = await Promise.all(
        Array.from({ length: 40 }, (_, at) => paymentIn(journal, at % 2 === 0 ? 'reserved' : 'answered')),
      )
      const [answered, fresh] = await Promise.all([
        Promise.all(keys.map((key, at) => journal.answered(key, 1, answerOf(`answer ${at}`)))),
        Promise.all(keys.map(() => journal.reserve(reservationOf()))),
      ])
      expect(answered).to.deep.equal(keys.map((_, at) => at % 2 === 0))
      expect(fresh.every(({ reserved }) => reserved)).to.equal(true)
      for (const [at, key] of keys.entries())
        expect((await journal.find(key))?.answer?.body.toString()).to.equal(
          at % 2 === 0 ? `answer ${at}` : '{"ok":true}',
        )
    })

    it('applies changes of one payment in the order of the calls', async () => {
      const reservation = reservationOf()
      const { key } = reservation
      const results = await Promise.all([
        journal.reserve(reservation).then(({ reserved }) => reserved),
        STEPS.submitted(journal, key, 1),
        STEPS.answered(journal, key, 1),
        journal.reserve(reservation).then(({ reserved }) => reserved),
        STEPS.released(journal, key, 1),
        journal.reserve(reservation).then(({ reserved }) => reserved),
        STEPS.answered(journal, key, 2),
      ])
      expect(results).to.deep.equal([true, false, true, false, true, true, true])
    })

    it('fails a change that the database rejects, but none of those written with it', async () => {
      const invalid = reservationOf({ version: 'two' as never })
      const valid = Array.from({ length: 5 }, () => reservationOf())
      const results = await Promise.allSettled(
        [valid[0], invalid, ...valid.slice(1)].map((reservation) => journal.reserve(reservation as never)),
      )
      expect(results.map(({ status }) => status)).to.deep.equal([
        'fulfilled',
        'rejected',
        ...Array.from({ length: 4 }, () => 'fulfilled'),
      ])
      expect(await journal.find(invalid.key)).to.equal(null)
    })

    it('returns a stored answer byte for byte, with its headers', async () => {
      const key = await paymentIn(journal, 'reserved')
      const body = AnswerBody.of(Buffer.from(Array.from({ length: 300_000 }, (_, at) => (at * 31) % 256)))
      const answer = { status: 201, headers: { 'content-type': 'text/csv', 'x-odd': '\ud800 "ü\\' }, body }
      await journal.answered(key, 1, answer)
      expect((await journal.find(key))?.answer).to.deep.equal(answer)
      await journal.submitted(key, 1, INTENT)
      await journal.settled(key, 1, TRANSACTION)
      const settled = await journal.find(key)
      expect(settled?.answer).to.deep.equal(answer)
      expect(settled).to.deep.include({ intent: INTENT, transaction: TRANSACTION, settledAt: opened.now })
    })

    it('stores answers of any length together with what is sent', async () => {
      const lengths = [0, 1, 1_999, 2_000, 2_001, 5_000, 300_000]
      const answers = lengths.map((length) => answerOf('x'.repeat(length)))
      const keys = await Promise.all(answers.map(() => paymentIn(journal, 'reserved')))
      const submit = (key: string, at: number, attempt = 1): Promise<boolean> =>
        journal.submitted(key, attempt, INTENT, { answer: answers[at] as (typeof answers)[0] })
      expect(await Promise.all(keys.map((key, at) => submit(key, at)))).to.deep.equal(keys.map(() => true))
      const others = keys.map((key) => journal.submitted(key, 1, INTENT, { answer: answerOf('y'.repeat(9_000)) }))
      expect(await Promise.all(others), 'an answer is never replaced').to.deep.equal(keys.map(() => false))
      await Promise.all(keys.map((key) => journal.settled(key, 1, TRANSACTION)))
      for (const [at, key] of keys.entries()) {
        expect((await journal.find(key))?.answer).to.deep.equal(answers[at])
        expect((await journal.reserve(reservationOf({ key }))).record.answer).to.deep.equal(answers[at])
      }
    })

    it('gives the answer of the newest attempt, and none before it is stored', async () => {
      const key = await paymentIn(journal, 'reserved')
      await journal.submitted(key, 1, INTENT, { answer: answerOf('first'.repeat(1_000)) })
      await STEPS.refused(journal, key, 1)
      expect((await journal.find(key))?.answer).to.equal(null)
      await journal.reserve(reservationOf({ key }))
      expect((await journal.find(key))?.answer).to.equal(null)
      await journal.submitted(key, 2, INTENT, { answer: answerOf('second'.repeat(1_000)) })
      expect((await journal.find(key))?.answer?.body.toString()).to.equal('second'.repeat(1_000))
    })

    it('stores an answer without a body', async () => {
      const key = await paymentIn(journal, 'reserved')
      const empty = { status: 204, headers: {}, body: AnswerBody.of('') }
      const other = await paymentIn(journal, 'reserved')
      await Promise.all([journal.answered(key, 1, empty), journal.answered(other, 1, answerOf('full'))])
      expect((await journal.find(key))?.answer).to.deep.equal(empty)
      expect((await journal.find(other))?.answer).to.deep.equal(answerOf('full'))
      const alone = await paymentIn(journal, 'reserved')
      await journal.answered(alone, 1, empty)
      expect((await journal.find(alone))?.answer).to.deep.equal(empty)
    })

    it('drops the stored answer when a payment is released', async () => {
      const key = await paymentIn(journal, 'answered')
      await journal.released(key, 1, 'the buyer left')
      expect(await journal.find(key)).to.include({ answer: null, reason: 'the buyer left' })
    })

    it('stores the reason of a refusal, whatever characters it contains', async () => {
      const key = await paymentIn(journal, 'submitted')
      const message = `bad \0 text \ud800 ${'long '.repeat(500)}`
      expect(await journal.refused(key, 1, { state: 'refused', reason: 'x\0y', message })).to.equal(true)
      expect((await journal.find(key))?.reason).to.equal('xy')
      const [last] = (await journal.events(key)).slice(-1)
      expect(last?.note).to.match(/^xy: bad {2}text \ufffd long/)
    })

    it('lists a debt until it is repaid, and accepts one repayment', async () => {
      const key = await paymentIn(journal, 'owed')
      expect((await journal.debts()).map((debt) => debt.key)).to.include(key)
      expect(await journal.repaid(key, 'sent back in 0x12')).to.equal(true)
      expect(await journal.repaid(key, 'sent back twice')).to.equal(false)
      expect((await journal.debts()).map((debt) => debt.key)).not.to.include(key)
      expect(await journal.find(key)).to.include({ state: 'owed', transaction: TRANSACTION })
      expect((await journal.events(key)).at(-1)).to.include({
        state: 'owed',
        cause: 'repaid',
        note: 'repaid: sent back in 0x12',
      })
    })

    it('lists open payments oldest first, and the payments of a payer newest first', async () => {
      const payer = '0x00000000000000000000000000000000000000Cc'
      const keys: string[] = []
      for (const state of Object.keys(PATHS) as PaymentState[])
        keys.push(await paymentIn(journal, state, { payer, operation: `buy-${state}` }))
      const open = (await journal.openPayments()).filter((row) => row.payer === payer)
      expect(open.map(({ state }) => state)).to.deep.equal(['reserved', 'answered', 'submitted'])
      expect(open.map(({ answer }) => answer !== null)).to.deep.equal([false, false, true])
      const liveOwners = await journal.liveOwners()
      for (const { owner } of open) expect(liveOwners.has(owner)).to.equal(true)
      const bought = await journal.list({ payer: payer.toLowerCase(), limit: 10 })
      expect(bought.map(({ key }) => key)).to.deep.equal(keys.toReversed())
      const filter = {
        payer,
        states: ['settled', 'owed'],
        operations: ['buy-settled', 'buy-released'],
        limit: 10,
      } as const
      expect((await journal.list(filter)).map(({ operation }) => operation)).to.deep.equal(['buy-settled'])
      expect(await journal.list({ payer, limit: 2 })).to.have.length(2)
      expect(await journal.list({ payer, states: [], limit: 2 })).to.have.length(0)
      const [newest] = bought
      const { key, network } = newest as PaymentRecord
      const older = await journal.list({ payer, network, before: key, limit: 10 })
      expect(older.map((each) => each.key)).to.deep.equal(keys.toReversed().slice(1))
      expect(await journal.list({ payer, network: 'eip155:1', limit: 2 })).to.have.length(0)
      const ofCall = await journal.list({ call: (newest as PaymentRecord).callId, limit: 10 })
      expect(ofCall.map((each) => each.key)).to.include(key)
      expect(await journal.list({ payer, before: 'unknown', limit: 2 })).to.have.length(0)
    })

    it('records the first delivery of a paid answer, and forgets it when the payment is reserved again', async () => {
      const [paid, sent, unpaid] = await Promise.all(
        (['settled', 'submitted', 'answered'] as const).map((state) => paymentIn(journal, state)),
      )
      const deliveredAt = async (key = ''): Promise<unknown> => (await journal.find(key))?.deliveredAt
      const first = opened.now
      await Promise.all([paid, sent, unpaid].map((key) => journal.delivered(key as string)))
      opened.now += 1_000
      await journal.delivered(paid as string)
      expect([await deliveredAt(paid), await deliveredAt(sent), await deliveredAt(unpaid)]).to.deep.equal([
        first,
        first,
        null,
      ])
      await STEPS.refused(journal, sent as string, 1)
      await journal.reserve(reservationOf({ key: sent as string }))
      expect(await deliveredAt(sent)).to.equal(null)
    })

    it('counts payments by state', async () => {
      const before = await journal.counts()
      await paymentIn(journal, 'settled')
      await paymentIn(journal, 'owed')
      expect(await journal.counts()).to.deep.equal({ ...before, settled: before.settled + 1, owed: before.owed + 1 })
    })

    it('finds many payments at once, each for the call that asked for it', async () => {
      const payer = '0x00000000000000000000000000000000000000dD'
      const named = Array.from({ length: 30 }, (_, at) => reservationOf({ payer, identifier: `order-${at}` }))
      await Promise.all(named.slice(0, 20).map((reservation) => journal.reserve(reservation)))
      const [byKey, byIdentifier] = await Promise.all([
        Promise.all(named.map(({ key }) => journal.find(key))),
        Promise.all(named.map(({ identifier }) => journal.findByIdentifier(payer, identifier as string))),
      ])
      const keys = named.map(({ key }, at) => (at < 20 ? key : undefined))
      expect(byKey.map((record) => record?.key)).to.deep.equal(keys)
      expect(byIdentifier.map((record) => record?.key)).to.deep.equal(keys)
    })

    it('keeps an answer that several payments bought until it is forgotten for the last of them', async () => {
      const answer = answerOf('y'.repeat(10_000))
      const buy = async (): Promise<string> => {
        const key = await paymentIn(journal, 'reserved')
        await journal.submitted(key, 1, INTENT, { answer })
        await journal.settled(key, 1, TRANSACTION)
        opened.now += 1_000
        return key
      }
      const first = await buy()
      const second = await buy()
      await journal.forgetAnswers(opened.now - 1_000)
      expect((await journal.find(first))?.answer).to.equal(null)
      expect((await journal.find(second))?.answer).to.deep.equal(answer)
      await journal.forgetAnswers(opened.now)
      expect((await journal.find(second))?.answer).to.equal(null)
      expect((await journal.find(await buy()))?.answer).to.deep.equal(answer)
    })

    it('forgets old answers of payments that are owed or reversed', async () => {
      const left = await Promise.all((['owed', 'reversed'] as const).map((state) => paymentIn(journal, state)))
      const long = await paymentIn(journal, 'reserved')
      await journal.submitted(long, 1, INTENT, { answer: answerOf('y'.repeat(10_000)) })
      await journal.settled(long, 1, TRANSACTION)
      await journal.reversed(long, 1, 'reorganised')
      opened.now += 1_000
      await journal.forgetAnswers(opened.now)
      for (const key of [...left, long]) expect((await journal.find(key))?.answer).to.equal(null)
      expect((await journal.openPayments()).map(({ key }) => key)).not.to.include.members([...left, long])
    })

    it('drops the answer of a payment that others settled, and lists it as open until it is owed', async () => {
      const key = await paymentIn(journal, 'submitted')
      expect(await journal.settledByOthers(key, 1, TRANSACTION, 'owed: by others')).to.equal(true)
      expect(await journal.find(key)).to.include({ state: 'settled', answer: null, reason: 'owed: by others' })
      expect((await journal.openPayments()).map((open) => open.key)).to.include(key)
      await journal.owed(key, 1, 'owed: by others')
      expect((await journal.openPayments()).map((open) => open.key)).not.to.include(key)
    })

    it('counts how often an answer is produced again, up to a limit', async () => {
      const key = await paymentIn(journal, 'settled')
      const counted = await Promise.all(Array.from({ length: 5 }, () => journal.refetched(key, 3)))
      expect(counted.filter(Boolean)).to.have.length(3)
      expect(await journal.refetched(key, 4)).to.equal(true)
      expect(await journal.refetched('eip155:84532/none', 4)).to.equal(false)
    })

    it('forgets old answers of settled payments and nothing else', async () => {
      const old = await paymentIn(journal, 'settled')
      const long = await paymentIn(journal, 'reserved')
      await journal.submitted(long, 1, INTENT, { answer: answerOf('x'.repeat(10_000)) })
      await journal.settled(long, 1, TRANSACTION)
      const unsettled = await paymentIn(journal, 'submitted')
      opened.now += 1_000
      const young = await paymentIn(journal, 'settled')
      expect(await journal.forgetAnswers(opened.now)).to.be.greaterThan(0)
      expect(await journal.forgetAnswers(opened.now)).to.equal(0)
      for (const key of [old, long])
        expect(await journal.find(key)).to.include({ state: 'settled', answer: null, transaction: TRANSACTION })
      expect((await journal.openPayments()).map(({ key }) => key)).not.to.include(old)
      expect((await journal.find(unsettled))?.answer).not.to.equal(null)
      expect((await journal.find(young))?.answer).not.to.equal(null)
    })
  })
}

/** Tests of the payments that are watched until their settlement is final. */
function watchTests(current: () => TestJournal): void {
  it('lists settled, owed and reversed payments to look at until they are final, the longest overdue first', async () => {
    const opened = current()
    const { journal } = opened
    const own = new Set<string>()
    const due = async (): Promise<readonly string[]> =>
      (await journal.dueForLook(opened.now, 10_000)).map(({ key }) => key).filter((key) => own.has(key))
    for (const state of Object.keys(PATHS) as PaymentState[])
      if (state !== 'settled' && state !== 'owed' && state !== 'reversed') own.add(await paymentIn(journal, state))
    expect(await due()).to.deep.equal([])
    const first = await paymentIn(journal, 'settled')
    opened.now += 10
    const second = await paymentIn(journal, 'reversed')
    own.add(first).add(second)
    expect(await due()).to.deep.equal([first, second])
    const before = await journal.find(first)
    const moved = `0x${'5e'.repeat(32)}` as const
    await journal.lookAgain([
      { key: first, at: opened.now + 100, transaction: moved },
      { key: second, at: opened.now + 50 },
    ])
    expect(await due()).to.deep.equal([])
    opened.now += 100
    expect(await due()).to.deep.equal([second, first])
    expect(await journal.dueForLook(opened.now, 1)).to.have.length(1)
    expect(await journal.find(first)).to.deep.equal({ ...before, transaction: moved })
    await journal.lookAgain([
      { key: first, at: null },
      { key: second, at: null },
    ])
    opened.now += 1_000_000
    expect(await due()).to.deep.equal([])
    // It was final: a look that comes late does not begin the watch again.
    await journal.lookAgain([{ key: first, at: opened.now }])
    expect(await due()).to.deep.equal([])
    await journal.settledAgain(second, 1, TRANSACTION)
    expect(await due()).to.deep.equal([second])
  })

  it('lists reversed payments until they are settled again, and books each reversal and each sale', async () => {
    const opened = current()
    const { journal } = opened
    opened.now += 1_000
    const from = opened.now
    const key = await paymentIn(journal, 'reversed')
    const listed = async (): Promise<readonly string[]> => (await journal.reversals(from, 10)).map((each) => each.key)
    expect(await listed()).to.deep.equal([key])
    expect(await journal.settledAgain(key, 1, TRANSACTION)).to.equal(true)
    expect(await listed()).to.deep.equal([])
    const entries = await journal.ledgerEntries({ from, before: opened.now + 1, limit: 10 })
    expect(entries.map(({ kind, note }) => [kind, note])).to.deep.equal([
      ['sale', null],
      ['reversal', 'reorganised'],
      ['sale', null],
    ])
    const totals = await journal.ledgerTotals({ from, before: opened.now + 1 }, [])
    expect(totals.map(({ kind, count }) => [kind, count])).to.deep.equal([
      ['reversal', 1],
      ['sale', 2],
    ])
  })
}

/** The moves that each state allows. All others are refused. */
const ALLOWED: Readonly<Record<PaymentState, readonly Step[]>> = {
  reserved: ['answered', 'submittedWithAnswer', 'released', 'refused'],
  answered: ['submitted', 'released', 'refused'],
  submitted: ['settled', 'settledByOthers', 'refused', 'owed'],
  settled: ['owed', 'reversed'],
  released: ['settledLate'],
  owed: ['reversed'],
  reversed: ['settledByOthers', 'settledAgain'],
}
const LEADS_TO = {
  submittedWithAnswer: 'submitted',
  refused: 'released',
  settledLate: 'settled',
  settledByOthers: 'settled',
  settledAgain: 'settled',
} as Readonly<Partial<Record<Step, PaymentState>>>

/** What each move does to a payment, as it reads in the title of a test. */
const MOVES: Readonly<Record<Step, string>> = {
  answered: 'get an answer',
  submitted: 'be submitted',
  submittedWithAnswer: 'get an answer and be submitted',
  settled: 'be settled',
  released: 'be released',
  refused: 'be refused',
  settledLate: 'be settled after its release',
  owed: 'be recorded as owed',
  reversed: 'be reversed',
  settledByOthers: 'be settled by others',
  settledAgain: 'be settled again after its reversal',
}

/** One test per state and move. `current` returns the journal under test once the tests run. */
function stateMachineTests(current: () => TestJournal): void {
  for (const state of Object.keys(PATHS) as PaymentState[])
    for (const step of Object.keys(STEPS) as Step[])
      it(`${ALLOWED[state].includes(step) ? 'lets' : 'does not let'} a payment that is ${state} ${MOVES[step]}`, async () => {
        const opened = current()
        const { journal } = opened
        const key = await paymentIn(journal, state)
        const before = await journal.find(key)
        const events = (await journal.events(key)).length
        opened.now += 10
        const moved = await STEPS[step](journal, key, 1)
        expect(moved).to.equal(ALLOWED[state].includes(step))
        const after = await journal.find(key)
        if (!moved) expect(after).to.deep.equal(before)
        else expect(after).to.include({ state: LEADS_TO[step] ?? step, updatedAt: opened.now })
        expect(await journal.events(key)).to.have.length(moved ? events + 1 : events)
      })

  it('refuses every move of an earlier attempt, and of an unknown payment', async () => {
    const opened = current()
    const { journal } = opened
    const key = await paymentIn(journal, 'released')
    await journal.reserve(reservationOf({ key }))
    for (const step of Object.values(STEPS)) {
      expect(await step(journal, key, 1)).to.equal(false)
      expect(await step(journal, 'eip155:84532/none', 1)).to.equal(false)
    }
    expect(await journal.answered(key, 2, answerOf('{}'))).to.equal(true)
  })
}
