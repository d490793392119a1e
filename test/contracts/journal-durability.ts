/** What a journal on disk promises beyond one in memory. */
import { expect } from 'chai'
import type { Journal } from '../../gateway/payments/journal/journal.ts'
import type { TestJournal } from './journals.ts'
import { answerOf, paymentIn, PATHS, reservationOf, STEPS } from './journal-payments.ts'

/** @param create opens an empty journal; null if its server does not answer */
export function durabilityContract(name: string, create: () => Promise<TestJournal | null>): void {
  describe(`the journal in ${name}, closed and opened again`, () => {
    let opened: TestJournal
    let journal: Journal
    let open: () => Promise<Journal>
    let sql: (text: string) => Promise<unknown>

    before(async function () {
      const created = await create()
      if (!created?.open || !created.sql) this.skip()
      opened = created
      ;({ journal } = created)
      ;({ open, sql } = created)
    })
    after(async () => opened?.drop())

    it('finishes pending writes before it closes, and has every row and event when it opens again', async () => {
      const first = await open()
      const keys = await Promise.all(
        (Object.keys(PATHS) as (keyof typeof PATHS)[]).map((state) => paymentIn(first, state)),
      )
      const last = reservationOf()
      // All writes are of one payment, so that each needs its own commit.
      const writing = Promise.all(Array.from({ length: 30 }, () => first.reserve(last)))
      const answered = STEPS.answered(first, last.key, 1)
      await first.close()
      expect((await writing).filter(({ reserved }) => reserved)).to.have.length(1)
      expect(await answered).to.equal(true)
      const refused = await first.reserve(reservationOf()).catch((error: unknown) => error)
      expect(String(refused)).to.contain('the journal is closed')
      const second = await open()
      for (const [at, state] of Object.keys(PATHS).entries()) {
        const key = keys[at] as string
        expect(await second.find(key)).to.deep.include({ ...(await journal.find(key)), state })
        expect((await second.events(key)).at(-1)).to.include({ state })
      }
      expect(await second.find(last.key)).to.include({ state: 'answered' })
    })

    it('never lets an event be changed or deleted, nor a payment be deleted', async () => {
      const key = await paymentIn(journal, 'settled')
      const events = await journal.events(key)
      for (const statement of [
        "UPDATE payment_events SET state = 'released'",
        "UPDATE payment_events SET note = '' WHERE id = 1",
        'DELETE FROM payment_events',
        'DELETE FROM payments',
      ]) {
        const refusal = await sql(statement).then(
          () => 'accepted',
          (error: Error) => error.message,
        )
        expect(refusal, statement).to.match(/append-only|never deleted/)
      }
      expect(await journal.events(key)).to.deep.equal(events)
      expect(await journal.find(key)).to.include({ state: 'settled' })
    })

    it('writes an event even if a state is changed by hand', async () => {
      const key = await paymentIn(journal, 'settled')
      await sql(`UPDATE payments SET state = 'owed', note = 'by hand' WHERE key = '${key}'`)
      expect((await journal.events(key)).at(-1)).to.include({ state: 'owed', note: 'by hand' })
    })

    it('lists a settled payment that never had an answer as open', async () => {
      const key = await paymentIn(journal, 'settled')
      await sql(`UPDATE payments SET answer_status = NULL, answer_body = NULL WHERE key = '${key}'`)
      expect((await journal.openPayments()).map((row) => row.key)).to.include(key)
    })

    it('lets only one of several processes reserve a payment, and only one make each move', async () => {
      const others = await Promise.all([open(), open(), open()])
      const all = [journal, ...others]
      for (let round = 0; round < 10; round++) {
        const reservation = reservationOf()
        const { key } = reservation
        const reserved = await Promise.all(
          all.map((process, at) => process.reserve({ ...reservation, callId: `process-${at}` })),
        )
        expect(reserved.filter((result) => result.reserved)).to.have.length(1)
        expect(new Set(reserved.map(({ record }) => record.callId)).size).to.equal(1)
        const moved = await Promise.all([
          ...all.map((process) => STEPS.answered(process, key, 1)),
          ...all.map((process) => STEPS.released(process, key, 1)),
        ])
        const states = (await journal.events(key)).map(({ state }) => state)
        expect(moved.filter(Boolean)).to.have.length(states.length - 1)
        expect(states.join(' ')).to.match(/^reserved (answered released|answered|released)$/)
      }
    })

    it('reports the right results when two processes write the same payments in opposite orders', async () => {
      const other = await open()
      const reservations = Array.from({ length: 40 }, () => reservationOf())
      const reserve = (process: Journal, list: typeof reservations) =>
        Promise.all(list.map((reservation) => process.reserve(reservation)))
      const [here, there] = await Promise.all([
        reserve(journal, reservations),
        reserve(other, reservations.toReversed()),
      ])
      const winners = [...here, ...there].filter(({ reserved }) => reserved)
      expect(new Set(winners.map(({ record }) => record.key)).size).to.equal(40)
      expect(winners).to.have.length(40)
      const answer = (process: Journal, list: typeof reservations) =>
        Promise.all(list.map(({ key }) => process.answered(key, 1, answerOf('{}'))))
      const moved = await Promise.all([answer(journal, reservations), answer(other, reservations.toReversed())])
      expect(moved.flat().filter(Boolean)).to.have.length(40)
    })

    it('counts a process as live until it closes or is silent for 30 seconds', async () => {
      const other = await open()
      const key = await paymentIn(other, 'reserved')
      const owner = (await journal.openPayments()).find((row) => row.key === key)?.owner as string
      expect((await journal.liveOwners()).has(owner)).to.equal(true)
      expect((await journal.liveOwners()).has('elsewhere/1/x')).to.equal(false)
      opened.now += 60_000
      expect((await journal.liveOwners()).has(owner)).to.equal(false)
      expect((await other.liveOwners()).has(owner)).to.equal(true)
      opened.now -= 60_000
      await other.close()
      expect((await journal.liveOwners()).has(owner)).to.equal(false)
    })
  })
}
