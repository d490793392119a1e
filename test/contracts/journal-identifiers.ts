/** What every journal promises about idempotency keys: one unreleased payment per payer and identifier. */
import { expect } from 'chai'
import type { Journal } from '../../gateway/payments/journal/journal.ts'
import type { TestJournal } from './journals.ts'
import { paymentIn, reservationOf, STEPS } from './journal-payments.ts'

/** @param create opens an empty journal; null if its server does not answer */
export function identifiersContract(name: string, create: () => Promise<TestJournal | null>): void {
  describe(`the journal in ${name}, for payments with an idempotency key,`, () => {
    let opened: TestJournal
    let journal: Journal
    let count = 0
    const named = (change: Parameters<typeof reservationOf>[0] = {}) =>
      reservationOf({ identifier: `identifier-${count}`, ...change })

    before(async function () {
      const created = await create()
      if (!created) this.skip()
      opened = created
      journal = created.journal
    })
    beforeEach(() => (count += 1))
    after(async () => opened?.drop())

    it('clears the identifier of a payment that settled late, since another payment may have it by now', async () => {
      const [first, second] = [named(), named()]
      await paymentIn(journal, 'released', first)
      expect((await journal.reserve({ ...second, identifier: first.identifier })).reserved).to.equal(true)
      expect(await STEPS.settledLate(journal, first.key, 1)).to.equal(true)
      expect(await journal.find(first.key)).to.include({ state: 'settled', identifier: null, answer: null })
      expect((await journal.openPayments()).map(({ key }) => key)).to.include(first.key)
    })

    it('refuses a second payment of the same payer under the same identifier, and returns the first', async () => {
      const first = named()
      await paymentIn(journal, 'settled', first)
      const { reserved, record } = await journal.reserve(named())
      expect(reserved).to.equal(false)
      expect(record).to.include({ key: first.key, identifier: first.identifier, state: 'settled' })
      expect(await journal.findByIdentifier(first.payer, first.identifier as string)).to.include({ key: first.key })
      expect(await journal.findByIdentifier(first.payer, 'another')).to.equal(null)
    })

    it('lets different payers use the same identifier, and one payer pay without any', async () => {
      const reservations = [named(), named({ payer: '0x00000000000000000000000000000000000000b2' })]
      reservations.push(reservationOf(), reservationOf())
      const results = await Promise.all(reservations.map((reservation) => journal.reserve(reservation)))
      expect(results.map(({ reserved }) => reserved)).to.deep.equal([true, true, true, true])
    })

    it('lets only one of many concurrent payments have the identifier', async () => {
      const results = await Promise.all(Array.from({ length: 30 }, () => journal.reserve(named())))
      expect(results.filter(({ reserved }) => reserved)).to.have.length(1)
      const [winner] = results.filter(({ reserved }) => reserved)
      for (const { record } of results) expect(record.key).to.equal(winner?.record.key)
    })

    it('frees the identifier of a released payment, and then keeps it for the payment that took it', async () => {
      const [first, second] = [named(), named()]
      await paymentIn(journal, 'released', first)
      expect((await journal.reserve(second)).reserved).to.equal(true)
      const retry = await journal.reserve(first)
      expect(retry.reserved).to.equal(false)
      expect(retry.record.key).to.equal(second.key)
      await STEPS.released(journal, second.key, 1)
      expect((await journal.reserve(first)).record).to.include({ attempt: 2, identifier: first.identifier })
    })

    it('forgets the identifier and the place of purchase together with the answer', async () => {
      const first = named({ place: 'there' })
      await paymentIn(journal, 'settled', first)
      opened.now += 1_000
      await journal.forgetAnswers(opened.now)
      expect(await journal.find(first.key)).to.include({ identifier: null, place: null, answer: null })
      expect((await journal.reserve(named())).reserved).to.equal(true)
    })

    // A journal in memory has no other process and cannot be opened again.
    if (name.includes('memory')) return

    it('keeps identifiers unique across processes and after a restart', async () => {
      const { open } = opened
      if (!open) throw new Error(`${name} cannot be opened twice`)
      const others = [await open(), await open()]
      for (let round = 0; round < 10; round++) {
        count += 1
        const all = [journal, ...others].flatMap((process) => [process.reserve(named()), process.reserve(named())])
        const results = await Promise.all(all)
        expect(results.filter(({ reserved }) => reserved)).to.have.length(1)
        expect(new Set(results.map(({ record }) => record.key)).size).to.equal(1)
      }
      for (const process of others) await process.close()
      const later = await open()
      expect((await later.reserve(named())).reserved).to.equal(false)
    })
  })
}
